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


def param(default: Any, unit: str, help: str, words: str = "", **bounds: Any) -> Any:
    """Return a pydantic field for a parameter of a strategy, with its unit and help text.

    `words` say on a page what a symbol such as `cth` stands for; without them its name is shown.
    `bounds` are ge, gt, le and lt, as in pydantic.
    """
    extra: dict[str, Any] = {"unit": unit} | ({"words": words} if words else {})
    return Field(default, description=help, json_schema_extra=extra, **bounds)


def choice(default: str, help: str) -> Any:
    """Return the field of a parameter whose type is a `Literal` with the possible texts."""
    return param(default, "choice", help)


def switch(default: bool, help: str) -> Any:
    return param(default, "switch", help)


class StrategyParams(BaseModel):
    """The parameters that all strategies have. A strategy derives a class with its own fields.

    A field whose unit is "Mb/s" has the rate as in the scenario file. `rate_bps` converts it to
    bit/s on the wire, with the rate scale of the network.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    interval_s: float = param(
        2.0, "s", "Time between two control steps (execution interval)", ge=0.2, le=60
    )
    _rate_scale: float = PrivateAttr(1.0)

    def scaled(self, rate_scale: float) -> Self:
        """Return a copy for a network with this rate scale.

        The fields stay the same. Only `rate_bps` uses the scale.
        """
        params = self.model_copy()
        params._rate_scale = rate_scale
        return params

    def rate_bps(self, field: str) -> int:
        """Convert a field whose unit is "Mb/s" to a rate on the wire in bit/s.

        Raise `KeyError` if the field has another unit.
        """
        about = type(self).model_fields[field].json_schema_extra
        if not isinstance(about, dict) or about.get("unit") != "Mb/s":
            raise KeyError(field)
        return wire_bps(getattr(self, field), self._rate_scale)


class Strategy(ABC):
    """Base class of strategies. A strategy decides what to change in the network.

    Its only input is an observation. The controller creates a new object when a parameter changes
    or when the controller restarts. The new object must continue where the old one stopped, so
    everything that it needs must be in the observation.
    """

    name: ClassVar[str]
    improved: ClassVar[Mapping[str, str | float]] = {}  # defaults of NAME/improved (see `forms`)
    wakes_on_subflows: ClassVar[bool] = False  # decide at once when a subflow opens or closes
    Params: ClassVar[type[StrategyParams]] = StrategyParams

    def __init__(self, params: StrategyParams) -> None:
        self.params = params

    @classmethod
    def unfit(cls, network: Topology) -> str | None:
        """Return why the strategy can never have an effect in `network`, or None if it can."""
        return None

    @abstractmethod
    def decide(self, observation: Observation) -> list[Decision]:
        """Return the decisions for now, in the order in which their commands are carried out.

        Take the time only from `observation.now_ns`. `observation.tiers` tells for each user at
        each access point whether this is the user's primary access point (1) or not (2).
        """

    def wake_at_ns(self) -> int | None:
        """Return the time in ns of the next decision if `interval_s` would be too long to wait.

        Otherwise return None. The controller calls this after each decision.
        """
        return None

    @abstractmethod
    def withdraw(self, observation: Observation) -> list[Decision]:
        """Return the decisions that undo everything this strategy has set in the network.

        The controller calls this when another strategy replaces this one.
        """

    def tier_settings(self) -> tiers.Settings:
        """Return how to choose each user's primary access point while this strategy runs."""
        return tiers.Settings()

    def categorisation_interval_s(self) -> float:
        """Return the time in s between two choices of the users' primary access points."""
        return self.params.interval_s


def without_subflows(network: Topology) -> str | None:
    """Return why a strategy that chooses among subflows is useless in `network`, or None.

    It is useless if no user has several subflows.
    """
    return (
        None
        if network.multipath
        else "it chooses among the subflows of a user, and here no user has two"
    )


def checked_params(
    schema: type[StrategyParams], values: Mapping[str, Any], doing: str, rate_scale: float = 1.0
) -> StrategyParams:
    """Return `values` as checked parameters for a network with this rate scale.

    Raise `ParamsRefused` for an invalid value. The message begins with `doing`, and names the
    parameter, the value and the reason.
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
    """Return a route command for each subflow that is not on its default path.

    Without a strategy, the network chooses one of the shortest paths by a hash of the subflow's
    addresses and ports. A strategy uses this function in `withdraw`. Paths over links that are down
    do not count. A subflow without any path to its destination gets no command.
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
