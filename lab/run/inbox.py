"""Pass messages to a run while it runs. A message is a JSON file that the sender moves into the
folder `inbox` of the run folder.

{"target": "link.path1.loss", "value": 0.05}     change a target of the scenario (a flip)
{"control": "stop"}                              end the run now, keep what was measured
{"control": "pause"}                             simulated runs only; also {"control": "resume"}
{"control": "speed", "value": 10}                simulated runs only
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.errors import RequestError


def send(folder: Path, message: dict[str, Any]) -> str:
    """Write a message to the inbox of the run in `folder`. Return the number of the message, which
    is its file name.

    The run checks the message later and records whether it was accepted. Raise `RequestError` if
    the file cannot be written, for example because there is no inbox.
    """
    inbox = folder / "inbox"
    seq = f"{time.time_ns():020d}"
    try:
        beside = inbox / f".{seq}.new"
        beside.write_text(json.dumps(message), encoding="utf-8")
        beside.rename(inbox / f"{seq}.json")
    except OSError as error:
        raise RequestError(
            f"send to run {folder.name}: {error.strerror}: {inbox}. Is it a run that goes on?"
        ) from error
    return seq


def receive(folder: Path) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the waiting messages of the run in `folder`, the oldest first. Each comes as (number,
    message, problem).

    For a usable message, `problem` is an empty text. Otherwise `problem` says what is wrong with
    the file, and `message` is empty.

    The file of a message is deleted when the caller asks for the next message. The caller must have
    recorded the message by then, so every message is either in the inbox or on record.
    """
    for path in sorted((folder / "inbox").glob("*.json")):
        problem, message = "", {}
        try:
            message = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            problem = f"read {path.name}: {error}"
        if not problem and not (
            isinstance(message, dict) and ("target" in message or "control" in message)
        ):
            problem = f'{path.name} holds neither {{"target", "value"}} nor {{"control"}}'
        try:
            yield path.stem, {} if problem else message, problem
        finally:
            path.unlink(missing_ok=True)
