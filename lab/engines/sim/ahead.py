"""The compiler at work in two processes: what does not call each other is compiled side by side, before what calls both.

Numba keeps what it has compiled on disk (`compiled`), so what the other process leaves there is found. If it fails it has not
helped, and nothing else.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from typing import Any

from lab.engines.sim import again, hops, laws, lte, mptcp, receiver, tcp
from lab.engines.sim import layout as at
from lab.engines.sim.compiled import without_garbage
from lab.engines.sim.jit import floats, ints
from lab.manifest import ROOT

HERE = (mptcp.push, mptcp.app_due, mptcp.reassemble, again.reinject_due, receiver.received, receiver.acknowledge, tcp.measure,
        tcp.find_lost, hops.through_wire, hops.over_air_up, hops.over_air_down)  # fmt: skip
THERE = (laws.on_ack, laws.on_loss, laws.on_timeout, laws.on_round, lte.into_bearer, lte.tti_due)


def compile_parts() -> None:
    """Half of it here, half of it there; returns when both are done. On one processor there is nothing to gain."""
    if os.cpu_count() == 1:
        return
    arguments = [sys.executable, "-m", "lab.engines.sim.ahead"]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        _compile(HERE)


def _compile(functions: tuple[Any, ...]) -> None:
    """For the arguments that they are written for."""
    import numba

    world = numba.typeof(at.World(ints(1), floats(1)))
    kinds = {"at.World": world, "int": numba.int64, "bool": numba.boolean, "float": numba.float64}
    for function in functions:
        written = inspect.signature(function.py_func).parameters.values()
        function.compile(tuple(kinds[each.annotation] for each in written))


if __name__ == "__main__":
    with without_garbage():
        _compile(THERE)
