"""Say in which figure two files of a run differ."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from controller.bounded_json import JsonRefused, parse_object
from lab import plain_file
from lab.errors import show
from lab.run.reading import (
    APPENDED,
    MEASURED,
    SEAL,
    SEALED,
    has_results_only,
    read_document,
    text_of,
)

RESULT = "result.json"
OF_THE_FOLDER = {"run_id", SEAL, *SEALED}  # a name, and digests of what is compared itself
MOST_NAMED = 3  # differences in one file
END = b""
MISSING = object()


def between(old: Path, new: Path) -> Iterator[str]:
    """Yield sentences about the files in `MEASURED` that differ between two runs.

    In result.json the name of the run and the digests do not count, except the digests of files
    that `--keep results` has removed.
    """
    for name in MEASURED:
        if name == RESULT:
            yield from _of_results(old, new)
        elif text := _first(old / name, new / name):
            yield f"{name}, {text}"


def _of_results(old: Path, new: Path) -> Iterator[str]:
    one, other = read_document(old, RESULT), read_document(new, RESULT)
    removed = {key for key, name in SEALED.items() if name in APPENDED}
    ignored = OF_THE_FOLDER - removed if has_results_only(one) else OF_THE_FOLDER
    one, other = (
        {key: value for key, value in each.items() if key not in ignored} for each in (one, other)
    )
    found = list(_leaves(one, other, ""))
    for each in found[:MOST_NAMED]:
        yield f"{RESULT}, {each}"
    if left := len(found) - MOST_NAMED:
        yield from ([f"{RESULT}, {left} more figures"] if left > 0 else [])


def _first(old: Path, new: Path) -> str:
    """Return the first difference between two files of lines, or "" if there is none."""
    pairs = zip_longest(_lines(old), _lines(new), fillvalue=END)
    for number, (one, other) in enumerate(pairs, 1):
        if one != other:
            return f"line {number}: {_difference(one, other)}"
    return ""


def _lines(path: Path) -> Iterator[bytes]:
    try:
        yield from plain_file.lines(path)
    except plain_file.MISSING:
        return


def _difference(one: bytes, other: bytes) -> str:
    if END in (one, other):
        return f"only the {'old' if one else 'new'} run has it"
    try:
        found = next(_leaves(parse_object(one), parse_object(other), ""), "")
    except JsonRefused:
        found = ""
    return found or f"{show(text_of(one).strip())}, now {show(text_of(other).strip())}"


def _leaves(one: Any, other: Any, path: str) -> Iterator[str]:
    """Yield the values that differ between two JSON documents, with the keys that lead to them."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(each for each in other if each not in one)]:
            inner = f"{path}.{key}" if path else key
            yield from _leaves(one.get(key, MISSING), other.get(key, MISSING), inner)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for n, (mine, its) in enumerate(zip(one, other, strict=True), 1):
            yield from _leaves(mine, its, f"{path}.{n}")
    elif one != other or type(one) is not type(other):
        yield f"{show(path).strip(chr(39))}: {_text(one)}, now {_text(other)}"


def _text(value: Any) -> str:
    return "missing" if value is MISSING else show(value)
