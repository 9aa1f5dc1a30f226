"""The changes that traces make while a run goes on (`lab.topologies.trace`)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping

from controller.units import ns_from_ms, ppm_from_fraction
from lab.scenario.schema import Scenario
from lab.scenario.targets import (
    Change,
    SetLinkDelay,
    SetLinkLoss,
    SetLinkRate,
    SetStationRate,
)
from lab.topologies.topology import Link
from lab.topologies.trace import Traced, TraceStep


class TracedChanges:
    """Says when the next step of any trace of a scenario is due, and which changes it makes."""

    def __init__(self, scenario: Scenario) -> None:
        self._scale = scenario.rate_scale
        self._links = {f"link.{link.id}": link for link in scenario.network.links}
        self._due: list[tuple[float, int, Iterator[tuple[float, list[Change]]], list[Change]]] = []
        for n, traced in enumerate(scenario.network.traces):
            self._wait(n, self._changes(traced))

    @property
    def next_s(self) -> float:
        """The time of the next step in s of the run; infinite if no step comes."""
        return self._due[0][0] if self._due else math.inf

    def take(self, now_s: float) -> Iterator[Change]:
        """Yield the changes of all steps that are due at `now_s`."""
        while self.next_s <= now_s:
            _, n, later, changes = heapq.heappop(self._due)
            yield from changes
            self._wait(n, later)

    def _wait(self, n: int, later: Iterator[tuple[float, list[Change]]]) -> None:
        for at_s, changes in later:
            heapq.heappush(self._due, (at_s, n, later, changes))
            return

    def _changes(self, traced: Traced) -> Iterator[tuple[float, list[Change]]]:
        """Yield the time and the changes of each step but the first, with which a run begins."""
        steps, period_s = traced.trace.steps, traced.trace.period_s
        if len(steps) == 1:
            return
        before, n = steps[0], 1
        while True:
            rounds, place = divmod(n, len(steps))
            step = steps[place]
            at_s = round(rounds * period_s + step.at_s, 9)
            yield at_s, list(made(traced.target, before, step, self._scale, self._links))
            before, n = step, n + 1


def made(
    target: str,
    before: TraceStep,
    step: TraceStep,
    rate_scale: float,
    links: Mapping[str, Link],
) -> Iterator[Change]:
    """Yield what a step changes. A direction of a link with a rate or a delay of its own keeps
    it."""
    kind, name, *station = target.split(".")
    rate_bps = step.rate_bps(rate_scale)
    if rate_bps is not None and rate_bps != before.rate_bps(rate_scale):
        yield (
            SetLinkRate(name, rate_bps, links[target].without_own("rate_bps"))
            if kind == "link"
            else SetStationRate(name, station[0], rate_bps)
        )
    if step.delay_ms is not None and step.delay_ms != before.delay_ms:
        yield SetLinkDelay(name, ns_from_ms(step.delay_ms), links[target].without_own("delay_ns"))
    if step.loss is not None and step.loss != before.loss:
        yield SetLinkLoss(name, ppm_from_fraction(step.loss))
