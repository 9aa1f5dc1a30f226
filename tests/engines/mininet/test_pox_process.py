"""Start POX as a child process, send it changes, restart and stop it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from controller import plan
from controller.agent_messages import StrategyChoice
from controller.strategies import STRATEGIES
from lab import extensions
from lab.engines.mininet import pox_process as pox
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.pox_process import RunningStrategy
from lab.errors import LabError
from lab.topologies import parallel_paths
from lab.topologies.topology import wire
from lab.topologies.topology_file import describe

FORMATS = Path(__file__).resolve().parents[3] / "docs" / "formats.md"


@pytest.fixture
def made(tmp_path):
    return pox.PoxProcess(
        tmp_path / "pox",
        tmp_path,
        Ledger(tmp_path / "ledger"),
        RunningStrategy("meter_throttling", {"cth": 0.85}),
        tmp_path / "key",
    )


def start(made, monkeypatch, program, description=None):
    """Start this Python text in the place of POX."""
    spawn = shell.spawn

    def in_place(argv, doing, **options):
        made.argv = argv
        return spawn([sys.executable, "-c", program], doing, **(options | {"cwd": None}))

    monkeypatch.setattr(shell, "spawn", in_place)
    made.start(description or {})
    return made


def described(topology):
    return describe(topology, wire(topology))


def test_pox_accepts_the_description_of_the_testbed(load):
    topology = load().network
    read = plan.read(json.dumps(described(topology)))
    assert read.multipath == ("ue2", "ue3")
    assert read.names == {1: "wifi1", 2: "lte1", 3: "s1"}
    assert read.ap_of("ue3", "10.2.0.3") == "lte1"
    assert [each.link for each in read.trunks] == ["wifi", "lte"]


def test_pox_accepts_networks_without_access_points():
    paths = tuple(parallel_paths.Path(rate_mbps=rate) for rate in (20, 12))
    text = json.dumps(described(parallel_paths.build(parallel_paths.Params(paths=paths))))
    assert [each.rate_mbps for each in plan.read(text).trunks] == [20, 12]


def test_the_description_has_the_fields_of_the_documentation(load):
    block = (
        re.search(r"### topology.json\n\n((?:    .*\n)+)", FORMATS.read_text())
        .group(1)
        .replace(", ...", "")
        .replace("[...]", "[]")
    )
    shown, real = json.loads(block), described(load().network)
    assert set(shown) == set(real)
    for table in ("switches", "aps"):
        name = next(iter(shown[table]))
        assert set(shown[table][name]) == set(real[table][name])
    assert set(shown["hosts"]["ue2"][0]) == set(real["hosts"]["ue2"][0])
    assert set(shown["trunks"][0]) == set(real["trunks"][0])


def test_pox_starts_with_strategy_and_folder_and_is_in_the_ledger(made, monkeypatch):
    start(made, monkeypatch, "input()", {"switches": {}})
    assert "--strategy=meter_throttling" in made.argv
    assert '--params={"cth": 0.85}' in made.argv
    assert f"--run={made.folder}" in made.argv
    assert json.loads((made.folder / "topology.json").read_text()) == {"switches": {}}
    made._process.wait(10)
    assert [each["kind"] for each in made.ledger.entries()] == ["process"]


def test_a_relative_run_folder_is_absolute_for_pox_which_runs_in_another_folder(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    strategy = RunningStrategy("none", {})
    made = pox.PoxProcess(Path("data/pox"), tmp_path, Ledger(tmp_path / "l"), strategy, Path("k"))
    start(made, monkeypatch, "input()")
    assert f"--run={tmp_path / 'data/pox'}" in made.argv
    assert f"--topology={tmp_path / 'data/pox/topology.json'}" in made.argv
    made._process.wait(10)


def test_changes_are_numbered_files_and_outlive_a_restart(made):
    (made.folder / "inbox").mkdir(parents=True)
    made.set_params({"cth": 0.5})
    made.set_strategy(RunningStrategy("none", {}))
    first, second = sorted((made.folder / "inbox").iterdir())
    assert json.loads(first.read_text()) == {"seq": 1, "kind": "params", "value": {"cth": 0.5}}
    assert json.loads(second.read_text())["seq"] == 2
    assert made.strategy == RunningStrategy("none", {})


@pytest.fixture
def own_strategy(tmp_path):
    """Register a strategy in a file of the user."""
    file = tmp_path / "first_only.py"
    file.write_text(
        "from controller.strategies.base import Strategy\n\n\n"
        "class FirstOnly(Strategy):\n"
        "    def decide(self, observation):\n        return []\n\n"
        "    def withdraw(self, observation):\n        return []\n"
    )
    extensions.add(file)
    yield file
    extensions._registered.pop(("first_only", ".py"))
    STRATEGIES.pop("first_only")


def test_pox_gets_the_file_of_a_users_strategy_at_the_start_and_by_a_change(
    made, monkeypatch, own_strategy
):
    made.strategy = RunningStrategy("first_only", {})
    start(made, monkeypatch, "input()")
    assert f"--strategy_file={own_strategy}" in made.argv
    made._process.wait(10)
    made.set_strategy(RunningStrategy("none", {}))
    made.set_strategy(RunningStrategy("first_only", {}))
    back, forth = sorted((made.folder / "inbox").iterdir())
    assert json.loads(back.read_text())["value"] == {"name": "none", "params": {}}
    message = StrategyChoice.model_validate(json.loads(forth.read_text())["value"])
    assert message == StrategyChoice(name="first_only", file=str(own_strategy))
    made.restart_if_ended()
    assert f"--strategy_file={own_strategy}" in made.argv
    made._process.wait(10)


def test_pox_is_ready_once_it_has_written_so(made, monkeypatch):
    start(made, monkeypatch, "import time; time.sleep(60)")
    (made.folder / "decisions.jsonl").write_text('{"at": 1, "kind": "ready"}\n')
    made.wait_ready()
    made.stop()
    assert not made.is_alive()


def test_a_pox_that_ends_is_an_error_with_the_end_of_its_log(made, monkeypatch):
    start(made, monkeypatch, "import sys; sys.exit('no such strategy')")
    with pytest.raises(LabError, match="start POX: it ended with status 1: no such strategy"):
        made.wait_ready()


def test_a_pox_without_switches_is_an_error(made, monkeypatch):
    monkeypatch.setattr(pox, "READY_TIMEOUT_S", 0.2)
    start(made, monkeypatch, "import time; time.sleep(60)")
    with pytest.raises(LabError, match=r"the switches did not connect in 0.2 s"):
        made.wait_ready()
    made.stop()


def test_a_pox_that_died_is_restarted_once(made, monkeypatch):
    start(made, monkeypatch, "import time; time.sleep(60)")
    assert made.restart_if_ended() is False
    made._process.kill()
    made._process.wait()
    assert made.restart_if_ended() is True
    assert (made.is_alive(), made.restarts) == (True, 1)
    made.stop()


def test_a_pox_that_does_not_end_is_killed(made, monkeypatch):
    wait = subprocess.Popen.wait
    monkeypatch.setattr(
        subprocess.Popen, "wait", lambda self, timeout=None: wait(self, timeout and 0.2)
    )
    start(made, monkeypatch, "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)")
    made.stop()
    assert not made.is_alive()


def test_traffic_waits_until_no_subflow_changes(made, monkeypatch):
    steps = [
        [{"kind": "observation"}],  # before the wait began
        [],
        [{"kind": "subflow"}, {"kind": "observation"}],
        [{"kind": "observation"}, {"kind": "decision", "action": "expect"}],
        [
            {"kind": "observation"},
            {"kind": "decision", "action": "meter"},
            {"kind": "decision", "action": "forecast"},
        ],
        [{"kind": "subflow"}],
    ]
    made.folder.mkdir()
    said = made.folder / "decisions.jsonl"

    def more(_seconds=0):
        with said.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in steps.pop(0))

    more()
    monkeypatch.setattr(pox.time, "sleep", more)
    made.wait_settled()
    assert len(steps) == 1
    monkeypatch.setattr(pox, "SETTLED_WITHIN_S", -1)
    made.wait_settled()


def test_steps_are_held_once_pox_has_confirmed_it_and_go_on_afterwards(made, monkeypatch):
    (made.folder / "inbox").mkdir(parents=True)
    said = made.folder / "decisions.jsonl"
    said.write_text(json.dumps({"kind": "steps", "seq": 1, "held": True}) + "\n")  # of before
    waits = []

    def confirm(_seconds):
        waits.append(len(list((made.folder / "inbox").iterdir())))
        line = {"kind": "flip"} if len(waits) == 1 else {"kind": "steps", "seq": 1, "held": True}
        with said.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def messages():
        files = sorted((made.folder / "inbox").iterdir())
        return [
            (each["kind"], each["value"]) for each in map(json.loads, map(Path.read_text, files))
        ]

    monkeypatch.setattr(pox.time, "sleep", confirm)
    with made.steps_held():
        assert waits == [1, 1]
        assert messages() == [("steps", {"held": True})]
    assert messages() == [("steps", {"held": True}), ("steps", {"held": False})]
    monkeypatch.setattr(pox, "HELD_WITHIN_S", -1)
    with made.steps_held():  # POX does not answer
        assert len(messages()) == 3
