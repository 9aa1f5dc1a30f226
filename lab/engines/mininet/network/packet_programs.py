"""Load eBPF programs that packets pass: those of WiFi cells, and one for switch ports of hosts.

wifi_cell.bpf.c keeps a virtual clock per cell: the time at which the radio channel becomes free,
after all packets that it has accepted. dcf_cell.bpf.c does the same by the rules of `air: dcf`.

host_port.bpf.c separates packets from the host that has sent them. In the emulation, all nodes
share one kernel. Linux would notice that a segment in the queue of an access point belongs to a
socket. It would take the segment for one that still waits in the sending host, and would not
retransmit it after a timeout or as a tail loss probe (`skb_still_in_host_queue`). A real host does
not know the queues of its network. So this program replaces each packet from a host by a clone that
belongs to no socket (`bpf_clone_redirect`).
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from pathlib import Path

from lab.engines.mininet.kernel import bpf, shaping
from lab.engines.mininet.kernel.cell_maps import PINS, CellClock, CellMembers, Clock, DcfMembers
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.radio.cell import Cell, Station
from lab.radio.wifi import limit_ns

CELL_SOURCE = Path(__file__).with_name("wifi_cell.bpf.c")
DCF_SOURCE = Path(__file__).with_name("dcf_cell.bpf.c")


def cell_program(air: str = "cell") -> Path:
    """Return the compiled program of WiFi cells with this `air`, "cell" or "dcf"."""
    source = DCF_SOURCE if air == "dcf" else CELL_SOURCE
    return bpf.compiled(source, "the cell's program")


def mount_pins(ledger: Ledger) -> None:
    """Mount a bpf file system at `PINS`, and record it for the clean-up.

    Do nothing if one is mounted already. Programs and maps of WiFi cells are pinned in this file
    system, so that commands inside the hosts can use them.
    """
    if not PINS.is_mount():
        ledger.record("folder", path=str(PINS))
        PINS.mkdir(parents=True, exist_ok=True)
        shell.journal_command(["mkdir", "-p", str(PINS)])
        ledger.record("mount", path=str(PINS))
        shell.run(["mount", "-t", "bpf", "bpf", str(PINS)], "mount a bpf file system for the cells")


class RunningCell:
    def __init__(self, cell: Cell, ledger: Ledger) -> None:
        """Load the eBPF program of the WiFi cell `cell`, and start its virtual clock.

        Program and maps are pinned in the folder `PINS`/AP. `ledger` records this folder for the
        clean-up. The program drops a packet if its wait would exceed what the buffer of the cell
        allows.
        """
        self.cell, self.pins = cell, PINS / cell.ap
        ledger.record("pin", path=str(self.pins))
        argv = ["bpftool", "prog", "loadall", str(cell_program(cell.air)), str(self.pins)]
        argv += ["type", "classifier", "pinmaps", str(self.pins)]
        shell.run(argv, f"load the cell of {cell.ap}")
        self._clock = CellClock(cell.ap)
        self._members: CellMembers | DcfMembers
        self._clock.start(limit_ns(cell))
        if cell.air == "dcf":
            self._members = DcfMembers(self.pins, cell)
            self._members.start()
        else:
            self._members = CellMembers(cell.ap)
            self._members.set_collisions(1.0, cell.loss_ppm / 1e6)

    def sharing(self, cell: Cell) -> RunningCell:
        """Return the cell of another access point that sends on the same channel as this one."""
        other = copy(self)
        other.cell, other._members = cell, self._members.sharing(cell)
        return other

    def set_station(self, address: str, station: Station) -> None:
        """Set the airtime of a station's packets, computed from its rate. A new station is added.

        `address` is the IPv4 address of the station.
        """
        self._members.set(address, station)

    def record(self) -> None:
        """Record in commands.sh the commands that start the clock and write the stations."""
        for command in [self._clock.start_command(limit_ns(self.cell)), *self._members.commands()]:
            shell.journal_command(command)

    def remove_station(self, address: str) -> None:
        self._members.remove(address)

    def first_packet_ns(self, address: str) -> int | None:
        """Return the time of the first packet to or from a station in this cell [ns].

        `address` is the IPv4 address of the station. The time is that of the monotonic clock. It is
        None if there was no packet since the station joined the cell.
        """
        member = self._members.activity().get(address)
        return member.first_ns or None if member else None

    def read(self) -> Clock:
        return self._clock.read()


PORT_SOURCE = Path(__file__).with_name("host_port.bpf.c")
PORT_PIN = PINS / "host_port"


def port_program() -> Path:
    return bpf.compiled(PORT_SOURCE, "the program for switch ports")


def replace_packets(ports: Iterable[str], ledger: Ledger) -> None:
    """Load the program host_port.bpf.c, and attach it to switch ports.

    The program replaces each arriving packet by a copy that belongs to no socket. All nodes share
    one kernel. Without the program, a segment in a queue of the network would still belong to the
    sender's socket. TCP would treat it as not yet sent by the host, and would not retransmit it.

    Each port in `ports` is one end of a veth pair, with a host at the other end. `ledger` records
    the pinned program for the clean-up. A bpf file system must be mounted at `PINS`.
    """
    ledger.record("pin", path=str(PORT_PIN))
    argv = ["bpftool", "prog", "load", str(port_program()), str(PORT_PIN), "type", "classifier"]
    shell.run(argv, "load the program for switch ports")
    lines = [line for port in ports for line in shaping.arriving(port, str(PORT_PIN))]
    doing = "attach the program to the switch ports"
    shell.run(["tc", "-batch", "-"], doing, stdin=shaping.batch(lines))
