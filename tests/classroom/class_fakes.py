"""A small worksheet, a clock, and runs that cost nothing.

As a program, it replaces `python -m lab run ... --out FOLDER`: it copies a finished run, named by
the environment variable FAKE_RUN, into the folder. FAKE_S is how many seconds this takes (default
0).
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

from lab.classroom.clock import ClassClock

FAKE = Path(__file__).resolve()
SHEET = """
title: Two paths
goals: [Say what a second path is good for.]
minutes: 20
steps:
  - text: "## Two paths"
    drawing: two_paths
  - predict: {id: guess, ask: "How much?", number: {unit: Mb/s, maximum: 40}}
  - run:
      id: both
      scenario: two_paths
      duration_s: 10
      settings: {topology.paths.1.delay_ms: {variant: [10, 20, 30]}}
      choose: {multipath.server_enabled: {choices: [true, false]}}
      flips: [link.path1.loss]
  - check:
      id: enough
      ask: the-question-of-the-check
      run: both
      that: result(throughput_mbps) > 9000.125 or count(flip(link.path1.loss=0.0625)) > 3
      hint: the-hint-of-the-check
      why: the-reason-of-the-check
  - question:
      id: cause
      ask: Why?
      choice: [one, two, three]
      answer: two
      points: 2
      hint: the-hint-of-the-question
      why: the-reason-of-the-question
  - question:
      id: rate
      ask: How much was it?
      number: {answer: result(throughput_mbps) + 4321.0625, tolerance: 0.5, run: both}
      hint: the-hint-of-the-number
      why: the-reason-of-the-number
  - question: {id: words, ask: "In your words?", text: true, points: 3}
  - run: {id: shown, scenario: two_paths, engine: mininet, duration_s: 5, by: instructor}
solution:
  answers: {guess: 7, cause: two, rate: 1234.5625, words: the-words-of-the-solution}
wrong:
  - {name: the-name-of-a-mistake, answers: {cause: one}, fails: [cause]}
"""


class Clock(ClassClock):
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        super().__init__(lambda: self.now, lambda: self.now)


def command() -> list[str]:
    """Command in the place of `python -m lab`."""
    return [sys.executable, "-S", str(FAKE)]


def template(folder: Path) -> Path:
    """Make a finished run of two_paths, which says that its engine is `sim`."""
    from fake_engine import FakeEngine

    from lab.run.recorder import Recorder
    from lab.run.runner import run
    from lab.scenario import loading
    from lab.scenario.loading import Overrides

    of = loading.load("two_paths", Overrides(settings=("duration_s=2",)))
    folder.mkdir(parents=True)
    run(of, FakeEngine(), Recorder(folder, of, "sim"))
    return folder


if __name__ == "__main__":
    out = Path(sys.argv[sys.argv.index("--out") + 1])
    finished = Path(os.environ["FAKE_RUN"])
    out.mkdir(exist_ok=True)
    for name in ("scenario.yaml", "samples.jsonl", "events.jsonl"):
        shutil.copy(finished / name, out / name)
    manifest = json.loads((finished / "manifest.json").read_text())
    manifest |= {"pid": os.getpid(), "pid_started": None}
    (out / "manifest.json").write_text(json.dumps(manifest))
    (out / "inbox").mkdir(exist_ok=True)
    time.sleep(float(os.environ.get("FAKE_S", "0")))
    shutil.copy(finished / "result.json", out / "result.json")
