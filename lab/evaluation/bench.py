"""How fast the lab is: each figure the median of several measurements, under the name that says its unit.

dumbbell_packets_per_s, fat_tree_packets_per_s    data segments that the simulator carries per second of wall time
thirty_users_60s_s                                a whole `run thirty_users --duration 60 --speed max`, warm
cold_start_s, warm_start_s                        from `run` to the first sample, with an empty cache and with a full one
compiled_after_s                                  from `run` with an empty cache until compiled code is there, for it and all later ones
maxflow_k16_ms, maxflow_k32_ms                    the largest flow between two hosts of a fat tree (S-MPTCP, Algorithm 1)
reallocate_100_ms                                 new shares when the 100th connection comes to a fat tree (Algorithm 3)
forecast_15_paths_ms                              one greedy selection among fifteen paths (DTMC, Algorithm 1)
viewers_40_p99_ms, viewers_40_cpu_share           from a sample's write until the last of 40 viewers has it, and the server's
                                                  share of one processor meanwhile; ten samples a second
vm_first_sample_s                                 from `run --engine mininet --vm` to the first sample
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from urllib.request import urlopen

from controller import paths
from controller.graph import Graph, arc_path, arc_use, build_graph
from controller.plan import Plan
from controller.strategies.expected_throughput import allocation, max_flow
from controller.strategies.subflow_selection.forecast import Model, PathQuality, estimate
from controller.strategies.subflow_selection.selection import greedy
from lab import engines
from lab.engines import Options
from lab.engines.sim import compiler
from lab.errors import LabError, RequestError, unknown
from lab.run.manifest import ROOT
from lab.run.recorder import RUNS, Recorder
from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides, build
from lab.topologies import fat_tree
from lab.topologies.topology import Topology, Wiring, wire
from lab.topologies.topology_file import describe

DEMO = "testbed_wifi_lte"
WARM_UP_S, SIMULATED_S = 2.0, 20.0
LIMIT_S = 600
VIEWERS, FRAMES, FRAMES_PER_S = 40, 100, 10
SERVER = """
import sys, threading, time
from pathlib import Path
from dashboard import create_app
from dashboard.serve import listen, server
sock = listen(None)
waitress = server(create_app({"RUNS": Path(sys.argv[1])}), sock)
threading.Thread(target=waitress.run, daemon=True).start()
print(sock.getsockname()[1], flush=True)
for line in sys.stdin:
    print(time.process_time(), flush=True)
"""


@dataclass(frozen=True)
class Measure:
    """One way of measuring, which may give several figures; done `repeats` times."""

    names: tuple[str, ...]
    once: Callable[[], tuple[float, ...]]
    repeats: int = 5
    emulation: bool = False


def measure(name: str | None = None, emulation: bool = False) -> Iterator[tuple[str, float]]:
    """Every figure, or one; those of the emulation only where it can run. Unknown names are a `RequestError`."""
    known = [each for each in MEASURES if name is None or name in each.names]
    if not known:
        names = [name for each in MEASURES for name in each.names]
        raise RequestError(f"bench: figure {unknown(name, names)}")
    for each in known:
        if each.emulation and not emulation and name is None:
            continue
        rows = [each.once() for _ in range(each.repeats)]
        for own, values in zip(each.names, zip(*rows, strict=True), strict=True):
            if name in (None, own):
                yield own, median(values)


# --- the simulator


def _packets_per_s(name: str, *settings: str) -> tuple[float]:
    compiler.wait()
    asked = scenario.load(
        name, Overrides(settings=(*settings, f"duration_s={WARM_UP_S + SIMULATED_S}"))
    )
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(Path(folder), asked, "sim", build(asked))
        engine = engines.create("sim", Options(speed=0.0))
        engine.open(build(asked), asked, recorder)
        engine.advance(WARM_UP_S)
        began = time.perf_counter()
        engine.advance(WARM_UP_S + SIMULATED_S)
        took_s = time.perf_counter() - began
        report = engine.close()
        recorder.close()
    assert report is not None
    segments = sum(
        each["segments"] for connection in report["connections"] for each in connection["subflows"]
    )
    return (segments * SIMULATED_S / (WARM_UP_S + SIMULATED_S) / took_s,)


def _lab(folder: Path, *arguments: str, cache: Path | None = None) -> subprocess.Popen[bytes]:
    """A run as a process of its own, into `folder`."""
    environment = os.environ | ({"MULTIPATH_LAB_CACHE": str(cache)} if cache else {})
    argv = [sys.executable, "-m", "lab", "run", *arguments, "--quiet", "--out", str(folder)]
    return subprocess.Popen(argv, cwd=ROOT, env=environment)


def _until_first_sample_s(folder: Path, *arguments: str, cache: Path | None = None) -> float:
    began = time.perf_counter()
    run = _lab(folder, *arguments, cache=cache)
    samples = folder / "samples.jsonl"
    while not (samples.exists() and samples.stat().st_size):
        if run.poll() is not None or time.perf_counter() - began > LIMIT_S:
            run.kill()
            raise LabError(
                f"bench {' '.join(arguments)}: the run ended before its first sample. See {folder}/log.txt"
            )
        time.sleep(0.005)
    took_s = time.perf_counter() - began
    run.wait(LIMIT_S)
    return took_s


def _starts() -> tuple[float, float, float]:
    with tempfile.TemporaryDirectory() as made:
        cache, short = Path(made, "cache"), (DEMO, "--duration", "1", "--speed", "max")
        began = time.perf_counter()
        cold_s = _until_first_sample_s(Path(made, "cold"), *short, cache=cache)
        compiler.wait(cache)
        compiled_s = time.perf_counter() - began
        return cold_s, _until_first_sample_s(Path(made, "warm"), *short, cache=cache), compiled_s


def _whole_run_s(*arguments: str) -> tuple[float]:
    compiler.wait()
    with tempfile.TemporaryDirectory() as made:
        began = time.perf_counter()
        status = _lab(Path(made, "run"), *arguments).wait(LIMIT_S)
        if status:
            raise LabError(f"bench {' '.join(arguments)}: the run ended with {status}")
        return (time.perf_counter() - began,)


# --- the brain


def _tree(k: int) -> tuple[Topology, Wiring, Plan, Graph]:
    topology = fat_tree.build(fat_tree.Params(k=k))
    wiring = wire(topology)
    plan = Plan.model_validate(describe(topology, wiring))
    return topology, wiring, plan, build_graph(plan.arcs())


def _largest_flow(k: int) -> tuple[float]:
    _, wiring, _, graph = _tree(k)
    source, destination = (graph.vertex[wiring.of(host)[0].address] for host in ("srv1", "ue1"))
    began = time.perf_counter()
    flow = max_flow.max_flow(graph, graph.capacity_bps, source, [destination])
    took_s = time.perf_counter() - began
    assert flow.rate_bps > 0
    return (took_s * 1000,)


def _reallocation() -> tuple[float]:
    """A hundred connections of two subflows, each on a path that its hash chose, arrive one after the other."""
    topology, wiring, plan, graph = _tree(10)
    near: dict[str, set[str]] = {switch: set() for switch in plan.switches}
    for trunk in plan.trunks:
        near[trunk.a].add(trunk.b)
        near[trunk.b].add(trunk.a)
    ways: dict[str, list[Any]] = {}
    shares: dict[str, tuple[float, ...]] = {}
    took_s = 0.0
    for user in topology.users[:100]:
        server, own = wiring.of(topology.server_of(user))[0], wiring.of(user)[0]
        candidates = paths.between(near, server.switch, own.switch)
        flows = (
            paths.Flow(server.address, own.address, paths.TCP, 5001, port)
            for port in (40001, 40002)
        )
        found = [
            arc_path(graph, server.address, paths.choose(candidates, flow), own.address)
            for flow in flows
        ]
        ways[user] = [arc_use(graph, way) for way in found if way is not None]
        began = time.perf_counter()
        shares = allocation.reallocate(graph.capacity_bps, ways, shares, user)
        took_s = time.perf_counter() - began
    assert len(shares) == 100
    return (took_s * 1000,)


def _selection() -> tuple[float]:
    estimate.cache_clear()  # what an earlier measurement has computed is not what a selection takes
    fifteen = [
        PathQuality(1e6 * (1 + n % 5), 0.001 * (n % 4), 0.02 + 0.01 * n, 0.002) for n in range(15)
    ]
    began = time.perf_counter()
    greedy(fifteen, Model(), 50_000.0)
    return ((time.perf_counter() - began) * 1000,)


# --- the dashboard


@contextmanager
def _dashboard(runs: Path) -> Iterator[tuple[str, Callable[[], float]]]:
    """Its address, and what it has taken of processors' time so far."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(runs)], cwd=ROOT, **pipes)  # type: ignore[call-overload]

    def answer() -> bytes:
        return bytes(process.stdout.readline())

    def spent_s() -> float:
        process.stdin.write(b"\n")
        process.stdin.flush()
        return float(answer())

    try:
        yield f"http://127.0.0.1:{int(answer())}", spent_s
    finally:
        process.communicate()


def viewers() -> tuple[float, float]:
    """This process writes the samples of a run, and watches it forty times."""
    asked = scenario.load(DEMO, Overrides(settings=("duration_s=600",)))
    written_s = [0.0] * FRAMES
    ready = threading.Barrier(VIEWERS + 1)

    def watch(url: str) -> list[float]:
        arrived: list[float] = []
        with urlopen(url, timeout=60) as stream:
            ready.wait(60)
            for line in stream:
                if b'"ap":' in line:
                    arrived.append(time.perf_counter())
                    if len(arrived) == FRAMES:
                        break
        return arrived

    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(VIEWERS) as pool:
        folder = Path(made, "runs", "watched")
        folder.mkdir(parents=True)
        recorder = Recorder(folder, asked, "sim", build(asked))
        with _dashboard(folder.parent) as (url, spent_s):
            seen = [pool.submit(watch, f"{url}/api/runs/watched/stream") for _ in range(VIEWERS)]
            ready.wait(60)
            began, before = time.perf_counter(), spent_s()
            for n in range(FRAMES):
                written_s[n] = time.perf_counter()
                recorder.sample(_frame((n + 1) / FRAMES_PER_S))
                time.sleep(max(0.0, began + (n + 1) / FRAMES_PER_S - time.perf_counter()))
            arrived = [each.result(60) for each in seen]
            share = (spent_s() - before) / (time.perf_counter() - began)
        recorder.close()
    last_s = [max(times) for times in zip(*arrived, strict=True)]
    late_ms = [(last - written) * 1000 for last, written in zip(last_s, written_s, strict=True)]
    return quantiles(late_ms, n=100)[98], share


def _frame(t: float) -> dict[str, Any]:
    """A sample as large as the demo's."""
    ap = {
        "tier1_mbps": 9.1,
        "tier2_mbps": 0.1,
        "mac_occupancy": 0.97,
        "meter_mbps": 0.1,
        "stations": 3,
    }
    subflow = {
        "mbps": 4.5,
        "cwnd": 17.0,
        "rtt_ms": 41.2,
        "tier": 1,
        "backup": False,
        "expected_mbps": None,
        "out_of_order": 12,
    }
    users = {f"ue{n}": {"mbps": 5.2, "x_m": None, "y_m": None} for n in range(1, 5)}
    return {
        "t": t,
        "ap": {"wifi1": ap, "lte1": ap},
        "link": {"wifi": {"mbps": 9.2, "backlog": 4, "loss": 0.0}},
        "user": users,
        "sf": {f"ue{n}-1/{k}": subflow for n in range(1, 5) for k in (1, 2)},
    }


# --- the emulation


def _vm_first_sample_s() -> tuple[float]:
    RUNS.mkdir(
        parents=True, exist_ok=True
    )  # the VM shares the project's folders and not the machine's temporary ones
    with tempfile.TemporaryDirectory(dir=RUNS.parent) as made:
        arguments = (DEMO, "--engine", "mininet", "--vm", "--wait", "--duration", "3")
        return (_until_first_sample_s(Path(made, "run"), *arguments),)


DUMBBELL = ("topology.rate_mbps=100", "traffic.1.cc=reno")
MEASURES = (
    Measure(("dumbbell_packets_per_s",), lambda: _packets_per_s("shared_pipe", *DUMBBELL)),
    Measure(("fat_tree_packets_per_s",), lambda: _packets_per_s("fat_tree")),
    Measure(
        ("thirty_users_60s_s",),
        lambda: _whole_run_s("thirty_users", "--duration", "60", "--speed", "max"),
        3,
    ),
    Measure(("cold_start_s", "warm_start_s", "compiled_after_s"), _starts, 3),
    Measure(("maxflow_k16_ms",), lambda: _largest_flow(16), 3),
    Measure(("maxflow_k32_ms",), lambda: _largest_flow(32), 3),
    Measure(("reallocate_100_ms",), _reallocation, 3),
    Measure(("forecast_15_paths_ms",), _selection),
    Measure(("viewers_40_p99_ms", "viewers_40_cpu_share"), viewers, 3),
    Measure(("vm_first_sample_s",), _vm_first_sample_s, 3, emulation=True),
)
