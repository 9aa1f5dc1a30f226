"""Read the JSON files of run folders, even if a file is damaged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WIRE_RATES_SCHEMA = 1  # of a manifest and a result with rates on the wire


@dataclass(frozen=True)
class FinishedRun:
    """Hold the content of a run's result.json, and the run folder."""

    result: Mapping[str, Any]
    folder: Path


def tolerant_document(path: Path) -> dict[str, Any] | None:
    """Read a JSON file that holds an object. Return None if there is no such file.

    For a damaged file, return the object of a failed run: its `error` says what is wrong.
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
