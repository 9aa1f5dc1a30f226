"""Read the files of a run folder. Another process may still be writing them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lab.errors import RequestError
from lab.run.frame import Frame


def read_frames(folder: Path) -> list[Frame]:
    """Return the samples of a run as frames, from samples.jsonl. An incomplete last line is
    ignored."""
    return [Frame.from_json(line) for line in read_samples(folder)]


def read_samples(folder: Path) -> list[dict[str, Any]]:
    """Return the JSON objects in samples.jsonl of a run. An incomplete last line is ignored."""
    return list(read_lines(folder / "samples.jsonl"))


def read_events(folder: Path) -> list[dict[str, Any]]:
    """Return the JSON objects in events.jsonl of a run. An incomplete last line is ignored."""
    return list(read_lines(folder / "events.jsonl"))


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the object in each line of a JSON Lines file.

    An incomplete last line is ignored. Raise `RequestError` if the file cannot be read or another
    line is damaged.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise RequestError(f"read {path}: {error.strerror}") from error
    whole, rest = lines[:-1], lines[-1]
    if rest:
        whole.append(rest)
    for n, line in enumerate(whole, 1):
        try:
            entry = json.loads(line)
        except ValueError as error:
            if n == len(whole):
                return
            raise RequestError(f"read {path}: line {n} is damaged: {error}") from error
        yield entry


class Follower:
    """Read the lines that another process appends to a file. A line is not read before its newline
    has been written."""

    def __init__(self, path: Path, parse: Callable[[str], Any] = json.loads) -> None:
        self.path, self._parse, self._offset = path, parse, 0

    def new(self) -> list[Any]:
        """Return the lines that were completed since the last call, each converted by `parse`.
        Return an empty list if the file does not exist.

        Raise `RequestError` if the file cannot be read or a line is damaged.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                text = file.read()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RequestError(f"read {self.path}: {error.strerror}") from error
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        try:
            return [self._parse(line) for line in whole.decode().splitlines()]
        except ValueError as error:
            raise RequestError(f"read {self.path}: a line is damaged: {error}") from error


def read_document(folder: Path, name: str) -> dict[str, Any]:
    """Return the content of the JSON file `name` (manifest.json or result.json) in a run folder.

    Raise `RequestError` if the folder or the file is missing or damaged.
    """
    try:
        document: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        wrong = f"it holds no {name}" if folder.exists() else "there is no such folder"
        raise RequestError(f"read {folder}: {wrong}: give the folder of a finished run") from error
    except NotADirectoryError as error:
        raise RequestError(
            f"read {folder}: it is a file: give the folder of a finished run"
        ) from error
    except (OSError, ValueError) as error:
        raise RequestError(f"read {folder / name}: {error}") from error
    return document
