"""Exchange files with the runner, the process that runs a scenario (docs/formats.md).

The runner puts messages into the folder `inbox/`. The controller appends its decisions and warnings
to `decisions.jsonl`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tinydb import TinyDB
from tinydb.middlewares import CachingMiddleware
from tinydb.storages import Storage

from controller.agent_messages import InboxMessage, read_inbox_message
from controller.errors import MessageRefused
from controller.folder_changes import FolderChanges

# Write the statistics file: the latest values per access point, port, path and subflow.
#
# The file is a TinyDB database. A separate thread writes it, so that writing does not delay
# messages to switches. The file is replaced as a whole, so a reader never finds a half-written
# one.


Tables = dict[str, list[dict[str, Any]]]


class ReplacedFile(Storage):
    """Store the database in one file, which is replaced by renaming a new file at each write."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, dict[str, Any]] | None:
        try:
            return json.loads(self._path.read_text()) or None
        except (FileNotFoundError, ValueError):
            return None

    def write(self, data: dict[str, dict[str, Any]]) -> None:
        aside = self._path.with_suffix(".new")
        with open(aside, "w", encoding="utf-8") as file:
            file.write(
                json.dumps(data)
            )  # faster than json.dump, which encodes piece by piece in Python
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, self._path)


def read(path: Path) -> Tables:
    """Return the rows of every table in a statistics file; the keys are the table names.

    Return an empty dict if the file does not exist or cannot be parsed.
    """
    with TinyDB(path, storage=ReplacedFile) as database:
        return {
            name: [dict(document) for document in database.table(name)]
            for name in database.tables()
        }


class Writer:
    """Write the statistics file in a separate thread.

    If newer tables arrive while the thread is busy, older tables that wait are not written.
    """

    def __init__(self, path: Path) -> None:
        self._cache = CachingMiddleware(ReplacedFile)  # type: ignore[no-untyped-call]
        self._cache.WRITE_CACHE_SIZE = sys.maxsize  # written when flushed, once per step
        self._database = TinyDB(path, storage=self._cache)
        self._latest: Tables | None = None
        self._news = threading.Condition()
        self._open = True
        self._thread = threading.Thread(target=self._run, name="statistics", daemon=True)
        self._thread.start()

    def put(self, tables: Tables) -> None:
        """Give new tables to the writing thread; do not wait until they are written."""
        with self._news:
            self._latest = tables
            self._news.notify()

    def close(self) -> None:
        """Write the tables that are not written yet, and end the writing thread."""
        with self._news:
            self._open = False
            self._news.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._latest is not None or not self._open)
                tables, self._latest = self._latest, None
            if tables is None:
                return
            self._write(tables)

    def _write(self, tables: Tables) -> None:
        for name, documents in tables.items():
            table = self._database.table(name)
            table.truncate()
            table.insert_multiple(documents)
        self._cache.flush()  # type: ignore[no-untyped-call]


class RunFolder:
    """Read the messages in `inbox/`, and append whole lines to `decisions.jsonl`."""

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
        """Append the objects `lines` as JSON lines in a single write; add the time of day to each.

        Each write is slow if the folder is shared with a virtual machine.
        """
        at = round(time.time(), 3)
        self._decisions.write(
            b"".join(json.dumps({"at": at, **line}).encode() + b"\n" for line in lines)
        )

    def messages(self) -> Iterator[InboxMessage | str]:
        """Yield the new messages in the order of their file names, and delete their files.

        If a message is not valid, yield the text of the error instead.
        """
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
