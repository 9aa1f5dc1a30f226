"""Paths of code files in data.

The lab executes a strategy, topology, congestion control or metric that a user wrote as a file. Its
path is accepted on the command line only. Over HTTP and in run folders only names are accepted:
built-in names, and those of files in the folders of `--with`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from controller.strategy_names import SEPARATOR
from lab.errors import RequestError
from lab.scenario import schema
from lab.scenario.network_files import KEYS
from lab.scenario.schema import PROSE

ENDINGS = (".py", ".c")
TEXTS = {*PROSE, "watch", "before", "after", "notes", "read_from"}  # never names of code
PATHS = {"file", *KEYS}
FILE_KEYS = {"file", "mininet"}  # `topology: {file: PATH.py}`


def refuse_code_paths(document: Any, doing: str, data: Path | None = None) -> None:
    """Raise `RequestError` if `document` contains the path of a code file anywhere.

    `document` is data parsed from JSON or YAML. `doing` begins the error message, such as "start
    the run". Files in the folder `data` or below may be named if they are no code.
    """
    for key, value in code_paths_in(document):
        if data and _is_data_in(data, key, value):
            continue
        raise RequestError(
            f"{doing}: {key}: '{value}' is the path of a file, and over HTTP only names are "
            "accepted. Put the file into a folder DIR, start the dashboard with --with DIR, and "
            "write the file's name without its ending",
        )


def _is_data_in(folder: Path, key: str, value: str) -> bool:
    is_code = key.rpartition(".")[2] in FILE_KEYS or value.lower().endswith(ENDINGS)
    path = folder / value
    return not is_code and path.is_file() and path.resolve().is_relative_to(folder.resolve())


def code_paths_in(document: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield (key, path) for each path of a code file in `document`, which is data parsed from JSON.

    The yielded key says where the path is in the document, such as "topology.file". It begins with
    the argument `key`.
    """
    if isinstance(document, dict):
        for name, value in document.items():
            words = str(name).split(".")
            if words[-1] in TEXTS:
                continue
            place = f"{key}.{name}" if key else str(name)
            if FILE_KEYS & {*words}:
                yield place, str(value)
            yield from code_paths_in(value, place)
    elif isinstance(document, list | tuple):
        for n, value in enumerate(document, 1):
            yield from code_paths_in(value, f"{key}[{n}]")
    elif isinstance(document, str) and is_code_path(document):
        yield key, document


def is_code_path(text: str) -> bool:
    """Return whether a text looks like the path of a code file.

    It does if it contains a slash or ends in .py or .c. A text such as `NAME/improved` is no path
    if `NAME` is a strategy, even if this strategy has no variant `improved`.
    """
    name, _, form = text.partition(SEPARATOR)
    if name in schema.strategies() and not is_code_path(form):
        return False
    return "/" in text or "\\" in text or text.lower().endswith(ENDINGS)
