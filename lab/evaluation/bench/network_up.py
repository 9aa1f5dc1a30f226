"""Measure how long the network of the fat tree with k = 4 takes to build, ours and Mininet's own.

`python -m lab.evaluation.bench.network_up` does it as root on a machine that runs the emulation,
such as the virtual machine, and prints both times [s]. Both build the same switches, hosts and
links, without a controller. Ours also sets addresses, routes and Multipath TCP in every host.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lab.engines.mininet.machine import upstreams
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network.network import Network
from lab.engines.mininet.vm import launch
from lab.errors import LabError
from lab.run.recorder import RUNS
from lab.scenario import loading as scenario
from lab.scenario.overrides import Overrides
from lab.topologies.topology import Topology, wire

STOCK = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from mininet.net import Mininet
from mininet.topo import Topo
hosts, switches, links = json.load(sys.stdin)
topology = Topo()
for host in hosts:
    topology.addHost(host)
for number, switch in enumerate(switches, 1):
    topology.addSwitch(switch, dpid=f"{number:016x}")
for one, other in links:
    topology.addLink(one, other)
began = time.monotonic()
network = Mininet(topology, controller=None)
network.start()
print(time.monotonic() - began, flush=True)
network.stop()
"""


def in_vm() -> tuple[float, float]:
    """Build the network both ways in the virtual machine; return our time and Mininet's [s]."""
    RUNS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=RUNS.parent) as made:
        argv = [sys.executable, "-m", "lab.evaluation.bench.network_up"]
        status = launch.run_in_vm(launch.GuestCommand(argv, Path(made)), wait=True)
        if status:
            errors = Path(made, "vm", "errors.txt").read_text()
            raise LabError(f"bench fat_tree_4_up_s: status {status}: {errors[-500:]}")
        ours, mininets = Path(made, "vm", "output.txt").read_text().split()[-2:]
    return float(ours), float(mininets)


def main() -> None:
    """Build the network both ways, and print both times [s]."""
    topology = scenario.load("fat_tree", Overrides(settings=("topology.k=4",))).network
    print(_ours(topology), _stock(topology))


def _ours(topology: Topology) -> float:
    with tempfile.TemporaryDirectory(dir="/run") as folder:
        ledger = Ledger(Path(folder, "ledger"))
        network = Network(topology, wire(topology), ledger, Path(folder))
        began = time.monotonic()
        try:
            network.create()
            network.build()
            return time.monotonic() - began
        finally:
            network.stop()
            ledger.undo_all()


def _stock(topology: Topology) -> float:
    hosts = topology.ids("user", "server")
    switches = [node.id for node in topology.nodes if node.id not in hosts]
    links = [(link.a, link.b) for link in topology.links]
    argv = [sys.executable, "-c", STOCK, str(upstreams.folder("mininet"))]
    network = json.dumps([hosts, switches, links])
    done = subprocess.run(argv, input=network, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"build the network with Mininet: {done.stderr[-500:]}")
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    main()
