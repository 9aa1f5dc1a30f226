"""WiFi radios of mac80211_hwsim: made, given to hosts and named, without a process for each of these."""

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
    """A radio by its own name, the interface it shall be, and the process whose host gets it (None: it stays outside)."""

    name: str
    interface: str
    pid: int | None


def create(radios: Iterable[Radio]) -> dict[str, str]:
    """Make all; what the kernel called each interface: renaming it is left to whoever configures the host."""
    shell.run(["modprobe", "mac80211_hwsim", "radios=0"], "load the module of the radios")
    hwsim, wireless = Family("MAC80211_HWSIM"), Family("nl80211")
    try:
        return {radio.interface: _create(radio, hwsim, wireless) for radio in radios}
    finally:
        hwsim.close()
        wireless.close()


def _create(radio: Radio, hwsim: Family, wireless: Family) -> str:
    shell.journal_command(["hwsim_mgmt", "-c", "-n", radio.name])
    hwsim.ask(HWSIM_NEW_RADIO, attribute(HWSIM_RADIO_NAME, radio.name.encode() + b"\0"))
    folder = RADIOS / radio.name
    for blocked in folder.glob("rfkill*/soft"):
        blocked.write_text("0")
    made = next((folder / "device" / "net").iterdir()).name
    if radio.pid is None:
        _leave_alone(made)
    else:
        shell.journal_command(["iw", "phy", radio.name, "set", "netns", str(radio.pid)])
        number = struct.pack("=I", int((folder / "index").read_text()))
        wireless.ask(
            SET_WIPHY_NETNS,
            attribute(WIPHY, number) + attribute(NETNS_PID, struct.pack("=I", radio.pid)),
        )
    return made


def _leave_alone(interface: str) -> None:
    """NetworkManager, where it runs, would use the access point's interface as its own."""
    if NETWORK_MANAGER.is_dir() and shutil.which("nmcli"):
        shell.run(
            ["nmcli", "device", "set", interface, "managed", "no"],
            f"keep NetworkManager away from {interface}",
        )
