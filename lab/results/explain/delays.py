"""Explain why a change has its effect only after some time: the controller decides at intervals,
congestion windows have to grow, and buffered data has to be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lab.frame import Frame
from lab.metrics import SUM, Watched
from lab.results import effects as effects
from lab.results.effects import WINDOW_S, number_text, value
from lab.results.explain import held as held
from lab.results.explain.scene import Event, Scene, inside, listed, subflow_number
from lab.results.flips import is_accepted
from lab.results.labels import natural
from lab.results.stretches import Span
from lab.summaries import EPSILON_S

SHORT_S = 1.0  # a shorter delay is not mentioned
LEAST_CHANGE = 0.15  # of the greater mean; for a smaller change no delay is computed
ONE_PACKET = ("reno", "lia", "olia", "balia")  # windows grow by at most one packet in a round trip
GREATER = 1.3  # a window has grown if it is this many times as large as before
MOVES = ("link.", ".up")


def first_order_s(events: Sequence[Event], target: str, at_s: float) -> float | None:
    """Return the time in s of the controller's first order after a change of its strategy.

    An order is, for example, a new path or a rate limit. `target` names the parameter that was
    changed at `at_s`. Return None if this is neither the strategy nor one of its parameters. Also
    return None if the first order came at once, later than `WINDOW_S`, or after the next change.
    """
    if target.partition(".")[0] != "strategy":
        return None
    flips = [each["t"] for each in events if is_accepted(each) and each["t"] > at_s + EPSILON_S]
    soon = Span(at_s, min([at_s + WINDOW_S, *flips]))
    found = next((each["t"] for each in events if _is_action(each, soon)), None)
    return found if found is not None and found > at_s + EPSILON_S else None


def settling_s(scene: Scene, target: str, at_s: float) -> float:
    """Return the time in s from a change at `at_s` until the rates have settled.

    It follows from the longest RTT after the change, and from the interval of the strategy if that
    decides anything. `target` names the changed parameter.
    """
    window = Span(at_s, at_s + WINDOW_S)
    trips_ms = [
        each.rtt_ms for frame in inside(scene, window) for each in frame.sf.values() if each.rtt_ms
    ]
    _, interval_s = _strategy(scene, at_s)
    decides = target.partition(".")[0] == "strategy" or any(
        _is_action(each, window) for each in scene.events
    )
    is_number = isinstance(interval_s, int | float)
    return effects.settling_s(
        max(trips_ms, default=0.0), interval_s if decides and is_number else 0.0
    )


def orders(scene: Scene, target: str, before: Span, after: Span) -> list[str]:
    """Return sentences about the controller's orders after a change, and their times.

    `target` names the changed parameter; `before` and `after` are the intervals of the run before
    and after the change.
    """
    return [*_decision(scene, target, after), *_limits(scene, before, after)]


def waits(
    scene: Scene, target: str, subject: Watched, cc: str, spans: tuple[Span, Span]
) -> list[str]:
    """Return sentences about the time between a change and its effect on the number `subject`.

    `target` names the changed parameter. `cc` is the congestion control after the change, and
    `spans` are the intervals of the run before and after it.
    """
    before, after = spans
    texts: list[str] = []
    half_s = half_time(scene, subject, before, after)
    if half_s is not None and half_s >= SHORT_S:
        texts.append(
            f"Half of the change of {subject.text.replace(': ', ', ')}, was there "
            f"{number_text(half_s)} s after it."
        )
        if cc in ONE_PACKET and subject.kind == "user":
            texts += _windows(scene, subject.id, cc, before, after, half_s)
    return texts + held.released(scene, target, after)


def half_time(scene: Scene, subject: Watched, before: Span, after: Span) -> float | None:
    """Return the time in s from a change until half of its effect on `subject` was reached.

    Half of the effect is reached at the first sample beyond the middle between the mean before the
    change and the mean after it. Return None if the effect is small, or if the number falls back
    within the next second. Also return None if the number was beyond the middle for a second before
    the change.
    """

    def number(frame: Frame) -> float | None:
        return value(frame, subject)

    was, now = before.mean(scene.frames, number), after.mean(scene.frames, number)
    if was is None or now is None or abs(now - was) < LEAST_CHANGE * max(abs(was), abs(now)):
        return None
    middle, sign = (was + now) / 2, 1 if now > was else -1
    earlier = [
        Span(before.end_s - n - 1, before.end_s - n).mean(scene.frames, number)
        for n in range(int(before.seconds + EPSILON_S))
    ]
    if any(each is not None and sign * (each - middle) >= 0 for each in earlier):
        return None  # it also crossed the middle without the change
    for frame in scene.frames:
        if after.start_s + EPSILON_S < frame.t <= after.end_s - 1 + EPSILON_S:
            levels = (number(frame), Span(frame.t, frame.t + 1).mean(scene.frames, number))
            beyond = [each is not None and sign * (each - middle) >= 0 for each in levels]
            if beyond[0]:  # None if the number falls back within a second
                return frame.t - after.start_s if beyond[1] else None
    return None


def _decision(scene: Scene, target: str, after: Span) -> list[str]:
    """Return sentences about the controller's first order after a change, and how often it decides.

    Return [] unless the strategy was changed, or a link was cut or repaired.
    """
    moves_link = target.startswith(MOVES[0]) and target.endswith(MOVES[1])
    if target.partition(".")[0] != "strategy" and not moves_link:
        return []
    first = next((each for each in scene.events if _is_action(each, after)), None)
    name, interval_s = _strategy(scene, after.start_s)
    if first is None or not isinstance(interval_s, int | float):
        return []
    waited = first["t"] - after.start_s
    if waited < EPSILON_S:
        return []
    together = [each for each in scene.events if _is_action(each, Span(first["t"], first["t"]))]
    routed = not moves_link or any(each.get("action") == "route" for each in together)
    if name == "none":  # its only orders undo those of the strategy before it
        return [f"What the strategy before had ordered was undone at {first['t']:.1f} s."]
    return [
        f"{name} decides every {interval_s:g} s: its first order after the change came "
        f"{waited:.1f} s later, at {first['t']:.1f} s{'' if routed else ', and changed no path'}.",
        *([] if scene.scenario.multipath.by_window else _paced(together)),
    ]


def _paced(orders: Sequence[Event]) -> list[str]:
    """Return sentences about the pacing rates that some orders set, or [] if they set none."""
    rates = [each["expected_mbps"] for each in orders if each.get("expected_mbps") is not None]
    if not rates:
        return []
    subflows = "1 subflow" if len(rates) == 1 else f"{len(rates)} subflows"
    texts = dict.fromkeys(number_text(each) for each in (min(rates), max(rates)))
    return [
        f"It gave {subflows} a pacing rate of {' to '.join(texts)} Mb/s of frames.",
        "A server sends no faster than the pacing rate. Where the links can carry that, no queue "
        "overflows and no packet is lost, so the windows stay constant.",
    ]


def _is_action(event: Event, after: Span) -> bool:
    return (
        event.get("kind") == "decision"
        and event.get("action") not in ("keep", "forecast")
        and after.start_s - EPSILON_S <= event["t"] <= after.end_s
    )


def _strategy(scene: Scene, t: float) -> tuple[str, Any]:
    """Return the name of the strategy at time `t`, and its parameter `interval_s`, the time in s
    between two decisions."""
    first = scene.scenario.strategy
    name, interval_s = first.name, first.params.get("interval_s")
    for event in scene.events:
        if is_accepted(event) and event["t"] <= t + EPSILON_S:
            if event.get("target") == "strategy":
                name = event["value"]["name"]
                interval_s = (event["value"].get("params") or {}).get("interval_s")
            elif event.get("target") == "strategy.interval_s":
                interval_s = event.get("value")
    return name, interval_s


def _limits(scene: Scene, before: Span, after: Span) -> list[str]:
    """Return sentences about limits on secondary subflows (Tier 2) that were set or removed.

    They name the access points, and compare the interval before a change with that after it.
    """
    begun: dict[str, list[str]] = {}
    gone = []
    for ap in scene.network.ids("wifi", "lte"):
        limit = _number(ap)
        old = [each for each in map(limit, inside(scene, before)) if each is not None]
        new = [
            (frame.t, mbps) for frame in inside(scene, after) if (mbps := limit(frame)) is not None
        ]
        if not old and new:
            (start, first), (end, last) = new[0], new[-1]
            now = f", {number_text(last)} Mb/s at {end:.1f} s" if last != first else ""
            begun.setdefault(f"{number_text(first)} Mb/s at {start:.1f} s{now}", []).append(ap)
        elif old and not new and limit(inside(scene, before)[-1]) is not None:
            gone.append(ap)
    texts = [
        f"Tier 2 of {listed(aps)} was not limited before; its limit was {limits}."
        for limits, aps in begun.items()
    ]
    if begun:
        texts += _last_reason(scene, after)
    return texts + ([f"The limit on Tier 2 of {listed(gone)} is gone."] if gone else [])


def _last_reason(scene: Scene, after: Span) -> list[str]:
    """Return a sentence with the controller's reason for the last limit that it set in an interval.

    Return [] if it set only one limit, or if the last one came less than `SHORT_S` after the first.
    """
    limits = [
        each for each in scene.events if _is_action(each, after) and each.get("action") == "meter"
    ]
    if not limits or limits[-1]["t"] < limits[0]["t"] + SHORT_S:
        return []
    last = limits[-1]
    return [f"At {last['t']:.1f} s the strategy said of {last['ap']}: {last['reason']}."]


def _windows(
    scene: Scene, user: str, cc: str, before: Span, after: Span, half_s: float
) -> list[str]:
    """Return a sentence about the subflow whose congestion window needed most time to grow.

    `half_s` is the time in s from the change until half of its effect was measured. Growth is
    counted from the controller's first order after the change, or from the change if there was no
    order. Return [] if the growth takes almost no time, or much more than `half_s`.
    """
    orders = [each["t"] for each in scene.events if _is_action(each, after)]
    start_s = min([*orders, after.start_s + half_s]) if orders else after.start_s
    start = Span(start_s - SHORT_S, start_s) if orders else before
    found = []
    for name in sorted(scene.routes(after.end_s), key=natural):
        if user != SUM and scene.user_of(name) != user:
            continue
        window, rtt = subflow_number(name, "cwnd"), subflow_number(name, "rtt_ms")
        was, now = start.mean(scene.frames, window), after.mean(scene.frames, window)
        trip_ms = after.mean(scene.frames, rtt)
        if was and now and trip_ms and now > GREATER * was:
            found.append(((now - was) * trip_ms / 1000, name, was, now, trip_ms))
    if not found:
        return []
    needed_s, name, was, now, trip_ms = max(found)
    if not SHORT_S / 2 <= needed_s <= 2 * half_s + SHORT_S:  # slow start, or another reason
        return []
    return [
        f"The window of {name} grew from {was:.0f} to {now:.0f} packets. {cc} adds at most one "
        f"packet in a round trip of {trip_ms:.0f} ms, and that takes {number_text(needed_s)} s."
    ]


def _number(ap: str) -> Callable[[Frame], float | None]:
    return lambda frame: frame.ap[ap].meter_mbps if ap in frame.ap else None
