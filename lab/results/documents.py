"""Read the JSON files of a run folder without failing if a file is damaged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WIRE_RATES_SCHEMA = 1  # of a manifest and a result with rates on the wire


@dataclass(frozen=True)
class FinishedRun:
    """Hold the content of result.json of a run, and the path of the run folder."""

    result: Mapping[str, Any]
    folder: Path


def tolerant_document(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file, or None if the file cannot be opened.

    If the file is damaged, return an object like that of a failed run: `status` is "failed", and
    `error` says what is wrong with the file.
    """
    try:
        found = json.loads(path.read_bytes())
    except OSError:
        return None
    except ValueError as error:
        return {"status": "failed", "error": f"read {path.name}: {error}"}
    if isinstance(found, dict):
        return found
    return {"status": "failed", "error": f"read {path.name}: it holds no document"}
