"""Read the files of a run folder. Another process may still be writing them.

A line ends with a newline character and with nothing else. JSON is parsed within the limits of
`controller.bounded_json`, and links are not followed (`lab.plain_file`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from controller.bounded_json import JsonRefused, parse_object
from lab import plain_file
from lab.errors import RequestError
from lab.run import forms
from lab.run.frame import Frame

Line = dict[str, Any]


def read_frames(folder: Path) -> list[Frame]:
    """Return the samples of a run as frames, from samples.jsonl. An incomplete last line is
    ignored."""
    return [Frame.from_json(line) for line in read_samples(folder)]


def read_samples(folder: Path) -> list[Line]:
    """Return the JSON objects in samples.jsonl of a run. An incomplete last line is ignored."""
    return list(read_lines(folder / "samples.jsonl"))


def read_events(folder: Path) -> list[Line]:
    """Return the JSON objects in events.jsonl of a run. An incomplete last line is ignored."""
    return list(read_lines(folder / "events.jsonl"))


def readable_samples(folder: Path) -> list[Line]:
    """Return the samples of a run without damaged lines; an empty list if there is no file."""
    return _readable(folder / "samples.jsonl", sample)


def readable_events(folder: Path) -> list[Line]:
    """Return the events of a run without damaged lines; an empty list if there is no file."""
    return _readable(folder / "events.jsonl", event)


def sample(line: bytes) -> Line:
    """Return the object in a line of samples.jsonl; raise `JsonRefused` if the line is damaged."""
    return _of_form(line, forms.is_frame)


def event(line: bytes) -> Line:
    """Return the object in a line of events.jsonl; raise `JsonRefused` if the line is damaged."""
    return _of_form(line, forms.is_event)


LINES = {"samples.jsonl": sample, "events.jsonl": event}


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the object in each line of a JSON Lines file.

    An incomplete last line is ignored. Raise `RequestError` if the file cannot be read or another
    line is damaged.
    """
    try:
        whole, rest = split_lines(plain_file.read(path))
    except OSError as error:
        raise plain_file.failure(path, error) from error
    if rest:
        whole.append(rest)
    for n, line in enumerate(whole, 1):
        try:
            entry = LINES.get(path.name, parse_object)(line)
        except JsonRefused as error:
            if n == len(whole):
                return
            raise RequestError(f"read {path}: line {n} is damaged: {error}") from error
        yield entry


def split_lines(text: bytes) -> tuple[list[bytes], bytes]:
    """Return the complete lines of a text without their newlines, and the rest after the last."""
    *whole, rest = text.split(b"\n")
    return whole, rest


class Follower:
    """Read the lines that another process appends to a file. A line is not read before its newline
    has been written."""

    def __init__(self, path: Path, parse: Callable[[bytes], Any] = parse_object) -> None:
        self.path, self._parse, self._offset = path, parse, 0

    def new(self) -> list[Any]:
        """Return the lines that were completed since the last call, each converted by `parse`.

        Leave out a line if `parse` raises `ValueError`: the line is damaged. Return an empty list
        if the file does not exist. Raise `LabError` if the file cannot be read.
        """
        try:
            text = plain_file.read(self.path, self._offset)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise plain_file.failure(self.path, error) from error
        whole, rest = split_lines(text)
        self._offset += len(text) - len(rest)
        return list(_parsed(whole, self._parse))


def text_of(line: bytes) -> str:
    """Return a line as text; bytes that are not UTF-8 are replaced."""
    return line.decode(errors="replace")


def document(path: Path) -> Line:
    """Return the object in a JSON file of a run folder.

    Raise `OSError` if the file cannot be read, and `JsonRefused` if it is damaged or does not have
    the form of the files of this name (`lab.run.forms`).
    """
    found = parse_object(plain_file.read(path))
    if problem := forms.wrong(path.name, found):
        raise JsonRefused(problem)
    return found


def read_document(folder: Path, name: str) -> Line:
    """Return the content of the JSON file `name` (manifest.json or result.json) in a run folder.

    Raise `RequestError` if the folder or the file is missing or damaged.
    """
    try:
        return document(folder / name)
    except FileNotFoundError as error:
        wrong = f"it holds no {name}" if folder.exists() else "there is no such folder"
        raise RequestError(f"read {folder}: {wrong}: give the folder of a finished run") from error
    except NotADirectoryError as error:
        raise RequestError(
            f"read {folder}: it is a file: give the folder of a finished run"
        ) from error
    except OSError as error:
        raise plain_file.failure(folder / name, error) from error
    except JsonRefused as error:
        raise RequestError(f"read {folder / name}: {error}") from error


def _readable(path: Path, parse: Callable[[bytes], Line]) -> list[Line]:
    try:
        whole, _ = split_lines(plain_file.read(path))
    except plain_file.MISSING:
        return []
    except OSError as error:
        raise plain_file.failure(path, error) from error
    return list(_parsed(whole, parse))


def _parsed(lines: list[bytes], parse: Callable[[bytes], Any]) -> Iterator[Any]:
    for line in lines:
        try:
            yield parse(line)
        except ValueError:
            continue


def _of_form(line: bytes, fits: Callable[[Line], bool]) -> Line:
    found = parse_object(line)
    if not fits(found):
        raise JsonRefused("it is no line of this file")
    return found
