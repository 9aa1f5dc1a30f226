"""Mount files inside hosts, that is, in the mount namespaces of their processes."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab.errors import LabError

CLONE_FS, CLONE_NEWNS = 0x200, 0x20000
MS_BIND = 0x1000


def bind(pids: Sequence[int], source: Path, target: Path) -> None:
    """Mount the file `source` on the file `target` in the mount namespace of each process.

    `pids` are the IDs of the processes. A mount vanishes with its namespace. Raises `LabError` if
    this process is not root.
    """
    # a thread that has entered a mount namespace cannot return, so it is one of its own
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_bind, pids, source, target).result()


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
        raise LabError(f"mount {source} inside the hosts: {problem}. The emulation needs root")
