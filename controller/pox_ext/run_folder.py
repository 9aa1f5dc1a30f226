"""The folder by which the runner and POX talk: inbox in, decisions out (docs/formats.md)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from controller.errors import MessageRefused
from controller.messages import InboxMessage, inbox_message

LOOKS = 4  # into a folder that has changed: a second of them


class RunFolder:
    """`inbox/` is read in the order of its file names; `decisions.jsonl` grows by whole lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._inbox = path / "inbox"
        self._inbox.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(self._inbox, os.O_RDONLY)
        self._changed_ns, self._looks = 0, 0
        self._decisions = open(path / "decisions.jsonl", "ab", buffering=0)  # noqa: SIM115 - open as long as the process

    @property
    def statistics(self) -> Path:
        return self.path / "statistics.json"

    def write(self, *lines: dict[str, Any]) -> None:
        """Append lines, stamped with the time of day, at once: a write into a folder shared with a VM is dear."""
        at = round(time.time(), 3)
        self._decisions.write(b"".join(json.dumps({"at": at, **line}).encode() + b"\n" for line in lines))

    def messages(self) -> Iterator[InboxMessage | str]:
        """Messages that have come, each deleted as it is read; a refusal comes as its text."""
        for file in sorted(self._inbox.glob("*.json")) if self._may_hold_news() else ():
            text = file.read_bytes()
            file.unlink()
            try:
                yield inbox_message(text)
            except MessageRefused as error:
                yield f"inbox/{file.name}: {error}"

    def _may_hold_news(self) -> bool:
        """To list a folder shared with a VM takes a tenth of a second, to ask when it changed much less.

        What comes in the same tick of the clock as the change before leaves no trace: a few more looks find it.
        """
        changed_ns = os.fstat(self._handle).st_mtime_ns
        self._looks = LOOKS if changed_ns != self._changed_ns else max(0, self._looks - 1)
        self._changed_ns = changed_ns
        return self._looks > 0

    def close(self) -> None:
        self._decisions.close()
        os.close(self._handle)
