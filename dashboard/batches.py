"""Batches: groups of runs of one scenario, with all combinations of strategies, values of one key,
and seeds.

The id of a batch is a tag of its runs, so that the runs are listed together even after a restart of
the dashboard. A thread starts the runs, a few at the same time.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import Field

from dashboard.base.errors import Problem
from dashboard.base.requests import Body
from dashboard.runs import Launcher, StartRequest, checked, settings_bytes
from lab.errors import LabError
from lab.results.store import UNFINISHED, Store
from lab.run import stopping
from lab.scenario import catalogue, loading

PREFIX = "batch-"  # begins the tag of each run of a batch
MOST_RUNS = 200
MOST_BYTES = 500_000  # of the settings of all runs that are checked, which takes some seconds
POLL_S = 0.3
Doc = dict[str, Any]  # JSON


class Varied(Body):
    """A key of the scenario, such as `topology.rate_mbps`, and the values to try in turn."""

    key: str = Field(min_length=1)
    values: tuple[Any, ...] = Field(min_length=1, max_length=50)


class BatchRequest(Body):
    """The body of POST /api/batches.

    `start` is the request from which the runs of the batch are made. Its `params` apply only to
    the runs with the strategy of `start`.
    """

    start: StartRequest
    strategies: tuple[str, ...] = Field((), description="default: that of `start`", max_length=20)
    repeats: int = Field(1, ge=1, le=100, description="runs with consecutive seeds")
    vary: Varied | None = None


@dataclass
class Batch:
    """A batch that this dashboard started.

    `errors` has one text for each run that could not be started. If `stopped`, no more runs are
    started.
    """

    id: str
    title: str
    requests: list[StartRequest]
    errors: list[str] = field(default_factory=list)
    stopped: bool = False


def planned(request: BatchRequest) -> list[StartRequest]:
    """Return one request for each run of a batch.

    Repeats have consecutive seeds. The first seed is that of `request.start`, or that of the
    scenario if the request has none. Raise `Problem` if there are more than `MOST_RUNS` runs.
    """
    start = request.start
    first = loading.load(start.scenario).seed if start.seed is None else start.seed
    strategies = request.strategies or (start.strategy,)
    values: tuple[Any, ...] = request.vary.values if request.vary else (None,)
    count = len(strategies) * len(values) * request.repeats
    if count > MOST_RUNS:
        raise Problem(422, f"start {count} runs: at most {MOST_RUNS} at once. Choose fewer")
    runs = []
    for n, strategy, value in itertools.product(range(request.repeats), strategies, values):
        varied = {request.vary.key: value} if request.vary else {}
        params = start.params if strategy == start.strategy else {}
        changes = {"strategy": strategy, "params": params, "seed": first + n}
        runs.append(start.model_copy(update=changes | {"set": start.set | varied}))
    return runs


class Batches:
    """Starts and stops batches of runs, and reports their progress."""

    def __init__(self, store: Store, launcher: Launcher) -> None:
        self._store, self._launcher = store, launcher
        self._batches: dict[str, Batch] = {}
        self._mutex = threading.Lock()

    def start(self, request: BatchRequest) -> str:
        """Start a batch of runs in a new thread. Return the id of the batch.

        Raise an error and start nothing if one of the runs is refused.
        """
        requests = planned(request)
        # other seeds change nothing that is checked
        different = [each for each in requests if each.seed == requests[0].seed]
        if (size := sum(map(settings_bytes, different))) > MOST_BYTES:
            raise Problem(
                422,
                f"start {len(requests)} runs: their settings have {size} bytes: at most "
                f"{MOST_BYTES} are possible. Choose fewer values, or write a scenario file and use "
                "./run_lab.sh run FILE --vary",
            )
        for each in different:
            checked(each)
        with self._mutex:
            batch_id = f"{PREFIX}{datetime.now():%Y%m%d-%H%M%S}-{len(self._batches) + 1}"
            batch = Batch(batch_id, _title(request, len(requests)), requests)
            self._batches[batch_id] = batch
        threading.Thread(target=self._work, args=(batch,), name=batch_id, daemon=True).start()
        return batch_id

    def rows(self) -> list[Doc]:
        """Return one row for each batch, the latest batch first, with its runs and their
        progress."""
        self._store.refresh()
        tagged: dict[str, list[Doc]] = {name: [] for name in self._batches}
        for doc in self._store.all():
            for tag in doc["tags"]:
                if tag.startswith(PREFIX):
                    tagged.setdefault(tag, []).append(doc)
        return [self._row(name, docs) for name, docs in sorted(tagged.items(), reverse=True)]

    def stop(self, batch_id: str) -> None:
        """Stop the running runs of a batch, and start no more.

        Raise `Problem` if this dashboard did not start the batch.
        """
        batch = self._batches.get(batch_id)
        if batch is None:
            raise Problem(404, f"batch '{batch_id}' is unknown, or an earlier dashboard started it")
        batch.stopped = True
        for row in self.rows():
            if row["id"] == batch_id:
                for run_id in row["unfinished"]:
                    self._stop_run(run_id)

    def stop_all(self) -> None:
        """Start no more runs of any batch. Runs in progress continue."""
        for batch in self._batches.values():
            batch.stopped = True

    def _stop_run(self, run_id: str) -> None:
        try:
            stopping.stop(self._store.folder(run_id))
        except LabError:
            return  # it has ended meanwhile

    def _row(self, name: str, docs: list[Doc]) -> Doc:
        batch = self._batches.get(name)
        unfinished = [doc["id"] for doc in docs if doc["status"] in UNFINISHED]
        errors = batch.errors if batch else []
        total = len(batch.requests) if batch else len(docs)
        done = len(docs) - len(unfinished)
        return {
            "id": name,
            "title": batch.title if batch else f"{docs[0]['scenario']}: {len(docs)} runs",
            "total": total,
            "done": done,
            "runs": [doc["id"] for doc in docs],
            "unfinished": unfinished,
            "errors": errors,
            "over": not unfinished
            and (batch is None or batch.stopped or done + len(errors) >= total),
        }

    def _work(self, batch: Batch) -> None:
        at_once = _at_once(batch.requests[0].engine)
        running: list[str] = []
        for request in batch.requests:
            while not batch.stopped and len(running) >= at_once:
                time.sleep(POLL_S)
                self._store.refresh()
                running = [each for each in running if self._is_unfinished(each)]
            if batch.stopped:
                return
            if run_id := self._begin(batch, request):
                running.append(run_id)

    def _begin(self, batch: Batch, request: StartRequest) -> str | None:
        """Start one run, tag it with the id of the batch, and return its id. Wait while too many
        runs are in progress.

        Return None if the batch is stopped. Also return None if the run cannot start, and add the
        error to `batch.errors`.
        """
        while not batch.stopped:
            try:
                run_id = self._launcher.start(request)
                self._store.refresh()
                self._store.annotate(run_id, [batch.id])
                return run_id
            except (Problem, LabError) as error:
                if getattr(error, "status", 0) != 429:
                    batch.errors.append(str(error))
                    return None
            time.sleep(POLL_S)
        return None

    def _is_unfinished(self, run_id: str) -> bool:
        try:
            return self._store.get(run_id)["status"] in UNFINISHED
        except LabError:
            return False


def _at_once(engine: str) -> int:
    """Return how many runs of an engine may be in progress together.

    This is one if the engine runs in real time, otherwise the number of processors.
    """
    real_time = {row["name"]: row["real_time"] for row in catalogue.engine_rows()}
    return 1 if real_time.get(engine) else max(1, (os.cpu_count() or 1))


def _title(request: BatchRequest, count: int) -> str:
    start = request.start
    parts = [", ".join(request.strategies or (start.strategy or "its own strategy",))]
    if request.vary:
        values = ", ".join(str(each) for each in request.vary.values)
        parts.append(f"{request.vary.key} = {values}")
    if request.repeats > 1:
        parts.append(f"{request.repeats} seeds")
    return f"{start.scenario}: {'; '.join(parts)} ({count} runs)"
