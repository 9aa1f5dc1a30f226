"""Compute the digest of a run folder, by which the journal of a class names a run."""

from __future__ import annotations

import hashlib
from pathlib import Path

from lab import plain_file

FILES = ("scenario.yaml", "samples.jsonl", "events.jsonl", "result.json")


def of(folder: Path) -> str:
    """Return the SHA-256 digest of the files in a run folder, as a hexadecimal text.

    The digest is over the name, the length and the content of each file in `FILES`. A missing file
    counts as empty. Raise `LabError` if a file cannot be read.
    """
    whole = hashlib.sha256()
    for name in FILES:
        content = _content(folder / name)
        whole.update(f"{name} {len(content)}\n".encode() + content)
    return whole.hexdigest()


def _content(path: Path) -> bytes:
    try:
        return plain_file.read(path)
    except plain_file.MISSING:
        return b""
    except OSError as error:
        raise plain_file.failure(path, error) from error
