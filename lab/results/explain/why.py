"""Combine the explanations of the other modules: why a change had its effect, and what limits the
users in an interval of a run."""

from __future__ import annotations

from typing import Any

from lab.metrics import Watched
from lab.results.explain import air as air
from lab.results.explain import decisions as decisions
from lab.results.explain import delays as delays
from lab.results.explain import direct as direct
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
        *decisions.reasons(scene, before, after),
        *links.stopped(scene, target, value, before, after),
        *links.reasons(scene, before, after),
        *split.reasons(scene, before, after, _is_about_shares(target)),
        *air.reasons(scene, target, before, after),
        *shares.slower(scene, target, before, after),
        *(shares.reasons(scene, cc_before, cc_after, before, after) if target == CC else ()),
        *direct.reasons(scene, target, value, before, after),
        *held.held_back(scene, target, before, after),
        *direct.buffer_full(scene, before, after),
        *(delays.waits(scene, target, subject, cc_after, (before, since)) if is_clear else ()),
    ]


def _is_about_shares(target: str) -> bool:
    """Return whether a parameter decides how users share a link, and not only how fast the link
    is."""
    return target.partition(".")[0] in (CC, "strategy", "user")


def cause(scene: Scene, target: str, value: Any, spans: tuple[Span, Span]) -> str:
    """Return a text that explains most of the effect of a change.

    `target` and `value` are the changed parameter and its new value, and `spans` the intervals of
    the run before and after the change. What the strategy ordered comes first, then what the change
    did directly, then what users share. Return "" if none of these explains it.
    """
    before, after = spans
    try:
        part = scene.within(before.start_s, after.end_s)
        old = str(scene.value(CC, scene.scenario.multipath.cc, before.end_s))
        own = [
            *(shares.reasons(part, old, str(value), before, after) if target == CC else ()),
            *links.stopped(part, target, value, before, after),
        ]
        ordered = decisions.reasons(part, before, after)[:1]
        is_of_order = bool(ordered) and target.startswith("link.")
        at_once = own[:1] or (
            [] if is_of_order else direct.reasons(part, target, value, before, after)
        )
        shared = () if own or _is_radio(target, at_once) else _shared(part, target, spans)
        found = [*ordered, *at_once, *shared, *direct.buffer_full(part, before, after)]
    except DAMAGED:
        return ""
    return " ".join(dict.fromkeys(found))


def _is_radio(target: str, texts: list[str]) -> bool:
    """Return whether `texts` already explain how a new radio rate changed the use of the air."""
    return bool(texts) and target.startswith("cell.")


def _shared(scene: Scene, target: str, spans: tuple[Span, Span]) -> list[str]:
    """Return one text about what users share: the air, if the user whose rate changed most is at an
    access point, else links."""
    before, after = spans
    user = max(
        scene.network.users,
        key=lambda each: abs(scene.user_mbps(each, after) - scene.user_mbps(each, before)),
    )
    found = [
        *air.reasons(scene, target, before, after, user)[:1],
        *links.main(scene, before, after, user),
        *split.reasons(scene, before, after, _is_about_shares(target)),
    ]
    return found[:1]


def limits(scene: Scene, span: Span) -> list[str]:
    """Return sentences about what the users share in an interval of a run: full links, and
    airtime."""
    try:
        return [*links.sharing(scene, span), *air.air(scene, span)]
    except DAMAGED:
        return []
