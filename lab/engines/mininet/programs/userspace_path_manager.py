"""Open more subflows than the kernel's own path manager does (net.mptcp.pm_type=1).

1) A program listens to the kernel in both hosts of a connection: without that, the kernel accepts
   no further subflow either.
2) When a connection of this host is established, a subflow is opened from each further address.
"""

from __future__ import annotations

from lab.engines.mininet.kernel.path_manager import PathManager, established
from lab.engines.mininet.machine import shell
from lab.errors import LabError
from lab.topologies.topology import Topology, Wiring

MAX_SUBFLOWS = 8  # what the kernel's own path manager allows beyond the first
SETTING = {"net.mptcp.pm_type": "1"}


def hosts_that_need_it(topology: Topology, wiring: Wiring) -> frozenset[str]:
    """Return the users with more further addresses than the kernel allows, and their servers."""
    users = [
        user for user in topology.multipath if len(further_addresses(wiring, user)) > MAX_SUBFLOWS
    ]
    return frozenset([*users, *map(topology.server_of, users)])


def further_addresses(wiring: Wiring, user: str) -> list[str]:
    """Return every address except the one from which a user opens its connections."""
    return [address for each in wiring.of(user) for address in (each.address, *each.further)][1:]


class UserspacePathManager:
    """Listen in the namespace where it is created, and open subflows."""

    def __init__(self, pid: int, manager: PathManager, addresses: list[str]) -> None:
        """Take a process of this host, for the commands that are reported.

        A server opens nothing, and has no `addresses`.
        """
        self._pid, self._manager, self._addresses = pid, manager, addresses
        self._listener = manager.listen()  # 1

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._listener.fileno()

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    def act(self) -> list[str]:
        """Open what is due; return what the kernel refused."""
        refused = []
        for connection in established(self._listener.messages()):
            for ident, address in enumerate(self._addresses, 1):  # 2
                try:
                    self._open(connection.token, address, ident, connection.server)
                except LabError as problem:
                    refused.append(f"open a subflow from {address}: {problem}")
        return refused

    def _open(self, token: int, address: str, ident: int, server: tuple[str, int]) -> None:
        argv = ["mnexec", "-a", str(self._pid), "pm_nl_ctl", "csf"]  # the kernel's own tool for it
        argv += ["lip", address, "lid", str(ident), "rip", server[0], "rport", str(server[1])]
        shell.journal_command([*argv, "token", str(token)])
        self._manager.create(token, address, ident, server)
