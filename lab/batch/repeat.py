"""Repeat a simulated run from its own files, and compare the old and the new files byte for byte.

The repeated run has the same scenario, the same seed, and the same changes by hand at the same
simulated times. `repeat` refuses runs that another version of the lab made, because it may simulate
something else.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from lab.engines import registry
from lab.errors import RequestError
from lab.run import runner
from lab.run.engine import Options
from lab.run.manifest import made_by, present
from lab.run.outcome import Outcome
from lab.run.reading import Line, differing_files, has_results_only, read_document, read_lines
from lab.run.recorder import Recorder, keep_results
from lab.run.replay import Replay
from lab.scenario import engine_table
from lab.scenario.loading import experiment, load
from lab.scenario.schema import Scenario


def repeat(folder: Path) -> tuple[str, ...]:
    """Repeat a simulated run. Return the names of the files that differ between both runs.

    The files in `lab.run.reading.MEASURED` are compared. The old run is in `folder`. The new run is
    made in a temporary folder, which is removed. Raise `RequestError` if another version of the lab
    made the old run, and as `make_again` does.
    """
    manifest = read_document(folder, "manifest.json")
    _check_engine(folder, manifest["engine"])
    _check_version(folder, made_by(manifest["versions"]))
    with tempfile.TemporaryDirectory(prefix="lab-repeat-") as place:
        repeated = Path(place) / folder.name  # result.json holds the name
        repeated.mkdir(mode=0o700)
        make_again(folder, repeated)
        return differing_files(folder, repeated)


def make_again(folder: Path, repeated: Path) -> None:
    """Repeat the simulated run in `folder` with this version of the lab, in the new folder
    `repeated`.

    Of a run with `--keep results`, the new one keeps only these, too. Raise `RequestError` if the
    old run is no simulation, if it failed or a signal ended it, if its changes by hand were
    removed, or if a file of the user that the run used is missing or was changed.
    """
    manifest, result = read_document(folder, "manifest.json"), read_document(folder, "result.json")
    events = _messages(folder, result)
    _check_engine(folder, manifest["engine"])
    stopped = any(each.get("control") == "stop" and each.get("ok") for each in events)
    if result["status"] != "complete" and not (result["status"] == "interrupted" and stopped):
        raise RequestError(
            f"repeat run {folder.name}: it ended as {result['status']}, at a moment that nothing "
            "recorded. Only runs that were complete or stopped on the page can be repeated"
        )
    scenario = scenario_of(folder)
    outcome = _run(scenario, manifest["engine"], repeated, Replay(events))
    if has_results_only(result):
        keep_results(repeated, outcome.result)


def scenario_of(folder: Path) -> Scenario:
    """Return the scenario of a run. Raise `RequestError` if it is not the one of its manifest."""
    scenario, manifest = load(str(folder / "scenario.yaml")), read_document(folder, "manifest.json")
    if experiment(scenario, manifest["engine"]) != manifest["experiment"]:
        raise RequestError(
            f"repeat run {folder.name}: scenario.yaml is another experiment than manifest.json "
            "says. A file of your own that it uses has changed, or the folder was edited"
        )
    return scenario


def _messages(folder: Path, result: Line) -> list[Line]:
    """Return the events of changes by hand. Raise `RequestError` if there were some, but
    `--keep results` has removed them."""
    if not has_results_only(result):
        return [each for each in read_lines(folder / "events.jsonl") if "seq" in each]
    if result["flips"]:
        raise RequestError(
            f"repeat run {folder.name}: it was changed by hand, and --keep results removed when. "
            "Only runs with --keep all can be repeated after that"
        )
    return []


def _check_engine(folder: Path, engine: str) -> None:
    if engine_table.entry(engine).real_time:
        raise RequestError(
            f"repeat run {folder.name}: engine '{engine}' measures in real time, so no second run "
            "has the same bytes. Only simulated runs can be repeated"
        )


def _check_version(folder: Path, version: str) -> None:
    if version != present():
        raise RequestError(
            f"repeat run {folder.name}: version {version} made it, and this is {present()}. "
            "Repeat it with the version that made it"
        )


def _run(scenario: Scenario, engine_name: str, folder: Path, replay: Replay) -> Outcome:
    engine = registry.create(engine_name, Options(0.0))
    engine.ready(scenario)
    return runner.run(scenario, engine, Recorder(folder, scenario, engine_name), replay=replay)
