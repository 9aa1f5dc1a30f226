"""Keep an index of all runs in data/index.json: one small JSON document per run folder.

The run folders hold the data. The index only saves reading all of them. A process holds a file lock
while it changes the index. A run whose process has ended without a result gets the status `cut`.
"""

from __future__ import annotations

import copy
import json
import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout
from tinydb import TinyDB, where

from lab import plain_file
from lab.errors import LabError, RequestError, show
from lab.results.documents import tolerant_document
from lab.results.index_document import NOTE, SCHEMA, UNFINISHED, Doc, described, is_sound
from lab.results.storage import AtomicStorage
from lab.run.recorder import RUNS

LOCK_S = 10.0
DELETED = ".deleted-"  # begins the name of a folder that is being deleted
BAD = set("/\\\0")  # in no id of a run


class Store:
    """List the runs in one folder, change their tags and notes, and delete runs.

    Several threads and processes can use a store at the same time. The documents that its methods
    return are copies, which the caller may change.
    """

    def __init__(self, runs: Path = RUNS, index: Path | None = None) -> None:
        self.runs_folder = runs
        path = index or runs.parent / "index.json"
        self._storage = AtomicStorage(path, is_sound)
        self._db = TinyDB(storage=lambda: self._storage)
        self._table = self._db.table("runs", cache_size=0)
        self._lock = FileLock(path.with_name(path.name + ".lock"))
        self._mutex = threading.RLock()
        self._unwritten: list[Doc] | None = None  # the index, while its file cannot be written

    @property
    def recovered(self) -> str:
        """Return a message for the user if the index file was found damaged and replaced by a copy;
        otherwise an empty text."""
        return self._storage.recovered

    def refresh(self) -> bool:
        """Update the index from the run folders. Return whether the index has changed.

        If its file cannot be written, keep the new index in memory and write it later.
        """
        with self._mutex:
            known = {doc["id"]: dict(doc) for doc in self._table.all()}
            folders = {path.name: path for path in _folders(self.runs_folder)}
            found = {
                name: doc
                for name, path in folders.items()
                if (doc := described(path, known.get(name)))
            }
            changed = [doc for name, doc in found.items() if doc != known.get(name)]
            gone = known.keys() - found.keys()
            if not changed and not gone:
                self._unwritten = None
                return False
            try:
                self._replace(changed, gone | {doc["id"] for doc in changed})
                self._unwritten = None
            except LabError:
                self._unwritten = list(found.values())
            return True

    def reindex(self) -> int:
        """Delete the index and rebuild it from all run folders. Return the number of runs found."""
        with self._mutex:
            found = [doc for path in _folders(self.runs_folder) if (doc := described(path, None))]
            with self._writing():
                self._db.drop_tables()
                self._table.insert_multiple(found)
            return len(found)

    def all(self) -> list[Doc]:
        """Return the index documents of all runs, the latest first."""
        with self._mutex:
            docs = [copy.deepcopy(doc) for doc in self._documents()]
        return sorted(docs, key=lambda doc: (doc["started"], doc["id"]), reverse=True)

    def get(self, run_id: str) -> Doc:
        """Return the index document of one run. Raise `RequestError` if the run is unknown."""
        with self._mutex:
            found = next((doc for doc in self._documents() if doc["id"] == run_id), None)
        if found is None:
            raise RequestError(f"run {show(run_id)} is unknown: see the list of runs")
        return copy.deepcopy(found)

    def folder(self, run_id: str) -> Path:
        """Return the path of a run folder. Raise `RequestError` if no run has this id.

        For safety, an id that contains a path separator or names a symbolic link is refused, too.
        """
        path = self.runs_folder / run_id
        if not plain(run_id) or not path.is_dir() or path.is_symlink():
            raise RequestError(f"run {show(run_id)} is unknown: see the list of runs")
        return path

    def annotate(self, run_id: str, tags: list[str] | None = None, note: str | None = None) -> Doc:
        """Set the tags and the note of a run, and return the new index document of the run. None
        keeps the present value.

        Tags and note are stored in the file note.json of the run folder.
        """
        folder = self.folder(run_id)
        noted = tolerant_document(folder / NOTE) or {}
        noted |= {
            key: value for key, value in (("tags", tags), ("note", note)) if value is not None
        }
        beside = folder / f".{NOTE}.new"
        try:
            with plain_file.create(beside) as file:
                json.dump(noted, file, ensure_ascii=False)
            beside.replace(folder / NOTE)
        except OSError as error:
            raise LabError(
                f"write {folder / NOTE}: {error.strerror}. Check who owns the folder"
            ) from error
        self.refresh()
        return self.get(run_id)

    def delete(self, run_id: str) -> None:
        """Delete a run with its folder. Raise `RequestError` if the run has not ended yet."""
        folder = self.folder(run_id)
        doc = described(folder, None)
        if doc and doc["status"] in UNFINISHED and folder.exists():
            raise RequestError(f"delete run '{run_id}': it is {doc['status']}. Stop it first")
        aside = folder.with_name(f"{DELETED}{folder.name[:200]}-{time.time_ns()}")
        try:
            with suppress(FileNotFoundError):  # another process has deleted it meanwhile
                folder.rename(aside)  # the run disappears as a whole
            for each in self.runs_folder.glob(f"{DELETED}*"):  # also those of a killed process
                shutil.rmtree(each, ignore_errors=True)
        except OSError as error:
            raise LabError(f"delete {folder}: {error.strerror}. Check who owns it") from error
        self.refresh()

    def _documents(self) -> list[Doc]:
        if self._unwritten is not None:
            return self._unwritten
        return [dict(doc) for doc in self._table.all() if doc.get("schema") == SCHEMA]

    def _replace(self, docs: list[Doc], ids: Iterable[str]) -> None:
        gone = set(ids)
        with self._writing():
            self._table.remove(where("id").test(gone.__contains__))
            self._table.insert_multiple(docs)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            self._storage.path.parent.mkdir(parents=True, exist_ok=True)
            with self._lock.acquire(timeout=LOCK_S), self._storage.together():
                yield
        except Timeout as error:
            raise LabError(
                f"write {self._storage.path}: another process holds it since {LOCK_S:g} s. "
                "Try again"
            ) from error
        except OSError as error:
            raise LabError(
                f"write {self._storage.path}: {error.strerror}. The old index is kept"
            ) from error


def plain(run_id: str) -> bool:
    """Return whether `run_id` is a simple folder name: not empty, at most 255 bytes of UTF-8, no
    path separator, no leading dot."""
    size = len(run_id.encode(errors="replace"))
    return 0 < size <= 255 and run_id[0] != "." and run_id.isprintable() and not set(run_id) & BAD


def _folders(runs: Path) -> list[Path]:
    try:
        return [
            path
            for path in runs.iterdir()
            if plain(path.name) and path.is_dir() and not path.is_symlink()
        ]
    except plain_file.MISSING:
        return []
    except OSError as error:
        raise plain_file.failure(runs, error) from error
