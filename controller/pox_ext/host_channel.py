"""Exchange datagrams with host agents; each is reached at the address of its last report."""

from __future__ import annotations

from collections.abc import Callable

from controller import host_messages
from controller.host_messages import HostReport

Address = tuple[str, int]


class HostChannel:
    """Read reports and send commands; without a key no host can be reached."""

    def __init__(
        self, key: str = "", send: Callable[[bytes, Address], None] = lambda *_: None
    ) -> None:
        self.key, self._send = key, send
        self._addresses: dict[str, Address] = {}

    def report(self, data: bytes, sender: Address) -> HostReport:
        """Return the report in a datagram; raise `MessageRefused` if it is not valid."""
        report = host_messages.read_report(data, self.key)
        self._addresses[report.host] = sender
        return report

    def send(self, host: str, data: bytes) -> bool:
        """Send to a host; return False if it has never reported."""
        address = self._addresses.get(host)
        if address is not None:
            self._send(data, address)
        return address is not None
