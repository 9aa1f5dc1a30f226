"""Compute digests of the files that a run has measured, so that a text of 64 digits names a run.

The files are those in `MEASURED`. They hold no time of day and nothing about the machine, so the
same simulation has the same digest on every machine. manifest.json, which holds both, and log.txt
do not belong to the digest. A missing file counts as an empty one.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from lab import plain_file

MEASURED = ("scenario.yaml", "samples.jsonl", "events.jsonl", "result.json")


def run_digest(folder: Path) -> str:
    """Return the SHA-256 digest of a run folder as 64 hexadecimal digits.

    It covers the name, the length and the content of each file in `MEASURED`. Raise `LabError` if a
    file cannot be read.
    """
    whole = hashlib.sha256()
    for name in MEASURED:
        content = _content(folder / name)
        whole.update(f"{name} {len(content)}\n".encode() + content)
    return whole.hexdigest()


def differing_files(one: Path, other: Path) -> tuple[str, ...]:
    """Return the names of the files in `MEASURED` whose bytes differ between two run folders.

    Raise `LabError` if a file cannot be read.
    """
    return tuple(name for name in MEASURED if _content(one / name) != _content(other / name))


def _content(path: Path) -> bytes:
    try:
        return plain_file.read(path)
    except plain_file.MISSING:
        return b""
    except OSError as error:
        raise plain_file.failure(path, error) from error
