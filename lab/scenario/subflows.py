"""Which subflows a connection opens, by the endpoints and limits of a scenario.

These are the rules of the kernel's path manager:

1) The user opens the connection from its first address to the server's first address.
2) The server announces its other addresses that have `signal` (ADD_ADDR). The user accepts
   `add_addr_accepted` of them, and opens a subflow to each from its first address, or from all its
   addresses with `fullmesh` if there are any.
3) Each other address of the user opens a subflow to the server's first address.
4) `subflows` is how many of these subflows there are beyond the first one. The first announcement
   is the packet of the server that the user waits for before it opens any, so 2 comes before 3.
"""

from __future__ import annotations

from dataclasses import dataclass

from lab.errors import RequestError, unknown
from lab.scenario.interfaces import endpoint_of, role_of, short_name
from lab.scenario.schema import Multipath, Scenario
from lab.topologies.topology import Interface, Topology, Wiring, wire


@dataclass(frozen=True)
class Planned:
    """A subflow between `address`, which is at the interface `user`, and an interface of the
    server."""

    user: Interface
    address: str
    server: Interface


def planned(topology: Topology, wiring: Wiring, multipath: Multipath, user: str) -> list[Planned]:
    """Return the subflows of each connection of a multipath user, those included that the endpoints
    of the user do not open yet."""
    own = [(each, address) for each in wiring.of(user) for address in (each.address, *each.further)]
    first, *others = wiring.of(topology.server_of(user))
    found = [Planned(*own[0], first)]
    meshed = [each for each in own if (end := endpoint_of(multipath, each[0])) and end.is_fullmesh]
    signalled = [each for each in others if role_of(multipath, each, "none") != "none"]
    for server in signalled[: multipath.limits.add_addr_accepted]:
        found += [Planned(*each, server) for each in meshed or own[:1]]
    found += [Planned(*each, first) for each in own[1:]]
    return _limited(found, multipath)


def of_call(topology: Topology, wiring: Wiring, user: str, interface: str) -> Planned:
    """Return the two interfaces of a call: that of the user with this short name, or the first one
    of the user if it is ""."""
    own = wiring.of(user)
    found = next((each for each in own if short_name(each) == interface), own[0])
    return Planned(found, found.address, wiring.of(topology.server_of(user))[0])


def check_calls(scenario: Scenario, source: str) -> None:
    """Raise `RequestError`, which begins with `source`, if a user of a call has no such interface.
    An entry of `traffic` that names no user is that of all."""
    network = scenario.network
    calls = [(n, each) for n, each in enumerate(scenario.traffic, 1) if each.interface]
    wiring = wire(network) if calls else None
    for n, each in calls:
        assert wiring is not None
        for user in (each.user,) if each.user in network.users else network.users:
            own = [short_name(interface) for interface in wiring.of(user)]
            if each.interface not in own:
                problem = unknown(each.interface, own)
                raise RequestError(f"{source}: traffic[{n}].interface of {user}: {problem}")


def _limited(found: list[Planned], multipath: Multipath) -> list[Planned]:
    most, opened, kept = multipath.limits.subflows, -1, []
    for each in found:
        opened += opens(multipath, each)
        if most is None or opened <= most or not opens(multipath, each):
            kept.append(each)
    return kept


def opens(multipath: Multipath, each: Planned) -> bool:
    """Return whether a subflow is open from the start."""
    return role_of(multipath, each.user, "subflow") != "none"


def count(topology: Topology, wiring: Wiring, multipath: Multipath, user: str) -> int:
    """Return how many subflows a connection of a multipath user has at the start."""
    return sum(opens(multipath, each) for each in planned(topology, wiring, multipath, user))
