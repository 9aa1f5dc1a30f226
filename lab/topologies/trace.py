"""Traces: files that say how the rate, the delay and the loss of a link change. A trace that has
ended begins again.

Two formats are read. Mahimahi's has one line for each packet of 1500 bytes that the link can
deliver, with its time in ms (R. Netravali et al., Mahimahi, USENIX ATC 2015). CSV has a header with
`t_s` and any of `rate_mbps`, `delay_ms` and `loss`; a row holds until the next one, and the last
row as long as the one before it.
"""

from __future__ import annotations

import csv
import math
import pathlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

from controller.units import bps_from_mbps
from lab import plain_file
from lab.errors import RequestError, show, unknown

TIME = "t_s"
BOUNDS = {"rate_mbps": (0, 10_000), "delay_ms": (0, 5_000), "loss": (0, 1)}  # by column
DELIVERED_BITS = 1500 * 8
FRAME_BITS = 1514 * 8
MOST_BYTES = 64 * 2**20
MOST_BINS = 100_000
LEAST_OF_STATION_MBPS = 0.1
Values = tuple[float | None, ...]  # in the order of BOUNDS; None: the trace does not have it


@dataclass(frozen=True)
class TraceStep:
    """The values of a trace from `at_s` on, for `lasts_s`. A value that the trace does not have is
    None."""

    at_s: float
    lasts_s: float
    rate_mbps: float | None = None
    delay_ms: float | None = None
    loss: float | None = None

    def rate_bps(self, rate_scale: float) -> int | None:
        """Return the rate on the wire.

        It is at least one frame in `lasts_s`: a shaper that sends a frame at a lower rate would
        still be busy with it when the rate has risen.
        """
        if self.rate_mbps is None:
            return None
        one_frame_bps = math.ceil(FRAME_BITS / self.lasts_s)
        return max(bps_from_mbps(self.rate_mbps * rate_scale), one_frame_bps)


@dataclass(frozen=True)
class Trace:
    """The steps of a trace. The first one begins at 0 s. After `period_s` it begins again."""

    steps: tuple[TraceStep, ...]
    period_s: float

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(each for each in BOUNDS if getattr(self.steps[0], each) is not None)


@dataclass(frozen=True)
class Traced:
    """A link ("link.path1"), a direction of one ("link.path1.up") or a station ("cell.lte1.ue3")
    whose values follow a trace."""

    target: str
    trace: Trace

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(f"{self.target}.{each}" for each in self.trace.columns)


def means_mbps(trace: Trace, edges_s: Sequence[float]) -> list[float]:
    """Return the mean rate between each two neighbouring times of a run. A trace without a rate has
    none."""
    starts_s = [each.at_s for each in trace.steps]
    rates_mbps = [each.rate_mbps or 0.0 for each in trace.steps]
    offered_mbit = [
        0.0,
        *accumulate(
            each.lasts_s * mbps for each, mbps in zip(trace.steps, rates_mbps, strict=True)
        ),
    ]

    def offered_until(t_s: float) -> float:
        rounds, at_s = divmod(t_s, trace.period_s)
        n = bisect_right(starts_s, at_s) - 1
        return rounds * offered_mbit[-1] + offered_mbit[n] + (at_s - starts_s[n]) * rates_mbps[n]

    offered = map(offered_until, edges_s)
    spans_s = (end_s - start_s for start_s, end_s in pairwise(edges_s))
    return [
        (later - before) / span_s
        for (before, later), span_s in zip(pairwise(offered), spans_s, strict=True)
    ]


def read(path: pathlib.Path, bin_ms: int) -> Trace:
    """Read a trace. Raise `RequestError`, which names the line, if the file is not one."""
    try:
        status = path.stat()
        return _read(path, bin_ms, (status.st_mtime_ns, status.st_size, status.st_ino))
    except OSError as error:
        raise RequestError(f"read {path}: {error.strerror or error}") from error


@lru_cache(maxsize=64)
def _read(path: pathlib.Path, bin_ms: int, _state: tuple[int, ...]) -> Trace:
    content = plain_file.read(path, most_bytes=MOST_BYTES + 1, follow=True)
    if len(content) > MOST_BYTES:
        raise RequestError(f"read {path}: it is larger than {MOST_BYTES >> 20} MiB")
    try:
        return parsed(content.decode("utf-8-sig"), bin_ms / 1000)
    except UnicodeDecodeError as error:
        raise RequestError(f"read {path}: it is no text") from error
    except ValueError as error:
        raise RequestError(f"read {path}: {error}") from error


def parsed(text: str, bin_s: float) -> Trace:
    """Return the trace in a text. Raise `ValueError`, which names the line, if it is none."""
    lines = [(n, line.strip()) for n, line in enumerate(text.splitlines(), 1)]
    lines = [(n, line) for n, line in lines if line and not line.startswith("#")]
    if not lines:
        raise ValueError("it is empty: write a line for each packet, or CSV with a header t_s,...")
    if lines[0][1].isdecimal():
        return _of_deliveries(lines, bin_s)
    return _of_rows(lines, bin_s)


def _of_deliveries(lines: Sequence[tuple[int, str]], bin_s: float) -> Trace:
    before_ms, times_ms = 0, []
    for n, line in lines:
        if not (line.isascii() and line.isdecimal() and len(line) < 12):
            raise ValueError(f"line {n}: {show(line)} is not a time in ms")
        if int(line) < before_ms:
            raise ValueError(f"line {n}: {line} ms is before {before_ms} ms: sort the lines")
        before_ms = int(line)
        times_ms.append(before_ms)
    period_s = before_ms / 1000
    if period_s == 0:
        raise ValueError("it ends at 0 ms: the last line says how long the trace is")
    edges_s = _edges(period_s, bin_s)
    bins = len(edges_s) - 1
    # a packet at the very end is the first one of the next round
    packets = Counter(min(int(ms / 1000 / bin_s), bins - 1) for ms in times_ms)
    spans_s = [end - start for start, end in pairwise(edges_s)]
    rates: list[Values] = [
        (packets[n] * DELIVERED_BITS / span_s / 1e6, None, None) for n, span_s in enumerate(spans_s)
    ]
    return Trace(tuple(_merged(edges_s, rates)), period_s)


def _of_rows(lines: Sequence[tuple[int, str]], bin_s: float) -> Trace:
    header, *rows = csv.reader(line for _, line in lines)
    columns = [each.strip() for each in header]
    for each in columns:
        if each not in (TIME, *BOUNDS):
            raise ValueError(f"line {lines[0][0]}: column {unknown(each, (TIME, *BOUNDS))}")
    if TIME not in columns or len(columns) < 2 or len({*columns}) < len(columns):
        raise ValueError(
            f"line {lines[0][0]}: a header names {TIME} and some of {', '.join(BOUNDS)}, each once"
        )
    if not rows:
        raise ValueError("it has no row below its header")
    found: list[tuple[float, Values]] = []
    for (n, _), row in zip(lines[1:], rows, strict=True):
        if len(row) != len(columns):
            raise ValueError(f"line {n}: {len(row)} values for {len(columns)} columns")
        values = {each: _number(each, text, n) for each, text in zip(columns, row, strict=True)}
        at_s = values[TIME]
        if found and at_s <= found[-1][0]:
            raise ValueError(f"line {n}: {at_s:g} s is not after {found[-1][0]:g} s")
        found.append((at_s, tuple(values.get(each) for each in BOUNDS)))
    if "rate_mbps" in columns and not any(values[0] for _, values in found):
        raise ValueError("rate_mbps is 0 in all rows: the link would carry nothing")
    starts_s = [at_s - found[0][0] for at_s, _ in found]
    last_s = starts_s[-1] - starts_s[-2] if len(found) > 1 else bin_s
    period_s = starts_s[-1] + last_s
    edges_s = _edges(period_s, bin_s)
    held = list(zip(starts_s, [*starts_s[1:], period_s], (each for _, each in found), strict=True))
    return Trace(tuple(_merged(edges_s, list(_means(edges_s, held)))), period_s)


def _number(column: str, text: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"line {line}: {column}: {show(text.strip())} is not a number") from None
    low, high = BOUNDS.get(column, (-1e9, 1e9))
    if not low <= value <= high:
        raise ValueError(f"line {line}: {column}: {value:g} is not within {low:g} to {high:g}")
    return value


def _edges(period_s: float, bin_s: float) -> list[float]:
    """Return the borders of the bins. The last bin may be shorter."""
    bins = math.ceil(period_s / bin_s - 1e-9)
    if bins > MOST_BINS:
        raise ValueError(
            f"{period_s:g} s are {bins} bins of {bin_s * 1000:g} ms, and at most {MOST_BINS} are "
            f"read: write trace_bin_ms: {math.ceil(period_s / MOST_BINS * 1000)}"
        )
    return [*(n * bin_s for n in range(bins)), period_s]


def _means(
    edges_s: Sequence[float], held: Sequence[tuple[float, float, Values]]
) -> Iterator[Values]:
    """Yield the means of each bin, weighted by time. `held` has start, end and values of rows."""
    n = 0
    for start_s, end_s in pairwise(edges_s):
        parts: list[tuple[float, Values]] = []
        while True:
            from_s, until_s, values = held[n]
            share_s = min(end_s, until_s) - max(start_s, from_s)
            if share_s > 0:
                parts.append((share_s, values))
            if until_s >= end_s or n + 1 == len(held):
                break
            n += 1
        whole_s = sum(share_s for share_s, _ in parts)
        yield tuple(
            None
            if each[0] is None
            else sum(s * v for (s, _), v in zip(parts, each, strict=True)) / whole_s
            for each in zip(*(values for _, values in parts), strict=True)
        )


def _merged(edges_s: Sequence[float], values: Sequence[Values]) -> Iterator[TraceStep]:
    """Yield one step for all neighbouring bins with equal values."""
    rounded = [tuple(None if v is None else round(v, 6) for v in each) for each in values]
    starts = [n for n in range(len(rounded)) if n == 0 or rounded[n] != rounded[n - 1]]
    for n, end in zip(starts, [*starts[1:], len(rounded)], strict=True):
        yield TraceStep(edges_s[n], edges_s[end] - edges_s[n], *rounded[n])


def check_jitter(trace: Trace | None, jitter_ms: float) -> None:
    """Raise `ValueError` if a delay of the trace is smaller than the jitter."""
    delays_ms = (
        [each.delay_ms for each in trace.steps if each.delay_ms is not None] if trace else []
    )
    if delays_ms and min(delays_ms) < jitter_ms:
        raise ValueError(f"jitter_ms {jitter_ms:g} is above a delay of {min(delays_ms):g} ms")


def check_station(trace: Trace, key: str) -> None:
    """Raise `ValueError` if a radio station cannot follow a trace. At a lower rate, one of its
    frames would hold the channel of all stations for long."""
    if trace.columns != ("rate_mbps",):
        raise ValueError(f"{key}: a station has a rate only: leave out the other columns")
    lowest = min(each.rate_mbps or 0.0 for each in trace.steps)
    if lowest < LEAST_OF_STATION_MBPS:
        raise ValueError(
            f"{key}: {lowest:g} Mb/s is below {LEAST_OF_STATION_MBPS:g} Mb/s, the least of a "
            "station: raise it, or average over a longer trace_bin_ms"
        )


def mean_mbps(steps: Iterable[TraceStep]) -> float:
    """Return the mean rate of steps that all have one, weighted by time."""
    pairs = [(each.lasts_s, each.rate_mbps or 0.0) for each in steps]
    return sum(s * mbps for s, mbps in pairs) / sum(s for s, _ in pairs)
