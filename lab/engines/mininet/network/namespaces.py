"""Mount files in the mount namespaces of hosts, and network namespaces of stations on files.

When a run is killed, its stations end. Open connections can keep the namespace of a station, with
its radio, for a minute longer. A network namespace that is mounted on a file can still be entered:
`undo.namespace` does it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab.engines.mininet.machine.ledger import Ledger
from lab.errors import LabError

CLONE_FS, CLONE_NEWNS = 0x200, 0x20000
MS_BIND, MNT_DETACH = 0x1000, 2


def bind(pids: Sequence[int], source: Path, target: Path) -> None:
    """Mount the file `source` on the file `target` in the mount namespace of each process.

    `pids` are the IDs of the processes. A mount vanishes with its namespace. Raises `LabError` if
    this process is not root.
    """
    # a thread that has entered a mount namespace cannot return, so it is one of its own
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_bind, pids, source, target).result()


def keep_namespace(pid: int, path: Path) -> None:
    """Mount the network namespace of process `pid` on the new file `path`.

    The namespace then exists until the file is unmounted, even if all its processes have ended.
    Raises `LabError` if this process is not root.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    libc = ctypes.CDLL(None, use_errno=True)
    paths = (os.fsencode(f"/proc/{pid}/ns/net"), os.fsencode(path))
    _check(libc.mount(*paths, None, ctypes.c_ulong(MS_BIND), None), path)


def let_namespace_go(path: Path) -> None:
    """Remove a file of `keep_namespace` and its mount. Do nothing if it is not there."""
    ctypes.CDLL(None).umount2(os.fsencode(path), MNT_DETACH)
    path.unlink(missing_ok=True)


def _bind(pids: Sequence[int], source: Path, target: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    namespaces = [os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY) for pid in pids]
    try:
        _check(libc.unshare(CLONE_FS), source)
        for namespace in namespaces:
            _check(libc.setns(namespace, CLONE_NEWNS), source)
            paths = (os.fsencode(source), os.fsencode(target))
            _check(libc.mount(*paths, None, ctypes.c_ulong(MS_BIND), None), source)
    finally:
        for namespace in namespaces:
            os.close(namespace)


def _check(status: int, source: Path) -> None:
    if status != 0:
        problem = os.strerror(ctypes.get_errno())
        raise LabError(f"mount {source}: {problem}. The emulation needs root")


class KeptNamespaces:
    """Mount the network namespaces of stations on the files `folder`/STATION.netns."""

    def __init__(self, folder: Path, stations: Iterable[str]) -> None:
        self._files = {station: folder / f"{station}.netns" for station in stations}

    def record(self, ledger: Ledger) -> None:
        """Record the mounts in the ledger, before they are made."""
        for file in self._files.values():
            ledger.record("namespace", path=str(file))

    def mount(self, pids: Mapping[str, int]) -> None:
        """Mount the namespaces. `pids` has a process in the namespace of each station."""
        for station, file in self._files.items():
            keep_namespace(pids[station], file)

    def unmount(self) -> None:
        """Remove the mounts that exist, and their files."""
        for file in self._files.values():
            let_namespace_go(file)
