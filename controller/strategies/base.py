"""Define what a strategy is: it receives an observation and returns decisions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from difflib import get_close_matches
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from controller import tiers
from controller.command import Decision
from controller.errors import ParamsRefused
from controller.observation import Observation
from controller.plan import Plan
from controller.units import wire_bps


def param(default: Any, unit: str, help: str, **bounds: Any) -> Any:
    """Return a field of `Params` with its default, unit, help and bounds (ge, gt, le, lt)."""
    return Field(default, description=help, json_schema_extra={"unit": unit}, **bounds)


class StrategyParams(BaseModel):
    """Hold the parameters of every strategy; a strategy adds its own fields.

    A field in "Mb/s" is in scenario units; `rate_bps` returns it as the network carries it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    interval_s: float = param(
        2.0, "s", "Time between two control steps (execution interval)", ge=0.2, le=60
    )
    _rates_bps: dict[str, int] = PrivateAttr(default_factory=dict)

    def model_post_init(self, _context: Any) -> None:
        """Convert the rates for a network that is not scaled."""
        self._convert_rates(1.0)

    def scaled(self, rate_scale: float) -> Self:
        """Return these parameters for a network whose rates are multiplied by `rate_scale`."""
        params = self.model_copy()
        params._convert_rates(rate_scale)
        return params

    def rate_bps(self, field: str) -> int:
        """Return the wire rate in bit/s of a field whose unit is "Mb/s"; KeyError for any other."""
        return self._rates_bps[field]

    def _convert_rates(self, rate_scale: float) -> None:
        self._rates_bps = {
            name: wire_bps(getattr(self, name), rate_scale)
            for name, field in type(self).model_fields.items()
            if isinstance(field.json_schema_extra, dict)
            and field.json_schema_extra.get("unit") == "Mb/s"
        }


class Strategy(ABC):
    """Decide what to change in the network, from observations alone.

    The parameters may be replaced between two steps. What a strategy must know after a restart
    comes with the observation, so that a new controller continues where the old one stopped.
    """

    name: ClassVar[str]
    wakes_on_subflows: ClassVar[bool] = False  # decide at once when a subflow opens or closes
    Params: ClassVar[type[StrategyParams]] = StrategyParams

    def __init__(self, params: StrategyParams) -> None:
        self.params = params

    @classmethod
    def unfit(cls, plan: Plan) -> str | None:
        """Return why the strategy could never act on this network, or None if it could."""
        return None

    @abstractmethod
    def decide(self, observation: Observation) -> list[Decision]:
        """Return what to do now.

        `observation.now_ns` is the only clock, `observation.tiers` has the tiers.
        """

    @abstractmethod
    def withdraw(self, observation: Observation) -> list[Decision]:
        """Return decisions that undo everything this strategy has installed."""

    def tier_settings(self) -> tiers.Settings:
        """Return how primaries are chosen while this strategy runs."""
        return tiers.Settings()

    def categorisation_interval_s(self) -> float:
        """Return the time in s between two choices of primaries."""
        return self.params.interval_s


def without_subflows(plan: Plan) -> str | None:
    """Return why a strategy that chooses among the subflows of a user could never act, or None."""
    return (
        None
        if plan.multipath
        else "it chooses among the subflows of a user, and here no user has two"
    )


def checked_params(
    schema: type[StrategyParams], values: dict[str, Any], doing: str, rate_scale: float = 1.0
) -> StrategyParams:
    """Return the parameters, or raise `ParamsRefused` naming the key, the value and the bounds."""
    try:
        return schema.model_validate(values).scaled(rate_scale)
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
