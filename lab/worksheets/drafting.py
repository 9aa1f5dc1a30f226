"""A worksheet made from a finished run: predict figures of it, make the run, and read them.

The right answers are figures of a student's own run, so the worksheet holds for every seed. Its
solution and one wrong attempt come with it, so `worksheet try` tests it at once.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lab import metrics
from lab.errors import LabError, RequestError, show
from lab.results.documents import figure as number_at
from lab.results.flips import has_effect
from lab.run.recorder import RUNS
from lab.scenario import yaml_text
from lab.scenario.loading import load_recorded, resolved
from lab.scenario.schema import Scenario, validate
from lab.worksheets import planning, wording
from lab.worksheets.consistency import problems
from lab.worksheets.evaluation import RunFiles, evaluate_number
from lab.worksheets.language import Measured, Numeric, Sampled, parse_number, spelled
from lab.worksheets.schema import Run, Worksheet

RUN = "measured"  # the id of the step with the run
MINUTES = 15
MOST_FIGURES = 20
LONGEST_S = 3600.0
TOLERANCE = 0.1  # of a figure that is read from a chart
NOT_SET = ("name", "title", "paper", "question", "expect", "minutes", "try", "seed", "duration_s")
Doc = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """A measured number of a run. `text` is its name in the language of checks, `words` says what
    it is."""

    text: str
    words: str
    unit: str
    value: float


@dataclass(frozen=True)
class Asked:
    """A figure that the worksheet asks for, in the language of checks.

    With `curve`, students draw its course before the run. `ask` is the text of the prediction; if
    it is empty, the words of the figure are used.
    """

    figure: str
    curve: bool = False
    ask: str = ""


def find(run: str, runs: Path = RUNS) -> Path:
    """Return the folder of a run. `run` is a folder, or the name of one in `runs`.

    Raise `RequestError` if there is no such run.
    """
    for folder in (Path(run), runs / run):
        if os.path.isfile(folder / "scenario.yaml"):  # also of a name that is too long for a file
            return folder
    raise RequestError(f"run {show(run)}: it is no run folder, and no run in {runs}")


def figures(folder: Path) -> list[Figure]:
    """Return the figures of a finished run that a worksheet can ask for.

    Those of samples are means over the whole run; a worksheet may ask for another time span.
    """
    return list(_figures(_read(folder)))


def usual(folder: Path) -> Asked:
    """Return the figure to ask for if nobody picks one: the throughput of the first user."""
    users = list(_read(folder).result.get("users", {}))
    if not users:
        raise RequestError("the run has no users: pick a figure")
    return Asked(f"user.{users[0]}.mbps")


def draft(folder: Path, asked: Sequence[Asked], title: str = "", minutes: int = MINUTES) -> str:
    """Return the text of a worksheet file that asks for figures of the run in `folder`.

    Raise `RequestError` if the run did not end, or if no worksheet can make it again.
    """
    if not 1 <= len(asked) <= MOST_FIGURES:
        raise RequestError(f"a worksheet asks for 1 to {MOST_FIGURES} figures: pick some")
    files = _read(folder)
    scenario = load_recorded(folder, "make a worksheet of the run")
    step, changes = _run_step(files, scenario), _changes(files)
    parts = [_Part.of(n, each, files) for n, each in enumerate(asked, 1)]
    about = f"## {scenario.title}\n\n{scenario.question or ''}".strip()
    first = {"text": about, "drawing": step["scenario"]}
    made = ([{"text": _change_text(changes)}] if changes else []) + [{"run": step}]
    checks = [_change_check(n, each) for n, each in enumerate(changes, 1)]
    flips = {RUN: [{"at_s": at_s, "target": key, "value": to} for at_s, key, to in changes]}
    doc: Doc = {
        "title": title or scenario.title,
        "goals": [f"Predict and measure: {each.words}." for each in parts][:6],
        "minutes": minutes,
        "steps": [first, *(p.prediction for p in parts), *made, *checks]
        + [each.question for each in parts],
        "solution": {"answers": {k: v for each in parts for k, v in each.answers.items()}}
        | ({"flips": flips} if changes else {}),
        "wrong": [
            {
                "name": "every figure is read more than eight times too large",
                "answers": {each.id: each.wrong for each in parts},
                "fails": [each.id for each in parts],
            }
        ],
    }
    if changes:
        nothing = {"name": "nothing is changed", "flips": {RUN: []}}
        doc["wrong"].append(nothing | {"fails": [each["check"]["id"] for each in checks]})
    _check(doc)
    head = (
        f"# Made from the run {folder.name}. Write your own texts, then try it: "
        "./run_lab.sh worksheet try FILE\n"
    )
    return head + yaml_text.text_of(doc)


def _read(folder: Path) -> RunFiles:
    """Read the files of a run. Raise `RequestError` if a worksheet cannot make such a run."""
    files = RunFiles.read(folder)
    if files.result.get("status") != "complete" or not files.samples:
        raise RequestError("the run is not complete: make a worksheet from one that is")
    if (duration_s := files.result["duration_s"]) > LONGEST_S:
        raise RequestError(f"the run takes {duration_s:g} s: at most {LONGEST_S:g}")
    return files


def _figures(files: RunFiles) -> Iterator[Figure]:
    last = files.samples[-1]
    for of in metrics.SECTIONS:
        owners = [""] if of == "run" else list(last.get(of, {}))
        for owner in owners:
            for name in metrics.sampled(of):
                path = ".".join(filter(None, (of, owner, name)))
                yield from _known(files, Sampled("mean", path, 0.0, last["t"], ""))
    for each in metrics.numbers("run"):
        yield from _known(files, Measured(each.number_path(), ""))


def _known(files: RunFiles, tree: Sampled | Measured) -> Iterator[Figure]:
    value, _ = evaluate_number(tree, {"": files})
    label = wording.figure(spelled(tree), {})
    if value is not None:
        yield Figure(spelled(tree), label.words, label.unit, value)


@dataclass(frozen=True)
class _Part:
    """What the worksheet asks about one figure: a prediction, and later a question.

    `id` is that of the question. `answers` are those of the solution.
    """

    id: str
    words: str
    prediction: Doc
    question: Doc
    answers: Doc
    wrong: str

    @classmethod
    def of(cls, n: int, asked: Asked, files: RunFiles) -> _Part:
        tree = _parsed(asked, files)
        value, verdict = evaluate_number(tree, {"": files})
        if value is None:
            raise RequestError(f"figure {show(asked.figure)}: {verdict.problem}")
        label = wording.figure(spelled(tree), {})
        here = replace(tree, run=RUN)
        most, tolerance = _nice(2 * abs(value) or 1.0), _tolerance(value)
        guess, question = f"guess_{n}", f"figure_{n}"
        ask = asked.ask or f"What do you expect: {label.words}?"
        prediction: Doc = {"id": guess, "ask": ask}
        if asked.curve:
            assert isinstance(tree, Sampled)
            top = _top(files, tree.path)
            end_s = files.samples[-1]["t"]
            prediction["curve"] = {
                "run": RUN,
                "path": tree.path,
                "unit": label.unit,
                "maximum": top,
            }
            right: Any = [[0, min(abs(value), top)], [end_s, min(abs(value), top)]]
        else:
            drawn = {"run": RUN, "path": tree.path} if isinstance(tree, Sampled) else {}
            least = 0 if value >= 0 else -most
            prediction["number"] = {"unit": label.unit, "minimum": least, "maximum": most} | drawn
            right = float(f"{value:.3g}")
        number = {"answer": spelled(here), "tolerance": tolerance, "unit": label.unit}
        asked_later = {
            "id": question,
            "ask": f"What was it in your run: {label.words}?",
            "number": number,
            "hint": "Read it in the chart of your run, or in the table under it.",
            "why": f"It is {spelled(tree)} of your run.",
        }
        return cls(
            question,
            label.words,
            {"predict": prediction},
            {"question": asked_later},
            {guess: right, question: spelled(here)},
            f"8 * abs({spelled(here)}) + {10 * tolerance:g}",
        )


def _parsed(asked: Asked, files: RunFiles) -> Sampled | Measured:
    """Return the figure to ask for. A name in a sample alone, such as `user.ue1.mbps`, is its mean
    over the whole run."""
    text = asked.figure
    if "(" not in text:
        text = f"mean({text}, 0..{files.samples[-1]['t']:g})"
    try:
        tree: Numeric = parse_number(text)
    except LabError as error:
        raise RequestError(f"figure {show(asked.figure)}: {error}") from error
    if not isinstance(tree, Sampled | Measured) or tree.run:
        raise RequestError(
            f"figure {show(asked.figure)}: write one of ./run_lab.sh list figures RUN"
        )
    if asked.curve and not isinstance(tree, Sampled):
        raise RequestError(f"figure {show(asked.figure)}: only a figure of samples is a curve")
    return tree


def _run_step(files: RunFiles, scenario: Scenario) -> Doc:
    """Return the step in which students make the run again, with other seeds."""
    step: Doc = {
        "id": RUN,
        "scenario": scenario.name,
        "strategy": scenario.strategy.name,
        "engine": files.result["engine"],
        "duration_s": scenario.duration_s,
    }
    base = planning.scenario_of(validate(Run, step, "run"), {})
    settings = dict(_differing(_dumped(base), _dumped(scenario)))
    again = planning.scenario_of(validate(Run, step, "run"), settings)
    if left := [key for key, _ in _differing(_dumped(again), _dumped(scenario))]:
        raise RequestError(f"a worksheet cannot give the run's {', '.join(left)}")
    targets = list(dict.fromkeys(key for _, key, _ in _changes(files)))
    more = {"settings": settings} if settings else {}
    return step | more | ({"flips": targets} if targets else {})


def _dumped(scenario: Scenario) -> Doc:
    return {key: value for key, value in resolved(scenario).items() if key not in NOT_SET}


def _differing(before: Mapping[str, Any], now: Mapping[str, Any], at: str = "") -> Iterator[Any]:
    """Yield (key, value) of each setting of `now` that is another one in `before`."""
    for key, value in now.items():
        old = before.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            yield from _differing(old, value, f"{at}{key}.")
        elif value != old:
            yield f"{at}{key}", value


def _changes(files: RunFiles) -> list[tuple[float, str, Any]]:
    """Return the changes by hand that took effect: time, target and value."""
    made = [each for each in files.result.get("flips", ()) if has_effect(each)]
    return [(float(each["t"]), str(each["target"]), each.get("value")) for each in made]


def _change_text(changes: Sequence[tuple[float, str, Any]]) -> str:
    rows = [
        f"- at about {at_s:.0f} s: {wording.setting(key)} to {_value(to)}"
        for at_s, key, to in changes
    ]
    return "While the run goes on, change:\n\n" + "\n".join(rows) + "\n"


def _change_check(n: int, change: tuple[float, str, Any]) -> Doc:
    _, key, to = change
    plain = isinstance(to, str | int | float) and not isinstance(to, bool)
    to_value = f"={to}" if plain else ""
    check = {
        "id": f"change_{n}",
        "ask": f"Did you change the {wording.setting(key).words} while the run went on?",
        "run": RUN,
        "that": f"flip({key}{to_value})",
        "hint": "Make the run once more, and make the change while it goes on.",
        "why": "The log of your run has the change.",
    }
    return {"check": check}


def _value(value: Any) -> str:
    return str(value["name"]) if isinstance(value, Mapping) and "name" in value else f"{value}"


def _top(files: RunFiles, path: str) -> float:
    """Return the upper end of the axis for a curve, above all measured values."""
    values = [number_at(each, path) or 0.0 for each in files.samples]
    return _nice(1.3 * max(values) or 1.0)


def _nice(value: float) -> float:
    """Return the next number above with one digit that is not 0, or with 15 or 25 in front."""
    power: float = 10.0 ** math.floor(math.log10(value))
    factors = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
    return float(f"{next((f for f in factors if f * power >= value), 10) * power:.6g}")


def _tolerance(value: float) -> float:
    return float(f"{TOLERANCE * abs(value):.1g}") or TOLERANCE


def _check(doc: Doc) -> None:
    """Raise `RequestError` if the worksheet is not valid."""
    worksheet = validate(Worksheet, doc, "worksheet")
    if found := list(problems(worksheet)):
        raise RequestError("\n".join(f"worksheet: {problem}" for problem in found))
