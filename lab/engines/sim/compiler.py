"""Compile the simulator's core in a separate process.

No run waits for the compiler: a first run is interpreted to its end while another process
compiles, and the next one is compiled. `python -m lab.engines.sim.compiler
[NAME=FILE...]` compiles the core, with users' congestion control laws if given.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

from lab.engines.sim import code_cache, compiled, user_laws
from lab.engines.sim.network import Network
from lab.errors import LabError
from lab.run.manifest import ROOT
from lab.scenario import loading as scenario

COMMAND = [sys.executable, "-m", "lab.engines.sim.compiler"]


def is_to_come() -> bool:
    """Return True if compiled code is not ready but is being made. Start a compiler process if none
    is running.

    Return False if compiled code is ready, or if numba is missing or switched off. Raise `LabError`
    if the compiler has failed or cannot be started.
    """
    if not code_cache.is_wanted() or code_cache.is_complete(where := compiled.folder()):
        return False
    if code_cache.has_failed(where):
        raise LabError(code_cache.failure(where))
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    try:
        if not code_cache.is_being_compiled(where):
            subprocess.Popen(_command(), cwd=ROOT, start_new_session=True, **quiet)  # type: ignore[call-overload]
    except OSError as error:
        raise LabError(f"compile the simulator into {where}: {error.strerror}") from error
    return True


def wait(cache: Path | None = None) -> None:
    """Compile the core in another process, unless it is compiled already, and return when this is
    done. Do nothing if numba is missing or switched off.

    `cache` is the cache folder to use; None means the usual one of this user. Raise
    `subprocess.CalledProcessError` if the compiler fails.
    """
    if code_cache.is_wanted():
        environment = os.environ | ({"MULTIPATH_LAB_CACHE": str(cache)} if cache else {})
        subprocess.run(_command(), cwd=ROOT, env=environment, check=True)


def _command() -> list[str]:
    return [*COMMAND, *(f"{name}={path}" for name, path in compiled.user_laws().items())]


def main(*laws: str) -> None:
    """Compile the core in this process. Each of `laws` is NAME=FILE of a user's congestion control
    law. Exit with an error if the compiler fails."""
    for each in laws:
        name, _, path = each.partition("=")
        user_laws.register(Path(path), name)
    where = compiled.folder()
    with code_cache.compiling(where) as first:
        if first:
            gc.disable()  # the compiler keeps all it makes, and scanning that takes a tenth longer
            compiled.speed_up(where)
            testbed = scenario.load("testbed_wifi_lte")
            Network(testbed.network, testbed.multipath, [], testbed.seed).run(1)
    if not code_cache.is_complete(where):
        sys.exit(f"error: {code_cache.failure(where)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
