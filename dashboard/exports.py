"""Export a run: its samples as CSV, its data as JSON, or its whole folder as a zip archive."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.run.reading import read_document, read_events, read_samples


def as_csv(folder: Path) -> bytes:
    """Return the samples of a run as CSV, one row per sample.

    The name of a column consists of nested keys joined by dots, such as ap.wifi1.tier1_mbps or
    link.path1.mbps_ab.
    """
    rows = [flat(frame) for frame in read_samples(folder)]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns or ["t"], restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def as_json(folder: Path) -> bytes:
    """Return manifest, result, samples and events of a run as one JSON object.

    The result is null as long as the run has none.
    """
    done = (folder / "result.json").exists()
    whole = {
        "manifest": read_document(folder, "manifest.json"),
        "result": read_document(folder, "result.json") if done else None,
        "samples": read_samples(folder),
        "events": read_events(folder),
    }
    return json.dumps(whole, ensure_ascii=False).encode()


def as_zip(folder: Path) -> bytes:
    """Return a zip archive of all files in a run folder; symbolic links are left out."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                file.write(path, Path(folder.name) / path.relative_to(folder))
    return archive.getvalue()


def flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Convert nested dictionaries to one dictionary: `{"a": {"b": 1}}` becomes `{"a.b": 1}`.

    Every key of the result begins with `prefix`.
    """
    row: dict[str, Any] = {}
    for key, each in value.items():
        row |= flat(each, f"{prefix}{key}.") if isinstance(each, dict) else {f"{prefix}{key}": each}
    return row


FORMATS: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "csv": (as_csv, "text/csv"),
    "json": (as_json, "application/json"),
    "zip": (as_zip, "application/zip"),
}
