"""Read the JSON documents of run folders, damaged ones too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WIRE_RATES_SCHEMA = 1  # of a manifest and a result with rates on the wire


@dataclass(frozen=True)
class FinishedRun:
    """Hold the result.json of a run, and the folder with its other files."""

    result: Mapping[str, Any]
    folder: Path


def tolerant_document(path: Path) -> dict[str, Any] | None:
    """Return a JSON document; None if there is no file. A damaged one is that of a failed run."""
    try:
        found = json.loads(path.read_bytes())
    except OSError:
        return None
    except ValueError as error:
        return {"status": "failed", "error": f"read {path.name}: {error}"}
    if isinstance(found, dict):
        return found
    return {"status": "failed", "error": f"read {path.name}: it holds no document"}
