"""Make simulated WiFi radios (mac80211_hwsim), and move them into hosts.

Both are done by netlink messages; commands would start two processes per radio.
"""

from __future__ import annotations

import fcntl
import shutil
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lab.engines.mininet.kernel.generic_netlink import Family
from lab.engines.mininet.kernel.netlink import attribute
from lab.engines.mininet.machine import shell

HWSIM_NEW_RADIO, HWSIM_RADIO_NAME = 4, 17  # mac80211_hwsim.h
SET_WIPHY_NETNS, WIPHY, NETNS_PID = 49, 1, 82  # linux/nl80211.h
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


def create(radios: Iterable[Radio]) -> None:
    """Make the radios, name their interfaces, and move each into the namespace of its host.

    An interface is renamed before the move. Otherwise a host with two radios would get two
    interfaces that the kernel has named wlan0.
    """
    radios = list(radios)
    if not radios:
        return
    shell.run(["modprobe", "mac80211_hwsim", "radios=0"], "load the module of the radios")
    hwsim, wireless = Family("MAC80211_HWSIM"), Family("nl80211")
    try:
        for radio in radios:
            _create(radio, hwsim, wireless)
    finally:
        hwsim.close()
        wireless.close()


def _create(radio: Radio, hwsim: Family, wireless: Family) -> None:
    shell.journal_command(["hwsim_mgmt", "-c", "-n", radio.name])
    hwsim.request(HWSIM_NEW_RADIO, attribute(HWSIM_RADIO_NAME, radio.name.encode() + b"\0"))
    folder = RADIOS / radio.name
    for blocked in folder.glob("rfkill*/soft"):
        blocked.write_text("0")
    _rename(next((folder / "device" / "net").iterdir()).name, radio.interface)
    if radio.pid is None:
        _unmanage(radio.interface)
    else:
        shell.journal_command(["iw", "phy", radio.name, "set", "netns", str(radio.pid)])
        number = struct.pack("=I", int((folder / "index").read_text()))
        wireless.request(
            SET_WIPHY_NETNS,
            attribute(WIPHY, number) + attribute(NETNS_PID, struct.pack("=I", radio.pid)),
        )


def _rename(old: str, new: str) -> None:
    shell.journal_command(["ip", "link", "set", "dev", old, "name", new])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFNAME, struct.pack("16s16s", old.encode(), new.encode()))


def _unmanage(interface: str) -> None:
    """Make NetworkManager ignore an interface; do nothing if NetworkManager does not run here."""
    if NETWORK_MANAGER.is_dir() and shutil.which("nmcli"):
        argv = ["nmcli", "device", "set", interface, "managed", "no"]
        shell.run(argv, f"keep NetworkManager from using {interface}")
