"""Exchange datagrams with host agents, the programs that run on the hosts.

A host agent is reached at the address from which its last report came.
"""

from __future__ import annotations

from collections.abc import Callable

from controller import host_messages
from controller.host_messages import HostReport

Address = tuple[str, int]


class HostChannel:
    """Read the reports of host agents and send datagrams to them.

    Both sides share `key`. `send(datagram, address)` transmits; without it no host can be reached.
    """

    def __init__(
        self, key: str = "", send: Callable[[bytes, Address], None] = lambda *_: None
    ) -> None:
        self.key, self._send = key, send
        self._addresses: dict[str, Address] = {}

    def report(self, data: bytes, sender: Address) -> HostReport:
        """Parse a host report and remember the address of its sender.

        Raise `MessageRefused` if the report is not valid.
        """
        report = host_messages.read_report(data, self.key)
        self._addresses[report.host] = sender
        return report

    def send(self, host: str, data: bytes) -> bool:
        """Send a datagram to `host`, where its host agent receives it.

        Return False, and send nothing, if this host has never reported.
        """
        address = self._addresses.get(host)
        if address is not None:
            self._send(data, address)
        return address is not None
