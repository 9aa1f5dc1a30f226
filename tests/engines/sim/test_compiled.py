"""Interpreted at first, compiled as soon as that is there: once, of these very sources, and the same bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lab.engines.sim import compiler as compiled
from lab.errors import LabError

ROOT = Path(__file__).resolve().parents[3]


def test_compiled_code_of_other_sources_is_not_used(tmp_path):
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    (here / "laws").mkdir(parents=True)
    (here / "loop.py").write_text("a = 1")
    (here / "laws" / "reno.py").write_text("b = 1")
    before = compiled.sources_digest(here, "0.1")
    assert compiled.sources_digest(here, "0.1") == before
    assert compiled.sources_digest(here, "0.2") != before
    shutil.copytree(here, elsewhere)
    assert compiled.sources_digest(elsewhere, "0.1") != before  # numba would not take it
    (here / "laws" / "reno.py").write_text("b = 2")
    assert compiled.sources_digest(here, "0.1") != before


def test_only_one_of_two_compiles_at_once(tmp_path):
    """The others wait until it has, and then have nothing to do."""
    now, most, done = 0, 0, []

    def compile_once(number):
        nonlocal now, most
        with compiled.once(tmp_path / "cache") as first:
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


def test_a_compiler_that_fails_has_not_compiled(tmp_path):
    with pytest.raises(MemoryError), compiled.once(tmp_path):
        raise MemoryError("no more")
    with compiled.once(tmp_path) as first:
        assert not first  # it would fail again
    assert not compiled.is_there(tmp_path)
    assert "no more" in (tmp_path / compiled.FAILED).read_text()


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """What is begun in the background, with numba there and nothing compiled yet."""
    commands = []
    monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(tmp_path))
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setattr(compiled, "version", lambda: "0.1")
    monkeypatch.setattr(compiled.subprocess, "Popen", lambda argv, **_: commands.append(argv))
    return commands


def test_nobody_waits_and_one_compiles(begun):
    assert compiled.is_to_come()
    assert len(begun) == 1
    with compiled.once(compiled.folder()):
        assert compiled.is_to_come()
    assert len(begun) == 1  # somebody was at it
    assert not compiled.is_to_come()  # it is there


def test_a_compiler_that_failed_is_not_begun_again(begun):
    with pytest.raises(MemoryError), compiled.once(compiled.folder()):
        raise MemoryError
    with pytest.raises(LabError, match="failed says why"):
        compiled.is_to_come()
    assert begun == []


def test_without_numba_nothing_is_to_come(begun, monkeypatch):
    monkeypatch.setattr(compiled, "version", lambda: None)
    assert not compiled.is_to_come()
    assert begun == []


def test_who_wants_it_interpreted_gets_that(begun, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not compiled.is_to_come()
    assert begun == []


def python(script, *arguments, cwd=ROOT, **environment):
    """What a script prints, with these variables."""
    argv = [sys.executable, "-c", script, *map(str, arguments)]
    environment = {"NUMBA_DISABLE_JIT": "0"} | environment
    return subprocess.run(
        argv, cwd=cwd, env=os.environ | environment, check=True, capture_output=True, text=True
    ).stdout


ENGINE = """
import json, shutil, sys
from pathlib import Path
from lab import engines
from lab.scenario import loading as scenario
from lab.engines import Options
from lab.engines.sim import compiler as compiled
from lab.engines.sim.core import jit
from lab.run.recorder import Recorder
from lab.scenario.loading import Overrides, build
compiled.COMMAND[:] = [sys.executable, "-c", ""]
asked = scenario.load("testbed_wifi_lte", Overrides(settings=("rate_scale=0.3", "duration_s=4")))
recorder = Recorder(Path(sys.argv[1]), asked, "sim", build(asked))
engine = engines.create("sim", Options(speed=0.0))
engine.open(build(asked), asked, recorder)
frames, fast = [], []
for half_seconds in range(1, 9):
    if half_seconds == 4 and len(sys.argv) > 2:
        kept_in = compiled.folder()
        shutil.copytree(sys.argv[2], kept_in, dirs_exist_ok=True)
        if "edited" in sys.argv:
            compiled.folder = lambda: kept_in.with_name("of other sources")
    frames += engine.advance(half_seconds / 2)
    fast.append(jit.is_fast())
print(json.dumps([frames, engine.close()]), *map(int, fast), sep="\\n")
"""


def test_a_run_goes_on_compiled_with_the_same_numbers(tmp_path):
    pytest.importorskip("numba")
    for name in ("changes", "interpreted"):
        (tmp_path / name).mkdir()
    cache = {"MULTIPATH_LAB_CACHE": str(tmp_path / "cache")}
    changes = python(ENGINE, tmp_path / "changes", compiled.folder(), **cache).split("\n")
    interpreted = python(ENGINE, tmp_path / "interpreted", NUMBA_DISABLE_JIT="1").split("\n")
    assert changes[0] == interpreted[0]
    assert "".join(changes[1:]) == "00011111"
    assert "".join(interpreted[1:]) == "00000000"
    assert "goes faster now, at t = 2 s" in (tmp_path / "changes" / "log.txt").read_text()


def test_a_run_whose_sources_were_edited_meanwhile_stays_what_it_is(tmp_path):
    pytest.importorskip("numba")
    done = python(
        ENGINE, tmp_path, compiled.folder(), "edited", MULTIPATH_LAB_CACHE=str(tmp_path / "cache")
    ).split("\n")
    assert "".join(done[1:]) == "00000000"


def test_a_run_whose_compiler_cannot_write_goes_on(tmp_path):
    pytest.importorskip("numba")
    (tmp_path / "cache").write_text("not a folder")
    done = python(ENGINE, tmp_path, MULTIPATH_LAB_CACHE=str(tmp_path / "cache")).split("\n")
    assert "".join(done[1:]) == "00000000"
    assert "goes on slowly: compile the simulator into" in (tmp_path / "log.txt").read_text()


GROW = """
from lab.engines.sim import compiler as compiled
from lab.engines.sim.core import jit, laws, layout as layout
from lab.engines.sim.network import Network
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.topologies.topology import Link, Node, Topology
jit.speed_up(compiled.folder())
nodes = (Node("ue1", "user", "l2"), Node("s1", "switch"), Node("srv1", "server"))
flow = Flow("ue1-1", "ue1", "down", "reno", None, None)
network = Network(Topology("one", nodes, (Link("l1", "s1", "srv1"), Link("l2", "s1", "ue1"))), Multipath(), [flow], seed=1)
w = network.w
f = next(network.subflows()).place
w.window[f + at.CWND], w.window[f + at.SSTHRESH] = 10.0, 1.0
laws.on_ack(w, f, 1, 0)
print(w.window[f + at.CWND], *map(len, (laws.on_ack.stats.cache_hits, laws.on_ack.stats.cache_misses)))
"""


@pytest.mark.whole
def test_who_edits_a_law_sees_the_new_one(tmp_path):
    """In a copy of the sources: what was compiled before is not taken for what is there now, and else it is taken."""
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
    law = tmp_path / "lab" / "engines" / "sim" / "laws" / "reno.py"
    law.write_text(law.read_text().replace("+= acked", "+= 3 * acked"))
    assert grown() == (pytest.approx(10.3), ["0", "1"])


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
        (
            "thirty_users",
            ("rate_scale=0.1", "topology.users=8", "traffic_direction=up", "topology.wifi=11n24"),
        ),
        ("rat_setup_3", ("rate_scale=0.1", "traffic_volume_mb=0.5", "topology.wifi=11n24")),
        ("testbed_wifi_lte", ("rate_scale=0.3", "multipath.scheduler=linux")),
        (
            "testbed_wifi_lte",
            (
                "rate_scale=0.1",
                "multipath.scheduler=redundant",
                "traffic.1.kind=udp",
                "traffic.1.rate_mbps=9",
            ),
        ),
        (
            "testbed_wifi_lte",
            ("rate_scale=0.1", "multipath.penalisation=true", "multipath.receive_buffer_kb=32"),
        ),
    ],
)
def test_cells_and_schedulers_do_so_too(tmp_path, name, settings):
    pytest.importorskip("numba")
    run_both_ways(tmp_path, name, *settings)


def run_both_ways(folder, name, *settings):
    argv = [
        "run",
        name,
        "--engine",
        "sim",
        "--quiet",
        "--duration",
        "5",
        "--strategy",
        "meter_throttling",
    ]
    argv += [part for each in settings for part in ("--set", each)]
    results = []
    for way, off in (("compiled", "0"), ("interpreted", "1")):
        environment = os.environ | {"NUMBA_DISABLE_JIT": off}
        subprocess.run(
            [sys.executable, "-m", "lab", *argv, "--out", folder / way],
            cwd=ROOT,
            env=environment,
            check=True,
        )
        results.append(
            [(folder / way / name).read_bytes() for name in ("samples.jsonl", "events.jsonl")]
        )
    assert results[0] == results[1]
    assert "more slowly" not in (folder / "compiled" / "log.txt").read_text()
