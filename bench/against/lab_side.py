"""Simulate a scenario in the lab's simulator, and print what `replay.cpp` prints for htsim.

Usage: python -m bench.against.lab_side SCENARIO WARM_UP_S MEASURED_S [KEY=VALUE...]
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.engines.sim import compiled
from lab.engines.sim.core import state as at
from lab.engines.sim.engine import SimEngine
from lab.engines.sim.network import Network
from lab.run.engine import Options
from lab.run.recorder import Recorder
from lab.scenario import loading
from lab.scenario.loading import Overrides
from lab.scenario.schema import Scenario


@contextmanager
def opened(scenario: Scenario) -> Iterator[SimEngine]:
    """Yield a simulation of the scenario that has not begun."""
    engine = SimEngine(Options(speed=0.0), real_time=False)
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(Path(folder), scenario, "sim")
        try:
            engine.open(scenario, recorder)
            yield engine
            engine.close()
        finally:
            recorder.close()


def load(name: str, duration_s: float, settings: tuple[str, ...]) -> Scenario:
    return loading.load(name, Overrides(settings=(*settings, f"duration_s={duration_s}")))


def shaped_hops(step: at.Step) -> list[at.Hop]:
    """Return the hops of a route that have a rate or a delay. Others cost a simulator no event."""
    found = []
    while step.hop.kind != at.END:
        assert step.hop.kind == at.WIRE
        if step.hop.rate_bps or step.hop.delay_ns:
            found.append(step.hop)
        step = step.next
    return found


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def counts(network: Network) -> dict[str, int]:
    """Return how many segments have arrived, how many acknowledgements have, and how many hops both
    together have crossed."""
    packets = acks = hops = 0
    for each in network.subflows():
        s = each.record
        packets += s.segments_received
        acks += s.acks_received
        hops += s.segments_received * len(shaped_hops(s.data_route))
        hops += s.acks_received * len(shaped_hops(s.ack_route))
    return {"packets": packets, "acks": acks, "hops": hops}


def measure(scenario: Scenario, warm_up_s: float) -> dict[str, float]:
    with opened(scenario) as engine:
        assert compiled.is_fast()
        engine.run_until(warm_up_s)
        before, began_s = counts(engine.network), cpu_s()
        engine.run_until(scenario.duration_s)
        ended_s, after = cpu_s(), counts(engine.network)
    found = {name: after[name] - before[name] for name in before}
    return found | {"start_s": began_s, "run_s": ended_s - began_s}


def main(name: str, warm_up_s: str, measured_s: str, *settings: str) -> None:
    scenario = load(name, float(warm_up_s) + float(measured_s), settings)
    print(json.dumps(measure(scenario, float(warm_up_s))))


if __name__ == "__main__":
    main(*sys.argv[1:])
