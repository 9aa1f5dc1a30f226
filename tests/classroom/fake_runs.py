"""Stand in for `python -m lab run ... --out FOLDER`: copy a finished run into the folder.

The environment variable FAKE_RUN is the finished run. FAKE_S, if set, is how long the run goes on.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

FAKE = Path(__file__).resolve()


def template(folder: Path) -> Path:
    """Make a finished run of two_paths with the engine of the tests, and return its folder."""
    from fake_engine import FakeEngine

    from lab.run.recorder import Recorder
    from lab.run.runner import run
    from lab.scenario import loading
    from lab.scenario.overrides import Overrides

    of = loading.load("two_paths", Overrides(settings=("duration_s=2",)))
    folder.mkdir(parents=True)
    run(of, FakeEngine(), Recorder(folder, of, "sim"))
    return folder


if __name__ == "__main__":
    out = Path(sys.argv[sys.argv.index("--out") + 1])
    finished = Path(os.environ["FAKE_RUN"])
    out.mkdir(exist_ok=True)
    for name in ("scenario.yaml", "manifest.json", "samples.jsonl", "events.jsonl"):
        shutil.copy(finished / name, out / name)
    (out / "inbox").mkdir(exist_ok=True)
    time.sleep(float(os.environ.get("FAKE_S", "0")))
    shutil.copy(finished / "result.json", out / "result.json")
