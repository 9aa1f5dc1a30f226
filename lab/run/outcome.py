"""Describe the progress of a run and how it ended, and write its result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.run import metrics
from lab.run.frame import Frame
from lab.run.reading import read_frames
from lab.run.recorder import Recorder
from lab.run.report import Report
from lab.scenario.schema import Scenario

EXIT_INTERRUPTED = 130


@dataclass(frozen=True)
class Progress:
    """Describe how far a run is.

    `t` is the time since its start in s, `frame` the latest sample, `eta_s` the real time in s that
    is probably left.
    """

    phase: str
    t: float
    duration_s: float
    frame: Frame | None = None
    eta_s: float | None = None


@dataclass(frozen=True)
class Outcome:
    """Describe how a run ended: its result, its folder, the exit code of the program, and the error
    message if that code is not 0."""

    result: dict[str, Any]
    folder: Path
    exit_code: int = 0
    error: str = ""


def conclude(
    scenario: Scenario,
    recorder: Recorder,
    report: Report | None,
    error: LabError | None,
    interrupted: bool,
) -> Outcome:
    """Compute and write result.json from the recorded samples, close the run folder, and return how
    the run ended."""
    status = "failed" if error else "interrupted" if interrupted else "complete"
    try:
        frames = read_frames(recorder.folder)
        header = _header(scenario, recorder, status)
        result = metrics.result(header, scenario.network, frames, report)
        if error:
            result["error"] = str(error)
        recorder.result(result)
    except LabError as problem:
        error = error or problem
        header = _header(scenario, recorder, "failed")
        result = metrics.result(header, scenario.network, [], None) | {"error": str(error)}
    recorder.close()
    code = error.exit_code if error else EXIT_INTERRUPTED if interrupted else 0
    return Outcome(result, recorder.folder, code, str(error or ""))


def _header(scenario: Scenario, recorder: Recorder, status: str) -> metrics.Header:
    return metrics.Header(
        recorder.run_id,
        scenario.name,
        scenario.strategy.name,
        recorder.engine,
        scenario.seed,
        scenario.rate_scale,
        status,
        tuple(recorder.flips),
    )
