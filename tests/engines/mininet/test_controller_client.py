"""POX as a child process: its start, changes sent to it, its restart and its end."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from controller.agent_messages import StrategyChoice
from controller.strategies import STRATEGIES
from controller.topology import read
from lab import extensions
from lab.engines.mininet import controller_client as client
from lab.engines.mininet.controller_client import RunningStrategy
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.errors import LabError
from lab.topologies import parallel_paths
from lab.topologies.topology import as_json, wire

FORMATS = Path(__file__).resolve().parents[3] / "docs" / "formats.md"


@pytest.fixture
def made(tmp_path):
    return client.ControllerClient(
        tmp_path / "pox",
        tmp_path,
        Ledger(tmp_path / "ledger"),
        RunningStrategy("meter_throttling", {"cth": 0.85}),
        tmp_path / "key",
    )


def start(made, monkeypatch, program, description=None):
    """Start this Python text instead of POX."""
    spawn = shell.spawn

    def in_place(argv, doing, **options):
        made.argv = argv
        return spawn([sys.executable, "-c", program], doing, **(options | {"cwd": None}))

    monkeypatch.setattr(shell, "spawn", in_place)
    made.start(description or {})
    return made


def described(topology):
    return as_json(topology, wire(topology))


def test_pox_accepts_the_description_of_the_testbed(load_testbed):
    topology = load_testbed().network
    found = read(json.dumps(described(topology)))
    assert found.multipath == ("ue2", "ue3")
    assert found.names == {1: "wifi1", 2: "lte1", 3: "s1"}
    assert found.ap_of("ue3", "10.2.0.3") == "lte1"
    assert [each.link for each in found.trunks] == ["wifi", "lte"]


def test_pox_accepts_networks_without_access_points():
    paths = tuple(parallel_paths.Path(rate_mbps=rate) for rate in (20, 12))
    text = json.dumps(described(parallel_paths.build(parallel_paths.Params(paths=paths))))
    assert [each.rate_mbps for each in read(text).trunks] == [20, 12]


def test_the_description_has_the_fields_of_the_documentation(load_testbed):
    block = (
        re.search(r"### topology.json\n\n((?:    .*\n)+)", FORMATS.read_text())
        .group(1)
        .replace(", ...", "")
        .replace("[...]", "[]")
    )
    shown, real = json.loads(block), described(load_testbed().network)
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
    made = client.ControllerClient(
        Path("data/pox"), tmp_path, Ledger(tmp_path / "l"), strategy, Path("k")
    )
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
    assert made.strategy.name == "meter_throttling"  # POX has not answered


def answer(made, *lines):
    made.folder.mkdir(exist_ok=True)
    with (made.folder / "decisions.jsonl").open("a") as file:
        file.writelines(json.dumps({"at": 1, "kind": "flip", **line}) + "\n" for line in lines)


def test_the_strategy_of_a_restart_is_the_one_that_pox_has_confirmed(made):
    (made.folder / "inbox").mkdir(parents=True)
    numbers = [
        made.set_params({"cth": 0.5}),
        made.set_params({"cth": 0.6, "alpha": 1}),
        made.set_strategy(RunningStrategy("none", {})),
    ]
    assert numbers == [1, 2, 3]
    refused = {"state": "refused", "ok": False, "why": "no such file"}
    answer(made, {"seq": 1, "state": "applied"}, {"seq": 3} | refused)
    first, last = made.hear()
    assert (first.seq, first.refused, last.seq, last.refused) == (1, "", 3, "no such file")
    assert made.strategy == RunningStrategy("meter_throttling", {"cth": 0.5})
    answer(made, {"seq": 2, "state": "applied"})
    made.hear()
    assert made.strategy.params == {"cth": 0.6, "alpha": 1}


def test_lines_are_read_once_and_kept_until_they_are_taken(made):
    row = {"mac_occupancy": 0.9, "meter_mbps": None}
    answer(
        made,
        {"kind": "ready", "switches": []},
        {"kind": "observation", "aps": {"wifi1": row}, "tiers": {"ue1": {"wifi1": 2}}},
        {"kind": "decision", "ap": "wifi1", "action": "meter", "meter_mbps": 2.5},
        {"kind": "subflow", "destination": "10.1.0.1:4000", "subflow": 1, "path": ["s1"]},
        {"kind": "switch", "switch": "s1", "state": "lost"},
        {"kind": "steps", "seq": 4, "held": True},
    )
    with (made.folder / "decisions.jsonl").open("a") as file:
        file.write('nonsense\n{"kind": "flip"}\n')
    ready, observed, decided, subflow, switch, steps = made.hear()
    assert (made.hear(), len(made.take()), made.take()) == ([], 6, [])
    assert isinstance(ready, client.Ready)
    assert observed.tiers == {"ue1": {"wifi1": 2}}
    assert observed.meters_mbps == {"wifi1": None}
    assert (decided.meter, decided.changes_a_subflow) == (("wifi1", 2.5), False)
    assert subflow.destination == ("10.1.0.1", 4000)
    assert (switch.kind, switch.fields) == ("switch", {"switch": "s1", "state": "lost"})
    assert (steps.seq, steps.refused) == (4, "")


def test_a_strategy_named_ready_does_not_make_pox_ready(made, monkeypatch):
    start(made, monkeypatch, "import time; time.sleep(60)")
    monkeypatch.setattr(client, "READY_TIMEOUT_S", 0.2)
    answer(made, {"kind": "warning", "text": '"kind": "ready"'})
    with pytest.raises(LabError, match="the switches did not connect"):
        made.wait_ready()
    made.stop()


@pytest.fixture
def own_strategy(tmp_path):
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
    copy = made.folder / "first_only.py"
    assert message == StrategyChoice(name="first_only", file=str(own_strategy), source=str(copy))
    own_strategy.write_text("edited meanwhile")
    made.restart_if_ended()
    assert made.argv[-2:] == [f"--strategy_file={own_strategy}", f"--strategy_source={copy}"]
    assert copy.read_bytes() == extensions.strategy_file("first_only").source != b"edited meanwhile"
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
    monkeypatch.setattr(client, "READY_TIMEOUT_S", 0.2)
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
        [{"kind": "observation"}],  # from before the wait
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
            file.writelines(json.dumps({"at": 1} | line) + "\n" for line in steps.pop(0))

    more()
    monkeypatch.setattr(client.time, "sleep", more)
    made.wait_settled()
    assert len(steps) == 1
    monkeypatch.setattr(client, "SETTLED_WITHIN_S", -1)
    made.wait_settled()


def test_steps_are_held_once_pox_has_confirmed_it_and_go_on_afterwards(made, monkeypatch):
    (made.folder / "inbox").mkdir(parents=True)
    said = made.folder / "decisions.jsonl"
    said.write_text(
        json.dumps({"at": 1, "kind": "steps", "seq": 1, "held": True}) + "\n"
    )  # from an earlier hold
    waits = []

    def confirm(_seconds):
        waits.append(len(list((made.folder / "inbox").iterdir())))
        line = {"kind": "flip"} if len(waits) == 1 else {"kind": "steps", "seq": 1, "held": True}
        with said.open("a") as file:
            file.write(json.dumps({"at": 1} | line) + "\n")

    def messages():
        files = sorted((made.folder / "inbox").iterdir())
        return [
            (each["kind"], each["value"]) for each in map(json.loads, map(Path.read_text, files))
        ]

    monkeypatch.setattr(client.time, "sleep", confirm)
    with made.steps_held():
        assert waits == [1, 1]
        assert messages() == [("steps", {"held": True})]
    assert messages() == [("steps", {"held": True}), ("steps", {"held": False})]
    monkeypatch.setattr(client, "HELD_WITHIN_S", -1)
    with made.steps_held():  # POX does not answer
        assert len(messages()) == 3
