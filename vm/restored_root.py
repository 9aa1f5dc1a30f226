"""Make the files of the host the root file system of a restored VM. This program runs in the VM.

It makes system calls, because each command would take a tenth of a second in a VM without KVM. The
environment variables WARM and OVERLAID come from the image in the snapshot. All other settings come
from the host as one line of JSON (`Orders`).
"""

from __future__ import annotations

import ctypes
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

READ_ONLY, BIND, MOVE, DETACH = 1, 4096, 8192, 2  # mount(2), umount2(2)
PIVOT_ROOT = 155  # the number of the system call on x86-64
OPTIONS = "trans=virtio,version=9p2000.L,access=any,msize=524288"
HOST, ROOT, CHANGES = Path("/run/host"), Path("/run/root"), Path("/run/changes")
IMAGE = Path("/image")
VOLATILE = ("/tmp", "/var/log", "/var/tmp", "/var/cache")  # noqa: S108 - chosen on purpose: see the module
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Orders:
    """The settings that the host sends to a restored VM (`_orders` in snapshot.py).

    - `visible`: folders of the host that the VM needs. They are inside folders such as /tmp, of
      which the VM has its own, so they must be made visible.
    - `time`: in s since 1970
    - `entropy`: random seed, in hexadecimal
    - `system_id`: identifier of Open vSwitch
    - `changed`: True if the lab's Python files have changed since the snapshot was made
    """

    shared: str
    visible: tuple[str, ...]
    time: float
    entropy: str
    system_id: str
    changed: bool


def mount(started: Path) -> bool:
    """Wait until the VM is restored, then make the host's files the root file system.

    Then write Open vSwitch's identifier and the path of the shared folder into the pipe `started`.
    Return True if the lab's Python files have changed since the snapshot was made.
    """
    orders = _wait()
    Path("/dev/urandom").write_bytes(bytes.fromhex(orders.entropy))
    time.clock_settime(time.CLOCK_REALTIME, orders.time)
    for folder in (HOST, ROOT, CHANGES):
        folder.mkdir()
    _mount("hostroot", HOST, "9p", READ_ONLY, f"{OPTIONS},cache=loose")
    _mount(HOST, ROOT, flags=BIND)
    for each in os.environ["OVERLAID"].split():
        if each not in VOLATILE and _is_folder(each):
            _overlay(each)
    for each in VOLATILE:
        if _is_folder(each):
            _mount("tmpfs", _in_root(each), "tmpfs", data="mode=1777")
    for each in orders.visible:  # needed folders that /tmp or /run hides
        _in_root(each).mkdir(parents=True, exist_ok=True)
        _mount(_under(HOST, each), _in_root(each), flags=BIND)
    for each in os.environ["WARM"].splitlines():  # files of the image are in the guest's memory
        if _under(IMAGE, each).is_dir() and _in_root(each).is_dir():
            lower = f"xino=off,lowerdir={_under(IMAGE, each)}:{_under(HOST, each)}"
            _mount("overlay", _in_root(each), "overlay", data=lower)
    shared = _in_root(orders.shared)
    if not shared.is_dir():
        shared.mkdir(parents=True)
    _mount("shared", shared, "9p", data=OPTIONS)
    _pivot()
    started.write_text(f"{orders.system_id} {orders.shared}\n")
    return orders.changed


def _wait() -> Orders:
    """Report that this VM is ready for its snapshot, and wait for the settings from the host.

    The host sends them only to a VM that has been restored from the snapshot.
    """
    with next(Path("/dev").glob("vport*p1")).open("r+b", buffering=0) as line:
        line.write(b"ready\n")
        received = b""
        while not received.endswith(b"\n"):
            received += line.read(4096) or b""
    return Orders(**json.loads(received))


def _pivot() -> None:
    """Make the folder `ROOT` the root file system of all processes (pivot_root(2))."""
    for each in ("dev", "proc", "sys"):
        _mount(Path("/", each), ROOT / each, flags=MOVE)
    _mount("/run", ROOT / "run", flags=BIND)
    os.chdir(ROOT)
    Path("run/old").mkdir()
    _check(_libc.syscall(PIVOT_ROOT, b".", b"run/old"), "pivot_root")
    os.chdir("/")
    _check(_libc.umount2(b"/run/old", DETACH), "umount")


def _overlay(folder: str) -> None:
    """Mount a folder of the host so that changes in it stay in the memory of the VM."""
    new, work = (_under(CHANGES, folder) / name for name in ("new", "work"))
    new.mkdir(parents=True)
    work.mkdir()
    image = _under(IMAGE, folder)
    lower = f"{image}:{_under(HOST, folder)}" if image.is_dir() else str(_under(HOST, folder))
    data = f"xino=off,lowerdir={lower},upperdir={new},workdir={work}"
    _mount("overlay", _in_root(folder), "overlay", data=data)


def _is_folder(path: str) -> bool:
    folder = _under(HOST, path)
    return folder.is_dir() and not folder.is_symlink()


def _in_root(path: str) -> Path:
    return _under(ROOT, path)


def _under(parent: Path, path: str) -> Path:
    return parent / path.lstrip("/")


def _mount(source: object, target: Path, kind: str = "", flags: int = 0, data: str = "") -> None:
    words = [os.fsencode(str(word)) for word in (source, target, kind)]
    status = _libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(data))
    _check(status, f"mount {source} on {target}")


def _check(status: int, doing: str) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{doing}: {os.strerror(number)}")
