"""One step of control: observation and pending changes in, checked decisions out.

1) take over what was changed since the last step; a new strategy first makes the old one withdraw
2) say which association is Tier 1 and which Tier 2, when the last answer is old or does not know an association
3) ask the strategy
4) check what it asks for
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from controller import strategies, tiers
from controller.command import Command, Decision, Expect, Route, SetBackup, checked, raised_to_floor
from controller.errors import CommandRefused
from controller.observation import Observation, Tiers
from controller.strategies import failures
from controller.strategies.base import StrategyParams, checked_params
from controller.units import ns_from_s


@dataclass(frozen=True)
class Step:
    """What was observation (with its tiers), decided and refused in one step, and which strategy decided."""

    observation: Observation
    strategy: str
    decisions: tuple[Decision, ...]
    refused: tuple[str, ...] = ()


class Control:
    """Owns the strategy; a change is checked at once and holds from the next step on."""

    def __init__(
        self, name: str, params: dict[str, Any] | None = None, rate_scale: float = 1.0
    ) -> None:
        """Start a strategy; `params` are in scenario units, the network carries them x `rate_scale`."""
        self.rate_scale = rate_scale
        self.strategy = strategies.make(name, params or {}, rate_scale)
        self._next = self.strategy
        self._due_ns: int | None = None
        self._tiers: Tiers = {}
        self._tiers_due_ns = 0

    @property
    def params(self) -> StrategyParams:
        """The parameters of the next step, pending changes included."""
        return self._next.params

    def change(self, values: dict[str, Any]) -> None:
        """Change parameters from the next step on; `ParamsRefused` leaves all as it was."""
        doing = f"change parameters of strategy '{self._next.name}'"
        params = checked_params(
            type(self._next.params),
            {**self._next.params.model_dump(), **values},
            doing,
            self.rate_scale,
        )
        with failures.failures_of(type(self._next), "__init__"):
            self._next = type(self._next)(params)

    def switch(self, name: str, params: dict[str, Any] | None = None) -> None:
        """Replace the strategy at the next step."""
        self._next = strategies.make(name, params or {}, self.rate_scale)

    def due(self, now_ns: int) -> bool:
        """Whether a step should be made now; the first is due at once."""
        return self._due_ns is None or now_ns >= self._due_ns

    def wake(self) -> None:
        """The next step is due at once: a subflow came or went, and the strategy wants to know."""
        if self.strategy.wakes_on_subflows:
            self._due_ns = None

    def step(self, observation: Observation) -> Step:
        """Decide, and count the time to the next step from the moment this one was due."""
        leaving, self.strategy = self.strategy, self._next  # 1
        observation = replace(observation, rate_scale=self.rate_scale)
        observation = replace(observation, tiers=self._current_tiers(observation))  # 2
        decisions: list[Decision] = []
        if leaving.name != self.strategy.name:
            decisions += failures.decisions(leaving, "withdraw", observation)
            observation = _withdrawn(observation, decisions)
        decisions += failures.decisions(self.strategy, "decide", observation)  # 3
        self._due_ns = self._next_due_ns(observation.now_ns)
        with failures.failures_of(type(self.strategy), "decide"):
            return _checked_step(observation, self.strategy.name, decisions)

    def _next_due_ns(self, now_ns: int) -> int:
        interval_ns = ns_from_s(self.strategy.params.interval_s)
        due_ns = (now_ns if self._due_ns is None else self._due_ns) + interval_ns
        return due_ns if due_ns > now_ns else now_ns + interval_ns

    def _current_tiers(self, observation: Observation) -> Tiers:
        present = {(each.user, each.ap) for each in observation.associations}
        self._tiers = _handed_over(self._tiers, present)
        if observation.now_ns >= self._tiers_due_ns or present != set(self._tiers):
            with failures.failures_of(type(self.strategy), "tier_settings"):
                settings = self.strategy.tier_settings()
                interval_ns = ns_from_s(self.strategy.categorisation_interval_s())
            self._tiers = tiers.categorise(observation, settings)
            self._tiers_due_ns = observation.now_ns + interval_ns
        return self._tiers


def _handed_over(tiers: Tiers, present: set[tuple[str, str]]) -> Tiers:
    """Who has changed one access point for another keeps the tier until tiers are chosen again (MP-SDN, section V-A4)."""
    gone, come = dict(set(tiers) - present), dict(present - set(tiers))
    moved = {(user, ap): (user, come[user]) for user, ap in gone.items() if user in come}
    return {moved.get(each, each): tier for each, tier in tiers.items()}


def _withdrawn(observation: Observation, decisions: Iterable[Decision]) -> Observation:
    """What the new strategy sees: no limit, and subflows as the old one leaves them."""
    observation = replace(
        observation,
        access_points=tuple(replace(ap, meter_bps=None) for ap in observation.access_points),
    )
    for decision in decisions:
        if decision.command is not None:
            observation = _after(decision.command, observation)
    return observation


def _checked_step(observation: Observation, strategy: str, decisions: Iterable[Decision]) -> Step:
    accepted, refused = [], []
    after = observation
    for decision in decisions:  # 4
        try:
            if decision.command is not None:
                after = _after(checked(decision.command, after), after)
            accepted.append(raised_to_floor(decision, observation.rate_scale))
        except CommandRefused as error:
            refused.append(str(error))
    return Step(observation, strategy, tuple(accepted), tuple(refused))


def _after(command: Command, observation: Observation) -> Observation:
    """What is true of the subflows once a command is carried out: the next one is checked against it."""
    if isinstance(command, SetBackup):
        change: dict[str, Any] = {"backup": command.backup}
    elif isinstance(command, Expect):
        change = {"expected_bps": command.rate_bps}
    elif isinstance(command, Route):
        change = {"path": command.path}
    else:
        return observation
    return replace(
        observation,
        subflows=tuple(
            replace(each, **change) if each.key == command.subflow else each
            for each in observation.subflows
        ),
    )
