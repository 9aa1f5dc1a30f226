"""Compile eBPF programs, and use pinned maps and iterators by the bpf(2) system call.

Maps and iterators are accessed without bpftool, because starting a process takes too long.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import platform
import struct
from pathlib import Path

from lab.engines.mininet.machine import shell, upstreams
from lab.errors import LabError, MachineLacks

SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
LOOKUP, UPDATE, DELETE, OBJ_PIN, OBJ_GET = 1, 2, 3, 6, 7
LOOKUP_BATCH, LINK_CREATE, ITER_CREATE = 24, 28, 33
TRACE_ITER = 28  # BPF_TRACE_ITER among the attach types
BPF_F_LOCK = 4
COUNT_OFFSET = 32  # of the number of entries in the attributes of a batch
_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command: int, attributes: bytes, doing: str) -> int:
    number = SYSCALL.get(platform.machine())
    if number is None:
        raise MachineLacks(
            f"{doing}: the number of the bpf system call on {platform.machine()} is not known. "
            "Use --vm on x86_64 or aarch64"
        )
    padded = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    result: int = _libc.syscall(number, command, padded, 128)
    if result < 0:
        raise LabError(
            f"{doing}: {os.strerror(ctypes.get_errno())}. Is the map still pinned? "
            "Type: ./run_lab.sh doctor"
        )
    return result


def _bpf_count(command: int, attributes: bytes, doing: str) -> int:
    """Carry out a bpf command that reads several entries of a map; return how many it has read.

    The kernel writes this number at `COUNT_OFFSET` of the attributes. The error ENOENT only means
    that there are no more entries. Every other error raises `LabError` with a message that begins
    with `doing`.
    """
    padded = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    result = _libc.syscall(SYSCALL.get(platform.machine(), 0), command, padded, 128)
    if result < 0 and ctypes.get_errno() != errno.ENOENT:
        raise LabError(f"{doing}: {os.strerror(ctypes.get_errno())}")
    return int(struct.unpack_from("=I", padded, COUNT_OFFSET)[0])


def _pinned(pin: Path, doing: str) -> int:
    path = ctypes.create_string_buffer(str(pin).encode())
    return _bpf(OBJ_GET, struct.pack("=QII", ctypes.addressof(path), 0, 0), doing)


def iterate(program: Path, link: Path) -> int:
    """Attach the eBPF iterator pinned at path `program`, and pin the new link at path `link`.

    Each time the file `link` is read, the iterator runs. Returns the file descriptor of the link,
    which `begin` needs.
    """
    pinned = _pinned(program, f"open the program {program}")
    try:
        ready = _bpf(
            LINK_CREATE,
            struct.pack("=IIIIQI", pinned, 0, TRACE_ITER, 0, 0, 0),
            f"prepare the iterator {program}",
        )
    finally:
        os.close(pinned)
    path = ctypes.create_string_buffer(str(link).encode())
    _bpf(OBJ_PIN, struct.pack("=QII", ctypes.addressof(path), ready, 0), f"pin {link}")
    return ready


def begin(ready: int) -> int:
    """Return a file descriptor; reading it up to the end of file runs an iterator once.

    `ready` is the file descriptor returned by `iterate`. The iterator visits the sockets in the
    network namespace of the calling thread.
    """
    return _bpf(ITER_CREATE, struct.pack("=II", ready, 0), "run an iterator")


def _parts(raw: bytes, size: int) -> list[bytes]:
    return [raw[at : at + size] for at in range(0, len(raw), size)]


class Map:
    """An eBPF map pinned at the path `pin`. Keys and values have fixed sizes."""

    def __init__(self, pin: Path, key_bytes: int, value_bytes: int) -> None:
        self.pin, self.key_bytes, self.value_bytes = pin, key_bytes, value_bytes
        self._fd = _pinned(pin, f"open the map {pin}")

    def _access(
        self, command: int, key: bytes, value: ctypes.Array[ctypes.c_char], flags: int
    ) -> None:
        buffer = ctypes.create_string_buffer(key, self.key_bytes)
        attributes = struct.pack(
            "=IIQQQ", self._fd, 0, ctypes.addressof(buffer), ctypes.addressof(value), flags
        )
        verb = "read" if command == LOOKUP else "write"
        _bpf(command, attributes, f"{verb} the map {self.pin}")

    def read(self, key: bytes, locked: bool = False) -> bytes:
        """Return the value of a key. Raises `LabError` if the map does not contain the key.

        If `locked` is True, the kernel holds the spin lock in the value while the value is copied.
        """
        value = ctypes.create_string_buffer(self.value_bytes)
        self._access(LOOKUP, key, value, BPF_F_LOCK if locked else 0)
        return value.raw

    def update_command(self, key: bytes, value: bytes) -> list[str]:
        """Return the bpftool command that sets the value of a key, for the script commands.sh."""
        entry = ("key", "hex", *key.hex(" ").split(), "value", "hex", *value.hex(" ").split())
        return ["bpftool", "map", "update", "pinned", str(self.pin), *entry]

    def find(self, key: bytes) -> bytes | None:
        """Return the value of a key; None if the map does not contain the key."""
        buffer = ctypes.create_string_buffer(key, self.key_bytes)
        value = ctypes.create_string_buffer(self.value_bytes)
        out = ctypes.addressof(buffer), ctypes.addressof(value)
        attributes = struct.pack("=IIQQQ", self._fd, 0, *out, 0)
        padded = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
        if _libc.syscall(SYSCALL.get(platform.machine(), 0), LOOKUP, padded, 128) == 0:
            return value.raw
        if ctypes.get_errno() == errno.ENOENT:
            return None
        raise LabError(f"read the map {self.pin}: {os.strerror(ctypes.get_errno())}")

    def items(self, most: int) -> list[tuple[bytes, bytes]]:
        """Return all keys and values of a hash map by one system call.

        `most` is the largest number of entries that the map can have.
        """
        keys = ctypes.create_string_buffer(most * self.key_bytes)
        values = ctypes.create_string_buffer(most * self.value_bytes)
        position = ctypes.create_string_buffer(max(8, self.key_bytes))
        out, key, value = map(ctypes.addressof, (position, keys, values))
        attributes = struct.pack("=QQQQIIQQ", 0, out, key, value, most, self._fd, 0, 0)
        count = _bpf_count(LOOKUP_BATCH, attributes, f"read the map {self.pin}")
        found = keys.raw[: count * self.key_bytes], values.raw[: count * self.value_bytes]
        sizes = self.key_bytes, self.value_bytes
        return list(zip(*map(_parts, found, sizes), strict=True))

    def write(self, key: bytes, value: bytes, locked: bool = False) -> None:
        """Set the value of a key. Raises `LabError` if the kernel refuses.

        If `locked` is True, the kernel holds the spin lock in the value while the value is copied.
        """
        buffer = ctypes.create_string_buffer(value, self.value_bytes)
        self._access(UPDATE, key, buffer, BPF_F_LOCK if locked else 0)

    def delete(self, key: bytes) -> None:
        """Delete a key and its value. Raises `LabError` if the map does not contain the key."""
        buffer = ctypes.create_string_buffer(key, self.key_bytes)
        _bpf(
            DELETE,
            struct.pack("=IIQ", self._fd, 0, ctypes.addressof(buffer)),
            f"delete from the map {self.pin}",  # noqa: S608 - no SQL
        )

    def close(self) -> None:
        os.close(self._fd)


def compiled(source: Path, description: str) -> Path:
    """Return the path of the eBPF object file of `source`; compile `source` if the cache has none.

    `source` is a C file. `description` names the program in error messages.
    """
    name = source.name.partition(".")[0]
    headers = sorted(source.parent.glob("*.h"))
    content = b"".join(each.read_bytes() for each in (source, *headers))
    digest = hashlib.sha256(content).hexdigest()[:16]
    target = upstreams.cache() / "bpf" / f"{name}-{digest}.o"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_suffix(f".{os.getpid()}")
        options = ["-O2", "-g", "-target", "bpf", *_include()]
        argv = ["clang", *options, "-c", str(source), "-o", str(draft)]
        shell.run(argv, f"compile {description}")
        draft.rename(target)
    return target


def _include() -> list[str]:
    """Options that let clang's bpf target find Debian's asm/types.h."""
    return [
        f"-I{folder}"
        for folder in Path("/usr/include").glob("*-linux-gnu")
        if (folder / "asm/types.h").exists()
    ]
