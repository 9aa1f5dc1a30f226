"""What a finished run in the folder of a job has instead of the job's settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lab.batch.job import Job
from lab.errors import LabError, show
from lab.run.reading import read_document
from lab.scenario import yaml_text
from lab.scenario.loading import RESOLVED, resolved
from lab.scenario.schema import PROSE

NAMED = 3


def in_words(job: Job) -> str:
    """Return what is in the folder of a job that cannot use it: files of somebody else, or a run
    with other settings, with the settings that differ, such as `duration_s 20 instead of 15`."""
    assert job.out is not None
    if not (job.out / "manifest.json").is_file():
        return "it has other files"
    differing = list(_differing(job))
    more = f" and {len(differing) - NAMED} more" if len(differing) > NAMED else ""
    if differing:
        return f"it has a run with other settings: you ask for {', '.join(differing[:NAMED])}{more}"
    return "it has a run with other settings, or other files"


def _differing(job: Job) -> Iterator[str]:
    """Yield each setting that the run and the job both have, and that differs."""
    assert job.out is not None
    try:
        there = dict(_flat(yaml_text.read(job.out / "scenario.yaml")))
        there["engine"] = read_document(job.out, "manifest.json").get("engine", job.engine)
    except LabError:
        return
    for key, value in {**dict(_flat(resolved(job.scenario))), "engine": job.engine}.items():
        is_decisive = key.partition(".")[0].partition("[")[0] not in (*PROSE, RESOLVED)
        if is_decisive and key in there and there[key] != value:
            yield f"{key} {_text(value)} instead of {_text(there[key])}"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) and value else show(value)


def _flat(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path of each plain value and its value. Entries of lists count from 1."""
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from _flat(value, f"{path}.{key}" if path else str(key))
    elif isinstance(data, list) and data:
        for n, value in enumerate(data, 1):
            yield from _flat(value, f"{path}[{n}]")
    else:
        yield path, data
