"""Make simulated WiFi radios (mac80211_hwsim), and move them into hosts.

Both are done by netlink messages; commands would start two processes per radio.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lab.engines.mininet.kernel import netlink
from lab.engines.mininet.kernel.netlink import Family, attribute
from lab.engines.mininet.machine import shell, upstreams
from lab.errors import LabError

HWSIM_NEW_RADIO, HWSIM_RADIO_NAME = 4, 17  # mac80211_hwsim.h
SET_WIPHY_NETNS, WIPHY, NETNS_PID, NETNS_FD = 49, 1, 82, 219  # linux/nl80211.h
RADIOS = Path("/sys/class/ieee80211")
SIOCSIFNAME = 0x8923  # linux/sockios.h
NETWORK_MANAGER = Path("/run/NetworkManager")


@dataclass(frozen=True)
class Radio:
    """Describe a radio to make.

    `name` is the name of the radio, `interface` the name that its network interface will get. `pid`
    is the process that holds the network namespace of the host that gets the radio. It is None for
    the radio of an access point or of a relay, which stays outside all hosts.
    """

    name: str
    interface: str
    pid: int | None


@dataclass(frozen=True)
class Moved:
    """Describe a radio that is in a host: its number, and a process (`pid`) in that namespace."""

    index: int
    pid: int


def create(radios: Iterable[Radio]) -> list[Moved]:
    """Make the radios, name their interfaces, and move each into the namespace of its host.

    Return the radios that were moved into a host.
    An interface is renamed before the move. Otherwise a host with two radios would get two
    interfaces that the kernel has named wlan0.
    """
    radios = list(radios)
    if not radios:
        return []
    shell.run(["modprobe", "mac80211_hwsim", "radios=0"], "load the module of the radios")
    hwsim, wireless = Family("MAC80211_HWSIM"), Family("nl80211")
    try:
        moved = [_create(radio, hwsim, wireless) for radio in radios]
    finally:
        hwsim.close()
        wireless.close()
    return [each for each in moved if each]


def move_back(moved: Iterable[Moved]) -> None:
    """Move radios from the hosts back to the network namespace of the caller.

    The kernel does it too when it removes the namespace of a host, but an open connection in the
    host can delay that for a minute. A radio that cannot be moved is left to the kernel.
    """
    with open("/proc/self/ns/net") as here:
        for each in moved:
            body = attribute(WIPHY, struct.pack("=I", each.index))
            body += attribute(NETNS_FD, struct.pack("=I", here.fileno()))
            with contextlib.suppress(LabError, OSError):
                netlink.inside(each.pid, partial(_request_once, SET_WIPHY_NETNS, body))


def _request_once(command: int, body: bytes) -> None:
    wireless = Family("nl80211")
    try:
        wireless.request(command, body)
    finally:
        wireless.close()


def _create(radio: Radio, hwsim: Family, wireless: Family) -> Moved | None:
    shell.journal_command([str(upstreams.hwsim_mgmt()), "-c", "-n", radio.name])
    hwsim.request(HWSIM_NEW_RADIO, attribute(HWSIM_RADIO_NAME, radio.name.encode() + b"\0"))
    folder = RADIOS / radio.name
    for blocked in folder.glob("rfkill*/soft"):
        blocked.write_text("0")
    _rename(next((folder / "device" / "net").iterdir()).name, radio.interface)
    if radio.pid is None:
        _record_address(radio.interface)
        _unmanage(radio.interface)
        return None
    shell.journal_command(["iw", "phy", radio.name, "set", "netns", str(radio.pid)])
    moved = Moved(int((folder / "index").read_text()), radio.pid)
    body = attribute(WIPHY, struct.pack("=I", moved.index))
    wireless.request(SET_WIPHY_NETNS, body + attribute(NETNS_PID, struct.pack("=I", moved.pid)))
    return moved


def _rename(old: str, new: str) -> None:
    shell.journal_command(["ip", "link", "set", "dev", old, "name", new])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFNAME, struct.pack("16s16s", old.encode(), new.encode()))


def _record_address(interface: str) -> None:
    """Report a command that gives an interface the address that it has.

    Stations connect to the address of their access point. When the commands of a run are run once
    more, the radio would have another one: the kernel derives it from the number of the radio.
    """
    address = Path(f"/sys/class/net/{interface}/address").read_text().strip()
    shell.journal_command(["ip", "link", "set", "dev", interface, "address", address])


def _unmanage(interface: str) -> None:
    """Make NetworkManager ignore an interface; do nothing if NetworkManager does not run here."""
    if NETWORK_MANAGER.is_dir() and shutil.which("nmcli"):
        argv = ["nmcli", "device", "set", interface, "managed", "no"]
        shell.run(argv, f"keep NetworkManager from using {interface}")
