"""Find in which directions of each link the data of a scenario travels, so that `loss` acts there.

A link has two directions: "ab" from its end `a` to its end `b`, and "ba" back. The function that
builds a topology does not know in which direction data will travel. It sets a link's `loss_ppm` to
the loss in the direction of data, and `loss_back_ppm` to the loss in the opposite direction.
`with_loss_on_data` then assigns both values to the directions in which the scenario's data really
travels.

Only shortest paths between the server of a flow and each interface of its user count. The network
hashes flows to these paths, and every strategy prefers them. Longer paths do not count, although
the strategy `expected_throughput` may choose one: in a mesh such as a fat tree, longer paths cross
nearly every link in both directions, so that `loss` would act on the acknowledgements too. If a
link is on no shortest path, both of its directions count as directions of data: data takes the link
only on a detour, which may cross it either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from controller.paths import hops_to
from lab.radio.cell import Cell
from lab.topologies.topology import Interface, Link, Topology, Wiring, wire

Direction = Literal["ab", "ba"]
Directions = frozenset[Direction]
BOTH: Directions = frozenset(("ab", "ba"))
Step = tuple[str, str]  # two neighbouring nodes, in the direction of the data


def data_directions(topology: Topology, flows: Iterable[tuple[str, str]]) -> dict[str, Directions]:
    """Return for the id of each link the directions ("ab", "ba") in which data can cross it.

    Each flow is a user and the direction of its data, "down" (to the user) or "up". A link on no
    shortest path of these flows gets both directions.
    """
    wiring = wire(topology)
    neighbours = _neighbours(wiring)
    crossed: set[Step] = set()
    for user, direction in dict.fromkeys(flows):
        for step in _steps_down(topology, wiring, neighbours, user):
            crossed.add(step if direction == "down" else step[::-1])
    return {link.id: _directions(link, crossed) or BOTH for link in topology.links}


def with_loss(link: Link, directions: Directions, loss_ppm: int) -> Link:
    """Return the link with the loss `loss_ppm` in the given directions; a direction that is not
    given keeps its loss."""
    return replace(
        link,
        loss_ppm=loss_ppm if "ab" in directions else link.loss_ppm,
        loss_back_ppm=loss_ppm if "ba" in directions else link.loss_back_ppm,
    )


def with_loss_on_data(topology: Topology, flows: Iterable[tuple[str, str]]) -> Topology:
    """Return the topology with each link's loss in the directions in which data travels.

    Each flow is a user and the direction of its data, "down" (to the user) or "up". Call this only
    once, with the topology that a builder returned: `loss_ppm` is read as the loss of a direction
    with data, `loss_back_ppm` as that of a direction without.
    """
    directions = data_directions(topology, flows)
    links = (
        with_loss(replace(link, loss_ppm=link.loss_back_ppm), directions[link.id], link.loss_ppm)
        for link in topology.links
    )
    return replace(topology, links=tuple(links))


def _directions(link: Link, crossed: set[Step]) -> Directions:
    found: dict[Direction, Step] = {"ab": (link.a, link.b), "ba": (link.b, link.a)}
    return frozenset(name for name, step in found.items() if step in crossed)


def _neighbours(wiring: Wiring) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {switch: set() for switch in wiring.dpid}
    for trunk in wiring.trunks:
        found[trunk.a].add(trunk.b)
        found[trunk.b].add(trunk.a)
    return found


def _steps_down(
    topology: Topology, wiring: Wiring, neighbours: Mapping[str, set[str]], user: str
) -> Iterator[Step]:
    """Yield the hops (pairs of nodes) of all shortest paths from the user's server to the user."""
    server = wiring.of(topology.server_of(user))[0]
    yield server.node, server.switch
    for interface in _used(topology, wiring, user):
        for switch in _may_attach_to(topology, interface):
            yield from _between(neighbours, server.switch, switch)
        yield interface.switch, user


def _used(topology: Topology, wiring: Wiring, user: str) -> tuple[Interface, ...]:
    """Return the interfaces of a user that carry data: all if it is multipath, else the first."""
    own = wiring.of(user)
    return own if user in topology.multipath else own[:1]


def _may_attach_to(topology: Topology, interface: Interface) -> list[str]:
    """Return the switches or access points to which the interface can be attached during a run.

    A WiFi interface in a cell with a radio model can be moved to any other such cell by a handover.
    """
    cells = {cell.ap: cell for cell in topology.cells}
    here = cells.get(interface.switch)
    if here is None or not _hands_over(here):
        return [interface.switch]
    return [cell.ap for cell in topology.cells if _hands_over(cell)]


def _hands_over(cell: Cell) -> bool:
    return cell.kind == "wifi" and cell.radio is not None


def _between(neighbours: Mapping[str, set[str]], source: str, destination: str) -> Iterator[Step]:
    """Yield each hop (switch, next switch) of the shortest paths between two switches, once."""
    hops = hops_to(neighbours, destination)
    here = {source} if source in hops else set()
    while here:
        steps = [
            (switch, near)
            for switch in here
            for near in neighbours[switch]
            if hops[near] == hops[switch] - 1
        ]
        yield from steps
        here = {near for _, near in steps}
