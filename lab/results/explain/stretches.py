"""Stretches of a run, the times between its changes, as JSON rows for the page of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lab.frame import Frame
from lab.metrics import SUM, Watched
from lab.results import effects
from lab.results.explain import changes, present
from lab.results.explain.changes import Change
from lab.results.explain.delays import first_order_s
from lab.results.explain.scene import Scene
from lab.results.explain.why import cause, limits
from lab.results.flips import flip_words
from lab.results.labels import natural
from lab.results.stretches import Span, Stretch, stretches
from lab.run.reading import readable_events, readable_samples

Row = dict[str, Any]  # a JSON object for the browser
NAMED = 6  # users; of more, only those with the highest and the lowest rate are shown
START_S = 0.0


def rows(folder: Path) -> list[Row]:
    """Return one row for each stretch of a run: its times, what began it, and its means.

    `means` has (label, unit, number) for each number, in the same order in all rows. `limits` are
    sentences about what users share then, and `cause` says what explains most of the difference to
    the stretch before. If a change of the strategy began the stretch, its means start at the
    strategy's first order, at `order`; otherwise `order` is None. The result is empty without
    samples or a scenario.
    """
    try:
        scenario = present.loaded(folder)
    except LookupError:
        return []
    frames = [Frame.from_json(line) for line in readable_samples(folder)]
    if not frames:
        return []
    events = readable_events(folder)
    made = changes.made(events)
    scene = Scene(scenario, frames, events)
    numbers = _numbers(scene)
    found: list[Row] = []
    before: Span | None = None
    for each in stretches([change.t for change in made], frames[-1].t):
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
                "name": _name(each, made),
                "n": [change.n for change in begun],
                "means": [[*label, span.mean(frames, number)] for label, number in numbers],
                "limits": limits(scene, span),
                "cause": _cause(scene, begun, before, span),
            }
        )
        before = span
    return found


def told(folder: Path) -> str:
    """Return one line for each change of a run: what it did, and why. It is empty for a run without
    changes, and for one whose files cannot be read."""
    return changes.headline(rows(folder), changes.changes(folder))


def _order(events: Sequence[Any], begun: Sequence[Change], span: Span) -> float | None:
    """Return when the strategy first acted in a stretch that a change of it began, in s.

    None if it did not act, or only at the end of the stretch.
    """
    times = [first_order_s(events, each.target, each.t) for each in begun]
    known = [t for t in times if t is not None and span.end_s - t >= effects.SHORTEST_S]
    return max(known, default=None)


def _cause(scene: Scene, begun: Sequence[Change], before: Span | None, span: Span) -> str:
    if before is None:
        return ""
    spans = (before, span)
    return next(filter(None, (cause(scene, each.target, each.value, spans) for each in begun)), "")


def _name(stretch: Stretch, made: Sequence[Change]) -> str:
    """Return a name such as "after link up1 was cut", from the changes that began the stretch."""
    begun = [made[index] for index in stretch.begun_by if made[index].t > START_S]
    if not begun:
        return "before any change" if made else "the whole run"
    return f"after {', '.join(flip_words(each.flip) for each in begun)}"


def _numbers(scene: Scene) -> list[tuple[tuple[str, str], Callable[[Frame], float | None]]]:
    """Return ((label, unit), function that reads the number from a frame) for each number
    of a row."""
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
