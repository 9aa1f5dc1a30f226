"""Check the relays of a topology: switches that are stations of a radio cell.

A relay in a WiFi cell has a radio, which is a port of its Open vSwitch bridge. A WiFi station can
send and receive only frames with its own MAC address. So the radio has the MAC address of the host
behind the relay, and only one host can be behind it. A relay in an LTE cell has a wire to the base
station instead, which is shaped like the link of an LTE user.
"""

from __future__ import annotations

from lab.errors import RequestError
from lab.topologies.topology import Topology, wire


def check(topology: Topology) -> None:
    """Raise `RequestError` unless each relay with a WiFi radio has exactly one host behind it."""
    wiring = wire(topology)
    for relay in dict.fromkeys(each.node for each in wiring.relays if each.name.endswith("wlan0")):
        hosts = len(wiring.hosts_behind(relay))
        if hosts != 1:
            raise RequestError(
                f"topology '{topology.name}' on engine 'mininet': relay '{relay}' has {hosts} "
                "hosts, and its radio carries the frames of one. Choose --engine sim"
            )
