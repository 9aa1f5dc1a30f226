"""Read a Mininet topology: a Python file in the form that `mn --custom FILE --topo NAME` takes.

The file runs with Mininet's own modules, from the folder where `setup-emulation` puts them. Without
them it runs with a stand-in (`mininet_stand_in`), and a note says so. In both cases it can describe
a network, but not start one.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

from controller.errors import UserFileRefused
from controller.user_file import described, import_file
from lab import sudo
from lab.errors import RequestError, unknown
from lab.topologies import mininet_options
from lab.topologies.found import Found, FoundLink, check_size, shown
from lab.topologies.mininet_stand_in import STARTERS, Finder, natural, starts_nothing

STAND_IN = (
    "read with the lab's stand-in for Mininet's topo module, because Mininet is not on this "
    "machine (./run_lab.sh setup-emulation)"
)
_lock = threading.RLock()  # sys.path and sys.modules belong to the whole process


def upstream() -> Path:
    """Return the folder of Mininet's sources, which may be missing."""
    return sudo.user_cache() / "upstreams" / "mininet"


def read(
    path: Path, source: bytes, topo: str | None, params: Mapping[str, Any], queue_packets: int
) -> Found:
    """Return the network of a topology class in a file, which is run.

    `topo` is a key of the file's dictionary `topos`, or the name of a class derived from `Topo`; it
    may be None if there is only one. `params` are its arguments. Links without max_queue_size have
    a queue of `queue_packets`. Raise `RequestError`, with the line of the file, if that fails.
    """
    with _mininet() as base, redirect_stdout(sys.stderr):
        try:
            module = import_file(str(path), source, re.sub(r"\W", "_", f"mininet_{path.stem}"))
        except UserFileRefused as error:
            raise RequestError(str(error)) from error
        name, make = _chosen(module, base, topo, path)
        _check_arguments(name, make, base, params)
        try:
            made = make(**params)
            if not isinstance(made, base):
                raise TypeError(f"it returned {type(made).__name__}, and not a Topo")
            found = _found(made, queue_packets)
        except RequestError as error:
            raise RequestError(f"{path}: {error}") from error
        except (Exception, SystemExit) as error:
            text = described(error, str(path))
            raise RequestError(f"build topology '{name}': {text}") from error
        stands_in = base.__module__ != "mininet.topo"
    check_size(found, path.name)
    return found.noted(STAND_IN) if stands_in else found


@contextmanager
def _mininet() -> Iterator[type]:
    """Make `import mininet` work inside the `with` block, and yield the class `Topo`."""
    folder = str(upstream())
    with _lock, _process_as_before():
        if not Path(folder, "mininet", "topo.py").is_file():
            sys.meta_path.insert(0, Finder())
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
        for name, each in STARTERS.items():
            getattr(importlib.import_module(name), each).__init__ = starts_nothing
        yield importlib.import_module("mininet.topo").Topo


@contextmanager
def _process_as_before() -> Iterator[None]:
    """Undo, at the end, what importing Mininet changes in this process. Mininet also makes its own
    class the one of all new loggers."""
    paths, finders, bytecode = [*sys.path], [*sys.meta_path], sys.dont_write_bytecode
    logger_class, loggers = logging.getLoggerClass(), logging.Logger.manager.loggerDict
    tables: tuple[dict[str, Any], ...] = (sys.modules, loggers)
    before = [{name: each.pop(name) for name in filter(_is_mininet, [*each])} for each in tables]
    try:
        yield
    finally:
        sys.path[:], sys.meta_path[:], sys.dont_write_bytecode = paths, finders, bytecode
        logging.setLoggerClass(logger_class)
        for table, kept in zip(tables, before, strict=True):
            for name in filter(_is_mininet, [*table]):
                del table[name]
            table.update(kept)


def _is_mininet(module: str) -> bool:
    return module.partition(".")[0] == "mininet"


def _chosen(
    module: ModuleType, base: type, topo: str | None, path: Path
) -> tuple[str, Callable[..., Any]]:
    """Return what builds the network, with its name: an entry of the file's `topos`, or a class of
    its own derived from `Topo`. Without a name, it must be the only one."""
    listed = getattr(module, "topos", None)
    listed = dict(listed) if isinstance(listed, dict) else {}
    classes = {
        name: each
        for name, each in vars(module).items()
        if isinstance(each, type) and issubclass(each, base) and each.__module__ == module.__name__
    }
    known = {**classes, **listed}
    if not known:
        raise RequestError(
            f"{path}: it has no topology: no dictionary 'topos' and no class derived from Topo. "
            "Put addHost, addSwitch and addLink into the method build of such a class"
        )
    usual = listed or classes
    if topo is None and len(usual) > 1:
        raise RequestError(f"topo: is missing: choose from {', '.join(usual)}")
    if topo is not None and topo not in known:
        raise RequestError(f"topo: {unknown(topo, usual)}")
    name = topo or next(iter(usual))
    return name, known[name]


def _check_arguments(
    name: str, make: Callable[..., Any], base: Any, params: Mapping[str, Any]
) -> None:
    """Raise `RequestError` if `params` are not the arguments of what builds the network."""
    has_build = isinstance(make, type) and make.__init__ is base.__init__  # type: ignore[misc]
    try:
        wanted = inspect.signature(make.build if has_build else make)  # type: ignore[attr-defined]
    except (TypeError, ValueError):  # the call itself says what is wrong
        return
    known = [*wanted.parameters.values()][has_build:]
    of_topo = ("hopts", "sopts", "lopts") if has_build else ()
    given = {key: value for key, value in params.items() if key not in of_topo}
    try:
        wanted.replace(parameters=known).bind(**given)
    except TypeError as error:
        args = shown(each.name for each in known if each.kind != each.VAR_KEYWORD) or "none"
        raise RequestError(
            f"params: topology '{name}': {error}. Its arguments are {args}: "
            "write 'params: {NAME: VALUE}'"
        ) from error


def _found(topo: Any, queue_packets: int) -> Found:
    hosts, switches = (sorted(each, key=natural) for each in (topo.hosts(), topo.switches()))
    links, ignored = [], set()
    for a, b, info in topo.links(withInfo=True):
        shape = mininet_options.shape(info, f"{a}-{b}", queue_packets)
        links.append((_order(info, hosts), FoundLink(a, b, shape)))
        ignored |= mininet_options.left_out(info)
    of_nodes = {key for each in (*hosts, *switches) for key in topo.nodeInfo(each)} - {"isSwitch"}
    notes = [f"options of links left out: {shown(sorted(ignored))}"] if ignored else []
    notes += [f"options of nodes left out: {shown(sorted(of_nodes))}"] if of_nodes else []
    ordered = tuple(link for _, link in sorted(links, key=lambda pair: pair[0]))
    return Found(tuple(hosts), tuple(switches), ordered, tuple(notes))


def _order(info: Mapping[str, Any], hosts: list[str]) -> tuple[Any, ...]:
    """Sort the links of hosts first, each host's by its port, so that h1-eth0 stays the first."""
    ends = [(info["node1"], info["port1"]), (info["node2"], info["port2"])]
    host = next((end for end in ends if end[0] in hosts), None)
    (a, port), (b, other) = (host, next(end for end in ends if end != host)) if host else ends
    return host is None, natural(a), port, natural(b), other
