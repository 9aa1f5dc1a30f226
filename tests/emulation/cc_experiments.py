"""Experiments with congestion control in the kernel, for test_ebpf.py.

Run as root on a machine or VM with netem: `PYTHONPATH=.:tests python -m emulation.cc_experiments`.
It prints one JSON object per line, {"experiment": NAME, ...}, which test_ebpf.py checks.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emulation.small_network import SERVER, NetworkPath, NoLedger, SmallNetwork
from laws import SCALABLE

from lab.engines.mininet.ebpf import LAWS, SOURCES, kernel_name, register, user_law
from lab.engines.mininet.ebpf.load import Laws
from lab.engines.mininet.kernel.cell_maps import PINS
from lab.engines.mininet.kernel.subflow_rates import ExpectedRates
from lab.engines.mininet.network import packet_programs

PROJECT = Path(__file__).resolve().parents[2]
UNEVEN = (NetworkPath(8, 15, 60), NetworkPath(4, 40, 60))
# A packet takes 6 ms or more, so that delays of a busy machine count for few packets.
SLOW = (NetworkPath(2, 25, 60), NetworkPath(1, 50, 60))
EXPECTED_BPS = (1_800_000, 900_000)  # 0.9 of what the slow paths carry
SHARED = NetworkPath(10, 20, 40, addresses=5)
KINDS = ("prog", "map", "link")
HOLDER = """import sys
from lab.engines.mininet.ebpf.load import Laws
laws = Laws()
laws.load(*sys.argv[1:])
print(flush=True)
input()
"""
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
BLOCK = re.compile(r"^```sh guest\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def in_kernel() -> dict[str, Any]:
    """The kernel's congestion controls, and how many eBPF programs, maps and links belong to
    them."""
    listed = {
        kind: json.loads(subprocess.check_output(["bpftool", "-j", kind, "show"])) for kind in KINDS
    }
    held = {
        kind: len([each for each in rows if each["type"] == "struct_ops"])
        for kind, rows in listed.items()
    }
    return {"offered": AVAILABLE.read_text().split(), **held}


def killed() -> dict[str, Any]:
    """Kill the process that has loaded the laws while a connection uses one; then end the
    connection."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, *LAWS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    holder.stdout.readline()
    with SmallNetwork(*UNEVEN) as network:
        network.start("f", kernel_name("lia"))
        network.watch(1)
        states = [in_kernel()]
        holder.kill()
        holder.wait()
        before = network.received()["f"]
        network.watch(1)
        received = network.received()["f"] - before
        states.append(in_kernel())
    deadline = time.monotonic() + 90  # the last sockets of a removed host may stay for a while
    while any(in_kernel()[kind] for kind in KINDS) and time.monotonic() < deadline:
        time.sleep(0.5)
    return {"experiment": "killed", "states": [*states, in_kernel()], "received_after": received}


def followed(law: str, end: str, paths: Sequence[NetworkPath] = UNEVEN) -> dict[str, Any]:
    """Run a law on two uneven paths; then the command `end` closes the second or makes it
    backup."""
    with SmallNetwork(*paths) as network:
        network.start("f", kernel_name(law))
        samples = network.watch(11)
        if not end:
            return {"experiment": "two paths", "law": law, "samples": samples, "then": []}
        network.run("user", f"ip mptcp endpoint {end}")
        network.watch(1)
        return {"experiment": "two paths", "law": law, "samples": samples, "then": network.watch(5)}


def limited(law: str) -> dict[str, Any]:
    """Limit the windows of two subflows to expected rates."""
    pin = PINS / "expected" / "rates"
    laws, rates = Laws(pin), ExpectedRates(pin)
    laws.load(law)
    with SmallNetwork(*SLOW) as network:
        network.start("f", kernel_name(law, by_window=True))
        network.watch(1)
        for each in network.watch(0.1)[-1]["sockets"].values():
            local, remote = tuple(each["source"]), tuple(each["destination"])
            bps = EXPECTED_BPS[network.addresses.index(remote[0])]
            rates.set_rate(network.pid("server"), local, remote, bps)
        network.watch(4, 0.5)
        samples = network.watch(8, 0.1)
    laws.close()
    pin.unlink()
    return {"experiment": "limited", "law": law, "expected": EXPECTED_BPS, "samples": samples}


def plain_tcp(law: str) -> dict[str, Any]:
    with SmallNetwork(UNEVEN[0]) as network:
        network.start("f", kernel_name(law), mptcp=False)
        return {"experiment": "plain TCP", "law": law, "samples": network.watch(8)}


def shared(cc: str) -> dict[str, Any]:
    """A connection with four subflows beside one plain TCP connection."""
    with SmallNetwork(SHARED) as network:
        network.run("user", "ip mptcp endpoint delete id 5")
        network.start("plain", "reno", mptcp=False, address=network.addresses[4])
        network.start("multipath", kernel_name(cc))
        network.watch(4, 1)
        before = network.received()
        network.watch(16, 1)
        got = {flow: count - before[flow] for flow, count in network.received().items()}
        return {"experiment": "shared", "law": cc, "share": got["multipath"] / sum(got.values())}


def documented() -> dict[str, Any]:
    """Run the commands of docs/ebpf.md in a copy of the laws' folder; SERVER runs iperf3."""
    (block,) = BLOCK.findall((PROJECT / "docs" / "ebpf.md").read_text())
    with SmallNetwork(*UNEVEN) as network, tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(SOURCES, Path(folder, "laws"))
        iperf3 = subprocess.Popen(
            network.inside("server", ["mptcpize", "run", "iperf3", "-s"]), stdout=subprocess.DEVNULL
        )
        script, user = f"set -eux\nSERVER={SERVER}\n{block}", network.inside("user", ["bash"])
        done = subprocess.run(
            user, input=script, cwd=copy, capture_output=True, text=True, check=False
        )
        counters = Path(f"/proc/{network.pid('user')}/net/netstat").read_text()
        iperf3.kill()
        return {
            "experiment": "documented",
            "status": done.returncode,
            "output": done.stdout,
            "errors": done.stderr,
            "netstat": counters,
        }


def main() -> None:
    """Run all experiments; no other law is loaded during the last one."""

    def show(experiment: dict[str, Any]) -> None:
        print(json.dumps(experiment), flush=True)

    show(killed())
    laws = Laws()
    law = user_law(SCALABLE)
    register(law)
    laws.load(*LAWS, law.name)
    for cc, end in (("lia", "delete id 2"), ("olia", "change id 2 backup"), ("balia", "")):
        show(followed(cc, end))
    show(followed("wvegas", "", SLOW))
    show(plain_tcp("balia"))
    show(plain_tcp(law.name))
    for cc in ("reno", "olia"):
        show(shared(cc))
    laws.close()
    packet_programs.mount_pins(NoLedger())
    for cc in ("balia", "cubic"):
        show(limited(cc))
    show(documented())


if __name__ == "__main__":
    main()
