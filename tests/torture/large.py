"""A run of a million samples: every page and command reads it in a bounded time and memory."""

from __future__ import annotations

import json
import random
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from run_edits import seal

from dashboard.app import create_app
from lab.errors import RequestError
from lab.results import compare
from lab.results.store import Store
from lab.worksheets.evaluation import RunFiles
from torture.campaign import Campaign, Counts, Failed
from torture.http import KEY, NO_RUN, finished_run
from torture.machine import in_a_copy

MOST_S = 60.0  # of one request
MOST_BYTES = 1536 << 20  # that one request may take, beside what the process has before
LIMIT_BYTES = 3 << 30  # so that a request that takes more does not take the machine
READS = (
    *(
        "/api/runs/large",
        "/api/runs/large/charts",
        "/api/runs/large/frames?points=600",
        "/runs/large",
    ),
    *("/api/runs/large/changes", "/api/compare?runs=large,other", "/compare?runs=large,other"),
    *("/api/compare/charts?runs=large,other", "/api/runs", "/api/runs/large/network"),
    *(f"/api/runs/large/export?format={each}" for each in ("csv", "json", "zip")),
    *("store", "compare", "worksheet"),
)


class Large(Campaign):
    name = "large"
    what = "requests for a run of a million samples, in bounded time and memory"
    hangs_after_s = 240.0
    in_turn = False
    lines = 1_000_000

    def prepare(self) -> None:
        self.runs = self.folder / "runs"
        for name in ("large", "other"):
            finished_run(self.runs / name)
        grow(self.runs / "large", self.lines)

    def trial(self, rng: random.Random) -> Counts:
        read = rng.choice(READS)
        if problem := in_a_copy(lambda: self.measured(read)):
            raise Failed(f"{read} of {self.lines:,} samples: {problem}")
        return Counts(1)

    def measured(self, read: str) -> str:
        """Do one reading; return what was wrong with it."""
        act = self.act(read)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        present = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (present + LIMIT_BYTES, present + LIMIT_BYTES))
        began = time.monotonic()
        try:
            status = act()
        except MemoryError:
            return f"it took more than {LIMIT_BYTES >> 20} MiB"
        took_s = time.monotonic() - began
        taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before
        if status >= 400:
            return f"status {status}"
        if took_s > MOST_S or taken > MOST_BYTES:
            return (
                f"{took_s:.1f} s and {taken >> 20} MiB, over {MOST_S:g} s or {MOST_BYTES >> 20} MiB"
            )
        return ""

    def act(self, read: str) -> Callable[[], int]:
        def of(do: Callable[[], Any]) -> Callable[[], int]:
            return lambda: 200 if do() is not NotImplemented else 500

        def checked() -> None:
            with suppress(RequestError):  # it is too large
                RunFiles.read(self.runs / "large")

        match read:
            case "store":
                return of(Store(self.runs).refresh)
            case "compare":
                return of(lambda: compare.read_run(self.runs / "large"))
            case "worksheet":
                return of(checked)
        client = create_app({"RUNS": self.runs, "KEY": KEY, "COMMAND": NO_RUN}).test_client()
        headers = {"Authorization": f"Bearer {KEY}"}

        def request() -> int:
            with client.get(read, headers=headers, buffered=False) as answer:
                for _ in answer.response:
                    pass
                return int(answer.status_code)

        return request


def grow(folder: Path, lines: int) -> None:
    """Give a finished run `lines` samples, 0.01 s apart, and the digests that fit."""
    path = folder / "samples.jsonl"
    line = json.loads(path.read_text().splitlines()[0])
    begin, comma, rest = json.dumps({**line, "t": 0}).partition(', "')
    rest = comma + rest
    if '"t": 0' not in begin:
        raise Failed(f"a sample does not begin with its time: {begin}")
    with path.open("w") as file:
        for n in range(1, lines + 1):
            file.write(f'{{"t": {n / 100}{rest}\n')
    seal(folder)


ALL = (Large,)
