"""Exports of a run: samples as CSV, all data as JSON, or the whole folder as a zip archive.

Each export is an iterator of bytes, so that a large run does not fill the memory.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from lab.results.zips import packing
from lab.results.zips.writing import Member, zipped
from lab.run.reading import read_document, readable_events, readable_samples

PIECE = 1 << 18  # bytes


def as_csv(folder: Path) -> Iterator[bytes]:
    """Yield the samples of a run as CSV, with one row for each sample.

    The name of a column consists of nested keys joined by dots, such as ap.wifi1.tier1_mbps.
    """
    columns: dict[str, None] = {}
    for frame in readable_samples(folder):  # the file is read twice: it can exceed the memory
        columns |= dict.fromkeys(flat(frame))
    text = io.StringIO()
    known = list(columns) or ["t"]
    writer = csv.DictWriter(text, known, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for frame in readable_samples(folder):
        writer.writerow(flat(frame))
        if text.tell() > PIECE:
            yield _taken(text)
    yield _taken(text)


def as_json(folder: Path) -> Iterator[bytes]:
    """Yield manifest, result, samples and events of a run as one JSON object.

    The result is null if the run has not ended.
    """
    done = (folder / "result.json").exists()
    head = {
        "manifest": read_document(folder, "manifest.json"),
        "result": read_document(folder, "result.json") if done else None,
    }
    encode = json.JSONEncoder(ensure_ascii=False).encode
    text = io.StringIO()
    text.write(encode(head)[:-1])
    for name, entries in (("samples", readable_samples), ("events", readable_events)):
        text.write(f', "{name}": [')
        for n, entry in enumerate(entries(folder)):
            text.write(f"{', ' if n else ''}{encode(entry)}")
            if text.tell() > PIECE:
                yield _taken(text)
        text.write("]")
    text.write("}")
    yield _taken(text)


def as_zip(folder: Path) -> Iterator[bytes]:
    """Yield a zip archive of a run folder, as `export -o` writes it. `verify` takes it if the run
    has ended.

    Symbolic links and unreadable files are left out.
    """
    yield from packing.archive([(folder.name, folder)])


def archive(folders: Sequence[Path], texts: Mapping[str, str]) -> Iterator[bytes]:
    """Yield a zip archive of all regular files in `folders`, and of `texts`.

    `texts` maps the names of further files to their contents.
    """
    files = (each for folder in folders for each in packing.files(folder.name, folder))
    yield from zipped(chain((Member(name, [texts[name].encode()]) for name in texts), files))


def _taken(text: io.StringIO) -> bytes:
    found = text.getvalue().encode(errors="replace")
    text.seek(0)
    text.truncate()
    return found


def flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested dictionaries: `{"a": {"b": 1}}` becomes `{"a.b": 1}`.

    `prefix` is put before each key.
    """
    row: dict[str, Any] = {}
    for key, each in value.items():
        row |= flat(each, f"{prefix}{key}.") if isinstance(each, dict) else {f"{prefix}{key}": each}
    return row


FORMATS: dict[str, tuple[Callable[[Path], Iterator[bytes]], str]] = {
    "csv": (as_csv, "text/csv"),
    "json": (as_json, "application/json"),
    "zip": (as_zip, "application/zip"),
}
