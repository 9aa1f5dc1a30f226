"""Send messages to a run while it runs. A message is a small JSON file that is renamed into
`RUN/inbox/`.

{"target": "link.path1.loss", "value": 0.05}     change something (a flip)
{"control": "stop"}                              end now, keep what was measured
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
    """Put a message into the inbox of a run; return its number as text. The run checks the message
    and records what it did."""
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
    """Yield every waiting message in order, as number, message and problem. If a message cannot be
    used, `problem` says why and the message is empty.

    Its file is removed only when the caller asks for the next message, after it has recorded what
    it did. So a reader that looks at the inbox first and then at the record misses no message.
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
