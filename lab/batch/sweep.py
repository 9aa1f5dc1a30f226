"""A sweep file: the runs to make of one scenario, and the numbers to show of them.

Its points are the union of `grid` (every combination), `points` (as listed), `random` and
`latin_hypercube` (samples of ranges). At each point, every strategy runs with the same seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lab import metrics
from lab.batch.grid import MOST_POINTS, Point, ranges
from lab.batch.request import Request
from lab.errors import RequestError, nearest
from lab.scenario import yaml_text

DIGITS = 6  # of a sampled number: enough for every unit, and short enough for a folder's name
Key = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*$")]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, populate_by_name=True)


class Values(_Form):
    """The values of a key: a list `choose`, or numbers between `from` and `to`, which are
    equally likely on the scale. Of `whole` numbers, both ends are possible."""

    low: float | None = Field(None, alias="from")
    high: float | None = Field(None, alias="to")
    scale: Literal["linear", "log"] = "linear"
    whole: bool = False
    choose: Annotated[list[Any], Field(min_length=2)] | None = None

    @model_validator(mode="after")
    def _is_a_list_or_a_range(self) -> Values:
        if (self.low is None, self.high is None) != (self.choose is not None,) * 2:
            raise ValueError("write {from: 1, to: 10}, or {choose: [lia, olia]}")
        if self.low is not None and self.high is not None:
            if not self.low < self.high:
                raise ValueError("'to' must be above 'from'")
            if self.scale == "log" and self.low <= 0:
                raise ValueError("with 'scale: log', 'from' must be above 0")
        return self

    def at(self, part: float) -> Any:
        """Return the value at a part of the range or list; `part` is at least 0 and below 1."""
        if self.low is None or self.high is None:
            assert self.choose is not None
            return self.choose[int(part * len(self.choose))]
        low, high = (self.low, self.high + 1) if self.whole else (self.low, self.high)
        if self.scale == "log":
            value = math.exp(math.log(low) + part * (math.log(high) - math.log(low)))
        else:
            value = low + part * (high - low)
        return math.floor(value) if self.whole else float(f"{value:.{DIGITS}g}")


class Samples(_Form):
    samples: Annotated[int, Field(ge=1, le=MOST_POINTS)]
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    keys: Annotated[dict[Key, Values], Field(min_length=1)]

    def points(self, parts: Sequence[Sequence[float]]) -> Iterator[Point]:
        """Yield a point for each row of `parts`, which has a part from 0 to 1 for each key."""
        for row in parts:
            values = zip(self.keys.items(), row, strict=True)
            yield tuple(_setting(key, each.at(part)) for (key, each), part in values)


class Sweep(_Form):
    scenario: str
    strategies: list[str] = []
    cc: str | None = None
    stack: str | None = None
    seed: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    repeat: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    duration_s: float | None = None
    settings: dict[Key, Any] = Field({}, alias="set")
    grid: dict[Key, Any] = {}
    points: list[dict[Key, Any]] = []
    random: Samples | None = None
    latin_hypercube: Samples | None = None
    keep: Literal["all", "results"] = "all"
    responses: Annotated[list[str], Field(min_length=1)] = ["throughput_mbps"]
    from_s: Annotated[float, Field(ge=0)] | None = None
    to_s: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _has_a_window(self) -> Sweep:
        if self.window and not self.window[0] < self.window[1]:
            raise ValueError("to_s must be above from_s")
        if self.window and self.keep == "results":
            raise ValueError("from_s and to_s need samples: write 'keep: all', or leave them out")
        return self

    @property
    def window(self) -> tuple[float, float] | None:
        """The part of each run that the responses describe, in s; None for the whole run."""
        if self.from_s is None and self.to_s is None:
            return None
        return self.from_s or 0.0, math.inf if self.to_s is None else self.to_s

    def all_points(self) -> tuple[Point, ...]:
        """Return the points, each once. A sweep without any has one point without settings."""
        found = dict.fromkeys(self._points())
        if len(found) > MOST_POINTS:
            raise RequestError(f"points: at most {MOST_POINTS} are possible. Give fewer")
        return tuple(found) or ((),)

    def _points(self) -> Iterator[Point]:
        if self.grid:
            yield from ranges(self.grid.items())
        for each in self.points:
            yield tuple(_setting(key, value) for key, value in each.items())
        if self.random or self.latin_hypercube:
            import numpy  # imported here, as the command line starts faster without it
        if self.random:
            shape = self.random.samples, len(self.random.keys)
            parts = numpy.random.default_rng(self.random.seed).random(shape)
            yield from self.random.points(parts.tolist())
        if self.latin_hypercube:
            from scipy.stats import qmc  # it takes a second

            cube = self.latin_hypercube
            sampler = qmc.LatinHypercube(len(cube.keys), rng=numpy.random.default_rng(cube.seed))
            yield from cube.points(sampler.random(cube.samples).tolist())


def read(path: Path) -> Sweep:
    """Read a sweep file. Raise `RequestError` if it is wrong, with the place and what is allowed.

    The scenario is a name, or a path relative to the sweep file.
    """
    sweep = checked(yaml_text.read(path), path.name)
    if sweep.scenario.endswith((".yaml", ".yml")):
        sweep.scenario = str(path.parent / sweep.scenario)
    return sweep


def checked(data: Any, source: str) -> Sweep:
    """Return the sweep that the content of a sweep file describes. Error messages begin with
    `source`."""
    try:
        sweep = Sweep.model_validate(data)
    except ValidationError as error:
        is_scenario = isinstance(data, dict) and "topology" in data
        raise RequestError(f"{source}: {_problem(error, is_scenario)}") from error
    for each in sweep.responses:
        if metrics.of_number(each) is None:
            raise RequestError(
                f"{source}: responses: there is no number '{each}' in result.json. "
                "./run_lab.sh list metrics shows them, such as users.ue1.throughput_mbps"
            )
    return sweep


def request(sweep: Sweep, engine: str, vm: bool, out: Path, shard: str | None) -> Request:
    return Request(
        sweep.scenario,
        engine,
        tuple(sweep.strategies),
        sweep.cc,
        sweep.seed,
        sweep.repeat,
        sweep.duration_s,
        settings=tuple(_setting(key, value) for key, value in sweep.settings.items()),
        out=out,
        vm=vm,
        stack=sweep.stack,
        may_run_code=True,
        points=sweep.all_points(),
        keep=sweep.keep,
        shard=shard,
    )


def _setting(key: str, value: Any) -> str:
    return f"{key}={yaml_text.text_of(value, one_line=True)}"


def _problem(error: ValidationError, is_scenario: bool) -> str:
    found = sorted(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    first = found[0]
    place = ".".join(str(each) for each in first["loc"])
    if is_scenario:
        return "this is a scenario. Type: ./run_lab.sh run, or write a sweep with 'scenario: FILE'"
    if first["type"] == "extra_forbidden":
        depth = len(first["loc"])
        of: type[_Form] = Sweep if depth == 1 else Samples if depth == 2 else Values
        known = [field.alias or name for name, field in of.model_fields.items()]
        hint = nearest(str(first["loc"][-1]), known)
        return f"unknown key '{place}'{hint}. Keys: {', '.join(known)}"
    if first["type"] == "missing":
        return f"{place} is missing"
    return f"{place}: {first['msg'].removeprefix('Value error, ')}".removeprefix(": ")
