"""More subflows than the kernel's own path manager opens: hosts where one in user space does it (net.mptcp.pm_type=1).

1) somebody listens to the kernel in both hosts of a connection: without that, it accepts no further subflow either
2) a connection of this host is established: open a subflow from each of its further addresses
"""

from __future__ import annotations

from lab.engines.mininet.kernel.path_manager import PathManager, established
from lab.engines.mininet.machine import shell
from lab.errors import LabError
from lab.topologies.topology import Topology, Wiring

MOST_SUBFLOWS = 8  # what the kernel's own path manager allows beyond the first
SETTING = {"net.mptcp.pm_type": "1"}


def crowded(topology: Topology, wiring: Wiring) -> frozenset[str]:
    """The users with more addresses than that, and the servers they talk to."""
    users = [
        user for user in topology.multipath if len(further_addresses(wiring, user)) > MOST_SUBFLOWS
    ]
    return frozenset([*users, *map(topology.server_of, users)])


def further_addresses(wiring: Wiring, user: str) -> list[str]:
    """Every address but that over which a user opens its connections."""
    return [address for each in wiring.of(user) for address in (each.address, *each.further)][1:]


class Opener:
    """Listens in the namespace where it is created."""

    def __init__(self, pid: int, manager: PathManager, addresses: list[str]) -> None:
        """`pid` is a process of this host, for the commands that are told; a server opens nothing, and has no `addresses`."""
        self._pid, self._manager, self._addresses = pid, manager, addresses
        self._listener = manager.listen()  # 1

    def fileno(self) -> int:
        return self._listener.fileno()

    def close(self) -> None:
        self._listener.close()

    def act(self) -> list[str]:
        """Do what is due; what the kernel refused."""
        refused = []
        for connection in established(self._listener.messages()):
            for ident, address in enumerate(self._addresses, 1):  # 2
                try:
                    self._open(connection.token, address, ident, connection.server)
                except LabError as problem:
                    refused.append(f"open a subflow from {address}: {problem}")
        return refused

    def _open(self, token: int, address: str, ident: int, server: tuple[str, int]) -> None:
        argv = [
            "lip",
            address,
            "lid",
            str(ident),
            "rip",
            server[0],
            "rport",
            str(server[1]),
            "token",
            str(token),
        ]
        shell.journal_command(
            ["mnexec", "-a", str(self._pid), "pm_nl_ctl", "csf", *argv]
        )  # the kernel's own tool for it
        self._manager.create(token, address, ident, server)
