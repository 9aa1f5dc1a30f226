"""Create engines by name, and reject scenarios that an engine cannot run.

An engine is the emulation or the simulator. It runs the network of a scenario.
"""

from __future__ import annotations

import importlib

from lab import extensions
from lab.congestion import NOT_BY_WINDOW
from lab.errors import LabError, MachineLacks, RequestError
from lab.extensions import Extension
from lab.run.engine import Engine, Options
from lab.scenario.engine_table import VARIANTS, entry, refuse
from lab.scenario.schema import Scenario

_loaded: dict[tuple[str, str], Extension] = {}  # users' laws of this process, by engine and name


def create(name: str, options: Options) -> Engine:
    """Return a new engine, which is not opened yet.

    `name` is a key of the engine table (lab/scenario/engine_table.py), such as "sim". Raises
    `RequestError` if the table has no such name, or if a congestion control written by the user has
    an error. Raises `MachineLacks` if the engine needs a Python module that is missing.
    """
    load_laws(name)
    return _class(name)(options, real_time=entry(name).real_time)


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
    """Raise an error if engine `name` cannot run `scenario` with `options`.

    Call this before any part of the run starts. Raises `RequestError` if the engine does not
    support the speed, a setting of Multipath TCP, a congestion control or a kind of traffic. Raises
    `MachineLacks` if this machine cannot run the engine.
    """
    if entry(name).real_time and options.speed != 1.0:
        raise RequestError(f"--speed on engine '{name}': it runs in real time. Leave out --speed")
    _class(name).check(scenario)
    for setting in ("stack", "scheduler", "penalisation", *VARIANTS):
        refuse(name, setting, getattr(scenario.multipath, setting))
    load_laws(name)
    for cc in scenario.congestion_controls:
        refuse(name, "cc", cc)
        if cc in NOT_BY_WINDOW and scenario.multipath.by_window:
            raise RequestError(
                f"cc '{cc}' with multipath.expected_by 'window': {NOT_BY_WINDOW[cc]}. "
                "Write expected_by: pacing"
            )


def load_laws(name: str) -> None:
    """Load the congestion controls ("laws") that users have written for engine `name`.

    Each file is loaded once per process, and again if it was registered with another content.
    Raises `RequestError`, with the file and the line, if a file has an error.
    """
    suffix = entry(name).law_suffix
    files = (extensions.law_file(each, suffix) for each in extensions.law_names(suffix))
    for file in filter(None, files):
        if _loaded.get((name, file.name)) != file:
            _class(name).load_law(file.path, file.source)
            _loaded[name, file.name] = file


def is_slow(name: str, in_vm: bool) -> bool:
    """Return True if engine `name` runs in real time on emulated processors.

    That is the case for the emulation in a VM without KVM. Set `in_vm` if this process will start a
    VM for the run.
    """
    return _class(name).is_slow(in_vm)
