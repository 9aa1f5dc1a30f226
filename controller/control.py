"""Run control steps: from an observation and the pending changes to checked decisions.

1) Apply the changes requested since the last step. If another strategy replaces the running one,
   the old strategy first withdraws its commands.
2) Classify the associations (a user at an access point) as Tier 1 or Tier 2, see
   `controller.tiers`. This is done anew when an association has begun or ended, when the path
   behind an access point has failed or come back, and when the strategy's categorisation
   interval has passed. Otherwise the tiers of the previous step stay.
3) Let the strategy decide.
4) Check the commands of its decisions; a refused command is reported and not carried out.
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
from controller.tiers import cut_off
from controller.units import ns_from_s


@dataclass(frozen=True)
class Step:
    """The result of one control step: the strategy has seen one observation and has decided.

    `strategy` is the name of the strategy. `refused` has an error message for each command that was
    refused.
    """

    observation: Observation
    strategy: str
    decisions: tuple[Decision, ...]
    refused: tuple[str, ...] = ()


class Control:
    """The running strategy. Each control step turns an observation into decisions.

    A request for other parameters or for another strategy is validated at once, and takes effect at
    the next control step.
    """

    def __init__(
        self, name: str, params: dict[str, Any] | None = None, rate_scale: float = 1.0
    ) -> None:
        """Create the strategy `name` and make it the running strategy.

        Rates in `params` are as in the scenario file. Rates on the wire are `rate_scale` times as
        large.
        """
        self.rate_scale = rate_scale
        self.strategy = strategies.make(name, params or {}, rate_scale)
        self._next = self.strategy
        self._due_ns: int | None = None
        self._tiers: Tiers = {}
        self._cut_off: frozenset[tuple[str, str]] = frozenset()
        self._tiers_due_ns = 0

    @property
    def params(self) -> StrategyParams:
        """The parameters that the next control step will use, including requested changes."""
        return self._next.params

    def change(self, values: dict[str, Any]) -> None:
        """Change the parameters in `values` at the next control step; all others keep their values.

        Raise `ParamsRefused` if a value is not valid. Then no parameter changes.
        """
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
        """Replace the running strategy by the strategy `name` at the next control step."""
        self._next = strategies.make(name, params or {}, self.rate_scale)

    def due(self, now_ns: int) -> bool:
        """Return whether it is time for a control step; the first one is due immediately."""
        return self._due_ns is None or now_ns >= self._due_ns

    def wake(self) -> None:
        """Make the next control step due immediately if the strategy has `wakes_on_subflows`.

        Call this when a subflow was established or has ended.
        """
        if self.strategy.wakes_on_subflows:
            self._due_ns = None

    def step(self, observation: Observation) -> Step:
        """Run one control step: pass the observation to the strategy and check its decisions.

        The next step is due `interval_s` after this one was due, or earlier if the strategy's
        `wake_at_ns` says so. Raise `StrategyFailed` if the strategy raises an exception.
        """
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
        due_ns = due_ns if due_ns > now_ns else now_ns + interval_ns
        with failures.failures_of(type(self.strategy), "wake_at_ns"):
            wake_ns = self.strategy.wake_at_ns()
        return due_ns if wake_ns is None else min(due_ns, max(wake_ns, now_ns + 1))

    def _current_tiers(self, observation: Observation) -> Tiers:
        present = {(each.user, each.ap) for each in observation.associations}
        self._tiers = _handed_over(self._tiers, present)
        before, self._cut_off = self._cut_off, cut_off(observation)
        is_changed = present != set(self._tiers) or before != self._cut_off
        if observation.now_ns >= self._tiers_due_ns or is_changed:
            with failures.failures_of(type(self.strategy), "tier_settings"):
                settings = self.strategy.tier_settings()
                interval_ns = ns_from_s(self.strategy.categorisation_interval_s())
            self._tiers = tiers.categorise(observation, settings)
            self._tiers_due_ns = observation.now_ns + interval_ns
        return self._tiers


def _handed_over(tiers: Tiers, present: set[tuple[str, str]]) -> Tiers:
    """Return the tiers after handovers: a user keeps its tier at its new access point.

    `tiers` maps (user, access point) to the tier before the handovers: 1 (primary) or 2
    (secondary). `present` has the (user, access point) pairs of the associations after the
    handovers. Source: MP-SDN, section V-A4.
    """
    gone = dict(sorted(set(tiers) - present))
    come = dict(sorted(present - set(tiers)))
    moved = {(user, ap): (user, come[user]) for user, ap in gone.items() if user in come}
    return {moved.get(each, each): tier for each, tier in tiers.items()}


def _withdrawn(observation: Observation, decisions: Iterable[Decision]) -> Observation:
    """Return the observation as it is after a strategy was withdrawn.

    `decisions` has the strategy's last commands, which undo its earlier ones. All meters count as
    removed.
    """
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
    """Return the observation as it is after `command`, to check the next command against it."""
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
