"""An index of all runs in data/index.json: one small JSON document per run folder.

The index only saves reading all run folders, which have the data. A process holds a file lock while
it changes the index. A run gets the status `cut` if its process has ended and left no result.
"""

from __future__ import annotations

import copy
import errno
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from tinydb import TinyDB, where
from tinydb.storages import Storage

from controller.bounded_json import parse_object
from lab import plain_file
from lab.errors import LabError, RequestError, show
from lab.results import flips
from lab.results.documents import WIRE_RATES_SCHEMA, tolerant_document
from lab.run import process, reading
from lab.run.reading import readable_events
from lab.run.recorder import RUNS
from lab.run.result import SCHEMA as RUN_SCHEMA

# The index file: a TinyDB database in one JSON file that survives killed processes and full disks
#
# The tables are kept in memory. The file is always replaced as a whole.
#
# 1) to save: write a new file and fsync it, keep the last good files as NAME.1 to NAME.3, rename
#    the new file to NAME, fsync the folder
# 2) to read: load the file if another process has replaced it since
# 3) if the content of the file is damaged: rename it, and use the newest readable copy instead
#
# A file that cannot be opened, for example because too many files are open, is not damaged: the
# error is raised, and the file stays as it is.


COPIES = 3
PRIVATE = 0o600  # mode of the file: it has what is in the private run folders
NO_FILE = (errno.ELOOP, errno.EINVAL, errno.EISDIR, errno.ENXIO)  # a link, a folder, a pipe
State = dict[str, dict[str, Any]]


class AtomicStorage(Storage):
    """The tables of a TinyDB database in one JSON file. A crash never leaves a half-written file.

    `recovered` is a message for the user if a damaged file was found and renamed, else "".
    """

    def __init__(self, path: Path, sound: Callable[[Any], bool] = lambda _: True) -> None:
        """`sound` returns whether a document of a table has the required form.

        A file that contains a document of another form counts as damaged.
        """
        self.path, self.recovered, self._sound = path, "", sound
        self._state: State | None = None
        self._read_stamp: tuple[int, int, int] | None = None
        self._batching = False

    def read(self) -> State | None:
        """Return all tables by name, or None if there is no file."""
        if not self._batching and self._stamp() != self._read_stamp:
            self._load()
        return self._state

    def write(self, data: State) -> None:
        """Replace all tables in memory and on disk.

        Inside a `together` block, the file is written only at the end of the block.
        """
        self._state = data
        if not self._batching:
            self._save()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write all changes inside a `with` block to disk at once, at the end of the block.

        If the block raises an exception, all its changes are undone.
        """
        self.read()
        before = json.dumps(self._state)
        self._batching = True
        try:
            yield
        except BaseException:
            self._state = json.loads(before)
            raise
        finally:
            self._batching = False
        if json.dumps(self._state) != before:
            self._save()

    def _load(self) -> None:
        self._state = None
        for path in (self.path, *self._copies()):
            try:
                self._state = self._parsed(plain_file.read(path))
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and error.errno not in NO_FILE:
                    raise LabError(f"read {path}: {error.strerror}. Try again") from error
                aside = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
                path.replace(aside)
                self.recovered = (
                    f"{path.name} could not be read ({error}) and is kept as {aside.name}"
                )
                continue
            if path != self.path:
                self.recovered += f"; {path.name} took its place"
                self._save()
            break
        self._read_stamp = self._stamp()

    def _save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f".{self.path.name}.new")
        with plain_file.create(beside, PRIVATE) as file:
            json.dump(self._state, file, ensure_ascii=False, separators=(",", ":"))
            file.flush()
            os.fsync(file.fileno())
        self._rotate()
        beside.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._read_stamp = self._stamp()

    def _rotate(self) -> None:
        """Keep the last good files: NAME.2 becomes NAME.3, NAME.1 becomes NAME.2, and NAME.1
        becomes a hard link to the present file.

        The present file also keeps its own name until a new file replaces it. Each new name is
        removed first, because renaming does nothing if both names are links to the same file.
        """
        if not self.path.exists():
            return
        copies = self._copies()
        for younger, older in zip(reversed(copies[:-1]), reversed(copies[1:]), strict=True):
            plain_file.remove(older)
            with suppress(FileNotFoundError):
                younger.rename(older)
        plain_file.remove(copies[0])
        os.link(self.path, copies[0])

    def _copies(self) -> list[Path]:
        return [self.path.with_name(f"{self.path.name}.{n}") for n in range(1, COPIES + 1)]

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            return None
        return stat.st_mtime_ns, stat.st_ino, stat.st_size

    def _parsed(self, text: bytes) -> State:
        state: State = parse_object(text)
        for table in state.values():
            if not isinstance(table, dict) or not all(map(_is_number, table)):
                raise ValueError("it holds no tables")
            if not all(map(self._sound, table.values())):
                raise ValueError("a document lacks a field")
        return state


def _is_number(key: str) -> bool:
    return key.isascii() and key.isdecimal() and len(key) < 19


# The document of a run folder in the index


SCHEMA = 6
STARTING_S = 600.0  # an older folder without a manifest belongs to a run that never began
UNFINISHED = ("starting", "running")
CHANGED = "changed"  # the status of a run whose files were edited after its end
NOTE = "note.json"  # tags and note of a run, in its folder
STAMPED = ("result.json", NOTE, "manifest.json", *reading.SEALED.values())
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


def is_sound(doc: Any) -> bool:
    """Return whether a document of the index file has the form that lists of runs need.

    Documents that another version of the lab wrote are replaced before lists use them. They need
    only an id.
    """
    if not isinstance(doc, dict) or not isinstance(doc.get("id"), str):
        return False
    return doc.get("schema") != SCHEMA or not reading.wrong(reading.INDEXED, doc)


def described(folder: Path, known: Doc | None) -> Doc | None:
    """Return the index document of a run folder, or None if it is not the folder of a run.

    `known` is the document that the index has for this folder, or None. If the run has ended and
    its files have not changed since `known` was made, `known` is returned.
    """
    stamp = [_changed(folder / name) for name in STAMPED]
    if (
        known
        and known.get("schema") == SCHEMA
        and known["stamp"] == stamp
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
    doc["time_dilation"] = (manifest or {}).get("host", {}).get("time_dilation")
    doc["run_schema"] = (manifest or {"schema": RUN_SCHEMA}).get("schema", WIRE_RATES_SCHEMA)
    doc["wire_rates"] = doc["run_schema"] == WIRE_RATES_SCHEMA
    doc[flips.FLIPS] = _flips(folder, result)
    doc |= {"status": status, "tags": noted.get("tags", []), "note": noted.get("note", "")}
    doc |= _summary(result) if result else dict.fromkeys(SUMMARY)
    if result and (names := changed(folder, result)):
        doc |= dict.fromkeys(SUMMARY) | {"status": CHANGED, "error": reading.changed_text(names)}
    damage = [each["error"] for each in (manifest, noted) if each and "error" in each]
    return doc | {"error": "; ".join(damage)} if damage and not doc["error"] else doc


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
    """Return the fields of result.json that lists of runs show.

    `verified` says whether the run really used Multipath TCP; it is None without multipath users.
    """
    multipath = any(user.get("kind") == "multipath" for user in result.get("users", {}).values())
    verified = (result.get("mptcp") or {}).get("verified")
    return {
        "status": result.get("status", "failed"),
        "measured_s": result.get("duration_s"),
        "throughput_mbps": result.get("throughput_mbps"),
        "tiers": result.get("tiers"),
        "aps": {ap: each.get("throughput_mbps") for ap, each in result.get("aps", {}).items()},
        "jain": result.get("fairness", {}).get("jain"),
        "overloaded": result.get("overloaded"),
        "verified": verified if multipath else None,
        "error": result.get("error"),
    }


def changed(folder: Path, result: Doc) -> tuple[str, ...]:
    """Return which files of a run were edited after its end; () if that cannot be found out."""
    try:
        return reading.changed(folder, result)
    except LabError:
        return ()  # a page that needs the file says what is wrong


def _flips(folder: Path, result: Doc | None) -> list[Doc]:
    """Return the changes that were made by hand during a run.

    They are taken from result.json, or from events.jsonl if the run has no result.
    """
    if result is not None:
        return list(result.get(flips.FLIPS, []))
    return flips.made_by_hand(readable_events(folder))


def _starting(folder: Path) -> bool:
    try:
        return abs(time.time() - folder.stat().st_mtime) < STARTING_S  # the clock may be put back
    except OSError:
        return False


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


LOCK_S = 10.0
DELETED = ".deleted-"  # begins the name of a folder that is being deleted
BAD = set("/\\\0")  # characters that a run id must not contain


class Store:
    """The list of the runs in one folder, with functions to tag and delete runs.

    Several threads and processes can use a store at the same time. The documents that its methods
    return are copies, so the caller may change them.
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
        """A message for the user if the index file was damaged and replaced by a copy, else ""."""
        return self._storage.recovered

    def refresh(self) -> bool:
        """Update the index from the run folders. Return whether the index has changed.

        If the index file cannot be written, the new index is kept in memory and written later.
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
        """Rebuild the index from all run folders. Return the number of runs found."""
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
        """Return the index document of a run. Raise `RequestError` if the run is unknown."""
        with self._mutex:
            found = next((doc for doc in self._documents() if doc["id"] == run_id), None)
        if found is None:
            raise RequestError(f"run {show(run_id)} is unknown: see the list of runs")
        return copy.deepcopy(found)

    def folder(self, run_id: str) -> Path:
        """Return the path of a run folder. Raise `RequestError` if no run has this id.

        For safety, an id is also refused if it contains a path separator or names a symbolic link.
        """
        path = self.runs_folder / run_id
        if not plain(run_id) or not path.is_dir() or path.is_symlink():
            raise RequestError(f"run {show(run_id)} is unknown: see the list of runs")
        return path

    def annotate(self, run_id: str, tags: list[str] | None = None, note: str | None = None) -> Doc:
        """Set the tags and the note of a run, and return the new index document of the run.

        Tags and note are kept in the file note.json of the run folder. An argument that is None
        leaves the present tags or note as they are.
        """
        folder = self.folder(run_id)
        old = tolerant_document(folder / NOTE) or {}
        new = {"tags": tags, "note": note}
        noted = {key: value for key, value in old.items() if key in new}
        noted |= {key: value for key, value in new.items() if value is not None}
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
    """Return whether `run_id` is a simple folder name.

    It must be printable, have 1 to 255 bytes in UTF-8, contain no path separator and not begin with
    a dot.
    """
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
