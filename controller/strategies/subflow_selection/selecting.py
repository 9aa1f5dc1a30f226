"""The base class of `subflow_selection` and `optimum`, which select subflows by a forecast.

For every connection with more than one subflow, `Selecting` determines the quality of each path,
lets the derived class choose a set, and makes all subflows that were not chosen backup.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod, sqrt
from typing import Literal

from controller.command import Decision, Forecast, SetBackup, subflow_name
from controller.observation import Arc, Observation, Subflow, air
from controller.strategies.base import Strategy, StrategyParams, choice, param, without_subflows
from controller.strategies.subflow_selection.forecast import SEGMENT_BITS, Model, PathQuality
from controller.strategies.subflow_selection.search import Choice
from controller.strategies.trial import PathState, is_alone
from controller.topology import Topology
from controller.units import rate_text

LARGEST_WINDOW = 512  # a chain with more states takes a controller too long


class SelectingParams(StrategyParams):
    """Parameters of the strategies `subflow_selection` and `optimum`.

    The paper gives no values, so the defaults are ours.
    """

    rl_max_kb: float = param(
        0.0,
        "kB",
        "Receive buffer that a set of subflows may need; 0: half of the buffer",
        words="Most receive buffer (RL_max)",
        ge=0,
        le=1_000_000,
    )
    largest_window: int = param(
        0,
        "segments",
        "Largest window of a subflow; 0: as much as the receive buffer holds",
        words="Largest window (W_max)",
        ge=0,
        le=LARGEST_WINDOW,
    )
    queue_bdp: float = param(
        1.0,
        "BDP",
        "Queue of a path in products of its bandwidth and round trip",
        words="Queue of a path",
        ge=0,
        le=100,
    )
    rtt_sd: float = param(
        0.1,
        "fraction",
        "Standard deviation of a round trip whose jitter is unknown, as a part of its mean",
        words="Deviation of a round trip",
        ge=0,
        le=1,
    )
    round: Literal["paper", "pipelined"] = choice(
        "paper",
        "A round sends and then waits, as in eq (14), or ACKs return while it sends",
    )
    bandwidth: Literal["available", "capacity"] = choice(
        "available",
        "Bandwidth of a path: its capacity without the load of others, or its whole capacity",
    )


@dataclass(frozen=True)
class Situation:
    """What a strategy knows when it chooses the subflows of one connection.

    `paths` has the quality of each subflow's path, and `states` what is configured of its links.
    `model` and `rl_max_bytes` (the largest receive buffer that a set may need) are for the paper's
    forecast. `buffer_bytes` is the actual receive buffer. `connections` names all open connections
    of the network. `alone` is True if the user has no other connection.
    """

    subflows: tuple[Subflow, ...]
    paths: tuple[PathQuality, ...]
    states: tuple[PathState, ...]
    model: Model
    rl_max_bytes: float
    buffer_bytes: int
    now_ns: int
    connections: frozenset[str]
    alone: bool

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(each.number for each in self.subflows)


class Selecting(Strategy):
    """Base class of strategies that choose which subflows carry data.

    A derived class defines `search`. Nothing is stored between two decisions: the observation says
    which subflows are backup.
    """

    wakes_on_subflows = True
    Params = SelectingParams
    params: SelectingParams

    @classmethod
    def unfit(cls, network: Topology) -> str | None:
        return without_subflows(network)

    @abstractmethod
    def search(self, paths: Sequence[PathQuality], model: Model, rl_max_bytes: float) -> Choice:
        """Return the best set of paths, with its forecast.

        `model` has the settings of the forecast. The set should need a receive buffer of at most
        `rl_max_bytes`.
        """

    def choose(self, situation: Situation) -> tuple[Choice, str]:
        """Return the set of paths to use, and a text for the log.

        The log shows the text after the forecast. The text may be "".
        """
        return self.search(situation.paths, situation.model, situation.rl_max_bytes), ""  # 2

    def decide(self, observation: Observation) -> list[Decision]:
        arcs = {(arc.tail, arc.head): arc for arc in observation.arcs}
        return [
            decision
            for subflows in observation.connections().values()
            if len(subflows) > 1
            for decision in self._decide_for(subflows, arcs, observation)
        ]

    def withdraw(self, observation: Observation) -> list[Decision]:
        why = "strategy withdrawn: the subflow becomes normal"
        return [_set_backup(each, False, why) for each in observation.subflows if each.backup]

    def _decide_for(
        self, subflows: Sequence[Subflow], arcs: ArcsByEnds, observation: Observation
    ) -> list[Decision]:
        paths = [arcs_along(each, arcs) for each in subflows]
        known = [path for path in paths if path is not None]
        if len(known) < len(paths):
            lost = subflows[paths.index(None)]
            text = f"path {' '.join(lost.path)} is unknown" if lost.path else "its path is unknown"
            return [Decision(subflow_name(lost.key), f"{text}: all subflows stay as they are")]
        buffer_bytes = observation.receive_buffer_bytes
        largest = self.params.largest_window or min(
            LARGEST_WINDOW, buffer_bytes * 8 // SEGMENT_BITS
        )
        model = Model(self.params.round, largest, self.params.queue_bdp)
        rl_max_bytes = self.params.rl_max_kb * 1000 or buffer_bytes / 2
        situation = Situation(
            tuple(subflows),
            self._qualities(subflows, known),  # 1
            tuple(map(state, known)),
            model,
            rl_max_bytes,
            buffer_bytes,
            observation.now_ns,
            frozenset(observation.connections()),
            is_alone(subflows, observation),
        )
        return _decisions(subflows, *self.choose(situation), observation.rate_scale)

    def _qualities(
        self, subflows: Sequence[Subflow], paths: Sequence[tuple[Arc, ...]]
    ) -> tuple[PathQuality, ...]:
        own_bps: dict[str, int] = {}
        for subflow, path in zip(subflows, paths, strict=True):
            for link in {arc.link for arc in path}:
                own_bps[link] = own_bps.get(link, 0) + (subflow.rate_bps or 0)
        available = self.params.bandwidth == "available"
        return tuple(
            quality(
                path,
                available_bps(path, own_bps) if available else capacity_bps(path),
                self.params.rtt_sd,
            )
            for path in paths
        )


def _decisions(
    subflows: Sequence[Subflow], choice: Choice, reason: str, rate_scale: float
) -> list[Decision]:
    """Return a decision with the forecast, and the commands that put the chosen subflows into use.

    All other subflows become backup, but not before at least one chosen subflow is in use. The text
    `reason` is added to the forecast in the log.
    """
    chosen = [subflows[n] for n in choice.chosen]
    rest = [each for each in subflows if each not in chosen]
    one_is_normal = any(not each.backup for each in chosen)
    text = _text(choice, len(subflows), rate_scale) + (f"; {reason}" if reason else "")
    decisions = [
        Decision(subflows[0].connection, text, forecast=_forecast(subflows, chosen, choice))
    ]
    decisions += [_set_backup(each, False, f"chosen: {text}") for each in chosen if each.backup]
    if one_is_normal:
        why = f"not chosen: {text}"
        decisions += [_set_backup(each, True, why) for each in rest if not each.backup]
    return decisions


def _forecast(subflows: Sequence[Subflow], chosen: Sequence[Subflow], choice: Choice) -> Forecast:
    rates_bps = [each.rate_bps for each in subflows if each.rate_bps is not None]
    return Forecast(
        tuple(each.key for each in chosen),
        round(choice.estimate.throughput_bps),
        round(choice.estimate.buffer_bytes),
        sum(rates_bps) if rates_bps else None,
    )


def _text(choice: Choice, subflows: int, rate_scale: float) -> str:
    forecast = choice.estimate
    return (
        f"forecast for {len(choice.chosen)} of {subflows} subflows: "
        f"{rate_text(forecast.throughput_bps, rate_scale)}, "
        f"{forecast.buffer_bytes / 1000:.3g} kB of receive buffer"
    )


def _set_backup(subflow: Subflow, backup: bool, reason: str) -> Decision:
    return Decision(subflow_name(subflow.key), reason, SetBackup(subflow.key, backup))


# Quality of a path (DTMC selection, section II-A)
#
# Over the arcs e (directions of links) from the source to the user: the bandwidth b is the smallest
# bandwidth of an arc, the loss is l = 1 - prod(1 - l_e), the RTT is mu = 2 sum delay_e, and its
# variance is sigma^2 = 2 sum jitter_e^2. The factors of 2 count each delay once for the packet and
# once for its acknowledgement.


ArcsByEnds = Mapping[tuple[str, str], Arc]
SMALLEST_RTT_S = 0.0001
LOAD_STEPS = 10


def arcs_along(subflow: Subflow, arcs: ArcsByEnds) -> tuple[Arc, ...] | None:
    """Return the arcs on the path of a subflow, from the source to the destination.

    An arc is one direction of a link; `arcs` maps (tail, head) to the arc between these two nodes.
    Return None if an arc is missing.
    """
    source, destination = subflow.ends
    found: list[Arc] = []
    for tail, head in pairwise((source, *subflow.path, destination)):
        steps = ([tail, head], [tail, air(tail), head], [tail, air(head), head])
        known = next((step for step in steps if all(pair in arcs for pair in pairwise(step))), None)
        if known is None:
            return None
        found += [arcs[pair] for pair in pairwise(known)]
    return tuple(found)


def quality(path: Sequence[Arc], bandwidth_bps: float, rtt_sd_of_mean: float) -> PathQuality:
    """Return the quality of a path, with loss and RTT from its arcs (DTMC selection, section II-A).

    An arc is one direction of a link. If no arc has a known jitter, the standard deviation of the
    RTT is `rtt_sd_of_mean` times the RTT.
    """
    rtt_s = max(SMALLEST_RTT_S, _rtt_s(path))
    measured_sd_s = sqrt(2 * sum(arc.jitter_s**2 for arc in path))
    return PathQuality(bandwidth_bps, _loss(path), rtt_s, measured_sd_s or rtt_sd_of_mean * rtt_s)


def state(path: Sequence[Arc]) -> PathState:
    """Return what is configured of the links on a path."""
    return PathState(_loss(path), _rtt_s(path), capacity_bps(path))


def _rtt_s(path: Sequence[Arc]) -> float:
    return 2 * sum(arc.delay_s for arc in path)


def _loss(path: Sequence[Arc]) -> float:
    return 1 - prod(1 - arc.loss for arc in path)


def capacity_bps(path: Sequence[Arc]) -> float:
    return min(arc.capacity_bps for arc in path)


def available_bps(path: Sequence[Arc], own_bps: Mapping[str, int]) -> float:
    """Return the rate in bit/s that other connections leave free on a path.

    `own_bps` maps each link to the load by the connection itself, which counts as free. The free
    part of each arc (direction of a link) is rounded to tenths of its capacity, at least one tenth,
    so that noise in the measurements changes nothing. The result is the smallest of these parts.
    """

    def available(arc: Arc) -> float:
        others = max(0, arc.used_bps - own_bps.get(arc.link, 0)) / arc.capacity_bps
        return arc.capacity_bps * max(1, LOAD_STEPS - round(others * LOAD_STEPS)) / LOAD_STEPS

    return min(map(available, path))
