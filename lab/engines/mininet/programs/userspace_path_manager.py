"""An MPTCP path manager in user space. It opens more subflows than the kernel's path manager can.

With the setting net.mptcp.pm_type=1, the kernel does not open subflows itself.

1) The path manager listens to the kernel's MPTCP events in both hosts of a connection. The kernel
of a host without a listener accepts no further subflows. 2) When a connection of its host is
established, it opens its other subflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.engines.mininet.kernel.path_manager import Established, PathManager, established
from lab.engines.mininet.machine import shell
from lab.errors import LabError

SETTING = {"net.mptcp.pm_type": "1"}


@dataclass(frozen=True)
class Join:
    """A subflow between `address` of a user and an address of its server. `ident` is the MPTCP
    address ID of `address`."""

    address: str
    ident: int
    server: str
    is_backup: bool = False


class UserspacePathManager:
    """Opens the further subflows of new connections, in one network namespace.

    This is the namespace of the thread that creates the object.
    """

    def __init__(self, pid: int, manager: PathManager, joins: Sequence[Join]) -> None:
        """Start to listen for new connections.

        `joins` are the subflows of each connection, that included with which it opens; the list is
        empty on a server. `pid` is a process in the host, and only serves to record the equivalent
        shell commands.
        """
        self._pid, self._manager, self._joins = pid, manager, joins
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
            for place, join in enumerate(self._joins):  # 2
                try:
                    self._open(connection, join, is_first=place == 0)
                except LabError as problem:
                    ends = f"{join.address} to {join.server}"
                    refused.append(f"open a subflow from {ends}: {problem}")
        return refused

    def _open(self, connection: Established, join: Join, is_first: bool) -> None:
        token, server = connection.token, (join.server, connection.server[1])
        ends = ["rip", server[0], "rport", str(server[1]), "token", str(token)]
        tool = ["mnexec", "-a", str(self._pid), "pm_nl_ctl"]  # the kernel's own tool for it
        if not is_first:
            local = ["lip", join.address, "lid", str(join.ident)]
            shell.journal_command([*tool, "csf", *local, *ends])
            self._manager.create(token, join.address, join.ident, server, join.is_backup)
        if join.is_backup:
            shell.journal_command([*tool, "set", join.address, "flags", "backup", *ends])
        if join.is_backup and is_first:
            self._manager.set_subflow_backup(token, join.address, server, True)
