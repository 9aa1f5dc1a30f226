"""Create engines by name, and refuse scenarios that an engine cannot run.

An engine runs the network of a scenario: it emulates the network or simulates it.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from pathlib import Path

from lab import extensions
from lab.congestion import BY_DELAY
from lab.errors import LabError, MachineLacks, RequestError
from lab.run.engine import Engine, Options
from lab.scenario.engine_table import VARIANTS, entry, refuse
from lab.scenario.schema import Scenario

_loaded: dict[Path, str] = {}  # digests of the users' laws that engines of this process have loaded


def create(name: str, options: Options) -> Engine:
    """Return a new engine object. `name` is the engine's name, such as "sim". The engine's method
    `open` has not been called yet.

    Raise `RequestError` if no engine has this name, or if a user's congestion control law for this
    engine has an error. Raise `MachineLacks` if a Python module that the engine needs is missing.
    """
    load_laws(name)
    engine = _class(name)()
    engine.options, engine.real_time = options, entry(name).real_time
    return engine


def _class(name: str) -> type[Engine]:
    module, _, attribute = entry(name).path.partition(":")
    try:
        found: type[Engine] = getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise MachineLacks(f"load engine '{name}': {error}. Try: ./run_lab.sh doctor") from error
    if not issubclass(found, Engine):
        raise LabError(f"load engine '{name}': {attribute} is not an Engine")
    return found


def admit(name: str, scenario: Scenario, options: Options) -> None:
    """Raise an error if engine `name` cannot run the scenario with these options.

    The error is `RequestError` if the engine does not support the scenario, and `MachineLacks` if
    this machine cannot run it. The checks cover the speed, the Multipath TCP settings, the kinds of
    traffic, the congestion controls, and what the engine itself refuses (`Engine.check`). Call this
    before any part of the run starts.
    """
    if entry(name).real_time and options.speed != 1.0:
        raise RequestError(f"--speed on engine '{name}': it runs in real time. Leave out --speed")
    _class(name).check(scenario)
    for setting in ("stack", "scheduler", "penalisation", *VARIANTS):
        refuse(name, setting, getattr(scenario.multipath, setting))
    load_laws(name)
    for cc in scenario.congestion_controls:
        refuse(name, "cc", cc)
        if cc in BY_DELAY and scenario.multipath.by_window:
            raise RequestError(
                f"cc '{cc}' with multipath.expected_by 'window': it reacts to delay. "
                "Write expected_by: pacing"
            )


def load_laws(name: str) -> None:
    """Load the users' congestion control laws that have a file for engine `name`. Files that this
    process has loaded before are skipped unless they have changed.

    If a file has an error, raise `RequestError` with the file and the line.
    """
    suffix = entry(name).law_suffix
    paths = [extensions.law_file(each, suffix) for each in extensions.law_names(suffix)]
    for path in filter(None, paths):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if _loaded.get(path) != digest:
            _class(name).load_law(path)
            _loaded[path] = digest


def is_slow(name: str, in_vm: bool) -> bool:
    """Return True if engine `name` runs in real time on emulated processors, as in a VM without
    KVM. With `in_vm`, the engine will run in a VM that this process starts."""
    if not entry(name).real_time:
        return False
    from lab.engines.mininet.vm import vm_kernel  # for an emulation only

    return vm_kernel.SLOW_MACHINE in os.environ or (in_vm and not vm_kernel.remembered_kvm())
