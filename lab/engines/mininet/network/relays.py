"""Check the relays of a topology: switches that are stations of a radio cell.

A relay's radio is a port of its Open vSwitch bridge. A WiFi station sends and receives frames with
its own MAC address only. So the radio has the MAC address of the host behind the relay, and there
can be only one such host. A relay in an LTE cell has a wire to the base station, which is shaped as
the bearer of a user.
"""

from __future__ import annotations

from lab.errors import RequestError
from lab.topologies.topology import Topology, wire


def check(topology: Topology) -> None:
    """Raise `RequestError` if a relay with a WiFi radio has not exactly one host behind it."""
    wiring = wire(topology)
    for relay in dict.fromkeys(each.node for each in wiring.relays if each.name.endswith("wlan0")):
        hosts = len(wiring.hosts_behind(relay))
        if hosts != 1:
            raise RequestError(
                f"topology '{topology.name}' on engine 'mininet': relay '{relay}' has {hosts} "
                "hosts, and its radio carries the frames of one. Choose --engine sim"
            )
