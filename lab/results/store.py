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
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from tinydb import TinyDB, where

from lab.errors import LabError, RequestError
from lab.results import flips
from lab.results.documents import WIRE_RATES_SCHEMA, tolerant_document
from lab.results.storage import AtomicStorage
from lab.run import process
from lab.run.reading import read_events
from lab.run.recorder import RUNS

SCHEMA = 3
LOCK_S = 10.0
STARTING_S = 600.0  # an older folder without a manifest belongs to a run that never began
UNFINISHED = ("starting", "running")
NOTE = "note.json"  # tags and note of a run, in its folder
SHOWN = (  # copied from the manifest
    "experiment",
    "scenario",
    "strategy",
    "params",
    "cc",
    "engine",
    "seed",
    "started",
    "duration_s",
    "rate_scale",
)
Doc = dict[str, Any]


class Store:
    """List the runs in one folder, change their tags and notes, and delete runs.

    Several threads and processes can use a store at the same time. The documents that its methods
    return are copies, which the caller may change.
    """

    def __init__(self, runs: Path = RUNS, index: Path | None = None) -> None:
        self.runs_folder = runs
        path = index or runs.parent / "index.json"
        self._storage = AtomicStorage(path)
        self._db = TinyDB(storage=lambda: self._storage)
        self._table = self._db.table("runs", cache_size=0)
        self._lock = FileLock(path.with_name(path.name + ".lock"))
        self._mutex = threading.RLock()

    @property
    def recovered(self) -> str:
        """Return a message for the user if the index file was found damaged and replaced by a copy;
        otherwise an empty text."""
        return self._storage.recovered

    def refresh(self) -> bool:
        """Update the index from the run folders. Return whether the index has changed."""
        with self._mutex:
            known = {doc["id"]: dict(doc) for doc in self._table.all()}
            folders = {path.name: path for path in _folders(self.runs_folder)}
            found = {
                name: doc
                for name, path in folders.items()
                if (doc := _described(path, known.get(name)))
            }
            changed = [doc for name, doc in found.items() if doc != known.get(name)]
            gone = known.keys() - found.keys()
            if not changed and not gone:
                return False
            self._replace(changed, gone | {doc["id"] for doc in changed})
            return True

    def reindex(self) -> int:
        """Delete the index and rebuild it from all run folders. Return the number of runs found."""
        with self._mutex:
            found = [doc for path in _folders(self.runs_folder) if (doc := _described(path, None))]
            with self._writing():
                self._db.drop_tables()
                self._table.insert_multiple(found)
            return len(found)

    def all(self) -> list[Doc]:
        """Return the index documents of all runs, the latest first."""
        with self._mutex:
            docs = [copy.deepcopy(dict(doc)) for doc in self._table.all()]
        return sorted(docs, key=lambda doc: (doc["started"], doc["id"]), reverse=True)

    def get(self, run_id: str) -> Doc:
        """Return the index document of one run. Raise `RequestError` if the run is unknown."""
        with self._mutex:
            found = self._table.get(where("id") == run_id)
        if not isinstance(found, dict):
            raise RequestError(f"run '{run_id}' is unknown: see the list of runs")
        return copy.deepcopy(dict(found))

    def folder(self, run_id: str) -> Path:
        """Return the path of a run folder. Raise `RequestError` if no run has this id.

        For safety, an id that contains a path separator or names a symbolic link is refused, too.
        """
        path = self.runs_folder / run_id
        if not plain(run_id) or not path.is_dir() or path.is_symlink():
            raise RequestError(f"run '{run_id}' is unknown: see the list of runs")
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
            beside.write_text(json.dumps(noted, ensure_ascii=False), encoding="utf-8")
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
        doc = _described(folder, None)
        if doc and doc["status"] in UNFINISHED:
            raise RequestError(f"delete run '{run_id}': it is {doc['status']}. Stop it first")
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise LabError(f"delete {folder}: {error.strerror}. Check who owns it") from error
        self.refresh()

    def _replace(self, docs: list[Doc], ids: Iterable[str]) -> None:
        gone = set(ids)
        with self._writing():
            self._table.remove(where("id").test(gone.__contains__))
            self._table.insert_multiple(docs)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
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
    """Return whether `run_id` is a simple folder name: not empty, no path separator, no leading
    dot."""
    return bool(run_id) and not run_id.startswith(".") and not set(run_id) & set("/\\\0")


def _folders(runs: Path) -> list[Path]:
    try:
        return [
            path
            for path in runs.iterdir()
            if plain(path.name) and path.is_dir() and not path.is_symlink()
        ]
    except FileNotFoundError:
        return []


def _described(folder: Path, known: Doc | None) -> Doc | None:
    """Return the index document of a run folder. Return None if the folder holds no run.

    `known` is the document that the index holds for this folder, or None. It is returned unchanged
    if the run has ended and the files of the folder have not changed since.
    """
    stamp = [_changed(folder / name) for name in ("result.json", NOTE, "manifest.json")]
    if (
        known
        and known["stamp"] == stamp
        and known["schema"] == SCHEMA
        and known["status"] not in UNFINISHED
    ):
        return known
    manifest = tolerant_document(folder / "manifest.json")
    if manifest is None and not _starting(folder):
        return None
    result = tolerant_document(folder / "result.json")
    status = "starting" if manifest is None else "running"
    if result is None and manifest is not None and not process.alive(manifest, folder):
        result = tolerant_document(folder / "result.json")  # the run may have ended in between
        stamp[0] = _changed(folder / "result.json")
        status = "cut"
    noted = tolerant_document(folder / NOTE) or {}
    doc = {"schema": SCHEMA, "id": folder.name, "stamp": stamp} | dict.fromkeys(SHOWN)
    doc |= {"scenario": "", "strategy": "", "engine": "", "started": ""}
    doc |= {
        key: (manifest or {}).get(key) for key in SHOWN if (manifest or {}).get(key) is not None
    }
    doc["wire_rates"] = manifest is not None and manifest.get("schema", 1) == WIRE_RATES_SCHEMA
    doc[flips.FLIPS] = _flips(folder, result)
    doc |= {"status": status, "tags": noted.get("tags", []), "note": noted.get("note", "")}
    return doc | (_summary(result) if result else dict.fromkeys(SUMMARY))


SUMMARY = (  # taken from the result
    "measured_s",
    "throughput_mbps",
    "tiers",
    "aps",
    "jain",
    "overloaded",
    "verified",
    "error",
)


def _summary(result: Doc) -> Doc:
    """Return the numbers of a result.json that lists of runs show. `verified` says whether the run
    really used Multipath TCP; it is None if the run has no multipath users."""
    multipath = any(user.get("kind") == "multipath" for user in result.get("users", {}).values())
    return {
        "status": result.get("status", "failed"),
        "measured_s": result.get("duration_s"),
        "throughput_mbps": result.get("throughput_mbps"),
        "tiers": result.get("tiers"),
        "aps": {ap: each.get("throughput_mbps") for ap, each in result.get("aps", {}).items()},
        "jain": result.get("fairness", {}).get("jain"),
        "overloaded": result.get("overloaded"),
        "verified": result.get("mptcp", {}).get("verified") if multipath else None,
        "error": result.get("error"),
    }


def _flips(folder: Path, result: Doc | None) -> list[Doc]:
    """Return the flips of a run, from its result or, without one, from its events."""
    if result is not None:
        return list(result.get(flips.FLIPS, []))
    try:
        return flips.made_by_hand(read_events(folder))
    except RequestError:
        return []


def _starting(folder: Path) -> bool:
    try:
        return time.time() - folder.stat().st_mtime < STARTING_S
    except OSError:
        return False


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
