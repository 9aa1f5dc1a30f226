"""Run virtme-run, the part of virtme-ng that starts QEMU: `python start_qemu.py ARGUMENT...`

Four things differ from the original virtme-run:

- The guest caches the files of this machine, because they do not change during a run. This makes
  Python start four times faster in the guest. The shared folder is a separate mount without a
  cache.
- The guest does not see systemd-udevd. It would look for hardware for ten seconds.
- If MULTIPATH_LAB_GUEST_TOOLS is set, the guest's first program is taken from this folder.
- QEMU is killed when the process that has started it ends.
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
mknod /hidden/{UDEVD} c 0 0  # an overlay treats this as a deleted file
mount -t overlay -o lowerdir=/hidden:/newroot/usr overlay /newroot/usr
umount -l /hidden
"""


def _die_with_parent() -> None:
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent or parent == 1:  # the parent ended before the call
        os._exit(1)


def main() -> int:
    """Patch virtme-run, run it with the arguments of this process, and return its exit status."""
    _die_with_parent()
    os.register_at_fork(after_in_child=_die_with_parent)
    mkinitramfs: Any = import_module("virtme.mkinitramfs")
    mounting = mkinitramfs._MOUNT_ROOT_HOST.replace(MOUNT_OPTIONS, f"{MOUNT_OPTIONS},cache=loose")
    mkinitramfs._MOUNT_ROOT_HOST = mounting + HIDE_UDEVD
    if tools := os.environ.get("MULTIPATH_LAB_GUEST_TOOLS"):
        import_module("virtme.resources").find_guest_tools = lambda: tools  # type: ignore[attr-defined]
    status: int = import_module("virtme.commands.run").main()
    return status


if __name__ == "__main__":
    sys.exit(main())
