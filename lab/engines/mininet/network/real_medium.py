"""Run wmediumd, a program that models the 802.11 medium, in place of the lab's WiFi cells.

mac80211_hwsim gives wmediumd every frame of every radio by a netlink socket. wmediumd decides when
the frame arrives and whether it is lost, and gives it back. Its own queue has no end. So every
subflow over WiFi gets a limit for its congestion window instead: together they fill the queue with
no more packets than the cell's queue would hold.
"""

from __future__ import annotations

import ctypes
import os
import socket
import stat
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from lab.engines.mininet.machine import shell, upstreams
from lab.engines.mininet.machine.ledger import Ledger
from lab.errors import LabError, MachineLacks
from lab.radio import wmediumd
from lab.radio.cell import Cell
from lab.radio.wmediumd import Place
from lab.topologies.topology import Wiring, radio_port

NET = Path("/sys/class/net")
START_TIMEOUT_S = 20
PIDFD_GETFD, SO_RCVBUFFORCE = 438, 33  # linux/unistd.h, linux/socket.h
SOCKET_BUFFER_BYTES = 8 << 20
HWSIM_FRAMES = 90  # of more than 100 waiting frames, hwsim never reports back the oldest
WIFI_SUBNET = "10.1.0.0/24"
CONFIGURATION = """ifaces : {{ ids = [{ids}]; enable_interference = true; }};
model : {{ type = "path_loss"; positions = ({positions});
  tx_powers = ({powers}); model_name = "log_distance"; path_loss_exp = {exponent}; xg = 0.0; }};
"""


def require() -> Path:
    """Return the path of wmediumd's program; raise `MachineLacks` if it is not built."""
    program = upstreams.wmediumd()
    if not os.access(program, os.X_OK):
        raise MachineLacks(
            f"run topology.air 'wmediumd': {program} is missing. "
            "Try: sudo apt install libconfig-dev, then ./run_lab.sh setup-emulation"
        )
    return program


class RealMedium:
    """Hold the medium of all WiFi cells: where the stations are, and the program wmediumd."""

    def __init__(self, cells: Iterable[Cell], wiring: Wiring, ledger: Ledger, log: Path) -> None:
        """Choose the places of all stations; `start` starts wmediumd, which writes into `log`."""
        self._wiring, self._ledger, self._log = wiring, ledger, log
        self._process: subprocess.Popen[str] | None = None
        self._cells = [cell for cell in cells if cell.kind == "wifi"]
        self._places = {
            cell.ap: dict(
                zip(
                    (station.user for station in cell.stations),
                    wmediumd.places(station.rate_bps for station in cell.stations),
                    strict=True,
                )
            )
            for cell in self._cells
        }

    def place(self, user: str) -> Place:
        """Return the place of a station of the first cell that it belongs to."""
        return next(places[user] for places in self._places.values() if user in places)

    def to_json(self) -> dict[str, dict[str, float]]:
        """Return the entry of manifest.json: x and y in m and the rate on the air, by station."""
        return {
            user: {"x_m": round(at.x_m, 1), "y_m": round(at.y_m, 1), "phy_mbps": at.phy_mbps}
            for places in self._places.values()
            for user, at in places.items()
        }

    def hostapd_lines(self, ap: str) -> str:
        """Return the lines of hostapd's configuration, joined by commas, that choose the rates.

        Beacons and other frames without a station of their own use the slowest rate.
        """
        rates = sorted({10 * place.phy_mbps for place in self._places[ap].values()})
        named = " ".join(map(str, rates))
        return f"supported_rates={named},basic_rates={rates[0]}"

    def start(self, scratch: Path) -> None:
        """Write wmediumd's configuration into the folder `scratch`, and start wmediumd.

        All radios must exist.
        """
        file = scratch / f"mn{os.getpid()}_wmediumd.cfg"
        file.write_text(self._configuration())
        self._ledger.record("daemon", program="wmediumd", word=str(file))
        with self._log.open("a") as log:
            argv = [str(require()), "-l", "4", "-c", str(file)]
            process = self._process = shell.spawn(
                argv, "start wmediumd", stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not enlarge_socket_buffer(process.pid):
            if process.poll() is not None or time.monotonic() > deadline:
                last = self._log.read_text().strip().splitlines()[-1:] or ["its log is empty"]
                raise LabError(f"start wmediumd: {last[0]}. See {self._log}")
            time.sleep(0.1)

    def stop(self) -> None:
        """End wmediumd, if it was started."""
        if self._process:
            self._process.kill()
            self._process.wait()

    def _configuration(self) -> str:
        members = list(self._members())
        positions = (f"({x_m:.2f}, {y_m:.2f}, 0.0)" for _mac, x_m, y_m in members)
        return CONFIGURATION.format(
            ids=", ".join(f'"{mac}"' for mac, _x, _y in members),
            positions=", ".join(positions),
            powers=", ".join(f"{wmediumd.POWER_DBM:.1f}" for _ in members),
            exponent=wmediumd.EXPONENT,
        )

    def _members(self) -> Iterator[tuple[str, float, float]]:
        """Yield the MAC address and the position [m] of every radio."""
        for ap, places in self._places.items():
            address = (NET / radio_port(ap) / "address").read_text()
            yield address.strip(), 0.0, 0.0
            for user, place in places.items():
                yield self._wiring.at(user, ap).mac, place.x_m, place.y_m

    def window_lines(self, host: str) -> Iterator[str]:
        """Yield the `ip` lines that limit the congestion windows of a host on WiFi paths.

        For a server, these are the paths to WiFi; for a station, those from its radio.
        """
        for cell in self._cells:
            packets = window_packets(cell)
            is_station = any(station.user == host for station in cell.stations)
            for table, each in enumerate(self._wiring.of(host), 1):
                if is_station and each.link == cell.ap:
                    yield _route("10.0.0.0/8", each.name, table, packets)
                elif not is_station:
                    yield _route(WIFI_SUBNET, each.name, table, packets)


def window_packets(cell: Cell) -> int:
    """Return the limit for the congestion window of each subflow in a cell, in packets."""
    return max(2, min(cell.queue_packets, HWSIM_FRAMES) // len(cell.stations))


def _route(subnet: str, device: str, table: int, packets: int) -> str:
    return f"route replace {subnet} dev {device} table {table} cwnd lock {packets}"


def enlarge_socket_buffer(pid: int) -> int:
    """Set large receive buffers on a process's netlink sockets; return how many there are.

    libnl's default of 32 kB holds about ten frames: bursts would be lost before they reach the air.
    """
    found, copies = 0, []
    with suppress(FileNotFoundError, ProcessLookupError):
        process = os.pidfd_open(pid)
        numbers = [int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()]
        copies = [_copied(process, number) for number in numbers]
        os.close(process)
    for copy in copies:
        if copy < 0:
            continue
        if not stat.S_ISSOCK(os.fstat(copy).st_mode):
            os.close(copy)
            continue
        with closing(socket.socket(fileno=copy)) as theirs:
            if theirs.family == socket.AF_NETLINK:
                theirs.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER_BYTES)
                found += 1
    return found


def _copied(process: int, number: int) -> int:
    """Return a copy of a file descriptor of another process; -1 if that has closed it."""
    return int(ctypes.CDLL(None, use_errno=True).syscall(PIDFD_GETFD, process, number, 0))
