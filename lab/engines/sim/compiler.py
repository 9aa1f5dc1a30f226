"""Compile the simulator's core in a separate process, so that no run waits for the compiler. A run
that begins before the end of the compilation is interpreted; later runs are compiled.

Usage: `python -m lab.engines.sim.compiler [NAME=FILE...]`. Each NAME=FILE is a user's congestion
control, which is compiled together with the core.
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
from lab.scenario.targets import SetLinkQueue, SetLinkRate

COMMAND = [sys.executable, "-m", "lab.engines.sim.compiler"]


def is_to_come() -> bool:
    """Return True if a process is compiling the core now. If no such process is running, and the
    core is not compiled yet, start one and return True.

    Return False if compiled code is ready, or if numba is missing or switched off. Raise `LabError`
    if an earlier compilation has failed or the process cannot be started.
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
    """Compile the core in another process, and wait until this process ends. Do nothing if numba is
    missing or switched off. Existing compiled code is not compiled again.

    `cache` is the cache folder; None means the user's own. Raise `subprocess.CalledProcessError` if
    the compilation fails.
    """
    if code_cache.is_wanted():
        environment = os.environ | ({"MULTIPATH_LAB_CACHE": str(cache)} if cache else {})
        subprocess.run(_command(), cwd=ROOT, env=environment, check=True)


def _command() -> list[str]:
    return [*COMMAND, *(f"{name}={path}" for name, path in compiled.user_laws().items())]


def main(*laws: str) -> None:
    """Compile the core in this process. Each of `laws` is NAME=FILE of a user's congestion control.
    Exit with an error message if the compilation fails."""
    for each in laws:
        name, _, path = each.partition("=")
        user_laws.register(Path(path), name)
    where = compiled.folder()
    with code_cache.compiling(where) as first:
        if first:
            gc.disable()  # the compiler keeps all it makes, and scanning that takes a tenth longer
            compiled.speed_up(where)
            testbed = scenario.load("testbed_wifi_lte")
            network = Network(testbed.network, testbed.multipath, [], testbed.seed)
            network.run(1)
            network.mark_named()
            link = testbed.network.links[0].id
            network.set_link(SetLinkRate(link, 1))
            network.set_link(SetLinkQueue(link, kind="codel"))
    if not code_cache.is_complete(where):
        sys.exit(f"error: {code_cache.failure(where)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
