"""Say how far a run is and how it ended; write its result."""

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
    """Say how far a run is.

    `frame` is the latest sample, `eta_s` the seconds of real time that are left.
    """

    phase: str
    t: float
    duration_s: float
    frame: Frame | None = None
    eta_s: float | None = None


@dataclass(frozen=True)
class Outcome:
    """Say how a run ended: result, folder, exit code, and the error if the code is not 0."""

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
    """Write result.json from what was recorded, close the folder, and say how it ended."""
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
