"""The folder by which the runner and POX talk: inbox in, decisions out (docs/formats.md)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from controller.errors import MessageRefused
from controller.messages import InboxMessage, inbox_message


class RunFolder:
    """`inbox/` is read in the order of its file names; `decisions.jsonl` grows by one whole line per write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._inbox = path / "inbox"
        self._inbox.mkdir(parents=True, exist_ok=True)
        self._decisions = open(path / "decisions.jsonl", "ab", buffering=0)  # noqa: SIM115 - open as long as the process

    @property
    def statistics(self) -> Path:
        return self.path / "statistics.json"

    def write(self, line: dict[str, Any]) -> None:
        """Append a line, stamped with the time of day."""
        self._decisions.write(json.dumps({"at": round(time.time(), 3), **line}).encode() + b"\n")

    def messages(self) -> Iterator[InboxMessage | str]:
        """Messages that have come, each deleted as it is read; a refusal comes as its text."""
        for file in sorted(self._inbox.glob("*.json")):
            text = file.read_bytes()
            file.unlink()
            try:
                yield inbox_message(text)
            except MessageRefused as error:
                yield f"inbox/{file.name}: {error}"

    def close(self) -> None:
        self._decisions.close()
