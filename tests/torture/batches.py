"""A batch is killed at random moments, and the same command continues it."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import fake_engine

from lab.batch.job import Job
from lab.batch.jobs import run_each
from lab.batch.request import Request, checked
from lab.batch.single import run_job
from lab.results import compare_text
from lab.run.outcome import Outcome, is_whole
from lab.scenario.engine_table import ENGINES
from torture.campaign import Campaign, Counts, Failed
from torture.kills import copy_of_this_process

STRATEGIES = ("none", "meter_throttling")


class _Silent:
    def run(self, job: Job) -> Outcome:
        return run_job(job, lambda _: None)

    def say(self, text: str) -> None:
        pass


class Batches(Campaign):
    name = "batches"
    what = "kill -9 of a batch of 200 runs or of one of its workers; the same command continues it"
    hangs_after_s = 120.0
    repeat = 100  # runs of each strategy

    def prepare(self) -> None:
        self.engines = dict(ENGINES)
        fake_engine.register()
        self.out, self.problem = self.folder / "batch", self.folder / "problem"
        self.earlier: dict[Path, bytes] = {}
        undisturbed, start = self.folder / "undisturbed", time.monotonic()
        os.waitpid(self._begun(undisturbed), 0)
        self.longest_s = (time.monotonic() - start) / 2  # until a kill, however slow the machine is
        self._check_problem()
        self.table = self._table(undisturbed)

    def finish(self) -> None:
        ENGINES.clear()
        ENGINES.update(self.engines)

    def trial(self, rng: random.Random) -> Counts:
        """Begin or continue the batch, and kill it; when all its runs are there, compare."""
        command, kills = self._begun(self.out), 0
        time.sleep(rng.uniform(0, self.longest_s))
        if rng.random() < 1 / 3 and (workers := _children(command)):
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(rng.choice(workers), signal.SIGKILL)
                kills += 1
            time.sleep(rng.uniform(0, self.longest_s))
        os.kill(command, signal.SIGKILL)
        kills += os.WIFSIGNALED(os.waitpid(command, 0)[1])  # else it had ended before
        self._check_problem()
        self._check_earlier()
        return Counts(1, kills)

    def _check_earlier(self) -> None:
        """Raise `Failed` if a run that was complete was made again or lost, or if the table of the
        whole batch is another one."""
        found = {path: path.read_bytes() for path in self.out.glob("*/result.json")}
        results = {path: text for path, text in found.items() if is_whole(json.loads(text))}
        lost = [path for path, text in self.earlier.items() if results.get(path) != text]
        self.earlier = results
        if lost:
            raise Failed(f"{len(lost)} complete runs are lost, such as {lost[0].parent.name}")
        if len(results) == len(STRATEGIES) * self.repeat:
            if self._table(self.out) != self.table:
                raise Failed("the table is not that of an undisturbed batch")
            shutil.rmtree(self.out)
            self.earlier = {}

    def _begun(self, out: Path) -> int:
        return copy_of_this_process(lambda: self._make(out))

    def _make(self, out: Path) -> None:
        try:
            request = Request(
                "testbed_wifi_lte", "fake", STRATEGIES, repeat=self.repeat, duration_s=1, out=out
            )
            for _, outcome in run_each(checked(request), _Silent()):
                if outcome.exit_code:
                    self.problem.write_text(f"{outcome.folder.name}: {outcome.error}")
        except Exception as error:
            self.problem.write_text(f"{type(error).__name__}: {error}")
            raise

    def _check_problem(self) -> None:
        if self.problem.exists():
            text = self.problem.read_text()
            self.problem.unlink()
            raise Failed(f"the batch was not continued: {text}")

    def _table(self, out: Path) -> str:
        folders = sorted(path.parent for path in out.glob("*/result.json"))
        return compare_text.report(folders, as_json=False)


def _children(pid: int) -> list[int]:
    try:
        return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


ALL = (Batches,)
