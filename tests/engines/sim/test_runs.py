"""Whole runs: the same bytes for the same seed, with and without the compiler; flips, events, refusals."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lab import engines, inbox, scenario
from lab.engines import Options
from lab.engines.sim import compiled
from lab.recorder import Recorder
from lab.runner import run
from lab.scenario import Overrides, build
from lab.targets import targets

ROOT = Path(__file__).resolve().parents[3]
SMALL = ("rate_scale=0.1", "sample_interval_s=1", "strategy.name=meter_throttling")


def record(folder, *settings, on_progress=lambda _: None):
    """Run testbed_wifi_lte, small, into a folder."""
    folder.mkdir()
    of = scenario.load("testbed_wifi_lte", Overrides(settings=(*SMALL, *settings)))
    recorder = Recorder(folder, of, "sim", build(of))
    outcome = run(of, engines.create("sim", Options(speed=0.0)), recorder, on_progress)
    assert not outcome.error, outcome.error
    return outcome


def files(folder):
    return [(folder / name).read_bytes() for name in ("samples.jsonl", "events.jsonl")]


def lines(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        record(tmp_path / name, "duration_s=6", f"seed={seed}")
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert files(tmp_path / "a")[0] != files(tmp_path / "c")[0]


def test_a_flip_changes_what_comes_after_it_and_nothing_before(tmp_path):
    record(tmp_path / "plain", "duration_s=8")
    record(tmp_path / "flipped", "duration_s=8", "events=[{at_s: 4, target: cell.wifi1.ue1.rate_mbps, value: 5}]")
    plain, flipped = (lines(tmp_path / name, "samples.jsonl") for name in ("plain", "flipped"))
    assert plain[:4] == flipped[:4]
    assert plain[4:] != flipped[4:]


def test_stop_keeps_what_was_measured(tmp_path):
    folder = tmp_path / "run"

    def stop(progress):
        if progress.t == 3:
            inbox.send(folder, {"control": "stop"})

    outcome = record(folder, "duration_s=30", on_progress=stop)
    assert outcome.result["status"] == "interrupted"
    assert 3 <= outcome.result["duration_s"] <= 5


def test_decisions_are_events_with_reasons(tmp_path):
    outcome = record(tmp_path / "run", "duration_s=5")
    events = lines(tmp_path / "run", "events.jsonl")
    decisions = [event for event in events if event["kind"] == "decision"]
    assert {event["ap"] for event in decisions} == {"wifi1", "lte1"}
    assert all(event["reason"] and event["action"] == "meter" and event["addresses"] for event in decisions)
    assert [event["t"] for event in events if event["kind"] == "observation"] == [0, 2, 4]
    assert outcome.result["mptcp"]["verified"] is True
    assert outcome.result["cc"] == "reno"


def test_withdrawing_the_strategy_lifts_the_meters(testbed):
    simulation = testbed("rate_scale=0.1", strategy="meter_throttling")
    assert simulation.run(3)[-1]["ap"]["wifi1"]["meter_mbps"] == pytest.approx(0.1)
    simulation.flip("strategy", "none")
    assert simulation.run(3)[-1]["ap"]["wifi1"]["meter_mbps"] is None
    assert "release" in {event.get("action") for event in simulation.notes.events}


def test_every_target_can_be_changed(testbed):
    simulation = testbed("rate_scale=0.1", "duration_s=30", strategy="meter_throttling")
    simulation.run(1)
    for name, target in targets(simulation.scenario).items():
        value = "cubic" if name == "cc" else "meter_throttling" if name == "strategy" else target.value
        simulation.flip(name, 2.0 if value is None else value)
    simulation.run(1)


def test_a_changed_law_holds_for_new_connections(paths):
    later = [{"user": "ue1"}, {"user": "ue1", "start_s": 2}]
    simulation = paths({"rate_mbps": 5}, traffic=later)
    simulation.run(1)
    simulation.flip("cc", "cubic")
    simulation.run(3)
    assert [each["subflows"][0]["cc"] for each in simulation.report()["connections"]] == ["reno", "cubic"]


def test_compiled_code_of_other_sources_is_not_used(tmp_path):
    (tmp_path / "laws").mkdir()
    (tmp_path / "loop.py").write_text("a = 1")
    (tmp_path / "laws" / "reno.py").write_text("b = 1")
    before = compiled.sources_digest(tmp_path, "0.1")
    assert compiled.sources_digest(tmp_path, "0.2") != before
    (tmp_path / "laws" / "reno.py").write_text("b = 2")
    assert compiled.sources_digest(tmp_path, "0.1") != before


def test_only_one_of_two_compiles_at_once(tmp_path):
    """The others wait until it has, and then have nothing to do."""
    now, most, done = 0, 0, []

    def first_call(number):
        nonlocal now, most
        with compiled.once(tmp_path / "cache") as first:
            if first:
                now += 1
                most = max(most, now)
                time.sleep(0.05)
                now -= 1
                done.append(number)

    threads = [threading.Thread(target=first_call, args=[number]) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (most, len(done)) == (1, 1)


@pytest.fixture
def background(tmp_path, monkeypatch):
    """What would be started in the background, with numba there and nothing compiled yet."""
    started = []
    monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(tmp_path))
    monkeypatch.setattr(compiled, "version", lambda: "0.1")
    monkeypatch.setattr(compiled.subprocess, "Popen", lambda argv, **_: started.append(argv))
    return started


def test_who_watches_does_not_wait_for_the_compiler(background):
    assert compiled.without_waiting() == {"NUMBA_DISABLE_JIT": "1"}
    assert len(background) == 1
    with compiled.once(compiled.folder()):
        assert compiled.without_waiting() == {"NUMBA_DISABLE_JIT": "1"}
    assert len(background) == 1  # somebody was at it
    assert compiled.without_waiting() == {}


def test_without_numba_there_is_nothing_to_wait_for(background, monkeypatch):
    monkeypatch.setattr(compiled, "version", lambda: None)
    assert compiled.without_waiting() == {}
    assert background == []


def test_what_is_started_in_the_background_runs(tmp_path):
    environment = os.environ | {"MULTIPATH_LAB_CACHE": str(tmp_path), "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-m", "lab.engines.sim.compiled"], env=environment, cwd=ROOT, check=True)


COUNT = """
from lab.engines.sim import ahead, laws, tcp
ahead.compile_parts()
counts = [len(each.signatures) for each in (tcp.send, laws.on_ack)]
ahead._compile(ahead.THERE)
print(*counts, sum(laws.on_ack.stats.cache_hits.values()), sum(laws.on_ack.stats.cache_misses.values()))
"""


@pytest.mark.whole
@pytest.mark.skipif(os.cpu_count() == 1, reason="there is no other processor to compile on")
def test_what_the_other_process_has_compiled_is_found(tmp_path):
    environment = os.environ | {"MULTIPATH_LAB_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", COUNT], cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["1", "0", "1", "0"]


GROW = """
from lab.engines.sim import laws, layout as at
from lab.engines.sim.network import Network
from lab.flows import Flow
from lab.scenario_schema import Multipath
from lab.topology import Link, Node, Topology
nodes = (Node("ue1", "user", "l2"), Node("s1", "switch"), Node("srv1", "server"))
flow = Flow("ue1-1", "ue1", "down", "reno", None, None)
network = Network(Topology("one", nodes, (Link("l1", "s1", "srv1"), Link("l2", "s1", "ue1"))), Multipath(), [flow], seed=1)
w = network.w
f = next(network.subflows()).place
w.window[f + at.CWND], w.window[f + at.SSTHRESH] = 10.0, 1.0
laws.on_ack(w, f, 1, 0)
print(w.window[f + at.CWND])
"""


@pytest.mark.whole
def test_who_edits_a_law_sees_the_new_one(tmp_path):
    """In a copy of the sources: what was compiled before is not taken for what is there now."""
    for part in ("controller", "lab"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "MULTIPATH_LAB_CACHE": str(tmp_path / "cache")}

    def grown() -> float:
        done = subprocess.run([sys.executable, "-c", GROW], cwd=tmp_path, env=environment, check=True, capture_output=True)
        return float(done.stdout)

    assert grown() == pytest.approx(10.1)
    law = tmp_path / "lab" / "engines" / "sim" / "laws" / "reno.py"
    law.write_text(law.read_text().replace("+= acked", "+= 3 * acked"))
    assert grown() == pytest.approx(10.3)


@pytest.mark.whole
def test_compiled_and_interpreted_give_the_same_bytes(tmp_path):
    pytest.importorskip("numba")
    for laws in (("cubic", "olia", "balia", "reno"), ("reno", "lia", "wvegas", "cubic")):
        settings = ["rate_scale=0.1", *(f"traffic.{n}.cc={law}" for n, law in enumerate(laws, 1))]
        run_both_ways(tmp_path / laws[1], "testbed_wifi_lte", *settings)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("moving_users", ("rate_scale=0.1", "topology.users=8", "mobility.speed_max_mps=40")),
        ("thirty_users", ("rate_scale=0.1", "topology.users=8", "traffic_direction=up", "topology.wifi=11n24")),
        ("rat_setup_3", ("rate_scale=0.1", "traffic_volume_mb=0.5", "topology.wifi=11n24")),
        ("testbed_wifi_lte", ("rate_scale=0.3", "multipath.scheduler=linux")),
        (
            "testbed_wifi_lte",
            ("rate_scale=0.1", "multipath.scheduler=redundant", "traffic.1.kind=udp", "traffic.1.rate_mbps=9"),
        ),
        ("testbed_wifi_lte", ("rate_scale=0.1", "multipath.penalisation=true", "multipath.receive_buffer_kb=32")),
    ],
)
def test_cells_and_schedulers_do_so_too(tmp_path, name, settings):
    pytest.importorskip("numba")
    run_both_ways(tmp_path, name, *settings)


def run_both_ways(folder, name, *settings):
    argv = ["run", name, "--engine", "sim", "--quiet", "--duration", "5", "--strategy", "meter_throttling"]
    script = "import sys; from lab.__main__ import cli; sys.argv[0] = 'lab'; cli()"
    for way, off in (("compiled", "0"), ("interpreted", "1")):
        subprocess.run(
            [
                sys.executable,
                "-c",
                script,
                *argv,
                *(part for each in settings for part in ("--set", each)),
                "--out",
                folder / way,
            ],
            env=os.environ | {"NUMBA_DISABLE_JIT": off},
            check=True,
        )
    assert files(folder / "compiled") == files(folder / "interpreted")
