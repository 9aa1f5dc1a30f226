"""Hosts and wires of two parallel paths, really built on this machine; bridges are only named."""

import importlib.util
import tempfile
from pathlib import Path

import pytest
from machine import needs_root

from lab.engines.mininet.machine import lock, open_vswitch, shell, upstreams
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network.network import Network
from lab.scenario.schema import Multipath
from lab.topologies import parallel_paths
from lab.topologies.topology import wire

needs_nodes = [
    needs_root,
    pytest.mark.skipif(
        not (upstreams.folder() / "mininet-wifi").is_dir()
        or importlib.util.find_spec("six") is None,
        reason="needs ./run_lab.sh setup-emulation",
    ),
]


# Interfaces have the same names in every test process, so one network at a time.
LOCK = Path(tempfile.gettempdir()) / "multipath-lab-built-network.lock"


@pytest.fixture
def built(tmp_path, monkeypatch):
    with lock.hold("a network of the tests", wait=True, path=LOCK):
        yield from building(tmp_path, monkeypatch)


def building(tmp_path, monkeypatch):
    """Build the network, yield it, and remove it. Its commands are in `network.commands`."""
    commands = []

    def without_bridges(words, doing):
        commands.append(" ".join(["ovs-vsctl", *words]))
        return ""

    monkeypatch.setattr(open_vswitch, "change", without_bridges)
    paths = ({"rate_mbps": 10}, {"rate_mbps": 5})
    topology = parallel_paths.build(parallel_paths.Params(paths=paths))
    ledger = Ledger(tmp_path / "ledger")
    network = Network(topology, wire(topology), ledger, tmp_path, {}, Multipath())
    network.commands = commands
    network.create()
    try:
        with shell.journal_to(lambda _at, argv, _stdin: commands.append(" ".join(argv))):
            network.build()
        yield network
    finally:
        network.stop()
        monkeypatch.undo()
        assert [problem for problem in ledger.undo_all() if "bridge" not in problem] == []
