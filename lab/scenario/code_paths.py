"""Refuse documents from elsewhere that contain the path of a code file.

A user can write a strategy, a topology or a congestion control as a file, which the lab executes.
The path of such a file is accepted on the command line only. Over HTTP only names are accepted:
built-in names, and names of files in the folders that `--with` gave when the dashboard started.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controller.strategy_names import SEPARATOR
from lab.errors import RequestError
from lab.scenario import schema
from lab.scenario.loading import PROSE

ENDINGS = (".py", ".c")
TEXTS = {*PROSE, "watch", "before", "after"}  # for people, never names of code
FILE_KEY = "file"  # `topology: {file: PATH.py}`


def refuse(document: Any, doing: str) -> None:
    """Raise `RequestError` if `document` contains the path of a code file anywhere.

    `doing` begins the error message, such as "start the run". The server answers with HTTP status
    422.
    """
    for key, value in find(document):
        raise RequestError(
            f"{doing}: {key}: '{value}' is the path of a file, and over HTTP only names are "
            "accepted. Put the file into a folder DIR, start the dashboard with --with DIR, and "
            "write the file's name without its ending",
        )


def find(document: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield (key, path) for each path of a code file in `document`, which is data parsed from JSON.

    The yielded key is the place in the document, such as "topology.file"; it begins with `key`.
    """
    if isinstance(document, dict):
        for name, value in document.items():
            words = str(name).split(".")
            if words[-1] in TEXTS:
                continue
            place = f"{key}.{name}" if key else str(name)
            if FILE_KEY in words:
                yield place, str(value)
            yield from find(value, place)
    elif isinstance(document, list | tuple):
        for n, value in enumerate(document, 1):
            yield from find(value, f"{key}[{n}]")
    elif isinstance(document, str) and is_path(document):
        yield key, document


def is_path(text: str) -> bool:
    """Return whether a text looks like the path of a code file.

    It does if it contains a slash or ends in .py or .c. The name of a known strategy with one form,
    such as `loss_aware/improved`, is no path, even if the strategy has no such form.
    """
    name, _, form = text.partition(SEPARATOR)
    if name in schema.strategies() and not is_path(form):
        return False
    return "/" in text or "\\" in text or text.lower().endswith(ENDINGS)
