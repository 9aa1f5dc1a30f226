"""An MPTCP path manager in user space. It opens more subflows than the kernel's path manager can.

With the setting net.mptcp.pm_type=1, the kernel does not open subflows itself.

1) The path manager listens to the kernel's MPTCP events in both hosts of a connection. The kernel
of a host without a listener accepts no further subflows. 2) When a connection of its host is
established, it opens a subflow from each further address.
"""

from __future__ import annotations

from lab.engines.mininet.kernel.path_manager import PathManager, established
from lab.engines.mininet.machine import shell
from lab.errors import LabError
from lab.topologies.topology import Topology, Wiring

MAX_SUBFLOWS = 8  # what the kernel's own path manager allows beyond the first
SETTING = {"net.mptcp.pm_type": "1"}


def hosts_that_need_it(topology: Topology, wiring: Wiring) -> frozenset[str]:
    """Return the hosts that need a path manager in user space.

    These are the users with more than `MAX_SUBFLOWS` addresses beyond the first, and their servers.
    """
    users = [
        user for user in topology.multipath if len(further_addresses(wiring, user)) > MAX_SUBFLOWS
    ]
    return frozenset([*users, *map(topology.server_of, users)])


def further_addresses(wiring: Wiring, user: str) -> list[str]:
    """Return all addresses of a user except the first address.

    The user opens its connections from the first address.
    """
    return [address for each in wiring.of(user) for address in (each.address, *each.further)][1:]


class UserspacePathManager:
    """Opens the further subflows of new connections, in one network namespace.

    This is the namespace of the thread that creates the object.
    """

    def __init__(self, pid: int, manager: PathManager, addresses: list[str]) -> None:
        """Start to listen for new connections.

        Subflows are opened from `addresses`; the list is empty on a server. `pid` is a process in
        the host, and only serves to record the equivalent shell commands.
        """
        self._pid, self._manager, self._addresses = pid, manager, addresses
        self._listener = manager.listen()  # 1

    def fileno(self) -> int:
        """Return a file descriptor for `select`; it becomes readable when there are events."""
        return self._listener.fileno()

    def close(self) -> None:
        self._listener.close()

    def act(self) -> list[str]:
        """Open the further subflows of all connections established since the last call.

        Returns an error message for each subflow that the kernel refuses to open.
        """
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
