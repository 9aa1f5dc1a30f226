"""Separate the packets of a network from the hosts that have sent them.

In an emulation all nodes share one kernel. A segment that waits in the queue of an access point is
still the clone of one that the sending socket keeps for retransmission, and the socket can tell.
Linux then takes the segment for one that waits in the queue of the host itself: it neither
retransmits it after a timeout nor sends it as a tail loss probe (`skb_still_in_host_queue`). A real
host knows nothing about the queues of its network.

An eBPF program at the switch port replaces every packet that comes from a host by a clone, which
belongs to no socket (`bpf_clone_redirect`).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lab.engines.mininet.kernel import bpf, shaping
from lab.engines.mininet.kernel.cell_maps import PINS
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger

SOURCE = Path(__file__).with_name("host_port.bpf.c")
PIN = PINS / "host_port"


def program() -> Path:
    """Compile host_port.bpf.c if needed, and return the path of the eBPF object file."""
    return bpf.compiled(SOURCE, "the program for switch ports")


def replace_packets(ports: Iterable[str], ledger: Ledger) -> None:
    """Make the kernel replace all packets that arrive at `ports`, which are switch ports.

    Each port is one end of a pair of interfaces (veth); the other end belongs to a host. `ledger`
    records the pinned program for the clean-up. The eBPF file system must be mounted at `PINS`.
    """
    ledger.record("pin", path=str(PIN))
    argv = ["bpftool", "prog", "load", str(program()), str(PIN), "type", "classifier"]
    shell.run(argv, "load the program for switch ports")
    lines = [line for port in ports for line in shaping.arriving(port, str(PIN))]
    doing = "attach the program to the switch ports"
    shell.run(["tc", "-batch", "-"], doing, stdin=shaping.batch(lines))
