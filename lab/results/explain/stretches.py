"""Describe the intervals between the changes of a run, as JSON rows for the browser."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab.frame import Frame
from lab.metrics import SUM, Watched
from lab.results import effects, thinning
from lab.results.explain import changes, present
from lab.results.explain.changes import Change
from lab.results.explain.delays import first_order_s
from lab.results.explain.scene import Scene
from lab.results.explain.why import cause, limits
from lab.results.flips import flip_words
from lab.results.labels import natural
from lab.results.stretches import Span, Stretch, stretches

Row = dict[str, Any]  # a JSON object for the browser
NAMED = 6  # users; of more, only those with the highest and the lowest rate are shown
START_S = 0.0


@thinning.in_turn
def rows(folder: Path) -> list[Row]:
    """Return one row for each interval of a run between its changes.

    - `from`, `to`: the times in s at which the interval begins and ends
    - `name`, `n`: the interval in words, and the numbers of the changes that began it
    - `order`: the time in s of the controller's first order, if a change of the strategy began the
      interval, else None. The means begin at this time, or at `from` if it is None
    - `means`: (label, unit, number) for each number, in the same order in all rows
    - `limits`: sentences about full links and airtime that users share
    - `cause`: a sentence that explains most of the difference from the previous interval

    The result is empty if the run has no samples or no scenario.
    """
    try:
        scenario = present.loaded(folder)
    except LookupError:
        return []
    events = thinning.events(folder)
    made = changes.made(events)
    lines = thinning.means(folder, [change.t for change in made])
    frames = [Frame.from_json(line) for line in lines]
    if not frames:
        return []
    scene = Scene(scenario, frames, events)
    numbers = _numbers(scene)
    found: list[Row] = []
    before: Span | None = None
    for each in _with_traffic(stretches([change.t for change in made], frames[-1].t), scene):
        if each.span.seconds < effects.SHORTEST_S:
            continue
        begun = [made[index] for index in each.begun_by]
        order = _order(events, begun, each.span)
        span = Span(each.span.start_s if order is None else order, each.span.end_s)
        found.append(
            {
                "from": each.span.start_s,
                "order": order,
                "to": each.span.end_s,
                "name": _name(scene, each, made),
                "n": [change.n for change in begun],
                "means": [[*label, span.mean(frames, number)] for label, number in numbers],
                "limits": limits(scene, span),
                "cause": _cause(scene, begun, before, span),
            }
        )
        before = span
    return found


def told(folder: Path) -> str:
    """Return one line for each change of a run: what the change did, and why.

    The result is empty if the run has no changes or if its files cannot be read.
    """
    return changes.headline(rows(folder), changes.changes(folder))


def _with_traffic(found: Sequence[Stretch], scene: Scene) -> list[Stretch]:
    """Return the intervals of a run that has only file transfers, each up to the time at which the
    first user has all files. All other intervals are returned as they are.

    A mean that includes the time after the last transfer says nothing about the network.
    """
    if not changes.expected(scene.scenario)["all"]:
        return list(found)
    ended = [*changes.ends(scene.scenario, scene.events).values(), scene.frames[-1].t]
    times = [min(t for t in ended if t > each.span.start_s) for each in found]
    return [
        replace(each, span=Span(each.span.start_s, min(each.span.end_s, t)))
        for each, t in zip(found, times, strict=True)
    ]


def _order(events: Sequence[Any], begun: Sequence[Change], span: Span) -> float | None:
    """Return the time in s of the controller's first order in an interval, or None.

    Only an interval that began with a change of the strategy has such a time. `begun` are the
    changes that began the interval. Return None if no order came, or only shortly before the end of
    the interval.
    """
    times = [first_order_s(events, each.target, each.t) for each in begun]
    known = [t for t in times if t is not None and span.end_s - t >= effects.SHORTEST_S]
    return max(known, default=None)


def _cause(scene: Scene, begun: Sequence[Change], before: Span | None, span: Span) -> str:
    if before is None:
        return ""
    spans = (before, span)
    last = {each.target: each for each in begun}  # of several changes of a parameter, the last one
    texts = (cause(scene, each.target, each.value, spans) for each in last.values())
    return next(filter(None, texts), "")


def _name(scene: Scene, stretch: Stretch, made: Sequence[Change]) -> str:
    """Return a name for an interval from the changes that began it: "after link up1 was cut"."""
    begun: dict[str, Mapping[str, Any]] = {}  # by parameter: only its last value stands
    for change in (made[index] for index in stretch.begun_by):
        if change.t > START_S:
            first = begun.get(change.target, change.flip)
            begun[change.target] = {
                **change.flip,
                **({"old": first["old"]} if "old" in first else {}),
            }
    if not begun:
        return "before any change" if made else "the whole run"
    return f"after {', '.join(flip_words(each, scene.link_name) for each in begun.values())}"


def _numbers(scene: Scene) -> list[tuple[tuple[str, str], Callable[[Frame], float | None]]]:
    """Return the numbers of a row: (label, unit), and a function that reads the number from a
    frame."""
    wanted = [("all users", Watched("user", SUM, "mbps"))]
    wanted += [(user, Watched("user", user, "mbps")) for user in _named(scene)]
    aps = scene.network.ids("wifi", "lte")
    if aps and not scene.network.relays:
        wanted += [(f"Tier {n}", Watched("ap", SUM, f"tier{n}_mbps")) for n in (1, 2)]
    wanted += [(f"{ap} occupancy", Watched("ap", ap, "mac_occupancy")) for ap in aps[:NAMED]]
    return [((label, watched.unit), _number(watched)) for label, watched in wanted]


def _named(scene: Scene) -> list[str]:
    users = sorted(scene.network.users, key=natural)
    if len(users) < 2:
        return []
    if len(users) <= NAMED:
        return users
    whole = Span(START_S, scene.frames[-1].t)
    by_rate = sorted(users, key=lambda user: scene.user_mbps(user, whole))
    return [by_rate[-1], by_rate[0]]


def _number(watched: Watched) -> Callable[[Frame], float | None]:
    return lambda frame: effects.value(frame, watched)
