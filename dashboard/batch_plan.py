"""What a request for a batch asks for: its settings, and the runs of each.

A setting is a strategy at one point of a grid, or at one point of a sweep file. Keys and values are
read as on the command line.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, overload

from pydantic import Field

from dashboard import runs
from dashboard.base.errors import Problem
from dashboard.base.requests import Body
from dashboard.runs import StartRequest, run_name
from lab.batch import grid, sweep
from lab.batch import request as planning
from lab.batch.grid import Point
from lab.batch.job import Job
from lab.batch.plan import Plan
from lab.errors import RequestError
from lab.scenario import code_paths, schema, yaml_text

MOST_RUNS = 1000
MOST_SETTINGS = 400  # each is checked before the answer
MOST_BYTES = 500_000  # of the settings of all runs that are checked, which takes some seconds
SWEEP = "sweep file"  # begins messages about its text


class Varied(Body):
    """A key of the scenario, such as `topology.rate_mbps`, and the values to try in turn.

    `values` is a list, or a text as on the command line: `10,20,30` or `10..40..10`.
    """

    key: str = Field(min_length=1)
    values: tuple[Any, ...] | str

    def text(self) -> str:
        """Return the key and its values in the form of the option `--vary`."""
        if isinstance(self.values, str):
            return f"{self.key}={self.values}"
        return f"{self.key}={yaml_text.text_of(list(self.values), one_line=True)[1:-1]}"


class BatchRequest(Body):
    """The body of POST /api/batches.

    `start` is the request from which the runs of the batch are made. Its `params` apply only to
    the runs with the strategy of `start`. With several entries of `vary`, every combination of
    their values is run. Instead of all these keys, `sweep` can have the text of a sweep file; then
    only `engine` and `vm` are used beside it.
    """

    start: StartRequest | None = None
    strategies: tuple[str, ...] = Field((), description="default: that of `start`", max_length=20)
    repeats: int = Field(1, ge=1, le=1000, description="runs with consecutive seeds")
    vary: Varied | tuple[Varied, ...] | None = None
    keep: Literal["all", "results"] = Field("all", description="results: no samples, no events")
    sweep: str = Field("", description="the text of a sweep file")
    engine: str = Field("sim", description="of a sweep: sim or mininet")
    vm: bool = Field(False, description="of a sweep: emulate inside a virtual machine")

    def varied(self) -> tuple[Varied, ...]:
        return (self.vary,) if isinstance(self.vary, Varied) else self.vary or ()


@dataclass(frozen=True)
class Setting:
    """A strategy at a point, and the request for its runs."""

    strategy: str | None
    point: Point
    request: planning.Request

    @property
    def name(self) -> str:
        return ", ".join([*([self.strategy] if self.strategy else []), *self.point])


@dataclass(frozen=True)
class Asked:
    """The runs that a request asks for: `repeats` runs with consecutive seeds of each strategy at
    each point. `metric` is the number to show first; "" means the usual one. `note` is a sentence
    for the user."""

    start: StartRequest
    strategies: tuple[str | None, ...]
    points: tuple[Point, ...]
    repeats: int
    keep: str
    stack: str | None = None
    metric: str = ""
    note: str = ""

    @property
    def count(self) -> int:
        return len(self.points) * len(self.strategies) * self.repeats

    def settings(self) -> Iterator[Setting]:
        for point, strategy in itertools.product(self.points, self.strategies):
            params = self.start.params if strategy == self.start.strategy else {}
            start = self.start.model_copy(update={"strategy": strategy, "params": params})
            one = runs.as_batch(start)
            request = replace(
                one,
                settings=(*one.settings, *point),
                repeat=self.repeats,
                keep=self.keep,
                stack=self.stack,
            )
            yield Setting(strategy, point, request)


def asked(request: BatchRequest) -> Asked:
    """Return the runs that a request asks for.

    Values are read and counted, but not checked against the scenario. Raise a `Problem` that names
    the `field` of the request if something is wrong.
    """
    found = _of_sweep(request) if request.sweep else _of_form(request)
    if found.count > MOST_RUNS:
        raise Problem(422, f"start {found.count} runs: at most {MOST_RUNS} at once. Choose fewer")
    if (settings := len(found.points) * len(found.strategies)) > MOST_SETTINGS:
        raise Problem(
            422,
            f"start {found.count} runs: they have {settings} settings, and the page checks at most "
            f"{MOST_SETTINGS}. Choose fewer values, or use ./run_lab.sh run FILE --vary",
        )
    return found


def checked(request: BatchRequest) -> Asked:
    """Return the runs that a request asks for, of which each can be started.

    Raise a `Problem` otherwise. If it is known which field of the request is wrong, the problem
    names it: `vary.0` is the first varied key.
    """
    found = asked(request)
    _refuse_much(found)
    _refuse_code(found)
    try:
        _load(found)
    except RequestError as error:
        raise Problem(422, str(error), field=_wrong_field(request, found)) from error
    runs.refuse_without_root(found.start.engine, found.start.vm, _arguments(request, found))
    return found


class Jobs(Sequence[Job]):
    """The runs of a batch. The folder of each is in `runs_folder`, and has the name of the batch
    and the number of the run, from 1."""

    def __init__(self, found: Asked, runs_folder: Path, batch_id: str) -> None:
        self._each, self._folder, self._id = found.repeats, runs_folder, batch_id
        self._plans: list[Plan] = [planning.placed(each.request) for each in found.settings()]

    def __len__(self) -> int:
        return len(self._plans) * self._each

    @overload
    def __getitem__(self, at: int) -> Job: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Job]: ...
    def __getitem__(self, at: int | slice) -> Job | Sequence[Job]:
        if isinstance(at, slice):
            return [self[n] for n in range(len(self))[at]]
        n = range(len(self))[at]
        setting, seed = divmod(n, self._each)
        return replace(self._plans[setting][seed], out=self._folder / run_name(self._id, n))


def _of_form(request: BatchRequest) -> Asked:
    start = request.start
    if start is None:
        raise Problem(422, "start a batch: write start, or the text of a sweep file into sweep")
    strategies = request.strategies or (start.strategy,)
    if len(set(strategies)) < len(strategies):
        text = "the same strategy with the same seed is requested twice: leave out one strategy"
        raise Problem(422, text, field="strategies")
    for n, each in enumerate(request.varied()):
        try:
            grid.points([each.text()])
        except RequestError as error:
            raise Problem(422, str(error), field=f"vary.{n}") from error
    try:
        points = grid.points([each.text() for each in request.varied()])
    except RequestError as error:
        raise Problem(422, str(error), field=f"vary.{len(request.varied()) - 1}") from error
    return Asked(start, strategies, tuple(points), request.repeats, request.keep)


def _of_sweep(request: BatchRequest) -> Asked:
    try:
        data = yaml_text.parse(request.sweep, SWEEP)
        if not isinstance(data, dict):
            raise RequestError(f"{SWEEP}: write keys and values, such as scenario: two_paths")
        wanted = sweep.checked(data, SWEEP)
        start = schema.validate(
            StartRequest,
            {
                "scenario": wanted.scenario,
                "cc": wanted.cc,
                "set": wanted.settings,
                "engine": request.engine,
                "vm": request.vm,
                "seed": wanted.seed,
                "duration_s": wanted.duration_s,
            },
            SWEEP,
        )
        points = wanted.all_points()
    except RequestError as error:
        raise Problem(422, str(error), field="sweep") from error
    note = "from_s and to_s are left out: the page compares whole runs." if wanted.window else ""
    strategies = tuple(wanted.strategies) or (None,)
    metric = wanted.responses[0]
    return Asked(start, strategies, points, wanted.repeat, wanted.keep, wanted.stack, metric, note)


def _load(found: Asked) -> None:
    for each in found.settings():
        try:
            planning.placed(each.request)
        except RequestError as error:
            where = f"{' '.join(each.point)}: " if each.point else ""
            raise RequestError(f"{where}{error}") from error


def _wrong_field(request: BatchRequest, found: Asked) -> str:
    """Return the field without whose values the others are accepted; "" if it is not known."""
    if request.sweep:
        return "sweep"
    try:
        _load(replace(found, points=((),)))
    except RequestError:
        return "strategies" if len(found.strategies) > 1 else ""
    for n, each in enumerate(request.varied()):
        try:
            _load(replace(found, points=tuple(grid.points([each.text()]))))
        except RequestError:
            return f"vary.{n}"
    return ""


def _refuse_much(found: Asked) -> None:
    size = sum(len(text.encode()) for each in found.settings() for text in each.request.settings)
    if size > MOST_BYTES:
        raise Problem(
            422,
            f"start {found.count} runs: their settings have {size} bytes: at most {MOST_BYTES} are "
            "possible. Choose fewer values, or write a scenario file and use "
            "./run_lab.sh run FILE --vary",
        )


def _refuse_code(found: Asked) -> None:
    """Raise an error if the paths of code files are anywhere in the request."""
    runs.refuse_code(found.start)
    code_paths.refuse_code_paths({"strategies": found.strategies}, "start the batch")
    for setting in dict.fromkeys(itertools.chain(*found.points)):
        key, _, text = setting.partition("=")
        code_paths.refuse_code_paths({key: yaml_text.parse(text, key)}, "start the batch")


def _arguments(request: BatchRequest, found: Asked) -> list[str]:
    """Return the arguments of the lab that make the same runs on the command line."""
    start = found.start
    if request.sweep:
        return ["sweep", "FILE.yaml", "--engine", start.engine]
    argv = runs.arguments(start.model_copy(update={"strategy": None}))
    argv += [word for each in found.strategies if each for word in ("--strategy", each)]
    argv += [word for each in request.varied() for word in ("--vary", each.text())]
    return [*argv, "--repeat", str(found.repeats), "--keep", found.keep, "--out", "data/grid"]
