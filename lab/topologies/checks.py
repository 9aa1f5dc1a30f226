"""Whether both engines can build a topology."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from controller import units
from lab.errors import RequestError, unknown
from lab.topologies.topology import Topology, link_delay_ns

LEAST_BPS = 1000
ADDRESSES = 250  # of a subnet


def checked(topology: Topology) -> Topology:
    """Return the topology unchanged. Raise `RequestError` with the first problem if the engines
    cannot build it."""
    for find in (_nodes, _links, _jitter, _cells, _bearers, _rates, _users, _servers):
        for problem in find(topology):
            raise RequestError(f"topology {topology.name}: {problem}")
    return topology


def check_names(names: Sequence[str]) -> None:
    """Raise `ValueError` if two users have the same name."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two users are called '{name}': give each a name of its own")


def _nodes(topology: Topology) -> Iterator[str]:
    ids = [node.id for node in topology.nodes]
    for name in ids:
        if ids.count(name) > 1:
            yield f"two nodes are called '{name}': give each a name of its own"
        if not (name.isalnum() and name[0].isalpha() and len(name) <= 9):
            rule = "use a letter and then letters or digits, 9 at most"
            yield f"'{name}' cannot name an interface: {rule}"


def _links(topology: Topology) -> Iterator[str]:
    ids = [node.id for node in topology.nodes]
    for link in topology.links:
        for end in (link.a, link.b):
            if end not in ids:
                known = ", ".join(ids)
                yield f"link '{link.id}' ends at '{end}', which is not a node: choose from {known}"


def checked_loss(loss: float) -> float:
    """Return a fraction of packets. Raise `ValueError` if both engines would round it to 0."""
    if 0 < loss < 1e-6:
        raise ValueError(f"{loss:g} is less than one packet in a million: write 0 or 0.000001")
    return loss


def _jitter(topology: Topology) -> Iterator[str]:
    for link in topology.links:
        delay_ns, jitter_ns = min(
            link_delay_ns(link.way(side), topology.cells) for side in ("ab", "ba")
        )
        if jitter_ns > delay_ns:
            jitter_ms, delay_ms = units.ms_from_ns(jitter_ns), units.ms_from_ns(delay_ns)
            yield (
                f"link '{link.id}' has {jitter_ms:g} ms of jitter and a delay of {delay_ms:g} ms: "
                "jitter goes both ways from the delay, so write at most the delay"
            )


def _cells(topology: Topology) -> Iterator[str]:
    wifi = [cell.ap for cell in topology.cells if cell.kind == "wifi"]
    for cell in topology.cells:
        if cell.medium and (cell.kind != "wifi" or cell.medium not in wifi):
            wrong = f"'{cell.medium}', which is not another WiFi access point"
            yield f"'{cell.ap}' shares the air of {wrong}"
        if cell.kind == "wifi" and any(each.delay_ns for each in cell.stations):
            rule = "only LTE stations may: give the delay to the cell"
            yield f"a station of '{cell.ap}' has a delay, but {rule}"


def _bearers(topology: Topology) -> Iterator[str]:
    places = [
        (cell.ap, each.user)
        for cell in topology.cells
        for each in cell.stations
        if cell.kind == "lte"
    ]
    for each in topology.bearers:
        if (each.ap, each.user) not in places:
            known = ", ".join(f"{user} at {ap}" for ap, user in places) or "none"
            yield f"bearer of '{each.user}' at '{each.ap}': stations of LTE cells are {known}"


def _rates(topology: Topology) -> Iterator[str]:
    rates = {
        f"link '{link.id}'": link.way(side).rate_bps
        for side in ("ab", "ba")
        for link in topology.links
    }
    rates |= {
        f"user '{each.user}' at '{cell.ap}'": min(each.rate_bps, each.way("up").rate_bps)
        for cell in topology.cells
        for each in cell.stations
    }
    for what, rate_bps in rates.items():
        if rate_bps is not None and rate_bps < LEAST_BPS:
            cure = "choose a higher rate or a larger rate_scale"
            yield f"{what} has {rate_bps:g} bit/s on the wire, less than {LEAST_BPS}: {cure}"


def _users(topology: Topology) -> Iterator[str]:
    for user in topology.multipath:
        if user not in topology.users:
            yield f"multipath user {unknown(user, topology.users)}"
    subflows = max((node.subflows for node in topology.nodes), default=1)
    if len(topology.users) * subflows > ADDRESSES:
        yield (
            f"its users need more than the {ADDRESSES} addresses of a subnet: "
            "use fewer users or fewer subflows"
        )


MOST_OF_A_SERVER = 9  # links; each has an address


def _servers(topology: Topology) -> Iterator[str]:
    servers = topology.ids("server")
    if not servers:
        yield "it has no server: add one"
    for node in topology.nodes:
        if node.server and node.server not in servers:
            known = ", ".join(servers)
            wrong = f"'{node.server}', which is not a server: choose from {known}"
            yield f"user '{node.id}' talks to {wrong}"
    for server in servers:
        links = sum(server in (link.a, link.b) for link in topology.links)
        if not 1 <= links <= MOST_OF_A_SERVER:
            yield f"server '{server}' has {links} links: give it 1 to {MOST_OF_A_SERVER}"
