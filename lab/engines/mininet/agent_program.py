"""Start the programs that run beside the traffic: the AP agent and the host agent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from lab.engines.mininet import controller_client
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger


def start(
    module: str, doing: str, configuration: Path, log: Path, ledger: Ledger, **options: Any
) -> subprocess.Popen[Any]:
    """Start a Python module with the path of its configuration file, and record the process.

    It ends when its standard input is closed. Its standard error is appended to the file `log`.
    Error messages begin with `doing`. `options` are passed to `subprocess.Popen`.
    """
    with log.open("a") as errors:
        process = shell.spawn(
            [sys.executable, "-SE", "-m", module, str(configuration)],
            doing,
            stdin=subprocess.PIPE,
            stderr=errors,
            cwd=controller_client.PROJECT,
            start_new_session=True,
            **options,
        )
    ledger.record("process", pid=process.pid)
    return process


def last_line(log: Path) -> str:
    """Return the last line of a log file, or a text that says that the file is empty."""
    return (log.read_text().strip().splitlines()[-1:] or ["its log is empty"])[0]
