"""Make simulated WiFi radios (mac80211_hwsim), and move them into hosts.

This uses netlink instead of starting two processes per radio.
"""

from __future__ import annotations

import shutil
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
NETWORK_MANAGER = Path("/run/NetworkManager")


@dataclass(frozen=True)
class Radio:
    """Describe a radio to be made: its name, and the name that its interface will have.

    `pid` is the process that holds the network namespace of the radio's host. It is None for the
    radio of an access point, which stays outside all hosts.
    """

    name: str
    interface: str
    pid: int | None


def create(radios: Iterable[Radio]) -> dict[str, str]:
    """Make the radios, and move each into the network namespace of its host.

    Returns a dictionary: the key is `Radio.interface`, the planned name of the interface, the value
    is the name that the kernel gave it. The caller renames the interfaces.
    """
    radios = list(radios)
    if not radios:
        return {}
    shell.run(["modprobe", "mac80211_hwsim", "radios=0"], "load the module of the radios")
    hwsim, wireless = Family("MAC80211_HWSIM"), Family("nl80211")
    try:
        return {radio.interface: _create(radio, hwsim, wireless) for radio in radios}
    finally:
        hwsim.close()
        wireless.close()


def _create(radio: Radio, hwsim: Family, wireless: Family) -> str:
    shell.journal_command(["hwsim_mgmt", "-c", "-n", radio.name])
    hwsim.request(HWSIM_NEW_RADIO, attribute(HWSIM_RADIO_NAME, radio.name.encode() + b"\0"))
    folder = RADIOS / radio.name
    for blocked in folder.glob("rfkill*/soft"):
        blocked.write_text("0")
    kernel_name = next((folder / "device" / "net").iterdir()).name
    if radio.pid is None:
        _unmanage(kernel_name)
    else:
        shell.journal_command(["iw", "phy", radio.name, "set", "netns", str(radio.pid)])
        number = struct.pack("=I", int((folder / "index").read_text()))
        wireless.request(
            SET_WIPHY_NETNS,
            attribute(WIPHY, number) + attribute(NETNS_PID, struct.pack("=I", radio.pid)),
        )
    return kernel_name


def _unmanage(interface: str) -> None:
    """Tell NetworkManager, if it runs here, not to use the interface of an access point."""
    if NETWORK_MANAGER.is_dir() and shutil.which("nmcli"):
        argv = ["nmcli", "device", "set", interface, "managed", "no"]
        shell.run(argv, f"keep NetworkManager from using {interface}")
