"""WiFi: simulated radios (mac80211_hwsim), access points (hostapd), and stations that associate.

Netlink messages make the radios and move them into hosts, because commands would start two
processes per radio. While the network is built, stations associate by the command `iw`. During a
run, moving stations associate by nl80211 messages.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import struct
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lab.engines.mininet.kernel import netlink
from lab.engines.mininet.kernel.netlink import Family, Scheduler, attribute
from lab.engines.mininet.machine import shell, upstreams
from lab.engines.mininet.machine.ledger import Ledger
from lab.errors import CommandFailed, LabError, RequestError
from lab.topologies.topology import Interface, Topology, radio_port, wire

HWSIM_NEW_RADIO, HWSIM_RADIO_NAME = 4, 17  # mac80211_hwsim.h
SET_WIPHY_NETNS, WIPHY, NETNS_PID, NETNS_FD = 49, 1, 82, 219  # linux/nl80211.h
RADIOS = Path("/sys/class/ieee80211")
SIOCSIFNAME = 0x8923  # linux/sockios.h
NETWORK_MANAGER = Path("/run/NetworkManager")


@dataclass(frozen=True)
class Radio:
    """A radio to make; `interface` is the name that its network interface will get.

    `pid` is a process in the host that gets the radio. It is None for the radio of an access point
    or of another switch, which stays outside all hosts.
    """

    name: str
    interface: str
    pid: int | None


@dataclass(frozen=True)
class Moved:
    """A radio inside a host.

    `index` is its wiphy number, `pid` a process in the host's namespace.
    """

    index: int
    pid: int


def make_radios(radios: Iterable[Radio]) -> list[Moved]:
    """Make the radios, name their interfaces, and move each into the namespace of its host.

    Returns the radios that are now inside a host. An interface is renamed before the move, because
    the kernel would call every interface of a host wlan0.
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

    The kernel does this as well when it removes a host's namespace. But an open connection in the
    host can delay the removal for a minute. Radios that cannot be moved are left to the kernel.
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
    """Record in commands.sh a command that sets the present MAC address of an interface.

    Stations connect to the MAC address of their access point. The kernel derives this address from
    the number of the radio. Without the command, the address would differ when someone runs
    commands.sh.
    """
    address = Path(f"/sys/class/net/{interface}/address").read_text().strip()
    shell.journal_command(["ip", "link", "set", "dev", interface, "address", address])


def _unmanage(interface: str) -> None:
    """Make NetworkManager ignore an interface. Do nothing if NetworkManager is not running."""
    if NETWORK_MANAGER.is_dir() and shutil.which("nmcli"):
        argv = ["nmcli", "device", "set", interface, "managed", "no"]
        shell.run(argv, f"keep NetworkManager from using {interface}")


SOCKETS = Path("/var/run/hostapd")  # for hostapd_cli


def start_hostapd(folder: Path, interface: str, configuration: str) -> None:
    file = _hostapd_file(folder, interface, "apconf")
    file.write_text(configuration)
    shell.journal_command(["mkdir", "-p", str(folder)])
    shell.journal_command(["tee", str(file)], configuration)
    argv = ["hostapd", "-B", "-P", str(_hostapd_file(folder, interface, "pid")), str(file)]
    shell.run(argv, f"start hostapd on {interface}")


def hostapd_pid_files(folder: Path, aps: Iterable[str]) -> dict[str, Path]:
    return {ap: _hostapd_file(folder, radio_port(ap), "pid") for ap in aps}


def record_hostapd(ledger: Ledger, aps: Iterable[str]) -> None:
    """Record the hostapd processes of the access points and their files, for the clean-up."""
    ledger.record("folder", path=str(SOCKETS), only_if_empty=True)
    for ap in aps:
        ledger.record("file", path=str(SOCKETS / radio_port(ap)))
    word = f"mn{os.getpid()}_"  # in the names of hostapd's configuration files
    ledger.record("daemon", program="hostapd", word=word)


def _hostapd_file(folder: Path, interface: str, suffix: str) -> Path:
    return folder / f"mn{os.getpid()}_{interface}.{suffix}"


TIMEOUT_S, RETRY_S = 20, 2
TRIES = 4  # at least: on a busy machine, one try can take as long as the timeout
Run = Callable[[str, list[str], str], str]  # a host, a command, its purpose; returns its output


def associate(stations: Iterable[Interface], target: Callable[[str], Target], run: Run) -> None:
    """Associate each station with its access point by `iw connect`, and wait for all of them.

    `stations` are radio interfaces; the field `switch` of each is the name of its access point.
    `target(ap)` returns the SSID, frequency and MAC address of an access point. `run(host, argv,
    doing)` runs a command inside a host; `doing` says in error messages for what purpose.

    A station is associated when hostapd lists it. Until then, `iw connect` is repeated every
    `RETRY_S` seconds. At least `TRIES` tries are made. After these, `LabError` is raised as soon as
    hostapd has listed no further station for `TIMEOUT_S` seconds.
    """
    waiting = {each.mac: each for each in stations}
    deadline, retry, tries = time.monotonic() + TIMEOUT_S, 0.0, 0
    while waiting:
        if time.monotonic() > retry:
            for each in waiting.values():
                _join(each, target(each.switch), run)
            retry, tries = time.monotonic() + RETRY_S, tries + 1
        before = len(waiting)
        for ap in {each.switch for each in waiting.values()}:
            argv = ["iw", "dev", radio_port(ap), "station", "dump"]
            listed = shell.run(argv, f"list the stations of {ap}").split()
            waiting = {mac: each for mac, each in waiting.items() if mac not in listed}
        if len(waiting) < before:
            deadline = time.monotonic() + TIMEOUT_S
        if waiting and time.monotonic() > deadline and tries >= TRIES:
            names = ", ".join(f"{each.node} with {each.switch}" for each in waiting.values())
            raise LabError(
                f"associate {names}: no answer from hostapd in {TIMEOUT_S} s. "
                "Try: ./run_lab.sh clean, then run it once more"
            )


def _join(station: Interface, ap: Target, run: Run) -> None:
    argv = ["iw", "dev", station.name, "connect", ap.ssid, str(ap.mhz), ap.mac]
    with contextlib.suppress(CommandFailed):  # it may be associating; hostapd's list decides
        run(station.node, argv, f"associate {station.node} with {ap.ap}")


CONNECT, DISCONNECT = 46, 48  # linux/nl80211.h
IFINDEX, MAC, FREQUENCY, SSID, STATUS = 3, 6, 38, 52, 72


@dataclass(frozen=True)
class Target:
    """An access point, with what a station needs to associate with it.

    `ap` is its name in the topology, `mhz` the frequency of its channel, `mac` the MAC address of
    its radio.
    """

    ap: str
    ssid: str
    mhz: int
    mac: str


class StationRadio:
    """Controls the radio of one station by nl80211 messages.

    Create this object inside the station's network namespace, because its netlink sockets stay in
    the namespace in which they were opened.
    """

    def __init__(self, interface: str) -> None:
        self.interface = interface
        scheduler = Scheduler()
        try:
            self._index = attribute(IFINDEX, struct.pack("=I", scheduler.index(interface)))
        finally:
            scheduler.close()
        self._family = Family("nl80211")
        self._events = self._family.listen("mlme")

    def fileno(self) -> int:
        return self._events.fileno()

    def leave(self) -> None:
        """Leave the access point. Do nothing if the station is not associated."""
        with contextlib.suppress(LabError):  # it was not associated
            self._family.request(DISCONNECT, self._index)

    def associate(self, target: Target) -> None:
        """Start to associate with an access point. `answer` later returns the result.

        Raises `LabError` if the kernel cannot start now.
        """
        body = self._index + attribute(SSID, target.ssid.encode())
        body += attribute(FREQUENCY, struct.pack("=I", target.mhz))
        body += attribute(MAC, bytes.fromhex(target.mac.replace(":", "")))
        self._family.request(CONNECT, body)

    def commands(self, target: Target) -> list[list[str]]:
        """Return the `iw` commands equivalent to `leave` and `associate`, for commands.sh."""
        device = ["iw", "dev", self.interface]
        return [
            [*device, "disconnect"],
            [*device, "connect", target.ssid, str(target.mhz), target.mac],
        ]

    def answer(self) -> bool | None:
        """Return True if `associate` has succeeded, and False if it has failed.

        Each of these results is returned only once. Without a new result, return None.
        """
        found = None
        for command, fields in self._events.messages():
            if command == CONNECT:
                found = struct.unpack("=H", fields.get(STATUS, b"\1\0")[:2])[0] == 0
        return found

    def close(self) -> None:
        self._events.close()
        self._family.close()


def check_relays(topology: Topology) -> None:
    """Raise `RequestError` unless each relay with a WiFi radio has exactly one host behind it.

    A relay is a switch that is a station of a radio cell. A WiFi station can use only its own MAC
    address. So the relay's radio has the MAC address of the host behind it, and there can be only
    one. A relay in an LTE cell is not limited, because a wire connects it with the base station.
    """
    wiring = wire(topology)
    for relay in dict.fromkeys(each.node for each in wiring.relays if each.name.endswith("wlan0")):
        hosts = len(wiring.hosts_behind(relay))
        if hosts != 1:
            raise RequestError(
                f"topology '{topology.name}' on engine 'mininet': relay '{relay}' has {hosts} "
                "hosts, and its radio carries the frames of one. Choose --engine sim"
            )
