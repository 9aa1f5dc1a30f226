"""Define the base class of all strategies, which turn an observation into decisions."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from controller import paths, tiers
from controller.command import Decision, Route, subflow_name
from controller.errors import ControllerError, ParamsRefused, StrategyFailed
from controller.observation import Observation
from controller.plan import Plan
from controller.units import wire_bps
from controller.user_file import described, line_of

# Turn exceptions of a strategy into `StrategyFailed`, which names the strategy's file and line.


@contextmanager
def failures_of(strategy: type[Strategy], method: str) -> Iterator[None]:
    """Run the code of the `with` block, and turn an exception in it into `StrategyFailed`.

    The block must call the method `method` of the strategy. The error names the innermost line of
    the strategy's file in the traceback, or the first line of `method` if there is none. A
    `ControllerError` is passed on unchanged.
    """
    try:
        yield
    except ControllerError:
        raise
    except Exception as error:
        file = source_file(strategy)
        line = line_of(error, file) or _line(getattr(strategy, method))
        text = f"strategy '{strategy.name}' failed in {method}: {described(error, file, line)}"
        raise StrategyFailed(text, file, line) from error


def decisions(strategy: Strategy, method: str, observation: Observation) -> list[Decision]:
    """Call `strategy.decide` or `strategy.withdraw`, named by `method`, and return its decisions.

    Raise `StrategyFailed` if the method raises an exception, or if its result is not a list of
    decisions.
    """
    with failures_of(type(strategy), method):
        found = list(getattr(strategy, method)(observation))
        wrong = next((each for each in found if not isinstance(each, Decision)), None)
        if wrong is not None:
            raise TypeError(f"it returned {wrong!r}, which is no Decision")
        return found


def source_file(strategy: type[Strategy]) -> str:
    """Return the path of the file that defines a strategy, as tracebacks name it.

    If the file is not known, return the name of its module.
    """
    try:
        return inspect.getfile(strategy)
    except (OSError, TypeError):
        return strategy.__module__


def _line(method: object) -> int:
    try:
        return inspect.getsourcelines(method)[1]  # type: ignore[arg-type]
    except (OSError, TypeError):
        return 0


def param(default: Any, unit: str, help: str, **bounds: Any) -> Any:
    """Return a pydantic field for a parameter, with unit, help text and bounds (ge, gt, le, lt)."""
    return Field(default, description=help, json_schema_extra={"unit": unit}, **bounds)


class StrategyParams(BaseModel):
    """Hold the parameters that all strategies have. A strategy derives a class with its own fields.

    A field whose unit is "Mb/s" holds the rate as in the scenario file. The method `rate_bps`
    returns this rate in bit/s on the wire: multiplied by the network's rate scale.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    interval_s: float = param(
        2.0, "s", "Time between two control steps (execution interval)", ge=0.2, le=60
    )
    _rates_bps: dict[str, int] = PrivateAttr(default_factory=dict)

    def model_post_init(self, _context: Any) -> None:
        """Compute the rates that `rate_bps` returns, for a rate scale of 1.

        Pydantic calls this after the validation.
        """
        self._convert_rates(1.0)

    def scaled(self, rate_scale: float) -> Self:
        """Return a copy of these parameters for a network with the rate scale `rate_scale`.

        The fields stay the same; only the values that `rate_bps` returns are multiplied by
        `rate_scale`.
        """
        params = self.model_copy()
        params._convert_rates(rate_scale)
        return params

    def rate_bps(self, field: str) -> int:
        """Return a field whose unit is "Mb/s" as a rate on the wire in bit/s.

        Raise KeyError for a field with another unit.
        """
        return self._rates_bps[field]

    def _convert_rates(self, rate_scale: float) -> None:
        self._rates_bps = {
            name: wire_bps(getattr(self, name), rate_scale)
            for name, field in type(self).model_fields.items()
            if isinstance(field.json_schema_extra, dict)
            and field.json_schema_extra.get("unit") == "Mb/s"
        }


class Strategy(ABC):
    """Decide what to change in the network. The observation is the only input.

    The controller may replace `params` between two calls of `decide`. The controller may also
    restart while a scenario runs. The new strategy object must then continue where the old one
    stopped, so it must find everything it needs in the observation.
    """

    name: ClassVar[str]
    improved: ClassVar[Mapping[str, str | float]] = {}  # defaults of NAME/improved (see `forms`)
    wakes_on_subflows: ClassVar[bool] = False  # decide at once when a subflow opens or closes
    Params: ClassVar[type[StrategyParams]] = StrategyParams

    def __init__(self, params: StrategyParams) -> None:
        self.params = params

    @classmethod
    def unfit(cls, plan: Plan) -> str | None:
        """Return the reason why the strategy could never act on the network `plan`, or None."""
        return None

    @abstractmethod
    def decide(self, observation: Observation) -> list[Decision]:
        """Return the decisions for this moment, in the order in which to carry out their commands.

        Take the time only from `observation.now_ns`. `observation.tiers` says which associations
        are Tier 1 and which are Tier 2.
        """

    def wake_at_ns(self) -> int | None:
        """Return the time in ns at which to decide although the interval has not ended, or None.

        The controller calls this after each decision.
        """
        return None

    @abstractmethod
    def withdraw(self, observation: Observation) -> list[Decision]:
        """Return the decisions that undo everything this strategy has installed in the network.

        The controller calls this when another strategy replaces this one.
        """

    def tier_settings(self) -> tiers.Settings:
        """Return how the primary association (Tier 1) of each multipath user is chosen.

        The settings apply while this strategy runs.
        """
        return tiers.Settings()

    def categorisation_interval_s(self) -> float:
        """Return the time in s after which the primary associations (Tier 1) are chosen anew."""
        return self.params.interval_s


def without_subflows(plan: Plan) -> str | None:
    """Return a reason why a strategy that chooses among subflows cannot act on `plan`, or None.

    It cannot act if no user of the network has more than one subflow.
    """
    return (
        None
        if plan.multipath
        else "it chooses among the subflows of a user, and here no user has two"
    )


def checked_params(
    schema: type[StrategyParams], values: Mapping[str, Any], doing: str, rate_scale: float = 1.0
) -> StrategyParams:
    """Return `values` as an object of the class `schema`, for a network with this rate scale.

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
    """Return a route command for each subflow that is not on its hashed path.

    The hashed path is the one that the network uses without a strategy: one of the shortest paths,
    chosen by a hash of the subflow's addresses and ports. Paths over links that are down do not
    count. A subflow without any path to its destination gets no command. Strategies that choose
    paths call this function in `withdraw`.
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
