"""Exchange files with the runner: messages in the inbox, decisions out (docs/formats.md)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from controller.agent_messages import InboxMessage, read_inbox_message
from controller.errors import MessageRefused
from controller.folder_changes import FolderChanges


class RunFolder:
    """Read `inbox/` in the order of file names, and append whole lines to `decisions.jsonl`."""

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
        """Append lines with the time of day in one write.

        A write into a folder that is shared with a VM takes long.
        """
        at = round(time.time(), 3)
        self._decisions.write(
            b"".join(json.dumps({"at": at, **line}).encode() + b"\n" for line in lines)
        )

    def messages(self) -> Iterator[InboxMessage | str]:
        """Yield new messages and delete their files; yield the text of an error for a bad one."""
        for file in sorted(self._inbox.glob("*.json")) if self._changes.may_have_changed() else ():
            text = file.read_bytes()
            file.unlink()
            try:
                yield read_inbox_message(text)
            except MessageRefused as error:
                yield f"inbox/{file.name}: {error}"

    def close(self) -> None:
        self._decisions.close()
        os.close(self._handle)
