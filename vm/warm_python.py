"""Run Python programs as forks of this process, which has already imported what they need.

python warm_python.py list POX     print the files that the imports read, as JSON
python warm_python.py serve POX    import, then serve requests in `FOLDER` until killed

POX is the folder of POX's sources. The snapshot of the VM has this process in its memory, so
programs in a restored VM import nothing.

A request is a file `requests/NAME`. It has strings, each of which ends with a null character:
working directory; files for standard input, output and error; number of words in the command line;
these words; environment variables. Writing NAME into the pipe `bell` sends the request. The answers
are the files `NAME.pid` and `NAME.status`. Requests come from machine/warm.py and guest.sh.

After the VM has been restored, this process makes the machine's files the root file system
(restored_root.py). If the lab's Python files have changed since the snapshot, it imports them
again.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import logging
import os
import runpy
import select
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = Path("/run/warm")
OWN = ("lab", "controller")  # packages of this project
RUNNER = (
    "lab.cli.run",
    "lab.cli.lists",
    "lab.cli.machine",
    "lab.cli.terminal",
    "lab.batch.single",
    "lab.run.runner",
    "lab.engines.mininet.engine",
    "lab.engines.mininet.machine.vm_kernel",
    "lab.engines.mininet.network.nodes",
    "lab.engines.mininet.network.wifi",
    "lab.engines.mininet.programs.host_agent",
    "lab.engines.mininet.programs.ap_agent",
    "lab.engines.mininet.programs.traffic",
)
POX = (
    "pox.boot",
    "pox.lib.recoco",
    "pox.lib.packet",
    "pox.lib.addresses",
    "pox.lib.ioworker",
    "pox.lib.threadpool",
    "pox.openflow",
    "pox.openflow.libopenflow_01",
    "pox.openflow.util",
    "pox.openflow.flow_table",
    "pox.version",
)
CONTROLLER = (
    "controller.topology",
    "controller.control",
    "controller.pox_ext.statistics",
    "controller.pox_ext.host_agents",
    "controller.pox_ext.openflow13_channel",
    "controller.pox_ext.run_folder",
    "controller.pox_ext.session",
)
Problems = list[tuple[str, str]]


def import_all(pox: Path) -> Problems:
    """Import the modules of the lab, POX and the controller.

    Return the failed ones with their errors.

    `pox` is the folder of POX's sources. It is in `sys.path` only during the imports. Some modules
    need objects that POX makes when it starts. These modules are unloaded at the end, so that POX
    imports them itself.
    """
    problems: Problems = []
    for name in RUNNER:
        _import(name, problems)
    logging.setLoggerClass(logging.Logger)  # Mininet's class would lose POX's log
    before = list(sys.path)
    sys.path[:0] = [str(pox), str(pox / "ext")]
    for name in (*POX, *CONTROLLER):
        _import(name, problems)
    sys.path[:] = before
    _forget(_holds_no_core)
    return problems


def _import(name: str, problems: Problems) -> None:
    try:
        importlib.import_module(name)
    except Exception as problem:  # noqa: BLE001 - it is then imported when a program needs it
        problems.append((name, repr(problem)))


def _holds_no_core(name: str) -> bool:
    """Return True if a module has imported POX's object `core` too early and got None.

    POX makes `core` when it starts.
    """
    attributes = vars(sys.modules[name])
    own = name.startswith(("pox.", *(f"{package}." for package in OWN)))
    return own and name != "pox.core" and attributes.get("core", sys) is None


def _is_own(name: str) -> bool:
    return name.partition(".")[0] in OWN


def _forget(unwanted: Any) -> None:
    """Unload all modules for which `unwanted(name)` is true. The next import loads them again."""
    for name in [name for name in sys.modules if unwanted(name)]:
        del sys.modules[name]
        parent, _, child = name.rpartition(".")
        if parent in sys.modules and hasattr(sys.modules[parent], child):
            delattr(sys.modules[parent], child)


def files() -> list[str]:
    """Return the paths of the source files and bytecode files of all imported modules."""
    found = set()
    for module in list(sys.modules.values()):
        for attribute in ("__file__", "__cached__"):
            path = getattr(module, attribute, None)
            if isinstance(path, str) and os.path.isfile(path):
                found.add(os.path.abspath(path))
    return sorted(found)


@dataclass(frozen=True)
class Request:
    """A Python program to run. The module's docstring explains the file that `read` decodes."""

    cwd: str
    streams: tuple[str, str, str]
    argv: list[str]
    environment: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> Request:
        words = [os.fsdecode(word) for word in path.read_bytes().split(b"\0")[:-1]]
        count = int(words[4])
        pairs = (word.partition("=") for word in words[5 + count :])
        environment = {name: value for name, _, value in pairs}
        return cls(words[0], (words[1], words[2], words[3]), words[5 : 5 + count], environment)


def serve(pox: Path) -> Request:
    """Import everything, then fork a child process for each request.

    This never returns in the parent.

    In each child, it returns the request, after setting the working directory, streams and
    environment.
    """
    from vm import restored_root  # main() has made it importable

    began = time.monotonic()
    problems = import_all(pox)
    gc.collect()
    gc.freeze()
    os.mkfifo(FOLDER / "bell")
    bell = os.open(FOLDER / "bell", os.O_RDWR)
    took_s = time.monotonic() - began
    print(f"{len(sys.modules)} modules in {took_s:.1f} s, failed: {problems}", flush=True)
    (FOLDER / "ready").touch()
    while not (FOLDER / "complete").exists():
        time.sleep(0.05)
    if restored_root.mount(FOLDER / "restored"):
        _forget(_is_own)
        print(f"the sources have changed: {import_all(pox)}", flush=True)
    importlib.invalidate_caches()
    children: dict[int, tuple[int, Path]] = {}
    while True:
        readable, _, _ = select.select([bell, *children], [], [])
        for handle in readable:
            if handle != bell:
                _report(handle, *children.pop(handle))
                continue
            for name in os.read(bell, 4096).decode().split():
                path = FOLDER / "requests" / name
                pid = os.fork()
                if pid == 0:
                    return _become(Request.read(path))
                children[os.pidfd_open(pid)] = (pid, path)
                _write(path.with_suffix(".pid"), str(pid))


def _report(handle: int, pid: int, path: Path) -> None:
    os.close(handle)
    _, status = os.waitpid(pid, 0)
    _write(path.with_suffix(".status"), str(os.waitstatus_to_exitcode(status)))


def _write(path: Path, text: str) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(f"{text}\n")
    draft.rename(path)


def _become(request: Request) -> Request:
    """Give this process the working directory, streams and environment of a request."""
    os.setsid()
    for each in (signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    modes = (os.O_RDONLY, *[os.O_WRONLY | os.O_APPEND | os.O_CREAT] * 2)
    for number, (path, mode) in enumerate(zip(request.streams, modes, strict=True)):
        opened = os.open(path, mode, 0o644)
        os.dup2(opened, number)
        os.close(opened)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(request.environment)
    if request.environment.get("PYTHONUNBUFFERED"):
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError):
                stream.reconfigure(write_through=True)  # type: ignore[union-attr]
    os.chdir(request.cwd)
    _show(request.argv)
    return request


def _show(argv: list[str]) -> None:
    """Make `ps` and /proc show `argv` as the command line of this process."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end of proc(5)
    text = b"\0".join(map(os.fsencode, argv))[: end - start - 1]
    ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)


def run(request: Request) -> None:
    """Run a request as Python would: a module (-m), a program text (-c) or a script.

    Other options of Python that come before these are ignored.
    """
    words = request.argv[1:]
    while words and words[0].startswith("-") and words[0] not in ("-m", "-c"):
        words = words[1:]  # such as -S and -E, which speed up a start
    path = os.environ.get("PYTHONPATH", "")
    sys.path[:0] = [each for each in path.split(":") if each]
    if words[0] == "-m":
        sys.argv = ["-m", *words[2:]]
        sys.path.insert(0, os.getcwd())
        sys.modules.pop(words[1], None)
        if words[1] in OWN:
            sys.modules.pop(f"{words[1]}.__main__", None)
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.path.insert(0, "")
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 - code of the lab or of the user who starts it
    else:
        sys.argv = list(words)
        sys.path.insert(0, str(Path(words[0]).resolve().parent))
        runpy.run_path(words[0], run_name="__main__")


def main() -> None:
    sys.path[0] = str(PROJECT)
    pox = Path(sys.argv[2])
    if sys.argv[1] == "list":
        import_all(pox)
        print(json.dumps(files()))
        return
    request = serve(pox)
    sys.path.remove(str(PROJECT))
    run(request)


if __name__ == "__main__":
    main()
