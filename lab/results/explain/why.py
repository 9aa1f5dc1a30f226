"""Combine the explanations of the other modules: why a change had its effect, and what limits the
users in an interval of a run."""

from __future__ import annotations

from typing import Any

from lab.metrics import Watched
from lab.results.explain import air as air
from lab.results.explain import delays as delays
from lab.results.explain import held as held
from lab.results.explain import links as links
from lab.results.explain import shares as shares
from lab.results.explain import split as split
from lab.results.explain.scene import Scene
from lab.results.stretches import Span

CC = "cc"  # the name of the parameter
DAMAGED = (TypeError, ValueError, AttributeError, KeyError)  # a field has a type that no run writes


def why(
    scene: Scene,
    target: str,
    value: Any,
    subject: Watched,
    spans: tuple[Span, Span],
    is_clear: bool = True,
) -> list[str]:
    """Return sentences that explain why a change had its effect on the number `subject`.

    `target` and `value` are the changed parameter and its new value. `spans` are the intervals of
    the run before and after the change; after a change of the strategy, the second one begins with
    the strategy's first order. If `is_clear` is False, delays are not explained. The result is
    empty if the measurements show no reason, or if events or samples are damaged.
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
    since = Span(before.end_s, after.end_s)
    return [
        *delays.orders(scene, target, before, since),
        *links.stopped(scene, target, value, before, after),
        *links.reasons(scene, before, after),
        *split.reasons(scene, before, after, _is_about_shares(target)),
        *air.reasons(scene, target, before, after),
        *shares.slower(scene, target, before, after),
        *(shares.reasons(scene, cc_before, cc_after, before, after) if target == CC else ()),
        *held.held_back(scene, target, before, after),
        *(delays.waits(scene, target, subject, cc_after, (before, since)) if is_clear else ()),
    ]


def _is_about_shares(target: str) -> bool:
    """Return whether a parameter decides how users share a link, and not only how fast the link
    is."""
    return target.partition(".")[0] in (CC, "strategy", "user")


def cause(scene: Scene, target: str, value: Any, spans: tuple[Span, Span]) -> str:
    """Return the sentence that explains most of the effect of a change.

    `target` and `value` are the changed parameter and its new value, and `spans` the intervals of
    the run before and after the change. Return "" if the measurements show no cause.
    """
    before, after = spans
    try:
        part = scene.within(before.start_s, after.end_s)
        old = str(scene.value(CC, scene.scenario.multipath.cc, before.end_s))
        found = [
            *(shares.reasons(part, old, str(value), before, after) if target == CC else ()),
            *links.stopped(part, target, value, before, after),
            *([" ".join(of_air)] if (of_air := air.reasons(part, target, before, after)) else ()),
            *links.main(part, before, after),
            *split.reasons(part, before, after, _is_about_shares(target)),
        ]
    except DAMAGED:
        return ""
    return found[0] if found else ""


def limits(scene: Scene, span: Span) -> list[str]:
    """Return sentences about what the users share in an interval of a run: full links, and
    airtime."""
    try:
        return [*links.sharing(scene, span), *air.air(scene, span)]
    except DAMAGED:
        return []
