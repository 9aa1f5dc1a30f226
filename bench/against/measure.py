"""Simulate the same networks in the lab and in htsim, in turn, and compare their speed.

The speed is how many data packets arrive per second of processor time (user and system mode),
after a warm-up. The lab's rate divided by htsim's is the ratio of a round; rounds follow each other
with the sides in the opposite order, so that a machine that gets slower or faster slows both.

What differs even at equal work: htsim acknowledges with 40 bytes, repeats losses as NewReno does,
and does not put the data of a connection in order.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.against import htsim, lab_side
from lab.engines.sim import code_cache, compiler
from lab.engines.sim.core import state as at
from lab.engines.sim.tables import FRAME_BYTES
from lab.errors import LabError, MachineLacks, RequestError, unknown
from lab.isolation import python
from lab.results.statistics import estimate, mean
from lab.results.tables import text_table
from lab.run.manifest import ROOT

ROUNDS = 7
TOLERANCE = 0.1  # of work, as a share
LIMIT_S = 1200
STARTED_S = 0.001  # simulated, until all routes are known
LAB, HTSIM = "lab", "htsim"
ACKS = {  # who acknowledges in htsim, and how; see replay.cpp
    "second": "every 2nd, own route",
    "each": "each, own route",
    "shipped": "each, no hops",
}


@dataclass(frozen=True)
class Case:
    """A network to simulate. `goal` is the ratio that the project aims at, if there is one."""

    name: str
    scenario: str
    settings: tuple[str, ...]
    warm_up_s: float
    measured_s: float
    goal: float | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments of `lab_side`."""
        return (self.scenario, str(self.warm_up_s), str(self.measured_s), *self.settings)


FASTER = ("topology.rate_mbps=100", "topology.host_mbps=200")
CASES = (
    Case("fat_tree_k4", "fat_tree", (), 5, 100, goal=1.0),
    Case(
        "fat_tree_k4_4_subflows",
        "fat_tree",
        ("topology.subflows=4", *FASTER, "multipath.cc=lia"),
        *(3, 10),
    ),
    Case("fat_tree_k8", "fat_tree", ("topology.k=8", "traffic=[{user: all, kind: bulk}]"), 3, 20),
    Case("dumbbell", "shared_pipe", ("topology.rate_mbps=100", "traffic.1.cc=reno"), 30, 200),
)


@dataclass(frozen=True)
class Work:
    """What one process simulated after the warm-up: data packets and acknowledgements that arrived,
    and the hops that both crossed. `run_s` is the processor time of that, `start_s` that of all
    before it."""

    packets: int
    acks: int
    hops: int
    start_s: float
    run_s: float

    @property
    def packets_per_s(self) -> float:
        return self.packets / self.run_s


def parse(output: str) -> Work:
    """Return what `lab_side` or `replay.cpp` printed: one JSON object in the last line. Raise
    `LabError` if it is none, or nothing was simulated."""
    try:
        work = Work(**json.loads(output.strip().splitlines()[-1]))
    except (IndexError, ValueError, TypeError) as error:
        raise LabError(f"bench --against: expected one JSON object, got {output!r}") from error
    if work.packets <= 0 or work.run_s <= 0:
        raise LabError(f"bench --against: nothing was simulated: {work}")
    return work


# Both sides of a case


def words(case: Case, acks: str) -> str:
    """Describe the network of a case, with its routes, as `replay.cpp` reads it."""
    scenario = lab_side.load(case.scenario, case.warm_up_s + case.measured_s, case.settings)
    lines: list[str] = []
    numbers: dict[at.Hop, int] = {}
    with lab_side.opened(scenario) as engine:
        engine.run_until(STARTED_S)
        tables = engine.network.tables
        for flow in tables.flows.values():
            subflows = [each.record for each in tables.subflows[flow.id]]
            is_coupled = len(subflows) > 1 and flow.cc == "lia"
            assert is_coupled or flow.cc == "reno", flow.cc
            lines.append(f"{'coupled' if is_coupled else 'uncoupled'} {len(subflows)}")
            for s in subflows:
                for hops in map(lab_side.shaped_hops, (s.data_route, s.ack_route)):
                    found = [numbers.setdefault(each, len(numbers)) for each in hops]
                    lines.append(" ".join(map(str, (len(found), *found))))
        connections = len(tables.flows)
        shapes = [f"{h.rate_bps} {h.delay_ns} {h.queue_size}" for h in numbers]
    head = f"{acks} {FRAME_BYTES} {case.warm_up_s} {case.measured_s}"
    return "\n".join([head, str(len(shapes)), *shapes, str(connections), *lines, ""])


def sides(case: Case, program: Path) -> dict[str, Callable[[], Work]]:
    """Return the functions that simulate a case once: in the lab, and in htsim for each of
    `ACKS`."""
    argv = python("-m", "bench.against.lab_side", *case.words)
    found: dict[str, Callable[[], Work]] = {LAB: lambda: simulated(argv)}
    for acks in ACKS:
        network = words(case, acks)
        found[acks] = lambda network=network: simulated([str(program)], network)  # type: ignore[misc]
    return found


def simulated(argv: Sequence[str], network: str = "") -> Work:
    """Run one process. Its start is what the kernel counted for the whole process, minus what it
    measured itself."""
    before = _children_s()
    done = subprocess.run(
        argv, cwd=ROOT, input=network, capture_output=True, text=True, timeout=LIMIT_S
    )
    if done.returncode:
        raise LabError(f"bench --against: {argv[0]} failed: {done.stderr.strip()[-2000:]}")
    work, whole_s = parse(done.stdout), _children_s() - before
    return Work(work.packets, work.acks, work.hops, whole_s - work.run_s, work.run_s)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rounds(run: Mapping[str, Callable[[], Work]], count: int) -> list[dict[str, Work]]:
    """Run all sides `count` times, every second time in the opposite order."""
    names = list(run)
    return [
        {each: run[each]() for each in (reversed(names) if n % 2 else names)} for n in range(count)
    ]


# Comparison


@dataclass(frozen=True)
class Comparison:
    """The lab against htsim, with acknowledgements as `ACKS[acks]` says.

    `ratio` is the mean of the rounds' ratios (geometric), with its 95 % interval. `packets` and
    `hops` are the lab's divided by htsim's. The other figures are means over the rounds.
    """

    acks: str
    ratio: float
    low: float | None
    high: float | None
    packets: float
    hops: float
    lab_packets: float
    lab_s: float
    lab_start_s: float
    htsim_packets: float
    htsim_s: float
    htsim_start_s: float

    @property
    def unequal(self) -> str:
        """Why the work is not equal, or ""."""
        for name, value in (("packets", self.packets), ("hops", self.hops)):
            if not 1 - TOLERANCE <= value <= 1 + TOLERANCE:
                return f"not equal work: {value:.2f} x the {name}"
        return ""

    def to_json(self) -> dict[str, float | None]:
        numbers = {name: value for name, value in vars(self).items() if name != "acks"}
        rounded = {
            name: value if value is None else float(f"{value:.4g}")
            for name, value in numbers.items()
        }
        return {"equal_work": not self.unequal} | rounded


def compared(acks: str, pairs: Sequence[tuple[Work, Work]]) -> Comparison:
    """Compare pairs of the lab and htsim, one of each round."""
    ratios = estimate(
        [math.log(ours.packets_per_s / theirs.packets_per_s) for ours, theirs in pairs]
    )
    assert ratios.mean is not None
    ours, theirs = (_means([pair[n] for pair in pairs]) for n in (0, 1))
    return Comparison(
        acks,
        math.exp(ratios.mean),
        None if ratios.low is None else math.exp(ratios.low),
        None if ratios.high is None else math.exp(ratios.high),
        ours["packets"] / theirs["packets"],
        ours["hops"] / theirs["hops"],
        *(each[name] for each in (ours, theirs) for name in ("packets", "run_s", "start_s")),
    )


def _means(works: Sequence[Work]) -> dict[str, float]:
    return {name: mean([getattr(each, name) for each in works]) for name in vars(works[0])}


def measure(clone: Path, only: str | None) -> Iterator[tuple[Case, list[Comparison]]]:
    """Compare the lab with htsim for each case, or for the case named `only`. Yield each case when
    it is done.

    Raise `RequestError` or `MachineLacks` before anything is simulated.
    """
    cases = [each for each in CASES if only in (None, each.name)]
    if not cases:
        raise RequestError(f"bench --against: {unknown(only, [each.name for each in CASES])}")
    if not code_cache.is_wanted():
        raise MachineLacks(
            "bench --against: without numba the simulator is interpreted. Try: ./run_lab.sh fast"
        )
    program = htsim.program(clone)
    compiler.wait()
    for case in cases:
        found = rounds(sides(case, program), ROUNDS)
        yield case, [compared(acks, [(each[LAB], each[acks]) for each in found]) for acks in ACKS]


NOTE = (
    "packets, hops: the lab's divided by htsim's. s: processor time after start and warm-up, which "
    "take at most {lab:.1f} s in the lab and {htsim:.1f} s in htsim"
)
HEAD = (
    *("network", "ACKs in htsim", "packets", "hops", "lab s", "htsim s"),
    *("ratio", "95 %", "goal", ""),
)


def table(found: Sequence[tuple[Case, Sequence[Comparison]]]) -> str:
    rows = [_row(case, each) for case, several in found for each in several]
    every = [each for _, several in found for each in several]
    ours, theirs = (
        max(getattr(each, f"{side}_start_s") for each in every) for side in (LAB, HTSIM)
    )
    return "\n".join([text_table(HEAD, rows), NOTE.format(lab=ours, htsim=theirs)])


def _row(case: Case, each: Comparison) -> tuple[Any, ...]:
    interval = "-" if each.low is None else f"{each.low:.2f} to {each.high:.2f}"
    ratios = (f"{value:.2f}" for value in (each.packets, each.hops, each.lab_s, each.htsim_s))
    goal = "-" if case.goal is None or each.acks == "shipped" else f"{case.goal:g}"
    own = (f"{each.ratio:.2f}", interval, goal, each.unequal)
    return (case.name, ACKS[each.acks], *ratios, *own)
