"""The changes that traces make while a run goes on (`lab.topologies.trace`)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

from controller.units import ns_from_ms, ppm_from_fraction
from lab.radio.cell import BOTH_WAYS
from lab.scenario.schema import Scenario
from lab.scenario.targets import (
    Change,
    SetLinkDelay,
    SetLinkLoss,
    SetLinkRate,
    SetStationRate,
    side_of,
    way_of,
)
from lab.topologies.topology import Directions, down_directions
from lab.topologies.trace import Traced, TraceStep


class TracedChanges:
    """Says when the next step of any trace of a scenario is due, and which changes it makes."""

    def __init__(self, scenario: Scenario) -> None:
        self._scale = scenario.rate_scale
        self._links = {link.id: link for link in scenario.network.links}
        self._down = down_directions(scenario.network) if scenario.network.traces else {}
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
            yield at_s, list(self._made(traced.target, before, step))
            before, n = step, n + 1

    def _made(self, target: str, before: TraceStep, step: TraceStep) -> Iterator[Change]:
        """Yield what a step changes."""
        kind, name, *more = target.split(".")
        rate_bps = step.rate_bps(self._scale)
        new_rate = rate_bps != before.rate_bps(self._scale)
        if kind == "cell":
            if rate_bps is not None and new_rate:
                ways = way_of(more[1]) if more[1:] else BOTH_WAYS
                yield SetStationRate(name, more[0], rate_bps, ways)
            return
        way = more[0] if more else None
        if rate_bps is not None and new_rate:
            yield SetLinkRate(name, rate_bps, self._sides(name, way, "rate_bps"))
        if step.delay_ms is not None and step.delay_ms != before.delay_ms:
            delay_ns = ns_from_ms(step.delay_ms)
            yield SetLinkDelay(name, delay_ns, self._sides(name, way, "delay_ns"))
        if step.loss is not None and step.loss != before.loss:
            sides = self._sides(name, way, "loss_ppm") if way else None
            yield SetLinkLoss(name, ppm_from_fraction(step.loss), sides)

    def _sides(self, link: str, way: str | None, value: str) -> Directions:
        """Return the directions that a trace of a link acts on: `way`, or those without a value of
        their own."""
        if way:
            return frozenset((side_of(self._down[link], way),))
        return self._links[link].without_own(value)
