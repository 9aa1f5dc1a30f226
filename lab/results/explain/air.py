"""Explain how the users at an access point share its airtime.

A user with a low radio rate needs more airtime for the same amount of data. A cell is an access
point with its stations, and a station is a user there.
"""

from __future__ import annotations

from collections.abc import Mapping

from lab.radio.cell import Cell
from lab.results.effects import number_text
from lab.results.explain.scene import Scene, listed, percent
from lab.results.labels import natural
from lab.results.stretches import Span

MATTERS = 0.08  # a smaller change of a share of the air is not mentioned
FULL = 0.7  # sum of all shares from which on stations wait for each other
SLOWER = 1.2  # a station is slower than one whose rate is this many times as high
NAMED = 4  # stations in a text
NOTHING = 0.005  # a smaller share of the air counts as none


def air(scene: Scene, span: Span) -> list[str]:
    """Return one sentence for each access point whose airtime is used up by several users.

    The sentence says how these users share the airtime during `span`. The result is empty if users
    have moved, because then they need not have the radio rates of the start.
    """
    texts = []
    for cell in _cells(scene, span.end_s):
        used = _shares(scene, cell, span)
        if len(used) < 2 or sum(used.values()) < FULL:
            continue
        texts.append(_divided(scene, cell, used, span))
    return texts


def _divided(scene: Scene, cell: Cell, used: Mapping[str, float], span: Span) -> str:
    """Return a sentence that says which fraction of the airtime each user of an access point used.

    If there are more than `NAMED` users, only the one that used most is named.
    """
    rates = _rates(scene, cell, span.end_s)
    names = sorted(used, key=lambda user: (-used[user], natural(user)))
    parts = [
        f"{user} {percent(used[user])} for {number_text(_carried(scene, cell, user, span))} Mb/s "
        f"(alone {number_text(rates[user])} Mb/s)"
        for user in names[: NAMED if len(names) <= NAMED else 1]
    ]
    if len(names) <= NAMED:
        return f"Air of {cell.ap}: {', '.join(parts)}."
    return f"Air of {cell.ap}: {len(names)} stations share it. Most of it uses {parts[0]}."


def reasons(scene: Scene, target: str, before: Span, after: Span, of_user: str = "") -> list[str]:
    """Return a sentence for each access point where a change moved airtime between users.

    `target` names the parameter that was changed, such as `cell.wifi.ue1.rate_mbps`. `before` and
    `after` are the intervals of the run before and after the change. With `of_user`, only the
    access points of this user count. If the radio rate of a user
    was changed and no airtime moved, the sentence says that this user needs little airtime.
    """
    texts = []
    for cell in _cells(scene, after.end_s):
        was, now = _shares(scene, cell, before), _shares(scene, cell, after)
        users = sorted(was.keys() | now.keys(), key=natural)
        if len(users) < 2 or max(sum(was.values()), sum(now.values())) < FULL:
            continue
        if of_user and of_user not in users:
            continue
        change = {user: now.get(user, 0.0) - was.get(user, 0.0) for user in users}
        if max(map(abs, change.values())) >= MATTERS:
            texts.append(_given(scene, cell, change, (before, after)))
        else:
            texts += _unchanged(scene, cell, target, after)
    return texts


def _given(scene: Scene, cell: Cell, change: Mapping[str, float], spans: tuple[Span, Span]) -> str:
    """Return a sentence about the user whose change of airtime best explains the total rate at an
    access point.

    If the total rate rose, this is a user who gave airtime to users with higher radio rates. If the
    total rate fell, this is a user who took airtime from such users. If there is no such user, the
    sentence is about the one whose airtime changed most. `change` maps each user to the change of
    the user's fraction of the airtime, and `spans` are the intervals before and after.
    """
    rates = _rates(scene, cell, spans[1].end_s)
    old, new = (_total(scene, cell, span) for span in spans)
    for user in sorted(change, key=lambda each: (-abs(change[each]), rates[each])):
        fast = [each for each in change if rates[each] > SLOWER * rates[user]]
        matters = abs(change[user]) >= MATTERS and (new - old) * change[user] < 0
        if fast and matters and rates[user]:
            ratio = max(rates[each] for each in fast) / rates[user]
            return (
                f"{_used(scene, cell, user, spans)}. Alone it would get {number_text(rates[user])} "
                f"Mb/s there, {listed(fast)} up to {number_text(ratio * rates[user])}: the same "
                f"air carries {ratio:.2g} times as much for a faster station. All stations of "
                f"{cell.ap} together got {number_text(new)} instead of {number_text(old)} Mb/s."
            )
    most = max(change, key=lambda each: abs(change[each]))
    return f"{_used(scene, cell, most, spans)}. The stations of a cell share its air."


def _used(scene: Scene, cell: Cell, user: str, spans: tuple[Span, Span]) -> str:
    was, now = (_shares(scene, cell, span).get(user, 0.0) for span in spans)
    carried = [number_text(_carried(scene, cell, user, span)) for span in spans]
    return (
        f"{user} used {percent(was)} of the air of {cell.ap} before, for {carried[0]} Mb/s, and "
        f"{percent(now)} after, for {carried[1]} Mb/s"
    )


def _unchanged(scene: Scene, cell: Cell, target: str, after: Span) -> list[str]:
    """Explain why a change of a user's radio rate has little effect: the user needs little airtime.

    Return [] if another parameter was changed, or if the user needs much airtime.
    """
    user = next((each.user for each in cell.stations if _is_rate(target, cell, each.user)), None)
    used = _shares(scene, cell, after)
    if user is None or used.get(user, 0.0) >= MATTERS:
        return []
    return [
        f"{user} uses only {percent(used.get(user, 0.0))} of the air of {cell.ap}, for "
        f"{number_text(_carried(scene, cell, user, after))} Mb/s, so its own rate there hardly "
        "matters to others."
    ]


def _is_rate(target: str, cell: Cell, user: str) -> bool:
    return target == f"cell.{cell.ap}.{user}.rate_mbps"


def _cells(scene: Scene, t: float) -> list[Cell]:
    """Return the cells of the network; [] if users moved before time `t`, because then they need
    not have the radio rates of the start."""
    return [] if scene.has_moved(t) else list(scene.network.cells)


def _rates(scene: Scene, cell: Cell, t: float) -> Mapping[str, float]:
    """Map each user of a cell to the user's radio rate in Mb/s just before `t`.

    This is the rate that the user would get if nobody else used the access point.
    """
    rates = {each.user: scene.station_mbps(cell.ap, each.user, t) for each in cell.stations}
    return {user: rate for user, rate in rates.items() if rate is not None}


def _carried(scene: Scene, cell: Cell, user: str, span: Span) -> float:
    return scene.station_carried_mbps(cell.ap, user, span)


def _total(scene: Scene, cell: Cell, span: Span) -> float:
    return sum(_carried(scene, cell, each.user, span) for each in cell.stations)


def _shares(scene: Scene, cell: Cell, span: Span) -> dict[str, float]:
    """Map each user of a cell to the fraction of the airtime that the user needed.

    It is the user's mean rate divided by the rate that the user would get alone.
    """
    rates = _rates(scene, cell, span.end_s)
    found = {user: _carried(scene, cell, user, span) / rate for user, rate in rates.items() if rate}
    return {user: share for user, share in found.items() if share >= NOTHING}
