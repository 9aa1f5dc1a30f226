"""Which subflows the lab's own path manager opens, and for which hosts: the kernel's opens at most
`MAX_SUBFLOWS` beyond the first one of a connection."""

from __future__ import annotations

from lab.engines.mininet.programs.userspace_path_manager import Join
from lab.scenario import subflows
from lab.scenario.interfaces import role_of
from lab.scenario.schema import Multipath
from lab.topologies.topology import Topology, Wiring

MAX_SUBFLOWS = 8


def hosts_that_need_it(topology: Topology, wiring: Wiring, multipath: Multipath) -> frozenset[str]:
    """Return the hosts for which the lab's path manager opens all subflows.

    These are users with more than `MAX_SUBFLOWS` addresses or subflows beyond the first, and their
    servers. Such a server announces nothing, so its other users are among them if they have
    subflows to its further addresses.
    """
    many = [user for user in topology.multipath if _has_many(topology, wiring, multipath, user)]
    servers = {*map(topology.server_of, many)}
    others = [
        user
        for user in topology.multipath
        if topology.server_of(user) in servers
        and any(
            each.server != wiring.of(topology.server_of(user))[0]
            for each in subflows.planned(topology, wiring, multipath, user)
        )
    ]
    return frozenset([*many, *others, *servers])


def _has_many(topology: Topology, wiring: Wiring, multipath: Multipath, user: str) -> bool:
    opened = subflows.count(topology, wiring, multipath, user)
    return max(wiring.addresses(user), opened) > MAX_SUBFLOWS + 1


def joins(topology: Topology, wiring: Wiring, multipath: Multipath, user: str) -> list[Join]:
    """Return the subflows of each connection of a user. The first one is that with which the
    connection opens."""
    own = [address for each in wiring.of(user) for address in (each.address, *each.further)]
    return [
        Join(
            each.address,
            own.index(each.address),
            each.server.address,
            role_of(multipath, each.user, "subflow") == "backup"
            or role_of(multipath, each.server, "none") == "signal_backup",
        )
        for each in subflows.planned(topology, wiring, multipath, user)
        if subflows.opens(multipath, each)
    ]
