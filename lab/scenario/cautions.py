"""What a valid scenario probably does not mean: `check` and `run` warn of it, before any run."""

from __future__ import annotations

from lab.congestion import NEEDS_ECN
from lab.scenario.flows import late_flows
from lab.scenario.schema import Scenario
from lab.topologies.topology import BOTH


def cautions(scenario: Scenario) -> tuple[str, ...]:
    """Return a sentence for each part of a loaded scenario that has no effect, or not the one that
    its name promises."""
    ends = f"the run ends at {scenario.duration_s:g} s, before"
    found = []
    if late := [f"{each.at_s:g}" for each in scenario.events if each.at_s > scenario.duration_s]:
        found.append(f"{ends} its events at {', '.join(late)} s")
    if flows := late_flows(scenario):
        found.append(f"{ends} {', '.join(flows)}: nothing is sent")
    cc = min(NEEDS_ECN.intersection(scenario.congestion_controls), default=None)
    if cc and not _can_mark(scenario):
        found.append(
            f"no queue marks packets, so {cc} behaves as reno. Give the bottleneck a queue that "
            "marks, such as queue: {kind: red, mark_packets: 20}"
        )
    return tuple(found)


def _can_mark(scenario: Scenario) -> bool:
    """Return whether a queue marks at the start, or after a change that the scenario makes."""
    network = scenario.network
    ways = [link.way(side) for link in network.links for side in BOTH]
    queues = [way.discipline for way in ways if way.rate_bps is not None]
    queues += [each.own.discipline for each in network.bearers if each.own.discipline]
    is_changed = any(
        each.target.endswith(".queue") and each.value != "fifo" for each in scenario.events
    )
    return is_changed or any(each.is_marking for each in queues)
