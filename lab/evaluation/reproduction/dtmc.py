"""Subflow selection by a Markov chain (DTMC): its forecast, and whether the chosen few of many paths do better than all. Pure.

Path i has i Mb/s, 10 i ms each way and a loss of i - 1 %; `none` uses the first n of them, `subflow_selection` and `optimum` choose among
them. Receive buffer 100 kB, BALIA.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from lab.evaluation.reproduction.base import (
    FRAME_BITS,
    PAYLOAD,
    Case,
    Claim,
    Constant,
    Found,
    Judged,
    Numbers,
    Operator,
    Paper,
    Relation,
    Value,
    average,
    claims_table,
    score,
)
from lab.results.tables import markdown_table
from lab.run.recorder import read_events

PLAIN, CHOSEN, BEST = "none", "subflow_selection", "optimum"
PATHS = 15
COUNTS = tuple(range(1, PATHS + 1))
SEVERAL = COUNTS[1:]  # among which there is something to choose
LONG = {
    1: (8, 80),
    2: (8, 80),
    3: (18, 180),
}  # Mb/s and packets of queue of three paths of 120 ms (Figures 2 to 4)
LOSSES = (0.0, 0.05)


def _path(mbps: float, delay_ms: float, loss: float, queue: int) -> str:
    return f"{{rate_mbps: {mbps}, delay_ms: {delay_ms}, loss: {loss:g}, queue_packets: {queue}}}"


def _uneven(n: int) -> str:
    """Path n, with a queue of one bandwidth-delay product, 10 packets at least."""
    return _path(n, 10 * n, (n - 1) / 100, max(10, round(n * 20_000 * n / FRAME_BITS)))


def _first(n: int, strategy: str) -> str:
    return f"first-{n}-{strategy}"


def _chain(n: int, loss: float) -> str:
    return f"chain-{n}-{loss:g}"


def _cases() -> Iterable[Case]:
    for n in COUNTS:
        paths = f"topology.paths=[{', '.join(_uneven(k) for k in range(1, n + 1))}]"
        for strategy in (PLAIN, CHOSEN, BEST) if n > 1 else (PLAIN,):
            yield Case(
                _first(n, strategy),
                "fifteen_paths",
                (paths, "sample_interval_s=5"),
                None,
                strategy,
                60,
            )
    for n in (2, 3):
        for loss in LOSSES:
            paths = f"topology.paths=[{', '.join(_path(mbps, 60, loss, queue) for mbps, queue in list(LONG.values())[:n])}]"
            yield Case(_chain(n, loss), "three_paths", (paths, "sample_interval_s=5"))


def measure(_case: Case, result: Mapping[str, Any], folder: Path) -> Numbers:
    """Mb/s, percent of segments out of order, sent again and lost, mean round trip, how many subflows were active last, and the last forecast."""
    (connection,) = result["connections"]
    subflows = connection["subflows"]
    segments = sum(each["segments"] for each in subflows)
    forecasts = [
        each
        for each in read_events(folder)
        if each["kind"] == "decision" and each.get("action") == "forecast"
    ]
    last = forecasts[-1] if forecasts else {"active": subflows, "forecast_mbps": 0.0}

    def percent(number: str) -> float:
        return 100 * float(sum(each[number] for each in subflows)) / float(segments)

    return {
        "T": result["throughput_mbps"],
        "early": 100 * (connection["out_of_order_fraction"] or 0.0),
        "again": percent("retransmitted_segments"),
        "lost": percent("lost_segments"),
        "rtt": sum(each["rtt_ms_mean"] * each["segments"] for each in subflows if each["segments"])
        / segments,
        "active": float(len(last["active"])),
        "forecast": last["forecast_mbps"] * PAYLOAD,  # it is of frames
    }


def _of(case: str, number: str = "T") -> Value:
    return Value(case, number, f"{number}({case})")


def _each(
    number: str, operator: Operator, counts: Iterable[int], times: float = 1.0, right: str = PLAIN
) -> tuple[Judged, ...]:
    """What was chosen among the first n against another strategy there."""
    return tuple(
        Relation(_of(_first(n, CHOSEN), number), operator, _of(_first(n, right), number), times)
        for n in counts
    )


def _fewer(number: str) -> tuple[Judged, ...]:
    """Less of it with the chosen ones than with all, from four paths on."""
    return tuple(
        Relation(_of(_first(n, PLAIN), number), ">", _of(_first(n, CHOSEN), number))
        for n in COUNTS[3:]
    )


LOSSY = "Of a path that loses 5 % less is carried than forecast; probably by timeouts, which the chain does not have, but that was not looked into"
CLAIMS = (
    Claim("3", "S", "The forecast is what is carried, within a tenth",
          tuple(each for n in (2, 3) for loss in LOSSES
                for each in (Relation(_of(_chain(n, loss), "forecast"), ">=", _of(_chain(n, loss)), 0.9), Relation(_of(_chain(n, loss), "forecast"), "<=", _of(_chain(n, loss)), 1.1))), False, LOSSY),
    Claim("5, full mesh", "S", "All paths are good up to three; with more of them throughput does not grow, and with fifteen it is lower than with three",
          (*(Relation(_of(_first(b, PLAIN)), ">", _of(_first(a, PLAIN))) for a, b in pairwise(COUNTS[:3])),
           *(Relation(_of(_first(n, PLAIN)), "<=", _of(_first(3, PLAIN))) for n in COUNTS[3:]),
           Relation(_of(_first(3, PLAIN)), ">", _of(_first(15, PLAIN)))), True),
    Claim("5, chosen", "S", "From four paths on, the chosen ones carry as much as all of them or more", _each("T", ">=", COUNTS[3:]), True),
    Claim("5, more", "S", "... with eight and more far more (a fifth)", _each("T", ">", COUNTS[7:], 1.2), False, "What all paths carry falls with more of them here too (below); the paper gives no figures to compare with"),
    Claim("5, optimum", "S", "They carry what the best choice carries, within a tenth", _each("T", ">=", SEVERAL, 0.9, BEST) + _each("T", "<=", SEVERAL, 1.1, BEST), True),
    Claim("6", "S", "From four paths on, fewer segments of the chosen ones arrive out of order than of all", _fewer("early"), True),
    Claim("7", "S", "... fewer are sent again", _fewer("again"), True),
    Claim("8", "S", "... fewer are lost", _fewer("lost")),
    Claim("9, 10", "S", "Of four paths three are chosen", (Relation(_of(_first(4, CHOSEN), "active"), "~", Constant(3.0)),), True),
    Claim("11", "S", "From four paths on, round trips are shorter", _fewer("rtt"), True),
)  # fmt: skip


def page(found: Found) -> str:
    """Claims, then every number of paths."""
    return "\n\n".join([
        f"Of the claims that a reproduction is judged on, {score(CLAIMS, found)} agree. T is goodput in Mb/s; first-n are the first n of fifteen paths.",
        claims_table(CLAIMS, found),
        "## The first n of fifteen paths (Figures 5 to 11)",
        f"Mb/s with all of them (`{PLAIN}`), with those that `{CHOSEN}` takes (in brackets how many, and its forecast) and with the best ones (`{BEST}`); then all against "
        "chosen: percent of the segments out of order, sent again, and lost, and the mean round trip.",
        _counts(found),
        "## Forecast and measured (Figures 2 to 4)",
        "Paths of 120 ms, of 8, 8 and 18 Mb/s; Mb/s of goodput.",
        _forecasts(found),
    ])  # fmt: skip


def _counts(found: Found) -> str:
    rows = []
    for n in COUNTS:
        plain, chosen, best = (_first(n, each) for each in (PLAIN, CHOSEN, BEST))
        row = [str(n), f"{average(found, plain, 'T'):.2f}"]
        if n > 1:
            row.append(
                f"{average(found, chosen, 'T'):.2f} ({average(found, chosen, 'active'):g}; {average(found, chosen, 'forecast'):.2f})"
            )
            row.append(f"{average(found, best, 'T'):.2f}")
            row += [
                f"{average(found, plain, number):.1f}, {average(found, chosen, number):.1f}"
                for number in ("early", "again", "lost", "rtt")
            ]
        rows.append([*row, *["-"] * (8 - len(row))])
    return markdown_table(
        (
            "n",
            "all",
            "chosen",
            "best",
            "out of order, %",
            "sent again, %",
            "lost, %",
            "round trip, ms",
        ),
        rows,
    )


def _forecasts(found: Found) -> str:
    rows = [
        [
            str(n),
            f"{100 * loss:g} %",
            f"{average(found, _chain(n, loss), 'forecast'):.2f}",
            f"{average(found, _chain(n, loss), 'T'):.2f}",
        ]
        for n in (2, 3)
        for loss in LOSSES
    ]
    return markdown_table(("paths", "loss", "forecast", "measured"), rows)


DTMC = Paper(
    "dtmc", "Which of many paths to use, by a Markov chain", tuple(_cases()), measure, page
)
