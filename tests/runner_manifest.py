"""A manifest that names the process of a run."""

import json
import os
from pathlib import Path

from lab.run import process


def write_manifest(run: Path, pid: int = os.getpid()) -> None:
    manifest = {"pid": pid, "pid_started": process.started(pid), "boot_id": process.boot_id()}
    (run / "manifest.json").write_text(json.dumps(manifest))
