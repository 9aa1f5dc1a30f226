"""Put together why a change had its effect, and what limits the users in a part of a run."""

from __future__ import annotations

from typing import Any

from dashboard.reasons import air, delays, links, shares
from dashboard.reasons.scene import Scene
from lab.results.stretches import Span
from lab.scenario.watched import Watched

CC = "cc"  # the flip target
DAMAGED = (TypeError, ValueError, AttributeError, KeyError)  # a field has a type that no run writes


def why(
    scene: Scene,
    target: str,
    value: Any,
    subject: Watched,
    spans: tuple[Span, Span],
    is_clear: bool = True,
) -> list[str]:
    """Return sentences that say why a change had its effect on `subject`.

    `target` and `value` are the change, and `spans` the times before and after it. If the effect
    is not clear, nothing is said about the time that it needed. The result is
    empty if no rule finds a reason in the measurements, or if events or samples are damaged.
    """
    try:
        part = scene.within(spans[0].start_s, spans[1].end_s)
        return _why(part, target, value, subject, spans, is_clear)
    except DAMAGED:
        return []


def _why(
    scene: Scene,
    target: str,
    value: Any,
    subject: Watched,
    spans: tuple[Span, Span],
    is_clear: bool,
) -> list[str]:
    before, after = spans
    cc_before = str(scene.value(CC, scene.scenario.multipath.cc, before.end_s))
    cc_after = str(value) if target == CC else cc_before
    return [
        *delays.orders(scene, target, before, after),
        *links.stopped(scene, target, value, before, after),
        *links.reasons(scene, before, after),
        *air.reasons(scene, target, before, after),
        *shares.slower(scene, target, before, after),
        *(shares.reasons(scene, cc_before, cc_after, after) if target == CC else ()),
        *delays.held_back(scene, before, after),
        *(delays.waits(scene, subject, cc_after, before, after) if is_clear else ()),
    ]


def cause(scene: Scene, target: str, value: Any, spans: tuple[Span, Span]) -> str:
    """Return the sentence that explains most of a change, without its times; empty if the
    measurements show none. `target` and `value` are the change, `spans` the times around it."""
    before, after = spans
    try:
        part = scene.within(before.start_s, after.end_s)
        old = str(scene.value(CC, scene.scenario.multipath.cc, before.end_s))
        found = [
            *(shares.reasons(part, old, str(value), after) if target == CC else ()),
            *links.stopped(part, target, value, before, after),
            *air.reasons(part, target, before, after),
            *links.main(part, before, after),
        ]
    except DAMAGED:
        return ""
    return found[0] if found else ""


def limits(scene: Scene, span: Span) -> list[str]:
    """Return sentences that say what users share in a part of a run: full links, and air."""
    try:
        return [*links.sharing(scene, span), *air.air(scene, span)]
    except DAMAGED:
        return []
