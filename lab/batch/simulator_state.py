"""Find out whether the code of the simulator is compiled or interpreted on this machine.

`./run_lab.sh` installs the compiler in the background, so the result can change while the dashboard
runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lab import installed
from lab.engines.sim import code_cache
from lab.errors import LabError
from lab.run import process
from lab.run.manifest import ROOT

INSTALLING = ROOT / ".venv" / "fast.pid"  # run_lab.sh writes the id of the installing process
SLOWER = "about 12 x slower"  # testbed_wifi_lte for 60 s: 28 instead of 2.3 s of processor time
INSTALL = installed.how_to_add("fast") or f"{installed.DOOR} fast"


@dataclass(frozen=True)
class SimulatorState:
    """Whether the code of the simulator is compiled.

    `kind` is "compiled", "compiling", "installing", "interpreted" or "failed". `text` says the same
    in words, for the user.
    """

    kind: str
    text: str


def of(installing: Path = INSTALLING) -> SimulatorState:
    """Return the present state of the simulator.

    `installing` is a file with the id of the process that installs the compiler.
    """
    meanwhile = f"runs that start now are interpreted, {SLOWER}"
    if code_cache.version() is None:
        if _is_alive(installing):
            text = f"the compiler is being installed; {meanwhile}"
            return SimulatorState("installing", text)
        return SimulatorState("interpreted", f"interpreted, {SLOWER}: type {INSTALL}")
    if not code_cache.is_wanted():
        text = f"interpreted, {SLOWER}: NUMBA_DISABLE_JIT switches the compiler off"
        return SimulatorState("interpreted", text)
    try:
        where = code_cache.folder()
        if code_cache.is_complete(where):
            return SimulatorState("compiled", "compiled")
        if code_cache.has_failed(where):
            return SimulatorState("failed", f"interpreted, {SLOWER}: {code_cache.failure(where)}")
    except LabError as error:
        return SimulatorState("failed", f"interpreted, {SLOWER}: {error}")
    return SimulatorState("compiling", f"not compiled yet; {meanwhile} until the code is compiled")


def _is_alive(file: Path) -> bool:
    try:
        return process.exists(int(file.read_text(encoding="ascii")))
    except (OSError, ValueError):
        return False
