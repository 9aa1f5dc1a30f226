"""The seam of every strategy: it sees an observation and answers with decisions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from difflib import get_close_matches
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from controller import tiers
from controller.command import Decision
from controller.errors import ParamsRefused
from controller.observation import Observation
from controller.plan import Plan


def param(default: Any, unit: str, help: str, **bounds: Any) -> Any:
    """A field of a strategy's `Params`: default, unit, help and bounds (ge, gt, le, lt)."""
    return Field(default, description=help, json_schema_extra={"unit": unit}, **bounds)


class StrategyParams(BaseModel):
    """What every strategy can be told; a strategy adds its own fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    interval_s: float = param(
        2.0, "s", "Time between two control steps (execution interval)", ge=0.2, le=60
    )


class Strategy(ABC):
    """Holds its parameters, which may be replaced between two steps. What it must know after a restart comes with the observation."""

    name: ClassVar[str]
    wakes_on_subflows: ClassVar[bool] = False  # decide at once when a subflow comes or goes
    Params: ClassVar[type[StrategyParams]] = StrategyParams

    def __init__(self, params: StrategyParams) -> None:
        self.params = params

    @classmethod
    def unfit(cls, plan: Plan) -> str | None:
        """Why there is nothing in this network that it could ever act on; None where there is."""
        return None

    @abstractmethod
    def decide(self, seen: Observation) -> list[Decision]:
        """What to do now; `seen.now_ns` is the only clock, `seen.tiers` says which association is primary."""

    @abstractmethod
    def withdraw(self, seen: Observation) -> list[Decision]:
        """Lift everything this strategy has installed."""

    def tier_settings(self) -> tiers.Settings:
        """How primaries are chosen while this strategy runs."""
        return tiers.Settings()

    def categorisation_interval_s(self) -> float:
        """How long a choice of primaries holds."""
        return self.params.interval_s


def without_subflows(plan: Plan) -> str | None:
    """Why a strategy that chooses among the subflows of a user has nothing to choose from."""
    return (
        None
        if plan.multipath
        else "it chooses among the subflows of a user, and here no user has two"
    )


def checked_params(
    schema: type[StrategyParams], values: dict[str, Any], doing: str
) -> StrategyParams:
    """The parameters, or one `ParamsRefused` naming the key, the value and what is allowed."""
    try:
        return schema.model_validate(values)
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
