"""What a host is told before it is used: addresses, routes, settings, endpoints. One process per host does what text can say."""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from errno import EOPNOTSUPP
from pathlib import Path

from lab.engines.mininet.kernel.path_manager import PathManager
from lab.engines.mininet.machine import shell
from lab.engines.mininet.programs.userspace_path_manager import MOST_SUBFLOWS
from lab.topologies.topology import Interface, Wiring

SOCKET_BUFFERS = "10240 87380 16777216"  # least, first and most [bytes], as Mininet sets them
SYSCTL = Path("/proc/sys")
SIOCETHTOOL = 0x8946
OFFLOADS = {"tso": 0x1F, "gso": 0x24, "gro": 0x2C}  # ETHTOOL_STSO, _SGSO, _SGRO (linux/ethtool.h)
Enter = Callable[[list[str]], list[str]]
"""Makes the command line that runs inside a host."""


def settings(interfaces: Iterable[str]) -> dict[str, str]:
    """The sysctls of a host."""
    found = {
        "net.mptcp.enabled": "1",
        "net.ipv4.tcp_no_metrics_save": "1",
        "net.ipv4.tcp_rmem": SOCKET_BUFFERS,
        "net.ipv4.tcp_wmem": SOCKET_BUFFERS,
        "net.ipv6.conf.all.disable_ipv6": "1",
        "net.ipv6.conf.default.disable_ipv6": "1",
    }
    for name in ("all", "default", *interfaces):
        keys = (("rp_filter", "0"), ("arp_ignore", "1"), ("arp_announce", "2"))
        found |= {f"net.ipv4.conf.{name}.{key}": value for key, value in keys}
    return found


def addresses(interfaces: tuple[Interface, ...]) -> Iterator[str]:
    """Everything is on link in 10/8; a table per interface keeps a subflow on its own."""
    yield "link set dev lo up"
    for table, each in enumerate(interfaces, 1):
        yield f"link set dev {each.name} up gso_max_segs 1"
        yield f"route replace 10.0.0.0/8 dev {each.name} table {table}"
        for address in (each.address, *each.further):
            yield f"addr add {address}/32 dev {each.name}"
            yield f"rule add from {address} table {table}"
    yield f"route replace 10.0.0.0/8 dev {interfaces[0].name} src {interfaces[0].address}"


def radio(made: str, interface: Interface) -> Iterator[str]:
    """Give a radio's interface, which the kernel called `made`, its name and its hardware address."""
    yield f"link set dev {made} down"
    yield f"link set dev {made} name {interface.name} address {interface.mac}"


def neighbours(host: str, wiring: Wiring) -> Iterator[str]:
    """Who has which hardware address, for good: a host must not have to ask a controller that stands still (ARP)."""
    for mine in wiring.of(host):
        for other in wiring.interfaces:
            for address in (other.address, *other.further) if other.node != host else ():
                yield f"neigh replace {address} lladdr {other.mac} dev {mine.name} nud permanent"


def write_settings(values: dict[str, str], enter: Enter) -> None:
    """Set sysctls of the namespace this is called in, `enter` being the way into it for a command."""
    shell.journal_command(
        enter(["sysctl", "-qw", *(f"{key}={value}" for key, value in values.items())])
    )
    for key, value in values.items():
        (SYSCTL / key.replace(".", "/")).write_text(value)


def without_offloads(interfaces: Iterable[str], enter: Enter) -> None:
    """One packet at a time on these interfaces: meters and queues count packets, and would drop bursts whole."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for name in interfaces:
            shell.journal_command(
                enter(["ethtool", "-K", name, *(word for key in OFFLOADS for word in (key, "off"))])
            )
            for command in OFFLOADS.values():
                _ethtool(control, name, command, 0)


def _ethtool(control: socket.socket, interface: str, command: int, value: int) -> None:
    request = bytearray(struct.pack("=II", command, value))
    pointer = (ctypes.c_char * len(request)).from_buffer(request)
    try:
        fcntl.ioctl(
            control, SIOCETHTOOL, struct.pack("16sP", interface.encode(), ctypes.addressof(pointer))
        )
    except OSError as problem:
        if problem.errno != EOPNOTSUPP:  # a radio cannot do it anyway
            raise


def endpoints(interfaces: Iterable[Interface], enter: Enter) -> None:
    """Multipath TCP opens a subflow from every address of these interfaces."""
    manager = PathManager()
    try:
        shell.journal_command(
            enter(
                [
                    "ip",
                    "mptcp",
                    "limits",
                    "set",
                    "subflow",
                    str(MOST_SUBFLOWS),
                    "add_addr_accepted",
                    "0",
                ]
            )
        )
        manager.limit(MOST_SUBFLOWS)
        for each in interfaces:
            for address in (each.address, *each.further):
                shell.journal_command(
                    enter(["ip", "mptcp", "endpoint", "add", address, "dev", each.name, "subflow"])
                )
                manager.add(address, socket.if_nametoindex(each.name))
    finally:
        manager.close()
