"""How long networks take to build: the command in the VM, and what is read from its output."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench import emulation, runs
from lab.errors import LabError
from lab.scenario import loading


class Topo:
    """Replaces Mininet's class, and keeps what was added."""

    def __init__(self) -> None:
        self.switches: dict[str, dict[str, Any]] = {}
        self.hosts: dict[str, dict[str, Any]] = {}
        self.links: list[tuple[str, str, dict[str, Any]]] = []
        self.build()

    def build(self) -> None:
        raise NotImplementedError

    def addSwitch(self, name: str, **options: Any) -> None:
        self.switches[name] = options

    def addHost(self, name: str, **options: Any) -> None:
        self.hosts[name] = options

    def addLink(self, a: str, b: str, **options: Any) -> None:
        self.links.append((a, b, options))


@pytest.fixture
def guest(monkeypatch, tmp_path):
    """Replace the VM. The dictionary has the files that it gets, and the output of its command."""
    found: dict[str, Any] = {"output": "*** Adding controller\nthe network is up after 80.43 s\n"}

    def run_in_vm(command, *, wait):
        assert wait
        found.update({file.name: file.read_text() for file in command.shared.iterdir()})
        (command.shared / "vm").mkdir()
        (command.shared / "vm" / "output.txt").write_text(found["output"])

    monkeypatch.setattr(runs, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(emulation.in_vm, "run_in_vm", run_in_vm)
    return found


@pytest.fixture
def mn(guest, monkeypatch, tmp_path):
    """Globals of mn_network.txt, run as `mn` would, beside the file of the network."""
    emulation.mn_up_s()
    (tmp_path / "topology.json").write_text(guest["topology.json"])
    monkeypatch.chdir(tmp_path)
    module = ModuleType("mininet.topo")
    module.Topo = Topo  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mininet", ModuleType("mininet"))
    monkeypatch.setitem(sys.modules, "mininet.topo", module)
    return runpy.run_path(str(emulation.MN_NETWORK))


def test_the_duration_is_read_from_the_output(guest):
    assert emulation.mn_up_s() == (80.43,)
    assert emulation.stock_up_s() == (80.43,)


def test_an_output_without_a_duration_is_shown(guest):
    guest["output"] = "Error connecting to ovs-db\n"
    with pytest.raises(LabError, match=r"was not built.*Error connecting to ovs-db"):
        emulation.mn_up_s()


def test_the_commands_are_complete(guest):
    for measured, program in (
        (emulation.mn_up_s, "--custom /"),
        (emulation.stock_up_s, "/script.py"),
    ):
        measured()
        assert program in guest["build.sh"]
        for word in ("$folder", "$lab", "$python", "$pox", "$mininet", "$link"):
            assert word not in guest["build.sh"]
        subprocess.run(["bash", "-n"], input=guest["build.sh"], text=True, check=True)


def test_links_of_mn_can_be_plain(guest):
    emulation.mn_up_s("default")
    assert "--link default " in guest["build.sh"]


def test_mn_builds_the_switches_hosts_and_links_of_the_fat_tree(mn):
    network = loading.load(emulation.TREE).network
    built = mn["topos"]["lab"]()
    assert set(built.switches) == set(network.ids("switch"))
    assert set(built.hosts) == set(network.ids("user", "server"))
    assert (len(built.switches), len(built.hosts), len(built.links)) == (20, 16, 48)
    ends = {frozenset((a, b)) for a, b, _ in built.links}
    assert ends == {frozenset((link.a, link.b)) for link in network.links}
    interfaces = [each[f"intfName{n}"] for *_, each in built.links for n in (1, 2)]
    assert len(set(interfaces)) == 96
    assert {each["bw"] for *_, each in built.links} == {1, 2}  # 10 and 20 Mb/s, times 0.1
    assert {each["delay"] for *_, each in built.links} == {"1ms"}


def test_mn_ends_its_measurement_when_pox_is_ready(mn, capsys, tmp_path):
    mn["topos"]["lab"]()
    (tmp_path / "decisions.jsonl").write_text(json.dumps({"kind": "ready"}) + "\n")
    mn["CLI"](None)
    assert 0 <= emulation.up_s(capsys.readouterr().out) < 60


def test_mn_does_not_wait_for_pox_for_ever(mn):
    mn["CLI"].__globals__["READY_WITHIN_S"] = 0
    with pytest.raises(TimeoutError, match="POX is not ready"):
        mn["CLI"](None)


def test_the_duration_of_the_lab_is_that_of_the_manifest(guest, monkeypatch):
    def run_in_vm(name: str, folder: Path, duration_s: int) -> None:
        folder.mkdir()
        (folder / "manifest.json").write_text(json.dumps({"scenario": name, "network_up_s": 12.5}))

    monkeypatch.setattr(runs, "run_in_vm", run_in_vm)
    assert emulation.own_up_s("fat_tree") == (12.5,)
