"""Batches: groups of runs of one scenario, with all combinations of strategies, values of keys, and
seeds, or the points of a sweep file.

One process makes the runs of a batch, a few at the same time (`dashboard.batch_process`). The name
of a run's folder begins with the id of its batch. Each batch has a file, from which it continues,
also after a restart of the dashboard.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from controller.bounded_json import parse_object
from dashboard import batch_plan
from dashboard.base.errors import Problem
from dashboard.batch_plan import Asked, BatchRequest
from dashboard.group_charts import has_result
from dashboard.runs import Child, Launcher, batch_of, interrupt, run_name
from lab import plain_file
from lab.batch.jobs import time_left
from lab.errors import LabError
from lab.results.store import UNFINISHED, Store
from lab.run.recorder import PRIVATE
from lab.scenario import catalogue

PREFIX = "batch-"  # begins the id of a batch; runs of older versions have it as a tag
FOLDER = "batches"  # beside the folder of the runs
POLL_S = 0.3
Doc = dict[str, Any]  # JSON


@dataclass
class Batch:
    """A batch whose file is there. `names` are those of its settings, of which each has `repeats`
    runs.

    `is_active` is True until its process has ended. `kept` runs were there when the process
    started, at `began` of the monotonic clock.
    """

    id: str
    title: str
    total: int
    repeats: int
    names: list[str]
    metric: str
    engine: str
    is_active: bool = False
    stopped: bool = False
    error: str = ""
    child: Child | None = None
    began: float = 0.0
    kept: int = 0

    def to_json(self) -> Doc:
        keys = ("title", "total", "repeats", "names", "metric", "engine")
        return {key: getattr(self, key) for key in keys}

    def name(self, run_id: str) -> str:
        """Return the setting and the number of a run, as text."""
        n = batch_of(run_id)[1]
        number = f"run {n % self.repeats + 1} of {self.repeats}" if self.repeats > 1 else ""
        return ", ".join(each for each in (self.setting(n), number) if each) or run_id

    def setting(self, n: int) -> str:
        return self.names[n // self.repeats] if 0 <= n < self.total else ""


class Batches:
    """Starts, stops and continues batches of runs, and reports their progress."""

    def __init__(self, store: Store, launcher: Launcher) -> None:
        self._store, self._launcher = store, launcher
        self._folder = store.runs_folder.parent / FOLDER
        self._mutex = threading.Lock()
        self._turn = threading.Lock()  # one batch is made at a time
        self._batches = {each.id: each for each in map(_read, self._files()) if each}

    def start(self, request: BatchRequest) -> str:
        """Start a batch of runs in a new thread. Return the id of the batch.

        Raise an error and start nothing if one of the runs is refused.
        """
        found = batch_plan.checked(request)
        with self._mutex:
            batch_id = f"{PREFIX}{datetime.now():%Y%m%d-%H%M%S}-{len(self._batches) + 1}"
            names = [each.name for each in found.settings()]
            batch = Batch(
                batch_id,
                _title(request, found),
                found.count,
                found.repeats,
                names,
                found.metric,
                found.start.engine,
            )
            self._write(batch.to_json() | {"request": request.model_dump(mode="json")}, batch_id)
            self._batches[batch_id] = batch
            self._begin(batch)
        return batch_id

    def resume(self, batch_id: str) -> None:
        """Make the runs that a batch lacks, and repeat those that failed."""
        with self._mutex:
            batch = self._known(batch_id)
            if batch.is_active:
                raise Problem(409, f"continue batch '{batch_id}': it is going on")
            self._begin(batch)

    def estimate(self, request: BatchRequest) -> Doc:
        """Return what the runs of a batch take on this machine. Some of them are tried."""
        engine = batch_plan.checked(request).start.engine
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"request": request.model_dump(mode="json")}, file)
            file.flush()
            words = [*self._words(Path(file.name)), "--dry-run", "--at-once", str(_at_once(engine))]
            found: Doc = json.loads(self._launcher.estimate(words))
        return found

    def rows(self) -> list[Doc]:
        """Return one row for each batch, the latest batch first, with its runs and their
        progress."""
        self._store.refresh()
        found = self._runs()
        for batch in list(self._batches.values()):
            if batch.is_active or batch.error:
                found.setdefault(batch.id, [])
        return [self._row(name, docs) for name, docs in sorted(found.items(), reverse=True)]

    def ended(self, batch_id: str) -> list[str]:
        """Return the ids of the runs of a batch that have a result, in the order of the batch."""
        self._store.refresh()
        return sorted(doc["id"] for doc in self._runs().get(batch_id, ()) if has_result(doc))

    def settings(self, batch_id: str) -> dict[str, str]:
        """Return the setting of each run of a batch that has one; nothing if it is unknown."""
        batch = self._batches.get(batch_id)
        if batch is None:
            return {}
        named = {run_name(batch_id, n): batch.setting(n) for n in range(batch.total)}
        return {run_id: setting for run_id, setting in named.items() if setting}

    def stop(self, batch_id: str) -> None:
        """Stop the running runs of a batch, and start no more.

        Raise `Problem` if the batch is unknown.
        """
        batch = self._known(batch_id)
        batch.stopped = True
        if batch.child and batch.child.process.poll() is None:
            interrupt(batch.child.process)

    def stop_all(self) -> None:
        """Start no more batches. Runs in progress continue."""
        for batch in self._batches.values():
            batch.stopped = True

    def _known(self, batch_id: str) -> Batch:
        batch = self._batches.get(batch_id)
        if batch is None:
            raise Problem(404, f"batch '{batch_id}' is unknown, or an older version started it")
        return batch

    def _runs(self) -> dict[str, list[Doc]]:
        """Return the runs of each batch that has any."""
        found: dict[str, list[Doc]] = {}
        for doc in self._store.all():
            named, _ = batch_of(doc["id"])
            for each in {named, *doc["tags"]}:
                if each.startswith(PREFIX):
                    found.setdefault(each, []).append(doc)
        return found

    def _row(self, name: str, docs: list[Doc]) -> Doc:
        batch = self._batches.get(name)
        unfinished = [doc["id"] for doc in docs if doc["status"] in UNFINISHED]
        failed = [doc for doc in reversed(docs) if doc["status"] in ("failed", "cut")]
        total = batch.total if batch else len(docs)
        done = len(docs) - len(unfinished)
        return {
            "id": name,
            "title": batch.title if batch else f"{docs[0]['scenario']}: {len(docs)} runs",
            "total": total,
            "done": done,
            "left": total - _whole(docs),
            "time_left": _time_left(batch, done) if batch else "",
            "is_waiting": bool(batch and batch.is_active and not batch.child),
            "runs": sorted(doc["id"] for doc in docs),
            "unfinished": unfinished,
            "failed": [
                {
                    "id": doc["id"],
                    "name": batch.name(doc["id"]) if batch else doc["id"],
                    "error": doc["error"] or "its process was killed",
                }
                for doc in failed
            ],
            "errors": [batch.error] if batch and batch.error else [],
            "metric": batch.metric if batch else "",
            "over": not unfinished and not (batch and batch.is_active),
            "can_continue": batch is not None and not batch.is_active and not unfinished,
        }

    def _begin(self, batch: Batch) -> None:
        batch.is_active, batch.stopped, batch.error, batch.child = True, False, "", None
        threading.Thread(target=self._work, args=(batch,), name=batch.id, daemon=True).start()

    def _work(self, batch: Batch) -> None:
        try:
            with self._turn:
                if child := self._launched(batch):
                    child.waiter.join()
                    has_failed = child.process.returncode and not batch.stopped
                    batch.error = child.text if has_failed else ""
        except (Problem, LabError) as error:
            batch.error = str(error)
        finally:
            batch.is_active = False

    def _launched(self, batch: Batch) -> Child | None:
        """Start the process of a batch. Wait while too many runs are in progress. Return None if
        the batch is stopped meanwhile."""
        words = self._words(self._folder / f"{batch.id}.json")
        while not batch.stopped:
            try:
                self._store.refresh()
                batch.kept = _whole(self._runs().get(batch.id, []))
                batch.began = time.monotonic()
                batch.child = self._launcher.begin_batch(batch.id, words, _at_once(batch.engine))
                return batch.child
            except Problem as error:
                if error.status != 429:
                    raise
            time.sleep(POLL_S)
        return None

    def _words(self, file: Path) -> list[str]:
        return ["batch", str(file), "--runs", str(self._store.runs_folder)]

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob(f"{PREFIX}*.json"))

    def _write(self, doc: Doc, batch_id: str) -> None:
        try:
            self._folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            with plain_file.create(self._folder / f"{batch_id}.json") as file:
                json.dump(doc, file)
        except OSError as error:
            raise LabError(
                f"write the batch into {self._folder}: {error.strerror}. Make the folder writable, "
                "or free space"
            ) from error


def _read(file: Path) -> Batch | None:
    """Return the batch of a file, or None if the file is damaged."""
    try:
        doc = parse_object(plain_file.read(file))
        return Batch(
            file.stem,
            str(doc["title"]),
            int(doc["total"]),
            max(1, int(doc["repeats"])),
            [str(each) for each in doc["names"]],
            str(doc["metric"]),
            str(doc["engine"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _whole(docs: list[Doc]) -> int:
    """Return how many runs need not be made again."""
    return sum(doc["status"] == "complete" and not doc["overloaded"] for doc in docs)


def _time_left(batch: Batch, done: int) -> str:
    """Return the time that the rest of a batch takes, by the pace since its process started; "" if
    nothing has ended since."""
    ended = done - batch.kept
    if not (batch.is_active and batch.child) or ended <= 0 or done >= batch.total:
        return ""
    return time_left((time.monotonic() - batch.began) / ended * (batch.total - done))


def _at_once(engine: str) -> int:
    """Return how many runs of an engine may be in progress together.

    This is one if the engine runs in real time, otherwise the number of processors.
    """
    real_time = {row["name"]: row["real_time"] for row in catalogue.engine_rows()}
    return 1 if real_time.get(engine) else max(1, (os.cpu_count() or 1))


def _title(request: BatchRequest, found: Asked) -> str:
    named = [each or "its own strategy" for each in found.strategies]
    parts = [", ".join(named)]
    parts += [each.text().replace("=", " = ", 1) for each in request.varied()]
    if request.sweep:
        parts.append(f"{len(found.points)} points of a sweep")
    if found.repeats > 1:
        parts.append(f"{found.repeats} seeds")
    return f"{found.start.scenario}: {'; '.join(parts)} ({found.count} runs)"
