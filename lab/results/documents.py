"""Read the JSON files of a run folder; a damaged file is no error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.bounded_json import JsonRefused
from lab import plain_file
from lab.run.reading import document

WIRE_RATES_SCHEMA = 1  # of a manifest and a result with rates on the wire


@dataclass(frozen=True)
class FinishedRun:
    """`result` is the content of result.json, `folder` the run folder."""

    result: Mapping[str, Any]
    folder: Path


def tolerant_document(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file of a run folder, or None if there is no file.

    If the file is damaged or cannot be read, return an object like that of a failed run: `status`
    is "failed", and `error` says what is wrong with the file. Raise `LabError` if the machine has
    run out of file descriptors or memory, which says nothing about the file.
    """
    try:
        return document(path)
    except plain_file.MISSING:
        return None
    except OSError as error:
        if error.errno in plain_file.SHORTAGES:
            raise plain_file.failure(path, error) from error
        problem = error.strerror or str(error)
    except JsonRefused as error:
        problem = str(error)
    return {"status": "failed", "error": f"read {path.name}: {problem}"}
