"""Results that the lab might have written: with the digests that fit their content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab.run.reading import sealed


def write_result(folder: Path, result: dict[str, Any]) -> None:
    (folder / "result.json").write_text(json.dumps(sealed(result, folder)))


def seal(folder: Path) -> None:
    """Write the digests of the samples and events as they are now into result.json."""
    write_result(folder, json.loads((folder / "result.json").read_text()))


def edit_run(folder: Path, **changes: Any) -> None:
    """Change keys of manifest.json and of result.json."""
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    write_result(folder, json.loads((folder / "result.json").read_text()) | changes)
