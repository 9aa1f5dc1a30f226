"""Measure how long the lab, `mn` and Mininet-WiFi take to build a network in the virtual machine.

The time ends when POX has connected to all switches and has installed their tables. It does not
include Python's imports. Each measurement starts a virtual machine. This file also counts the
kernel panics during boots.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import tempfile
import time
from pathlib import Path
from string import Template

from bench import runs
from lab.engines.mininet import in_vm
from lab.engines.mininet.export.script import script
from lab.engines.mininet.machine import upstreams
from lab.errors import LabError
from lab.run.manifest import ROOT
from lab.run.reading import read_document
from lab.run.recorder import RUNS
from lab.scenario import loading
from lab.scenario.loading import Overrides
from lab.scenario.schema import Scenario
from lab.topologies.topology import as_json, wire
from vm import launch

TREE = "fat_tree"
MN_NETWORK = Path(__file__).with_name("mn_network.txt")
UP = re.compile(r"^the network is up after ([\d.]+) s$", re.M)
# Mininet gives up if Open vSwitch does not answer within a second.
SWITCHES_READY = "until ovs-vsctl -t 1 show >/dev/null 2>&1; do sleep 0.3; done\n"
# The VM is switched off as soon as the figure is printed, so nothing is taken down.
WAIT = """
until grep -q '^the network is up' $folder/output.txt || ! kill -0 $$! 2>/dev/null
do sleep 0.3; done
cat $folder/output.txt
"""
# POX listens on both ports before `mn` starts, so that its start is not counted.
MN = Template(f"""{SWITCHES_READY}
cd $pox
PYTHONPATH=$lab $python pox.py openflow.of_01 --port=6633 --address=127.0.0.1 \\
    controller.pox_ext --topology=$folder/topology.json --run=$folder --patience_s=180 \\
    --strategy=none >$folder/pox.txt 2>&1 &
until [ "$$(ss -Hltn '( sport = :6633 or sport = :6653 )' | wc -l)" = 2 ]; do sleep 0.3; done
cd $folder
PYTHONPATH=$mininet $python $mininet/bin/mn --custom $custom --topo lab --switch ovsk \\
    --link $link --controller remote,port=6633 --controller remote,port=6653 >output.txt 2>&1 &
{WAIT}""")
# Mininet-WiFi is unpatched, but the packages that it imports for plots are empty modules.
STOCK = Template(f"""{SWITCHES_READY}
PYTHONPATH=$lab $python -c '
import runpy
from lab.engines.mininet.machine.upstreams import folder
from lab.engines.mininet.network.nodes import prepare
prepare(folder())
runpy.run_path("$folder/script.py", run_name="__main__")
' --seconds 1 >$folder/output.txt 2>&1 &
{WAIT}""")


def own_up_s(name: str) -> tuple[float]:
    """Return how long the lab takes to build the network of a scenario [s].

    This includes the start of POX and of the programs in the hosts.
    """
    with runs.shared_folder() as folder:
        runs.run_in_vm(name, folder, duration_s=1)
        return (float(read_document(folder, "manifest.json")["network_up_s"]),)


def mn_up_s(link: str = "tc") -> tuple[float]:
    """Return how long `mn` takes to build the network of the scenario `fat_tree` [s].

    `link` is the value of `mn --link`: "tc" for links with rates and delays, "default" for links
    without rates and delays.
    """
    scenario = _load(TREE)
    wiring = wire(scenario.network)
    network = as_json(scenario.network, wiring, rate_scale=scenario.rate_scale)
    mininet = upstreams.folder() / "mininet"
    with runs.shared_folder() as folder:
        folder.mkdir()
        (folder / "topology.json").write_text(json.dumps(network))
        return (_up_s(MN, folder, custom=MN_NETWORK, link=link, mininet=mininet),)


def stock_up_s() -> tuple[float]:
    """Return how long an unmodified Mininet-WiFi takes to build the network of the demo [s].

    It runs the script that the command `export-script` writes. The time includes the start of POX.
    """
    with runs.shared_folder() as folder:
        folder.mkdir()
        (folder / "script.py").write_text(script(_load(runs.DEMO)))
        return (_up_s(STOCK, folder),)


def _load(name: str) -> Scenario:
    """Load a scenario with rates reduced for slow machines, as the lab does in a VM without KVM."""
    scale = loading.load(name).slow_machine_rate_scale
    return loading.load(name, Overrides(settings=(f"rate_scale={scale:g}",)))


def _up_s(commands: Template, folder: Path, **words: str | Path) -> float:
    """Run shell commands in a VM, and return the duration that they print [s].

    The VM shares `folder`. `words` replace the placeholders in `commands`. Raises `LabError` if no
    duration is printed.
    """
    words |= {"folder": folder, "lab": ROOT, "pox": upstreams.folder("pox")}
    words["python"] = sys.executable
    text = commands.substitute({key: shlex.quote(str(word)) for key, word in words.items()})
    (folder / "build.sh").write_text(text)
    in_vm.run_in_vm(in_vm.GuestCommand(["bash", str(folder / "build.sh")], folder), wait=True)
    return up_s((folder / "vm" / "output.txt").read_text())


def up_s(output: str) -> float:
    """Return the duration that a measured program has printed [s].

    Raises `LabError` if there is none in `output`.
    """
    found = UP.search(output)
    if found is None:
        raise LabError(f"bench: the network was not built. The end of the output: {output[-2000:]}")
    return float(found[1])


# Kernel panics during boots of the VM


PER_SITTING = 10
SITTINGS = ROOT / "docs" / "notebook" / "vm_boots.jsonl"  # mean_s is null if not recorded


def boots_without_panic() -> tuple[float, float]:
    """Boot the VM ten times (no snapshot), and append the result to the file `SITTINGS`.

    Returns how many boots had no kernel panic, and how many had one. Both numbers are summed over
    all lines of the file.
    """
    RUNS.mkdir(parents=True, exist_ok=True)
    panics: list[str] = []
    began = time.monotonic()
    for _ in range(PER_SITTING):
        with tempfile.TemporaryDirectory(dir=RUNS.parent) as shared:
            panics += launch.boot_once(Path(shared))
    line = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "boots": PER_SITTING,
        "panics": panics,
        "mean_s": round((time.monotonic() - began) / PER_SITTING, 1),
    }
    with SITTINGS.open("a") as sittings:
        sittings.write(json.dumps(line) + "\n")
    lines = [json.loads(text) for text in SITTINGS.read_text().splitlines()]
    failed = sum(len(each["panics"]) for each in lines)
    return float(sum(each["boots"] for each in lines) - failed), float(failed)
