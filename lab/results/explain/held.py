"""Explain when received data had to wait for earlier data before users could read it."""

from __future__ import annotations

from collections.abc import Callable

from lab.frame import Frame
from lab.results.effects import number_text
from lab.results.explain.scene import Scene, inside, subflow_number
from lab.results.stretches import Span

HELD_KB, HELD_RATIO = 50.0, 2.0  # a smaller change of the data held back is not mentioned
LATE = 1.5  # data waits for a subflow whose round trip is this many times the shortest one
SLOW = 0.2  # data waits for a subflow with less than this fraction of the fastest one's rate
SOON_S = 3.0  # for so long after a change, `released` looks at what users read
GREATER = 1.3  # a user reads waiting data if it reads this many times what its subflows carry


def held_back(scene: Scene, target: str, before: Span, after: Span) -> list[str]:
    """Return a sentence about the user whose out-of-order data a change affected most.

    Out-of-order data has arrived but cannot be read yet, because earlier data is missing. `target`
    names the changed parameter; `before` and `after` are the intervals of the run before and after
    the change. Only multipath users that the change concerns are considered. Users whose
    out-of-order data varied as much before the change are left out. If this data grew, a
    second sentence says which subflow the data waited for, if one is much slower than another.
    """
    found = []
    for user in sorted(concerned_users(scene, target, after.end_s) & {*scene.network.multipath}):
        number = _held(user)
        was, now = before.mean(scene.frames, number), after.mean(scene.frames, number)
        if was is None or now is None or max(was, now) < HELD_RATIO * min(was, now):
            continue
        if abs(now - was) >= HELD_KB and not _is_usual(scene, number, now, (before, after)):
            found.append((abs(now - was), user, was, now))
    if not found:
        return []
    _, user, was, now = max(found)
    return [
        f"{was:.0f} kB had to wait in the receive buffer of {user} for earlier data before, "
        f"{now:.0f} kB after.",
        *(_slowest(scene, user, after) if now > was else ()),
    ]


def _is_usual(
    scene: Scene, number: Callable[[Frame], float | None], now: float, spans: tuple[Span, Span]
) -> bool:
    usual = scene.varied(
        spans[0].end_s, spans[1].seconds, lambda part, span: span.mean(part.frames, number)
    )
    return usual is not None and usual[1] <= now <= usual[2]


def concerned_users(scene: Scene, target: str, t: float) -> set[str]:
    """Return the users that a change of `target` concerns directly.

    - If `target` names a user: this user
    - If `target` names a link: the users with a subflow over this link at time `t`
    - If `target` names an access point: the users of this access point
    - Otherwise: all users
    """
    network, (kind, *names) = scene.network, target.split(".")
    if named := {*names} & {*network.users}:
        return named
    if kind == "link" and names:
        ends = next(({each.a, each.b} for each in network.links if each.id == names[0]), set())
        paths = scene.routes(t).items()
        return {scene.user_of(name) for name, path in paths if ends <= {*path}}
    if kind == "cell" and names:
        return {
            each.user for cell in network.cells if cell.ap == names[0] for each in cell.stations
        }
    return {*network.users}


def _slowest(scene: Scene, user: str, span: Span) -> list[str]:
    """Return a sentence if a subflow of a user is much slower than another, in rate or round trip.

    The sentence says why data from the fast subflow cannot be read at once: earlier data, sent on
    the slow subflow, is still missing.
    """
    rates = {
        name: scene.subflow_mbps(name, span)
        for name in scene.routes(span.end_s)
        if scene.user_of(name) == user
    }
    sending = {name: mbps for name, mbps in rates.items() if mbps > 0}
    if len(sending) < 2:
        return []
    slow, fast = (extreme(sending, key=sending.__getitem__) for extreme in (min, max))
    if sending[slow] <= SLOW * sending[fast]:
        return [
            f"{slow} carried only {number_text(sending[slow])} Mb/s beside "
            f"{number_text(sending[fast])} on {fast}. {_order(slow, fast)}"
        ]
    trips = {
        name: trip
        for name in sending
        if (trip := span.mean(scene.frames, subflow_number(name, "rtt_ms")))
    }
    if len(trips) < 2:
        return []
    near, far = (extreme(trips, key=trips.__getitem__) for extreme in (min, max))
    if trips[far] < LATE * trips[near]:
        return []
    return [
        f"A round trip of {far} took {trips[far]:.0f} ms, one of {near} {trips[near]:.0f} ms. "
        f"{_order(far, near)}"
    ]


def _order(slow: str, fast: str) -> str:
    return (
        f"Data is read in order: what was sent on {slow} arrives late, and later data that came "
        f"over {fast} waits for it."
    )


def released(scene: Scene, target: str, after: Span) -> list[str]:
    """Return a sentence about out-of-order data that became readable soon after a change.

    Such data is seen where a user reads faster than the user's subflows deliver. The sentence names
    the user with the largest difference in one sample. Return [] if no user read much faster.
    """
    found, users = [], concerned_users(scene, target, after.end_s)
    for frame in inside(scene, Span(after.start_s, min(after.end_s, after.start_s + SOON_S))):
        for user in users.intersection(scene.network.multipath):
            carried = sum(
                each.mbps for name, each in frame.sf.items() if scene.user_of(name) == user
            )
            read = frame.user[user].mbps if user in frame.user else None
            if read is not None and read > GREATER * carried > 0:
                found.append((read - carried, frame.t, user, read, carried))
    if not found:
        return []
    _, t, user, read, carried = max(found)
    return [
        f"At {t:.1f} s {user} read {number_text(read)} Mb/s while its subflows carried "
        f"{number_text(carried)}: data that had waited for earlier data became readable."
    ]


def _held(user: str) -> Callable[[Frame], float | None]:
    return lambda frame: getattr(frame.user.get(user), "held_back_kb", None)
