"""How good a telephone call sounds: the E-model of ITU-T G.107, as R. G. Cole and J. H. Rosenbluth
simplified it (Voice over IP Performance Monitoring, Computer Communication Review 31(2), 2001).

    R = 94.2 - Id - Ie
    Id = 0.024 d + 0.11 (d - 177.3) H(d - 177.3)    d: delay from mouth to ear in ms
    Ie = 30 ln(1 + 15 e)                            e: fraction that is not heard; G.711
    MOS = 1 + 0.035 R + 7e-6 R (R - 60) (100 - R)   1 below R = 0, 4.5 above R = 100

A call is judged in windows of `WINDOW_S`, and in both directions. In each window the receiver plays
a datagram `playout_ms` after the quickest datagram of this window would have been there, as if it
chose this anew whenever nobody speaks. Those that come later are not heard. A datagram is sent when
all that it carries has been spoken, so d also has the time between two datagrams.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from lab.run.report import CallReport
from lab.run.transfers import percentile
from lab.scenario.flows import CallSpec, Flow, scaled_traffic, schedule
from lab.scenario.schema import Scenario

WINDOW_S = 5.0
LAST_S = 1.0  # of a call, which is not judged: its datagrams may still be on their way
MOS_WORST, MOS_BEST = 1.0, 4.5
MS = 1000
Numbers = dict[str, float | None]
Direction = Mapping[str, float | str | None]
CallSection = Mapping[str, float | list[dict[str, float | str | None]] | None]
KEYS = (
    *("mos", "mos_worst", "delay_p50_ms", "delay_p95_ms", "delay_p99_ms"),
    *("jitter_ms", "loss", "late"),
)


def mos(delay_ms: float, unheard: float) -> float:
    """Return the mean opinion score, from 1 to 4.5. `delay_ms` is from mouth to ear, and `unheard`
    the fraction of datagrams that were lost or late."""
    by_delay = 0.024 * delay_ms + 0.11 * max(0.0, delay_ms - 177.3)
    r = 94.2 - by_delay - 30 * math.log(1 + 15 * unheard)
    if r <= 0:
        return MOS_WORST
    if r >= 100:
        return MOS_BEST
    return max(MOS_WORST, 1 + 0.035 * r + 7e-6 * r * (r - 60) * (100 - r))


def section(scenario: Scenario, found: Sequence[CallReport], end_s: float) -> CallSection:
    """Return the object under the key `call` of result.json, or {} if there are no calls. The run
    ended at `end_s`."""
    heard_ms = {each.connection: each.delays_ms for each in found}
    calls = [
        {"user": flow.user, "connection": flow.id, "direction": flow.direction}
        | judged(flow, heard_ms[flow.id], seconds)
        for flow, seconds in _spoken(scenario, end_s)
        if flow.id in heard_ms
    ]
    if not calls:
        return {}
    whole = {key: _over_all(calls, key) for key in KEYS}
    return {"count": len(calls), **whole, "calls": calls}


def _spoken(scenario: Scenario, end_s: float) -> Iterator[tuple[Flow, float]]:
    """Yield the two directions of each call that is long enough, and how long it was [s]."""
    acts = schedule(scaled_traffic(scenario), scenario.seed, scenario.duration_s)
    stops_s = {act.flow.id: act.at_s for act in acts if act.verb == "stop"}
    for act in acts:
        if act.flow.call and act.verb == "start":
            seconds = min(end_s, stops_s.get(act.flow.id, end_s)) - act.at_s - LAST_S
            if seconds >= act.flow.call.packet_s:
                yield act.flow, seconds


def _over_all(directions: Sequence[Direction], key: str) -> float | None:
    """Return the mean of the calls, each judged by its worse direction; of "mos_worst" the lowest.
    A good direction must not hide that the other is bad."""
    worse = min if key in ("mos", "mos_worst") else max
    found = [
        worse(known)
        for call in _by_call(directions)
        if (known := [value for each in call if isinstance(value := each[key], int | float)])
    ]
    if not found:
        return None
    return min(found) if key == "mos_worst" else round(sum(found) / len(found), 6)


def _by_call(directions: Sequence[Direction]) -> list[list[Direction]]:
    """Group the directions of calls: the way up follows the way down of its call."""
    found: list[list[Direction]] = []
    for each in directions:
        last = found[-1][-1] if found else {}
        is_second = each["direction"] == "up" and last.get("direction") == "down"
        if is_second and last["user"] == each["user"]:
            found[-1].append(each)
        else:
            found.append([each])
    return found


def judged(flow: Flow, delays_ms: Mapping[int, float], seconds: float) -> Numbers:
    """Return the numbers of one direction of a call, of which `seconds` are judged. `delays_ms` has
    the one-way delay of each datagram that arrived, by its number from 0."""
    assert flow.call is not None
    sent = int(seconds / flow.call.packet_s)
    arrived = {n: delays_ms[n] for n in sorted(delays_ms) if n < sent}
    in_window = round(WINDOW_S / flow.call.packet_s)
    scores, late = [], 0
    for first, end in _windows(sent, in_window):
        of_window = [arrived[n] for n in range(first, end) if n in arrived]
        found = score(flow.call, of_window, end - first)
        late += found.late
        scores.append(found.mos)
    return _rounded(
        {
            "mos": sum(scores) / len(scores),
            "mos_worst": min(scores),
            **{f"delay_p{p}_ms": percentile(sorted(arrived.values()), p) for p in (50, 95, 99)},
            "jitter_ms": _jitter_ms(arrived),
            "loss": 1 - len(arrived) / sent,
            "late": late / sent,
        }
    )


class Score(NamedTuple):
    """How one direction of a call sounded in a window, in which `late` datagrams were too late."""

    mos: float
    late: int


def score(call: CallSpec, delays_ms: Sequence[float], sent: int) -> Score:
    """Judge a window of a call. `delays_ms` are those of the datagrams that arrived, of `sent`."""
    deadline_ms = min(delays_ms, default=0.0) + call.playout_ms
    in_time = sum(each <= deadline_ms for each in delays_ms)
    mouth_to_ear_ms = call.packet_s * MS + deadline_ms
    return Score(mos(mouth_to_ear_ms, 1 - in_time / sent), len(delays_ms) - in_time)


def _windows(sent: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the first datagram of each window and the one past its last. The last window also has
    those that do not fill another one."""
    count = max(1, sent // size)
    for n in range(count):
        yield n * size, sent if n == count - 1 else (n + 1) * size


def _jitter_ms(arrived: Mapping[int, float]) -> float | None:
    """Return the mean difference between the delays of two datagrams that arrived one after the
    other was sent (as in RFC 3550, section 6.4.1, without smoothing)."""
    found = [abs(b - a) for a, b in pairwise(arrived.values())]
    return sum(found) / len(found) if found else None


def _rounded(numbers: Numbers) -> Numbers:
    return {key: None if each is None else round(each, 6) for key, each in numbers.items()}
