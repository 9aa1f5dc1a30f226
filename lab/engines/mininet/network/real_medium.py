"""Run wmediumd, a program that models the 802.11 medium, in place of the lab's WiFi cells.

The simulated radios (mac80211_hwsim) pass every frame to wmediumd over netlink. wmediumd decides
when the frame arrives and whether it is lost. It knows only radios that exist when it starts. So it
starts after all radios have their addresses, and before hostapd sends the first beacon.

The queue of wmediumd is unlimited. If hundreds of frames wait, wmediumd becomes slow, and frames
are lost before they reach the medium. So small receive buffers must limit the windows (`check`).
"""

from __future__ import annotations

import ctypes
import os
import socket
import stat
import subprocess
from collections.abc import Iterable, Iterator
from itertools import combinations
from math import dist
from pathlib import Path

from lab.engines.mininet.machine import shell, upstreams
from lab.engines.mininet.machine.ledger import Ledger
from lab.errors import LabError, MachineLacks, RequestError
from lab.radio import wmediumd
from lab.radio.cell import Cell
from lab.topologies.topology import Wiring, radio_port

NET = Path("/sys/class/net")
STARTED = "REGISTER SENT"  # in wmediumd's output, once hwsim gives it the frames
MAX_RECEIVE_BUFFER_KB = 256
PIDFD_GETFD, SO_RCVBUFFORCE = 438, 33  # linux/unistd.h, linux/socket.h
SOCKET_BUFFER_BYTES = 8 << 20
CONFIGURATION = "ifaces : {{ ids = [{ids}]; links = ({links}); enable_interference = true; }};\n"


def is_used(cells: Iterable[Cell]) -> bool:
    return any(cell.air == "wmediumd" for cell in cells)


def check(receive_buffer_kb: int) -> None:
    """Raise `RequestError` if the receive buffer is larger than `MAX_RECEIVE_BUFFER_KB`.

    wmediumd's queue has no limit, so only the receive buffers limit how much data waits in it.
    Raises `MachineLacks` if wmediumd is not built.
    """
    if receive_buffer_kb > MAX_RECEIVE_BUFFER_KB:
        raise RequestError(
            f"topology.air 'wmediumd' with multipath.receive_buffer_kb {receive_buffer_kb}: the "
            "queue of wmediumd is unlimited, so receive buffers must limit the windows. Try: "
            f"--set multipath.receive_buffer_kb={MAX_RECEIVE_BUFFER_KB}"
        )
    if not os.access(upstreams.wmediumd(), os.X_OK):
        raise MachineLacks(
            f"run topology.air 'wmediumd': {upstreams.wmediumd()} is missing. "
            "Try: sudo apt install libconfig-dev, then ./run_lab.sh setup-emulation"
        )


class RealMedium:
    """Runs wmediumd for all WiFi cells: chooses positions of stations, and starts the process."""

    def __init__(self, cells: Iterable[Cell], wiring: Wiring, ledger: Ledger) -> None:
        self._wiring, self._ledger = wiring, ledger
        self._process: subprocess.Popen[str] | None = None
        self._places = {
            cell.ap: dict(
                zip(
                    (station.user for station in cell.stations),
                    wmediumd.places(station.rate_bps for station in cell.stations),
                    strict=True,
                )
            )
            for cell in cells
            if cell.air == "wmediumd"
        }

    def to_json(self) -> dict[str, dict[str, float]]:
        """Return the entry for manifest.json: position [m] and rate on the air of each station."""
        return {
            user: {"x_m": round(at.x_m, 1), "y_m": round(at.y_m, 1), "phy_mbps": at.phy_mbps}
            for places in self._places.values()
            for user, at in places.items()
        }

    def hostapd_lines(self, ap: str) -> str:
        """Return lines for hostapd's configuration that set the rates of an access point.

        The lines are joined by commas. Frames that are not for a single station, such as beacons,
        use the slowest rate.
        """
        rates = sorted({10 * place.phy_mbps for place in self._places[ap].values()})
        named = " ".join(map(str, rates))
        return f"supported_rates={named},basic_rates={rates[0]}"

    def start(self, scratch: Path) -> None:
        """Write wmediumd's configuration into the folder `scratch`, and start wmediumd.

        All radios must already exist. Raises `LabError` if wmediumd ends at once.
        """
        file = scratch / f"mn{os.getpid()}_wmediumd.cfg"
        file.write_text(self._configuration())
        shell.journal_command(["tee", str(file)], file.read_text())
        self._ledger.record("daemon", program="wmediumd", word=str(file))
        argv = [str(upstreams.wmediumd()), "-l", "5", "-c", str(file)]
        self._process = shell.spawn(
            argv,
            "start wmediumd",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        said = ""
        while STARTED not in said:
            said, before = self._process.stdout.readline(), said
            if not said:
                raise LabError(f"start wmediumd: it ended after '{before.strip()}'. See {file}")
        enlarge_socket_buffer(self._process.pid)

    def stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.communicate()

    def _configuration(self) -> str:
        """Return wmediumd's configuration: all radios, and the SNR [dB] between each pair."""
        members = list(self._members())
        pairs = combinations(enumerate(members), 2)
        links = (
            f"({a}, {b}, {wmediumd.snr_db(dist(here, there))})"
            for (a, (_, here)), (b, (_, there)) in pairs
        )
        ids = (f'"{mac}"' for mac, _ in members)
        return CONFIGURATION.format(ids=", ".join(ids), links=", ".join(links))

    def _members(self) -> Iterator[tuple[str, tuple[float, float]]]:
        for ap, places in self._places.items():
            address = (NET / radio_port(ap) / "address").read_text()
            yield address.strip(), (0.0, 0.0)
            for user, place in places.items():
                yield self._wiring.at(user, ap).mac, (place.x_m, place.y_m)


def enlarge_socket_buffer(pid: int) -> None:
    """Set large receive buffers on all netlink sockets of the process `pid`.

    The default of libnl, 32 kB, holds about ten frames. Bursts would be lost before they reach the
    medium.
    """
    copy_of = ctypes.CDLL(None, use_errno=True).syscall
    process = os.pidfd_open(pid)
    for number in [int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()]:
        copy = copy_of(PIDFD_GETFD, process, number, 0)
        if not stat.S_ISSOCK(os.fstat(copy).st_mode):
            os.close(copy)
            continue
        with socket.socket(fileno=copy) as theirs:
            if theirs.family == socket.AF_NETLINK:
                theirs.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER_BYTES)
    os.close(process)
