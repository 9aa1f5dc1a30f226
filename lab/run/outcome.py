"""The progress of a run, its outcome, and the writing of result.json at its end."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.frame import Frame
from lab.inputs import by_name
from lab.run import calls
from lab.run import result as result_json
from lab.run.reading import read_frames, sealed
from lab.run.recorder import Recorder
from lab.run.report import Report
from lab.run.transfers import section, transfers, videos_section
from lab.scenario.engine_table import ENGINES, named
from lab.scenario.schema import Scenario
from lab.vm_environment import time_dilation

EXIT_INTERRUPTED = 130
Result = Mapping[str, Any]  # the content of result.json


def is_whole(result: Result) -> bool:
    """Return whether a run is complete and the machine was fast enough for it.

    `result` is the content of its result.json.
    """
    return bool(result["status"] == "complete" and not result["overloaded"])


@dataclass(frozen=True)
class Progress:
    """How far a run has come.

    `phase` is "starting", "running" or "stopping", or a text for the user while the run starts. `t`
    is the time in s since the start of the run, and `duration_s` the planned length. `frame` is the
    latest sample. `eta_s` is the real time in s until the expected end.
    """

    phase: str
    t: float
    duration_s: float
    frame: Frame | None = None
    eta_s: float | None = None


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    `result` is the content of result.json, and `folder` the run folder. `exit_code` is that of the
    command line. `error` is "" if nothing failed.
    """

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
    """Compute result.json from the recorded samples, write it, and close the recorder.

    `report` is what the engine returned when it was closed, or None. `error` is the failure of the
    run, or None. If the samples cannot be read, or another program has changed them, the run counts
    as failed.
    """
    status = "failed" if error else "interrupted" if interrupted else "complete"
    try:
        if not error:
            recorder.check_unchanged()
        frames = read_frames(recorder.folder)
        header = _header(scenario, recorder, status)
        result = result_json.document(header, scenario.network, frames, report)
        if report and (flows := section(transfers(scenario, report.connections, report.exchanges))):
            result["flows"] = flows
        if report and (video := videos_section(report.videos)):
            result["video"] = video
        if report and (
            call := calls.section(scenario, report.calls, frames[-1].t if frames else 0)
        ):
            result["call"] = call
        if error:
            result["error"] = str(error)
        result = sealed(result, recorder.folder)
        recorder.result(result)
    except LabError as problem:
        error = error or LabError(str(problem))  # the run has failed, whatever could not be read
        header = _header(scenario, recorder, "failed")
        result = result_json.document(header, scenario.network, [], None) | {"error": str(error)}
        with suppress(LabError):
            result = sealed(result, recorder.folder)
            recorder.result(result)
    recorder.close()
    code = error.exit_code if error else EXIT_INTERRUPTED if interrupted else 0
    return Outcome(result, recorder.folder, code, str(error or ""))


def _header(scenario: Scenario, recorder: Recorder, status: str) -> result_json.Header:
    return result_json.Header(
        recorder.run_id,
        scenario.name,
        scenario.strategy.name,
        recorder.engine,
        scenario.seed,
        scenario.rate_scale,
        status,
        tuple(recorder.flips),
        _stack(scenario, recorder.engine),
        by_name(recorder.inputs),
        time_dilation(),
    )


def _stack(scenario: Scenario, engine: str) -> str | None:
    entry = ENGINES.get(engine)
    if entry and len(entry.stacks) == 1:
        return entry.stacks[0]
    return named(scenario.multipath.scheduler, scenario.multipath.penalisation)
