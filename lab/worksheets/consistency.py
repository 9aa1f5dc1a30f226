"""Checks that the parts of a worksheet file fit together and fit its scenarios. No run is started.

Verified are:

- the scenario of each run, with every value and bound that a student can get or choose;
- the names of the values that students may change while a run goes on;
- that each check refers only to runs of earlier steps, and to results that these runs have;
- that the solution and the wrong attempts answer what is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from lab import metrics, noticed
from lab.errors import LabError, RequestError, unknown
from lab.metrics import Metric
from lab.scenario import flows, targets
from lab.scenario.flows import scaled_traffic
from lab.scenario.loading import load
from lab.scenario.schema import Scenario
from lab.worksheets import language, planning
from lab.worksheets import language as at
from lab.worksheets.language import Expression, Occurrence, parse_number
from lab.worksheets.marking import looked_at
from lab.worksheets.schema import (
    Answer,
    Attempt,
    Check,
    NumberRange,
    Predict,
    Question,
    Run,
    Task,
    Worksheet,
)

# Figures and events in checks


EVENTS = (
    *("flip", "handover", "completion", "control", "warning", "error"),
    *("decision", "observation", "subflow", "association", "reroute", "switch", "ready", "failed"),
)
# in result.json, but from no sample
NO_METRIC = ("duration_s", "connections", "mptcp", *noticed.SECTIONS)


def check_leaf(leaf: Expression, scenario: Scenario, run: Run) -> None:
    """Raise `RequestError` if `leaf` refers to a result or an event that no run of the scenario
    has.

    `leaf` is one node of the syntax tree of a check. A node that refers to no run is always valid.
    """
    match leaf:
        case at.Sampled():
            _check_sampled(leaf, scenario)
        case at.Measured(path):
            _check_result(path, scenario)
        case Occurrence(kind, where):
            _check_known(kind, kind, EVENTS)
            target = dict(where).get("target")
            if kind == "flip" and target is not None:
                planned = [each.target for each in scenario.events]
                _check_known(target, target, [*run.flips, *planned])
                _check_known(target, target, targets.targets(scenario))


def _check_sampled(leaf: at.Sampled, scenario: Scenario) -> None:
    if leaf.end_s > scenario.duration_s:
        raise RequestError(
            f"the time span {leaf.start_s:g}..{leaf.end_s:g} goes beyond the run, which ends at"
            f" {scenario.duration_s:g} s"
        )
    kind, _, rest = leaf.path.partition(".")
    name, _, figure = rest.rpartition(".")
    _check_known(leaf.path, kind, metrics.SECTIONS)
    _check_owner(leaf.path, kind, name, scenario)
    _check_known(leaf.path, figure, metrics.sampled(kind))


def _check_owner(path: str, kind: str, name: str, scenario: Scenario) -> None:
    network = scenario.network
    match kind:
        case "ap":
            _check_known(path, name, network.ids("wifi", "lte"))
        case "link":
            _check_known(path, name, [each.id for each in network.sampled_links])
        case "user":
            _check_known(path, name, network.users)
        case "sf":
            _check_known(path, name.partition("/")[0], _connections(scenario))
        case "run":
            _check_known(path, name, [""])


def _connections(scenario: Scenario) -> list[str]:
    """Return the ids of all connections that a run of the scenario will open, such as `ue2-1`."""
    acts = flows.schedule(scaled_traffic(scenario), scenario.seed, scenario.duration_s)
    return list(dict.fromkeys(act.flow.id for act in acts))


def _check_result(path: str, scenario: Scenario) -> None:
    first, _, rest = path.partition(".")
    declared = results()
    _check_known(path, first, (*declared, *NO_METRIC))
    numbers = declared.get(first, ())
    if first == metrics.SECTIONS["run"]:
        _check_known(path, path, [each.number for each in numbers])
    elif numbers and numbers[0].of != "run":
        name, _, number = rest.partition(".")
        _check_owner(path, numbers[0].of, name, scenario)
        if numbers[0].of in ("link", "sf"):  # where result.json has nothing but metrics
            _check_known(path, number, [each.number for each in numbers])


def results() -> dict[str, list[Metric]]:
    """Return the metrics that have a number in result.json, grouped by the first part of the
    number's path.

    This part is "users" for `users.ue1.throughput_mbps`, for example.
    """
    found: dict[str, list[Metric]] = {}
    for of in metrics.SECTIONS:
        for each in metrics.numbers(of):
            found.setdefault(each.number_path().partition(".")[0], []).append(each)
    return found


def _check_known(path: str, word: str, known: Iterable[str]) -> None:
    if word not in known:
        raise RequestError(f"'{path}': {unknown(word, known)}")


Runs = dict[str, tuple[Run, Scenario]]  # by the id of the step


def problems(worksheet: Worksheet) -> Iterator[str]:
    """Yield one line of text for each problem in a worksheet."""
    runs: Runs = {}
    for step in worksheet.steps:
        if step.drawing is not None:
            yield from _problem("drawing", load, step.drawing)
        if isinstance(step.task, Run):
            yield from _problem(f"run '{step.task.id}'", _check_run, step.task, runs)
        elif step.task is not None:
            name = f"{type(step.task).__name__.lower()} '{step.task.id}'"
            yield from _problem(name, _check_looks, step.task, runs)
    if len(runs) < len(worksheet.runs):
        return  # the checks of attempts would repeat the problems of the runs
    for task in worksheet.tasks:
        if isinstance(task, Predict) and task.drawn_over:
            yield from _problem(f"predict '{task.id}'", _check_drawn, *task.drawn_over, runs)
    yield from _problem("solution", _check_attempt, worksheet, worksheet.solution)
    for n, right in enumerate(worksheet.also_right, 1):
        yield from _problem(f"also_right[{n}]", _check_attempt, worksheet, right)
    for n, attempt in enumerate(worksheet.wrong, 1):
        yield from _problem(f"wrong[{n}]", _check_attempt, worksheet, attempt)
        yield from _problem(f"wrong[{n}].fails", _check_fails, worksheet, attempt.fails)


def _problem(name: str, check: Callable[..., Any], *arguments: Any) -> Iterator[str]:
    """Call `check(*arguments)`. If it raises a `LabError`, yield each line of the message after
    `name`."""
    try:
        check(*arguments)
    except LabError as error:
        yield from (f"{name}: {line}" for line in str(error).splitlines())


def _check_run(run: Run, runs: Runs) -> None:
    """Verify the scenario of a run with each value that a student can get or choose.

    If the scenario is valid, add the run to `runs`. Otherwise raise `RequestError`.
    """
    first = {key: (planning.variants(value) or [value])[0] for key, value in run.settings.items()}
    scenario = planning.scenario_of(run, first)
    known = targets.targets(scenario)
    for target in run.flips:
        if target not in known:
            raise RequestError(f"flips: {unknown(target, known)}")
    for key, value in run.settings.items():
        for variant in planning.variants(value) or ():
            planning.scenario_of(run, {**first, key: variant})
    for key, bounds in run.choose.items():
        ends = bounds.choices if bounds.choices is not None else (bounds.minimum, bounds.maximum)
        for value in ends:
            planning.scenario_of(run, {**first, key: value})
    runs[run.id] = (run, scenario)


def _check_is_run(run: str, runs: Mapping[str, Any]) -> None:
    if run not in runs:
        raise RequestError(f"run {unknown(run, runs)}")


def _check_drawn(run: str, path: str, runs: Runs) -> None:
    """Verify that the samples of a run have the quantity `path`, so that a prediction can be drawn
    in its chart."""
    _check_is_run(run, runs)
    step, scenario = runs[run]
    check_leaf(language.Sampled("mean", path, 0, scenario.duration_s, run), scenario, step)


def _check_looks(task: Task, runs: Runs) -> None:
    """Verify that a question or a check refers only to runs of earlier steps, and only to results
    that these runs have."""
    tree, own = looked_at(task)
    for leaf in () if tree is None else language.parts(tree):
        run = getattr(leaf, "run", None)
        if run is None:
            continue
        if not run and own is None:
            raise RequestError("it does not say which run it looks at: write run, or 'of RUN'")
        _check_is_run(run or str(own), runs)
        step, scenario = runs[run or str(own)]
        check_leaf(leaf, scenario, step)


def _check_attempt(worksheet: Worksheet, attempt: Attempt) -> None:
    """Verify that an example attempt answers only existing questions, in the right form, with
    allowed runs."""
    asked = {each.id: each for each in worksheet.tasks if isinstance(each, Predict | Question)}
    for name, answer in attempt.answers.items():
        if name not in asked:
            raise RequestError(f"answers: {unknown(name, asked)}")
        _check_attempted(asked[name], answer)
    for name in (*attempt.choices, *attempt.flips):
        _check_is_run(name, worksheet.runs)
    seat = planning.EXAMPLE_SEAT
    for run in worksheet.runs.values():
        planning.request(run, seat, attempt.choices.get(run.id, {}), attempt.flips.get(run.id, ()))


def _check_attempted(task: Predict | Question, answer: Answer) -> None:
    """Verify one answer of an example attempt.

    If the question asks for a number, the answer may be an expression instead of a number.
    """
    if isinstance(task, Question) and task.number and isinstance(answer, str):
        parse_number(answer)
    else:
        check_answer(task, answer)


def _check_fails(worksheet: Worksheet, fails: tuple[str, ...]) -> None:
    marked = [each.id for each in worksheet.tasks if isinstance(each, Check | Question)]
    for name in fails:
        if name not in marked:
            raise RequestError(unknown(name, marked))


def check_answer(task: Predict | Question, answer: Answer) -> None:
    """Raise `RequestError` if an answer does not have the form that the question or prediction asks
    for."""
    choices = task.choice
    if choices is not None:
        if answer not in choices:
            raise RequestError(f"'{task.id}': {unknown(answer, choices)}")
    elif isinstance(task, Predict) and task.curve:
        _check_curve(task.id, answer, task.curve.maximum)
    elif task.number:
        if isinstance(answer, bool) or not isinstance(answer, int | float):
            raise RequestError(f"'{task.id}': write a number")
        asked = task.number
        if isinstance(asked, NumberRange) and not asked.minimum <= answer <= asked.maximum:
            between = f"from {asked.minimum:g} to {asked.maximum:g}"
            raise RequestError(f"'{task.id}': {answer:g} is out of range: write a number {between}")
    elif not isinstance(answer, str):
        raise RequestError(f"'{task.id}': write a text")


def _check_curve(name: str, answer: Answer, maximum: float) -> None:
    if not isinstance(answer, tuple) or len(answer) < 2:
        raise RequestError(f"'{name}': a curve has at least two points [time, value]")
    times = [time for time, _ in answer]
    if times != sorted(set(times)) or not all(0 <= value <= maximum for _, value in answer):
        raise RequestError(f"'{name}': times must rise, and values be from 0 to {maximum:g}")
