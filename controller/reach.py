"""Find the access points that users cannot reach because a link behind them is down."""

from __future__ import annotations

from collections.abc import Iterable

from controller.observation import Arc, Observation


def cut_off(observation: Observation) -> frozenset[tuple[str, str]]:
    """Return (user, access point) of each association of multipath users without a path.

    A path leads over links that are up, from the source of one of the user's subflows to the switch
    of the access point. The associations of a user without subflows count as connected.
    """
    users = observation.multipath & {each.user for each in observation.associations}
    sources: dict[str, set[str]] = {}
    for each in observation.subflows:
        if each.user in users:
            sources.setdefault(each.user, set()).add(each.ends[0])
    if not sources:
        return frozenset()
    reached = _reachable(set().union(*sources.values()), observation.arcs)
    return frozenset(
        (each.user, each.ap)
        for each in observation.associations
        if each.user in sources
        and not any(each.ap in reached[source] for source in sources[each.user])
    )


def _reachable(sources: Iterable[str], arcs: Iterable[Arc]) -> dict[str, set[str]]:
    """Map each source to the nodes that arcs join with it, directly or over other nodes."""
    heads: dict[str, list[str]] = {}
    for each in arcs:
        heads.setdefault(each.tail, []).append(each.head)
    found: dict[str, set[str]] = {}
    for source in sources:
        reached, to_visit = {source}, [source]
        while to_visit:
            new = set(heads.get(to_visit.pop(), ())) - reached
            reached |= new
            to_visit += new
        found[source] = reached
    return found
