"""Messages to a run while it goes on. A message is a JSON file that the sender moves into the
folder `inbox` of the run folder.

{"target": "link.path1.loss", "value": 0.05}     change a parameter of the scenario
{"control": "stop"}                              end the run now, keep what was measured
{"control": "pause"}                             simulated runs only; also {"control": "resume"}
{"control": "speed", "value": 10}                simulated runs only

In a race (`lab.run.lanes`), a change can have `after_s`: the lane makes it at its first sample
after this simulated time.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from controller.bounded_json import JsonRefused, parse_object
from lab import plain_file
from lab.errors import RequestError, show

MOST_BYTES = 65_536  # a longer message is refused


def send(folder: Path, message: dict[str, Any]) -> str:
    """Write a message to the inbox of the run in `folder`. Return the message's number, which is
    its file name without the ending.

    The run checks the message later and records whether it was accepted. Raise `RequestError` if
    the file cannot be written, for example because there is no inbox.
    """
    inbox = folder / "inbox"
    seq = f"{time.monotonic_ns():020d}"  # in order, also if the clock is put back
    try:
        beside = inbox / f".{seq}.new"
        beside.write_text(json.dumps(message), encoding="utf-8")
        beside.rename(inbox / f"{seq}.json")
    except OSError as error:
        raise RequestError(
            f"send to run {folder.name}: {error.strerror}: {inbox}. Is it a run that goes on?"
        ) from error
    return seq


def receive(folder: Path, now_s: float = math.inf) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the messages in the inbox of a run, the oldest first, as (number, message, problem).

    Changes that are for a later simulated time than `now_s` stay there. `problem` is "" for a
    usable message. Otherwise it says what is wrong with the file, and `message` is empty. The file
    of a message is deleted when the caller asks for the next message.
    By then the caller must have recorded the message, so that no message is lost.
    """
    for path in sorted((folder / "inbox").glob("*.json")):
        message, problem = _read(path)
        if message.get("after_s", -1) >= now_s:
            continue
        try:
            yield _text(path.stem), message, problem
        finally:
            plain_file.remove(path)


def waiting(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the usable messages in the inbox of a run by their numbers. The files stay there."""
    found = {_text(path.stem): _read(path)[0] for path in sorted((folder / "inbox").glob("*.json"))}
    return {number: message for number, message in found.items() if message}


def _read(path: Path) -> tuple[dict[str, Any], str]:
    """Return (message, ""), or ({}, problem) if the file is not a usable message."""
    name = _text(path.name)
    try:
        message = parse_object(plain_file.read(path, most_bytes=MOST_BYTES + 1), MOST_BYTES)
    except OSError as error:
        return {}, f"read {name}: {error.strerror or error}"
    except JsonRefused as error:
        return {}, f"read {name}: {error}"
    if not ("target" in message or "control" in message):
        return {}, f'{name} holds neither {{"target", "value"}} nor {{"control"}}'
    if not isinstance(message.get("after_s", 0.0), int | float):
        return {}, f"{name}: after_s {show(message['after_s'])} is no time in s"
    return message, ""


def _text(name: str) -> str:
    """Return a file name in which bytes that are not UTF-8 are replaced by `?`."""
    return name.encode(errors="replace").decode()
