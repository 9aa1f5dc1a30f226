"""Write the statistics file: the latest values per access point, port, path and subflow.

The file is a TinyDB database. A separate thread writes it, so that messages to switches are not
delayed. The file is replaced as a whole, so a reader never finds a half-written one.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from tinydb import TinyDB
from tinydb.middlewares import CachingMiddleware
from tinydb.storages import Storage

Tables = dict[str, list[dict[str, Any]]]


class ReplacedFile(Storage):
    """Stores a TinyDB database in one file.

    Each write creates a new file and gives it the old name, so a reader never finds a half-written
    one.
    """

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
    """Return the rows of each table of the statistics file.

    The result is empty if the file does not exist or cannot be parsed.
    """
    with TinyDB(path, storage=ReplacedFile) as database:
        return {
            name: [dict(document) for document in database.table(name)]
            for name in database.tables()
        }


class Writer:
    """Writes the statistics file in a separate thread.

    If new tables arrive before earlier ones are written, the earlier ones are dropped.
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
        """Store new tables for the writing thread; return without waiting for it."""
        with self._news:
            self._latest = tables
            self._news.notify()

    def close(self) -> None:
        """Write the tables that are not written yet, and end the thread."""
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
