"""Explain a change by what the strategy ordered after it, in the strategy's own words.

An order counts only if it stands at the end of the interval and if what it concerns carries
noticeably more or less than before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lab.results.effects import number_text
from lab.results.explain.scene import Event, Scene, listed
from lab.results.labels import natural
from lab.results.stretches import Span
from lab.summaries import EPSILON_S

NOTED = 0.03  # of the rate of all users; an order that moves less is not mentioned
RATIO = 2.0  # a limit has changed if the greater one is this many times the other


def reasons(scene: Scene, before: Span, after: Span) -> list[str]:
    """Return a text about each group of orders, that with the greatest effect in Mb/s first.

    `before` and `after` are the intervals of the run before and after a change. Orders from the end
    of `before` on count.
    """
    orders = _orders(scene, Span(before.end_s, after.end_s))
    spans = (before, after)
    found = [
        *_priorities(scene, orders, spans),
        *_limits(scene, orders, spans),
        *_paths_and_rates(scene, orders, spans),
    ]
    everybody = scene.network.users
    least = NOTED * max(sum(scene.user_mbps(user, span) for user in everybody) for span in spans)
    found = [each for each in found if each[0] >= max(least, EPSILON_S)]
    return [text for _, text in sorted(found, key=lambda each: -each[0])]


def _orders(scene: Scene, since: Span) -> list[Event]:
    """Return the decisions in an interval that gave orders, each with its subflow named as in
    samples."""
    found: list[Event] = []
    for each in scene.events:
        is_order = each.get("kind") == "decision" and each.get("action") not in ("keep", "forecast")
        if is_order and since.start_s - EPSILON_S <= each["t"] <= since.end_s + EPSILON_S:
            found.append({**each, "subflow": scene.name_in_samples(str(each.get("subflow", "")))})
    return found


def _priorities(
    scene: Scene, orders: Sequence[Event], spans: tuple[Span, Span]
) -> list[tuple[float, str]]:
    """Return (effect in Mb/s, text) for the subflows that became backup or normal together."""
    was_backup = _backups(scene, spans[0].end_s)
    last = {each["subflow"]: each for each in orders if each["action"] in ("backup", "normal")}
    groups: dict[tuple[float, str], list[Event]] = {}
    for name, each in last.items():
        if (each["action"] == "backup") != (name in was_backup):
            groups.setdefault((each["t"], each["action"]), []).append(each)
    return [_priority(scene, group, spans) for group in groups.values()]


def _priority(scene: Scene, group: Sequence[Event], spans: tuple[Span, Span]) -> tuple[float, str]:
    names = sorted((each["subflow"] for each in group), key=natural)
    was, now = (sum(scene.subflow_mbps(name, span) for name in names) for span in spans)
    first, who = group[0], listed(names)
    it = "it" if len(names) == 1 else "they"
    if first["action"] == "backup":
        did = f"made {who} backup, to carry data only while no other subflow can"
    else:
        did = f"put {who} back into use"
    return abs(now - was), (
        f'At {first["t"]:.1f} s {first["strategy"]} {did} ("{first["reason"]}"): {it} carried '
        f"{number_text(now)} instead of {number_text(was)} Mb/s."
    )


def _backups(scene: Scene, t: float) -> set[str]:
    """Return the subflows that are backup in the last sample up to time `t`."""
    frame = next((each for each in reversed(scene.frames) if each.t <= t + EPSILON_S), None)
    return {name for name, sample in frame.sf.items() if sample.backup} if frame else set()


def _limits(
    scene: Scene, orders: Sequence[Event], spans: tuple[Span, Span]
) -> list[tuple[float, str]]:
    """Return (effect in Mb/s, text) for the access point whose limit on Tier 2 moved most."""
    found = []
    for ap in scene.network.ids("wifi", "lte"):
        last = [
            each
            for each in orders
            if each.get("ap") == ap and each["action"] in ("meter", "release")
        ]
        old, new = (_limit(scene, ap, span.end_s) for span in spans)
        if last and _has_moved(old, new):
            was, now = (scene.tier_mbps(ap, 2, span) for span in spans)
            limit = "no limit" if new is None else f"a limit of {number_text(new)} Mb/s"
            before = "none" if old is None else f"{number_text(old)} Mb/s"
            text = (
                f"{last[0]['strategy']} gave Tier 2 of {ap} {limit} (before: {before}); at "
                f'{last[-1]["t"]:.1f} s it said "{last[-1]["reason"]}". Tier 2 there carried '
                f"{number_text(now)} instead of {number_text(was)} Mb/s."
            )
            found.append((abs(now - was), text))
    return [max(found)] if found else []


def _has_moved(old: float | None, new: float | None) -> bool:
    if old is None or new is None:
        return old is not new
    return max(old, new) >= RATIO * min(old, new)


def _limit(scene: Scene, ap: str, t: float) -> float | None:
    known = [frame for frame in scene.frames if frame.t <= t + EPSILON_S and ap in frame.ap]
    return known[-1].ap[ap].meter_mbps if known else None


def _paths_and_rates(
    scene: Scene, orders: Sequence[Event], spans: tuple[Span, Span]
) -> list[tuple[float, str]]:
    """Return (effect in Mb/s, text) for all paths and pacing rates that were ordered.

    The text has the reason for the subflow whose rate changed most, for its path rather than for
    its pacing rate. Return [] if one subflow got another path and nothing else, because
    `links.moved` says so.
    """
    old, new = (scene.routes(span.end_s) for span in spans)
    routed = {
        each["subflow"]: each
        for each in orders
        if each["action"] == "route" and old.get(each["subflow"]) != new.get(each["subflow"])
    }
    paced = {
        each["subflow"]: each
        for each in orders
        if each["action"] == "expect" and each.get("expected_mbps") is not None
    }
    named = paced | routed
    if not paced and len(routed) < 2:
        return []
    change = {
        name: abs(scene.subflow_mbps(name, spans[1]) - scene.subflow_mbps(name, spans[0]))
        for name in named
    }
    most = max(change, key=lambda name: change[name])
    parts = [
        *([f"{_counted(routed)} another path"] if routed else []),
        *([f"{_counted(paced)} a pacing rate"] if paced else []),
    ]
    first = min(named.values(), key=lambda each: each["t"])
    return [
        (
            sum(change.values()),
            f"From {first['t']:.1f} s on {first['strategy']} gave {' and '.join(parts)}; of {most} "
            f'it said "{named[most]["reason"]}".',
        )
    ]


def _counted(orders: Mapping[str, Any]) -> str:
    return "1 subflow" if len(orders) == 1 else f"{len(orders)} subflows"
