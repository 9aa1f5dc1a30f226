"""Exchange files with the runner, the process that runs a scenario (docs/formats.md).

The runner puts messages into the folder `inbox/`. The controller appends its decisions and warnings
to `decisions.jsonl`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.agent_messages import InboxMessage, read_inbox_message
from controller.errors import MessageRefused
from controller.folder_changes import FolderChanges


@dataclass(frozen=True)
class Unreadable:
    """A file of the inbox folder that has no valid message, and the reason.

    `seq` is the number in the name of the file, such as 7 for `000007.json`. It is None if the name
    is no number.
    """

    seq: int | None
    why: str


class RunFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._inbox = path / "inbox"
        self._inbox.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(self._inbox, os.O_RDONLY)
        self._changes = FolderChanges(lambda: os.fstat(self._handle).st_mtime_ns)
        self._decisions = open(path / "decisions.jsonl", "ab", buffering=0)  # noqa: SIM115 - open as long as the process

    @property
    def statistics(self) -> Path:
        return self.path / "statistics.json"

    def write(self, *lines: dict[str, Any]) -> None:
        """Append `lines` to the decision log as JSON lines, each with the time of day.

        All lines are written at once, because each write is slow if the folder is shared with a
        virtual machine.
        """
        at = round(time.time(), 3)
        self._decisions.write(
            b"".join(json.dumps({"at": at, **line}).encode() + b"\n" for line in lines)
        )

    def messages(self) -> Iterator[InboxMessage | Unreadable]:
        """Yield the new inbox messages in the order of their file names; delete the files."""
        for file in sorted(self._inbox.glob("*.json")) if self._changes.may_have_changed() else ():
            text = file.read_bytes()
            file.unlink()
            try:
                yield read_inbox_message(text)
            except MessageRefused as error:
                name = file.stem
                seq = int(name) if name.isascii() and name.isdigit() else None
                yield Unreadable(seq, f"inbox/{file.name}: {error}")

    def close(self) -> None:
        self._decisions.close()
        os.close(self._handle)
