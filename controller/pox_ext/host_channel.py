"""Exchange UDP datagrams with host agents, the programs of the lab that run on the hosts.

Datagrams to a host agent go to the address from which its latest report came.
"""

from __future__ import annotations

from collections.abc import Callable

from controller import host_messages
from controller.host_messages import HostReport

Address = tuple[str, int]


class HostChannel:
    """Read the reports of host agents and send datagrams to host agents.

    `key` is the secret that host agents and the controller share. `send(datagram, address)` must
    transmit the datagram; the default transmits nothing.
    """

    def __init__(
        self, key: str = "", send: Callable[[bytes, Address], None] = lambda *_: None
    ) -> None:
        self.key, self._send = key, send
        self._addresses: dict[str, Address] = {}

    def report(self, data: bytes, sender: Address) -> HostReport:
        """Parse the report of a host agent, and remember the address of its sender.

        Raise `MessageRefused` if the report is not valid.
        """
        report = host_messages.read_report(data, self.key)
        self._addresses[report.host] = sender
        return report

    def send(self, host: str, data: bytes) -> bool:
        """Send a datagram to the host agent on `host`.

        Return False, and send nothing, if no report from this host has come.
        """
        address = self._addresses.get(host)
        if address is not None:
            self._send(data, address)
        return address is not None
