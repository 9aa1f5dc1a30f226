"""DTMC selection: of a connection's subflows use those from which a Markov chain expects the most.

Every `interval_s`, and as soon as a subflow comes or goes, for every connection with more than one subflow:
1) measure the path of each: `paths`
2) search the set with the largest expected throughput whose need of receive buffer is within `rl_max_kb`: `selection`
3) make what was chosen active, then put the rest aside as backup; nothing is put aside before one of the chosen is active
4) write the forecast down beside what was measured since the last step
Paper: sections IV and V-A.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

from controller.command import Decision, Forecast, SetBackup, about
from controller.observation import Arc, Observation, Subflow
from controller.plan import Plan
from controller.strategies.base import Strategy, StrategyParams, param, without_subflows
from controller.strategies.subflow_selection.forecast import SEGMENT_BITS, Model, PathQuality
from controller.strategies.subflow_selection.paths import (
    ArcsByEnds,
    along,
    available_bps,
    capacity_bps,
    quality,
)
from controller.strategies.subflow_selection.selection import Accept, Choice, Starts, greedy
from controller.units import mbps_from_bps

LARGEST_WINDOW = 512  # a chain of more states takes a controller too long


class SelectingParams(StrategyParams):
    """What every search is told. The paper gives no values: these are ours."""

    interval_s: float = param(2.0, "s", "Time between two selections", ge=0.2, le=60)
    rl_max_kb: float = param(
        0.0,
        "kB",
        "Receive buffer that a set of subflows may need (RL_max); 0: half of a connection's",
        ge=0,
        le=1_000_000,
    )
    largest_window: int = param(
        0,
        "segments",
        "Largest window of a subflow (W_max); 0: a receive buffer full",
        ge=0,
        le=LARGEST_WINDOW,
    )
    queue_bdp: float = param(
        1.0, "BDP", "A path's queue in products of its bandwidth and round trip", ge=0, le=100
    )
    rtt_sd: float = param(
        0.1,
        "fraction",
        "Standard deviation of a round trip of which no jitter is known",
        ge=0,
        le=1,
    )
    round: Literal["paper", "pipelined"] = param(
        "paper",
        "choice",
        "A round sends and then waits, as eq (14) has it, or ACKs come back meanwhile",
    )
    bandwidth: Literal["available", "capacity"] = param(
        "available", "choice", "Whether the load of others is taken off"
    )


class Selecting(Strategy):
    """Keeps no state: which subflows are active comes with the observation."""

    wakes_on_subflows = True
    Params = SelectingParams
    params: SelectingParams

    @classmethod
    def unfit(cls, plan: Plan) -> str | None:
        return without_subflows(plan)

    @abstractmethod
    def search(self, paths: Sequence[PathQuality], model: Model, rl_max_bytes: float) -> Choice:
        """The set to use."""

    def decide(self, seen: Observation) -> list[Decision]:
        arcs = {(arc.tail, arc.head): arc for arc in seen.arcs}
        several = [subflows for subflows in seen.connections().values() if len(subflows) > 1]
        return [
            decision
            for subflows in several
            for decision in self._decide_for(subflows, arcs, seen.receive_buffer_bytes)
        ]

    def withdraw(self, seen: Observation) -> list[Decision]:
        aside = [each for each in seen.subflows if each.backup]
        return [
            _set(each, False, "the strategy was withdrawn: an ordinary subflow again")
            for each in aside
        ]

    def _decide_for(
        self, subflows: Sequence[Subflow], arcs: ArcsByEnds, receive_buffer_bytes: int
    ) -> list[Decision]:
        ways = [along(each, arcs) for each in subflows]
        known = [way for way in ways if way is not None]
        if len(known) < len(ways):
            lost = subflows[ways.index(None)]
            return [
                Decision(
                    about(lost.key),
                    f"nothing is known of the path {' '.join(lost.path) or 'it takes'}: all stay as they are",
                )
            ]
        largest = self.params.largest_window or min(
            LARGEST_WINDOW, receive_buffer_bytes * 8 // SEGMENT_BITS
        )
        model = Model(self.params.round, largest, self.params.queue_bdp)
        rl_max_bytes = self.params.rl_max_kb * 1000 or receive_buffer_bytes / 2
        choice = self.search(self._qualities(subflows, known), model, rl_max_bytes)  # 1, 2
        return _carried_out(subflows, choice)

    def _qualities(
        self, subflows: Sequence[Subflow], ways: Sequence[tuple[Arc, ...]]
    ) -> tuple[PathQuality, ...]:
        own_bps: dict[str, int] = {}
        for subflow, way in zip(subflows, ways, strict=True):
            for link in {arc.link for arc in way}:
                own_bps[link] = own_bps.get(link, 0) + (subflow.rate_bps or 0)
        available = self.params.bandwidth == "available"
        return tuple(
            quality(
                way,
                available_bps(way, own_bps) if available else capacity_bps(way),
                self.params.rtt_sd,
            )
            for way in ways
        )


class SubflowSelectionParams(SelectingParams):
    """How Algorithm 1 is read."""

    accept: Accept = param(
        "gain", "choice", "Test the set before a path is added, with it, or its throughput as well"
    )
    starts: Starts = param(
        "first", "choice", "Begin with the most promising path, or once with every path"
    )


class SubflowSelection(Selecting):
    """Algorithm 1."""

    name = "subflow_selection"
    Params = SubflowSelectionParams
    params: SubflowSelectionParams

    def search(self, paths: Sequence[PathQuality], model: Model, rl_max_bytes: float) -> Choice:
        return greedy(paths, model, rl_max_bytes, self.params.accept, self.params.starts)


def _carried_out(subflows: Sequence[Subflow], choice: Choice) -> list[Decision]:
    """The forecast, then what changes."""
    chosen = [subflows[n] for n in choice.chosen]
    rest = [each for each in subflows if each not in chosen]
    active = any(not each.backup for each in chosen)
    text = _text(choice, len(subflows))
    decisions = [
        Decision(subflows[0].connection, text, forecast=_forecast(subflows, chosen, choice))
    ]  # 4
    decisions += [_set(each, False, f"chosen: {text}") for each in chosen if each.backup]  # 3
    decisions += [
        _set(each, True, f"not chosen: {text}") for each in rest if active and not each.backup
    ]
    return decisions


def _forecast(subflows: Sequence[Subflow], chosen: Sequence[Subflow], choice: Choice) -> Forecast:
    rates_bps = [each.rate_bps for each in subflows if each.rate_bps is not None]
    return Forecast(
        tuple(each.key for each in chosen),
        round(choice.estimate.throughput_bps),
        round(choice.estimate.buffer_bytes),
        sum(rates_bps) if rates_bps else None,
    )


def _text(choice: Choice, subflows: int) -> str:
    forecast = choice.estimate
    return (
        f"{len(choice.chosen)} of {subflows} subflows should bring {mbps_from_bps(forecast.throughput_bps):.3g} Mb/s "
        f"and need {forecast.buffer_bytes / 1000:.3g} kB of receive buffer"
    )


def _set(subflow: Subflow, backup: bool, reason: str) -> Decision:
    return Decision(about(subflow.key), reason, SetBackup(subflow.key, backup))
