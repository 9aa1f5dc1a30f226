"""Runs virtme-run, the part of virtme-ng that starts QEMU, with three changes: `python start_qemu.py ARGUMENT...`

The guest caches the machine's files (they do not change under it) instead of asking for each one anew, which makes its
Python start four times faster; the shared folder is mounted apart and stays uncached. It does not see systemd-udevd, which
would look for ten seconds at hardware nobody needs. And QEMU dies with whoever started this, however that ended.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from importlib import import_module
from typing import Any

SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)
MOUNT_OPTIONS = "msize=524288"
UDEVD = "lib/systemd/systemd-udevd"
HIDE_UDEVD = f"""
mkdir -p /hidden && mount -t tmpfs hidden /hidden && mkdir -p /hidden/lib/systemd
mknod /hidden/{UDEVD} c 0 0  # an overlay takes this for a deleted file
mount -t overlay -o lowerdir=/hidden:/newroot/usr overlay /newroot/usr
umount -l /hidden
"""


def _die_with_parent() -> None:
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent or parent == 1:  # it was gone before the call
        os._exit(1)


def main() -> int:
    _die_with_parent()
    os.register_at_fork(after_in_child=_die_with_parent)
    mkinitramfs: Any = import_module("virtme.mkinitramfs")
    mounting = mkinitramfs._MOUNT_ROOT_HOST.replace(MOUNT_OPTIONS, f"{MOUNT_OPTIONS},cache=loose")
    mkinitramfs._MOUNT_ROOT_HOST = mounting + HIDE_UDEVD
    status: int = import_module("virtme.commands.run").main()
    return status


if __name__ == "__main__":
    sys.exit(main())
