"""The base class of all strategies and of their parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from controller import paths, tiers
from controller.command import Decision, Route, subflow_name
from controller.errors import ParamsRefused
from controller.observation import Observation
from controller.topology import Topology
from controller.units import wire_bps


def param(default: Any, unit: str, help: str, **bounds: Any) -> Any:
    """Return a pydantic field for a parameter; `bounds` are pydantic's ge, gt, le and lt."""
    return Field(default, description=help, json_schema_extra={"unit": unit}, **bounds)


class StrategyParams(BaseModel):
    """The parameters of all strategies; a strategy derives a class with its own fields.

    A field whose unit is "Mb/s" holds the rate as in the scenario file. `rate_bps` returns it in
    bit/s on the wire: multiplied by the network's rate scale.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    interval_s: float = param(
        2.0, "s", "Time between two control steps (execution interval)", ge=0.2, le=60
    )
    _rate_scale: float = PrivateAttr(1.0)

    def scaled(self, rate_scale: float) -> Self:
        """Return a copy for a network with this rate scale.

        The fields stay the same; only the results of `rate_bps` are multiplied.
        """
        params = self.model_copy()
        params._rate_scale = rate_scale
        return params

    def rate_bps(self, field: str) -> int:
        """Return a field whose unit is "Mb/s" as a rate on the wire in bit/s.

        Raise `KeyError` for a field with another unit.
        """
        about = type(self).model_fields[field].json_schema_extra
        if not isinstance(about, dict) or about.get("unit") != "Mb/s":
            raise KeyError(field)
        return wire_bps(getattr(self, field), self._rate_scale)


class Strategy(ABC):
    """Base class of strategies, which decide what to change in the network.

    The observation is the only input. The controller creates a new object when a parameter changes
    or when it restarts during a run. The new object must continue where the old one stopped, so it
    must find everything it needs in the observation.
    """

    name: ClassVar[str]
    improved: ClassVar[Mapping[str, str | float]] = {}  # defaults of NAME/improved (see `forms`)
    wakes_on_subflows: ClassVar[bool] = False  # decide at once when a subflow opens or closes
    Params: ClassVar[type[StrategyParams]] = StrategyParams

    def __init__(self, params: StrategyParams) -> None:
        self.params = params

    @classmethod
    def unfit(cls, network: Topology) -> str | None:
        """Return the reason why the strategy could never act on the network `network`, or None."""
        return None

    @abstractmethod
    def decide(self, observation: Observation) -> list[Decision]:
        """Return the decisions for this moment, in the order in which to carry out their commands.

        Take the time only from `observation.now_ns`. `observation.tiers` says which associations
        are Tier 1 and which are Tier 2.
        """

    def wake_at_ns(self) -> int | None:
        """Return when to decide next, if this is before the end of the interval; else None.

        The controller calls this after each decision.
        """
        return None

    @abstractmethod
    def withdraw(self, observation: Observation) -> list[Decision]:
        """Return the decisions that undo everything this strategy has set in the network.

        The controller calls this when another strategy replaces this one.
        """

    def tier_settings(self) -> tiers.Settings:
        """Return how to choose the primary associations (Tier 1) while this strategy runs."""
        return tiers.Settings()

    def categorisation_interval_s(self) -> float:
        """Return the time between two choices of the primary associations (Tier 1)."""
        return self.params.interval_s


def without_subflows(network: Topology) -> str | None:
    """Return a reason not to use a strategy that chooses among subflows, if no user has several."""
    return (
        None
        if network.multipath
        else "it chooses among the subflows of a user, and here no user has two"
    )


def checked_params(
    schema: type[StrategyParams], values: Mapping[str, Any], doing: str, rate_scale: float = 1.0
) -> StrategyParams:
    """Validate `values`, for a network with this rate scale.

    Raise `ParamsRefused` for an invalid value: its message begins with `doing` and names the key,
    the value and the bounds.
    """
    try:
        return schema.model_validate(dict(values)).scaled(rate_scale)
    except ValidationError as error:
        raise ParamsRefused(f"{doing}: {_first_problem(schema, error)}") from error


def _first_problem(schema: type[StrategyParams], error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    known = sorted(schema.model_fields)
    if first["type"] != "extra_forbidden":
        return f"parameter {key} = {first['input']!r}: {first['msg']}"
    near = get_close_matches(key, known, 1)
    return f"parameter '{key}' is unknown" + (
        f" (did you mean '{near[0]}'?)" if near else f": choose from {', '.join(known)}"
    )


def hashed_paths(observation: Observation) -> list[Decision]:
    """Return a route command for each subflow that is not on its hashed path; for `withdraw`.

    Without a strategy, the network routes a subflow over one of the shortest paths, chosen by a
    hash of its addresses and ports. Paths over links that are down do not count. A subflow without
    any path to its destination gets no command.
    """
    near: dict[str, set[str]] = {}
    for arc in observation.arcs:  # hosts and the air are dead ends, so no path leads through them
        near.setdefault(arc.tail, set()).add(arc.head)
    decisions = []
    for each in observation.subflows:
        found = paths.between(near, each.path[0], each.path[-1]) if each.path else []
        path = paths.choose(found, each.flow) if found else each.path
        if path != each.path:
            text = f"strategy withdrawn: the hash of the subflow chooses path {' '.join(path)}"
            decisions.append(Decision(subflow_name(each.key), text, Route(each.key, path)))
    return decisions
