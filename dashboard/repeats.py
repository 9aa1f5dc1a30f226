"""Run a finished run once more: with the same seed, and on request with its flips as events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dashboard import code_paths, runs
from dashboard.errors import Problem
from dashboard.runs import Launcher
from lab.errors import RequestError
from lab.results.flips import has_effect
from lab.scenario import loading, yaml_text
from lab.scenario.overrides import Overrides


def start(launcher: Launcher, folder: Path, doc: dict[str, Any], with_flips: bool) -> str:
    """Start the run in `folder` once more and return the id of the new run.

    `doc` describes the run in lists. With `with_flips`, the changes that were made by hand become
    events of the scenario, at the same times. Raise an error if the scenario cannot be read or the
    run cannot start.
    """
    path = folder / "scenario.yaml"
    try:
        raw = yaml_text.read(path)
    except RequestError as error:
        raise Problem(409, f"run '{folder.name}' once more: {error}") from error
    code_paths.refuse(raw, f"run '{folder.name}' once more")
    settings = (with_events(raw, doc["flips"]),) if with_flips and doc["flips"] else ()
    scenario = loading.load(str(folder), Overrides(settings=settings))
    vm = (folder / "vm").exists()
    argv = ["run", str(folder), "--engine", doc["engine"], *(["--vm"] if vm else [])]
    argv += [word for each in settings for word in ("--set", each)]
    runs.refuse_without_root(doc["engine"], vm, argv)
    return launcher.begin(scenario, argv)


def with_events(raw: dict[str, Any], flips: list[dict[str, Any]]) -> str:
    """Return the setting `events=...` with the events of a scenario and the flips of its run."""
    added = [
        {"at_s": each["t"], "target": each["target"], "value": each.get("value")}
        for each in flips
        if has_effect(each)
    ]
    return f"events={json.dumps([*(raw.get('events') or []), *added])}"
