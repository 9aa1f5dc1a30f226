"""Interpreted and compiled runs have the same bytes; and how compiled code is made and found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time

import pytest

from lab.engines.sim import code_cache, compiled, compiler
from lab.errors import LabError
from lab.run.manifest import ROOT


def test_the_digest_changes_with_sources_compiler_place_and_user_laws(tmp_path):
    here, elsewhere, law = tmp_path / "here", tmp_path / "elsewhere", tmp_path / "mine.py"
    (here / "laws").mkdir(parents=True)
    (here / "loop.py").write_text("a = 1")
    (here / "laws" / "reno.py").write_text("b = 1")
    law.write_text("c = 1")
    digests = [code_cache.sources_digest(here, "0.1")]
    assert code_cache.sources_digest(here, "0.1") == digests[0]
    digests.append(code_cache.sources_digest(here, "0.2"))
    shutil.copytree(here, elsewhere)
    digests.append(code_cache.sources_digest(elsewhere, "0.1"))  # numba would not load it
    digests.append(code_cache.sources_digest(here, "0.1", {"mine": law}))
    digests.append(code_cache.sources_digest(here, "0.1", {"other": law}))
    law.write_text("c = 2")
    digests.append(code_cache.sources_digest(here, "0.1", {"mine": law}))
    (here / "laws" / "reno.py").write_text("b = 2")
    digests.append(code_cache.sources_digest(here, "0.1"))
    assert len(set(digests)) == len(digests)


def test_only_one_of_several_processes_compiles(tmp_path):
    """The others wait until it has finished, and then find complete code."""
    now, most, done = 0, 0, []

    def compile_once(number):
        nonlocal now, most
        with code_cache.compiling(tmp_path / "cache") as first:
            if first:
                now += 1
                most = max(most, now)
                time.sleep(0.05)
                now -= 1
                done.append(number)

    threads = [threading.Thread(target=compile_once, args=[number]) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (most, len(done)) == (1, 1)


def test_a_failed_compilation_is_recorded_and_not_repeated(tmp_path):
    with pytest.raises(MemoryError), code_cache.compiling(tmp_path):
        raise MemoryError("no more")
    with code_cache.compiling(tmp_path) as first:
        assert not first
    assert not code_cache.is_complete(tmp_path)
    assert "no more" in (tmp_path / code_cache.FAILED).read_text()


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Commands of background processes, which do not run; numba is there, compiled code is not."""
    commands = []
    monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(tmp_path))
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setattr(code_cache, "version", lambda: "0.1")
    monkeypatch.setattr(compiler.subprocess, "Popen", lambda argv, **_: commands.append(argv))
    return commands


def test_a_run_does_not_wait_and_starts_the_compiler_once(started):
    assert compiler.is_to_come()
    assert len(started) == 1
    with code_cache.compiling(compiled.folder()):
        assert compiler.is_to_come()
    assert len(started) == 1  # another process was compiling
    assert not compiler.is_to_come()  # compiled code is complete


def test_a_compiler_that_failed_is_not_started_again(started):
    with pytest.raises(MemoryError), code_cache.compiling(compiled.folder()):
        raise MemoryError
    with pytest.raises(LabError, match="failed says why"):
        compiler.is_to_come()
    assert started == []


def test_without_numba_the_simulator_stays_interpreted(started, monkeypatch):
    monkeypatch.setattr(code_cache, "version", lambda: None)
    assert not compiler.is_to_come()
    assert started == []


def test_numba_disable_jit_keeps_the_simulator_interpreted(started, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not compiler.is_to_come()
    assert started == []


def python(script, *arguments, cwd=ROOT, **environment):
    """Output of a script in a new process."""
    argv = [sys.executable, "-c", script, *map(str, arguments)]
    environment = {"NUMBA_DISABLE_JIT": "0"} | environment
    return subprocess.run(
        argv, cwd=cwd, env=os.environ | environment, check=True, capture_output=True, text=True
    ).stdout


ENGINE = """
import json, shutil, sys
from pathlib import Path
from lab.engines import registry
from lab.run.engine import Options
from lab.engines.sim import compiled, compiler
from lab.run.recorder import Recorder
from lab.scenario import loading
from lab.scenario.loading import Overrides
compiler.COMMAND[:] = [sys.executable, "-c", ""]
settings = Overrides(settings=("rate_scale=0.3", "duration_s=4"))
scenario = loading.load("testbed_wifi_lte", settings)
recorder = Recorder(Path(sys.argv[1]), scenario, "sim")
engine = registry.create("sim", Options(speed=0.0))
engine.open(scenario, recorder)
frames, fast = [], []
for half_seconds in range(1, 9):
    if half_seconds == 4 and len(sys.argv) > 2:
        cache = compiled.folder()
        shutil.copytree(sys.argv[2], cache, dirs_exist_ok=True)
    frames += engine.advance(half_seconds / 2)
    fast.append(compiled.is_fast())
print(repr([frames, engine.close()]), *map(int, fast), sep="\\n")
"""


def test_a_run_stays_interpreted_to_its_end_and_the_next_is_compiled(tmp_path):
    pytest.importorskip("numba")
    for name in ("first", "next", "interpreted"):
        (tmp_path / name).mkdir()
    cache = {"MULTIPATH_LAB_CACHE": str(tmp_path / "cache")}
    first = python(ENGINE, tmp_path / "first", compiled.folder(), **cache).split("\n")
    second = python(ENGINE, tmp_path / "next", **cache).split("\n")
    interpreted = python(ENGINE, tmp_path / "interpreted", NUMBA_DISABLE_JIT="1").split("\n")
    assert first[0] == second[0] == interpreted[0]
    assert "".join(first[1:]) == "00000000"  # its compiled code was ready after 2 s
    assert "".join(second[1:]) == "11111111"
    assert "the next one is compiled" in (tmp_path / "first" / "log.txt").read_text()


def test_a_run_stays_interpreted_if_the_compiler_cannot_write_its_cache(tmp_path):
    pytest.importorskip("numba")
    (tmp_path / "cache").write_text("not a folder")
    done = python(ENGINE, tmp_path, MULTIPATH_LAB_CACHE=str(tmp_path / "cache")).split("\n")
    assert "".join(done[1:]) == "00000000"
    assert "interpreted: compile the simulator into" in (tmp_path / "log.txt").read_text()


GROW = """
from lab.engines.sim import compiled
from lab.engines.sim.core import congestion
from lab.engines.sim.network import Network
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.topologies.topology import Link, Node, Topology
compiled.speed_up(compiled.folder())
nodes = (Node("ue1", "user", "l2"), Node("s1", "switch"), Node("srv1", "server"))
links = (Link("l1", "s1", "srv1"), Link("l2", "s1", "ue1"))
flow = Flow("ue1-1", "ue1", "down", "reno", None, None)
network = Network(Topology("one", nodes, links), Multipath(), [flow], seed=1)
w = network.w
network.start(flow, "reno")
f = next(network.subflows()).record
f.cwnd, f.ssthresh = 10.0, 1.0
congestion.on_ack(f, 1, 0)
stats = congestion.on_ack.stats
print(f.cwnd, len(stats.cache_hits), len(stats.cache_misses))
"""


@pytest.mark.whole
def test_an_edited_law_is_compiled_anew_and_an_unchanged_one_is_not(tmp_path):
    """In a copy of the sources."""
    pytest.importorskip("numba")
    for part in ("controller", "lab"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))

    def grown():
        window, *cached = python(
            GROW,
            cwd=tmp_path,
            PYTHONPATH=str(tmp_path),
            MULTIPATH_LAB_CACHE=str(tmp_path / "cache"),
        ).split()
        return float(window), cached

    assert grown() == (pytest.approx(10.1), ["0", "1"])
    assert grown() == (pytest.approx(10.1), ["1", "0"])
    law = tmp_path / "lab" / "engines" / "sim" / "core" / "laws" / "reno.py"
    law.write_text(law.read_text().replace("+= acked", "+= 3 * acked"))
    assert grown() == (pytest.approx(10.3), ["0", "1"])


CASES = {
    "cubic, olia, balia": (
        "testbed_wifi_lte",
        "rate_scale=0.1",
        *(f"traffic.{n}.cc={law}" for n, law in enumerate(("cubic", "olia", "balia", "reno"), 1)),
    ),
    "lia, wvegas": (
        "testbed_wifi_lte",
        "rate_scale=0.1",
        *(f"traffic.{n}.cc={law}" for n, law in enumerate(("reno", "lia", "wvegas", "cubic"), 1)),
    ),
    "walks": ("moving_users", "rate_scale=0.1", "topology.users=8", "mobility.speed_max_mps=40"),
    "uploads": (
        "thirty_users",
        "rate_scale=0.1",
        "topology.users=8",
        "traffic_direction=up",
        "topology.wifi=11n24",
    ),
    "relays": ("rat_setup_3", "rate_scale=0.1", "traffic_volume_mb=0.5", "topology.wifi=11n24"),
    "linux": ("testbed_wifi_lte", "rate_scale=0.3", "multipath.scheduler=linux"),
    "redundant, udp": (
        "testbed_wifi_lte",
        "rate_scale=0.1",
        "multipath.scheduler=redundant",
        "traffic.1.kind=udp",
        "traffic.1.rate_mbps=9",
    ),
    "calls": ("testbed_wifi_lte", "rate_scale=0.1", "traffic.1.kind=call"),
    "dctcp": (
        "testbed_wifi_lte",
        "rate_scale=0.3",
        "multipath.cc=dctcp",
        *(f"topology.users.{n}.lte_queue={{kind: red, mark_packets: 10}}" for n in (2, 3)),
    ),
    "penalisation": (
        "testbed_wifi_lte",
        "rate_scale=0.1",
        "multipath.penalisation=true",
        "multipath.receive_buffer_kb=32",
    ),
    "changed links": (
        "campus",
        "events=[{at_s: 1, target: link.a1x1-e1x1.rate_mbps, value: 1}, "
        "{at_s: 2, target: link.a1x1-e1x1.rate_mbps, value: 40}, "
        "{at_s: 3, target: link.c1-a1x1.delay_ms, value: 20}, "
        "{at_s: 4, target: link.c1-a1x1.delay_ms, value: 1}]",
    ),
}


@pytest.mark.whole
@pytest.mark.parametrize("case", CASES)
def test_compiled_and_interpreted_runs_write_the_same_bytes(tmp_path, case):
    pytest.importorskip("numba")
    name, *settings = CASES[case]
    argv = [sys.executable, "-m", "lab", "run", name, "--engine", "sim", "--quiet"]
    argv += ["--duration", "5", "--strategy", "meter_throttling"]
    argv += [part for each in settings for part in ("--set", each)]
    results = []
    for kind, off in (("compiled", "0"), ("interpreted", "1")):
        environment = os.environ | {"NUMBA_DISABLE_JIT": off}
        folder = tmp_path / kind
        subprocess.run([*argv, "--out", folder], cwd=ROOT, env=environment, check=True)
        results.append([(folder / file).read_bytes() for file in ("samples.jsonl", "events.jsonl")])
    assert results[0] == results[1]
    assert "more slowly" not in (tmp_path / "compiled" / "log.txt").read_text()


KEEP = """
import gc
from lab.engines.sim import compiled
from lab.engines.sim.core import sender
from lab.engines.sim.core import state as at
from lab.engines.sim.memory import Rows
compiled.speed_up(compiled.folder())
def made():
    make = Rows()
    c = make.one(at.Connection, subflows=make.many(at.Subflow, 2), count=2)
    c.subflows[1].connection = c
    return c.subflows[1]
s = made()
gc.collect()
others = [Rows().one(at.Subflow, snd_nxt=7, cwnd=1.5) for _ in range(1000)]
s.snd_nxt, s.connection.count = 5, 3
print(sender.flight_size(s), s.connection.count, s.connection.subflows[1] == s, s.cwnd)
"""


@pytest.mark.whole
def test_a_row_keeps_the_memory_that_it_is_in(tmp_path):
    pytest.importorskip("numba")
    assert python(KEEP, tmp_path) == "5 3 True 0.0\n"
