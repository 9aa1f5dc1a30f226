"""Turn the nodes of a built network into ordinary Mininet-WiFi nodes, which run commands.

While a network is built, its nodes discard commands (nodes.py). So Mininet-WiFi's objects lack the
addresses and associations that network.py configures. This module adds them to the objects.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.engines.mininet.kernel import mounts
from lab.topologies.topology import Wiring

PREFIX_LENGTH = 8  # all addresses are in 10.0.0.0/8
LOOPBACK = "127.0.0.1 localhost"
NAMES = Path("/etc/hosts")


def release(net: Any, wiring: Wiring, scratch: Path) -> None:
    """Let the nodes of a built network run commands, and let the hosts know each other by name.

    Record in Mininet-WiFi's objects the addresses of every interface of a host, and the access
    point of every station. Write the file `hosts` into the folder `scratch`, and mount it as
    /etc/hosts inside all hosts.
    """
    names = scratch / "hosts"
    names.write_text(host_names(wiring))
    hosts = dict.fromkeys(each.node for each in wiring.interfaces)
    mounts.bind([net[host].pid for host in hosts], names, NAMES)
    for each in wiring.interfaces:
        node = net[each.node]
        for interface in (*node.intfs.values(), *getattr(node, "wintfs", {}).values()):
            if interface.name == each.name:
                interface.ip, interface.mac = each.address, each.mac
                interface.prefixLen = interface.prefixLen or PREFIX_LENGTH
        if each.name in node.params.get("wlan", ()):
            associate(net, each.node, each.switch, each.name)
    for node in net.values():
        node.quiet = False


def host_names(wiring: Wiring) -> str:
    """Return the text of the file /etc/hosts for the hosts of a network.

    The name of a host stands for the address of its first interface. The name of an interface, such
    as ue2-lte0, stands for the address of this interface.
    """
    lines, known = [LOOPBACK], set()
    for each in wiring.interfaces:
        names = [each.name] if each.node in known else [each.node, each.name]
        known.add(each.node)
        lines.append(" ".join([each.address, *names]))
    return "".join(f"{line}\n" for line in lines)


def associate(net: Any, station: str, ap: str, name: str = "") -> None:
    """Record in Mininet-WiFi's objects that a station is associated with an access point.

    `name` is the name of the station's radio interface; the default is its first. No radio changes;
    call this after each change of an association.
    """
    radio, air = net[station].getNameToWintf(name or f"{station}-wlan0"), net[ap].wintfs[0]
    if radio.associatedTo is not None and radio in radio.associatedTo.associatedStations:
        radio.associatedTo.associatedStations.remove(radio)
    radio.setConnected(air)
    radio.ssid, radio.channel, radio.freq = air.ssid, air.channel, air.freq
