"""The two eBPF programs that packets cross: one for each WiFi cell, one for switch ports of hosts.

wifi_cell.bpf.c keeps a virtual clock for each cell: the time until which the accepted packets
occupy the radio channel.

host_port.bpf.c separates packets from the hosts that have sent them. In an emulation all nodes
share one kernel. A segment in the queue of an access point is a clone of one that the sending
socket keeps for retransmission, and the socket can tell. Linux then believes that the segment still
waits in the host itself, and does not retransmit it after a timeout or as a tail loss probe
(`skb_still_in_host_queue`). A real host knows nothing about the queues of its network. So the
program replaces every packet that comes from a host by a clone that belongs to no socket
(`bpf_clone_redirect`).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lab.engines.mininet.kernel import bpf, shaping
from lab.engines.mininet.kernel.cell_maps import PINS, CellClock, CellMembers, Clock
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.radio.cell import Cell, Station
from lab.radio.wifi import limit_ns

CELL_SOURCE = Path(__file__).with_name("wifi_cell.bpf.c")


def cell_program() -> Path:
    """Compile wifi_cell.bpf.c if needed, and return the eBPF object file."""
    return bpf.compiled(CELL_SOURCE, "the cell's program")


def mount_pins(ledger: Ledger) -> None:
    """Mount a bpf file system at `PINS`, unless one is mounted, and record it for the clean-up.

    Programs and maps of cells are pinned there, so that commands inside the hosts can use them.
    """
    if not PINS.is_mount():
        ledger.record("folder", path=str(PINS))
        PINS.mkdir(parents=True, exist_ok=True)
        shell.journal_command(["mkdir", "-p", str(PINS)])
        ledger.record("mount", path=str(PINS))
        shell.run(["mount", "-t", "bpf", "bpf", str(PINS)], "mount a bpf file system for the cells")


class RunningCell:
    def __init__(self, cell: Cell, ledger: Ledger) -> None:
        """Load the program of `cell`, and start the virtual clock of the cell.

        Program and maps are pinned in `PINS`/AP, for access point AP; `ledger` records this folder
        for the clean-up. The program drops a packet that would have to wait longer than the cell's
        buffer allows.
        """
        self.cell, self.pins = cell, PINS / cell.ap
        ledger.record("pin", path=str(self.pins))
        argv = ["bpftool", "prog", "loadall", str(cell_program()), str(self.pins)]
        argv += ["type", "classifier", "pinmaps", str(self.pins)]
        shell.run(argv, f"load the cell of {cell.ap}")
        self._clock = CellClock(cell.ap)
        self._members = CellMembers(cell.ap)
        self._clock.start(limit_ns(cell))
        self._members.set_collisions(1.0, cell.loss_ppm / 1e6)

    def set_station(self, address: str, station: Station) -> None:
        """Set the airtime of packets to and from a station; add the station if it is new.

        `address` is its IPv4 address. The airtime follows from its rate.
        """
        self._members.set(address, station)

    def record(self) -> None:
        """Record the commands that start the clock and write the stations (commands.sh)."""
        for command in [self._clock.start_command(limit_ns(self.cell)), *self._members.commands()]:
            shell.journal_command(command)

    def remove_station(self, address: str) -> None:
        self._members.remove(address)

    def first_packet_ns(self, address: str) -> int | None:
        """Return when the first packet to or from a station crossed the cell [ns, monotonic clock].

        `address` is the station's IPv4 address. None before the first packet since the station
        joined.
        """
        member = self._members.activity().get(address)
        return member.first_ns or None if member else None

    def read(self) -> Clock:
        return self._clock.read()


PORT_SOURCE = Path(__file__).with_name("host_port.bpf.c")
PORT_PIN = PINS / "host_port"


def port_program() -> Path:
    """Compile host_port.bpf.c if needed, and return the eBPF object file."""
    return bpf.compiled(PORT_SOURCE, "the program for switch ports")


def replace_packets(ports: Iterable[str], ledger: Ledger) -> None:
    """Attach host_port.bpf.c: packets that arrive at these switch ports lose their socket.

    A host's TCP then no longer mistakes a segment that waits in the network for one that waits in
    the host. Each port is one end of a veth pair; the other end belongs to a host. `ledger` records
    the pinned program for the clean-up. The bpf file system must be mounted at `PINS`.
    """
    ledger.record("pin", path=str(PORT_PIN))
    argv = ["bpftool", "prog", "load", str(port_program()), str(PORT_PIN), "type", "classifier"]
    shell.run(argv, "load the program for switch ports")
    lines = [line for port in ports for line in shaping.arriving(port, str(PORT_PIN))]
    doing = "attach the program to the switch ports"
    shell.run(["tc", "-batch", "-"], doing, stdin=shaping.batch(lines))
