"""The bpf() system call: open a pinned map, read it, write it. No process is spawned, so it fits inside a sampling loop."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from pathlib import Path

from lab.errors import LabError, MachineLacks

SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
LOOKUP, UPDATE, OBJ_GET = 1, 2, 7
_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command: int, attributes: bytes, doing: str) -> int:
    number = SYSCALL.get(platform.machine())
    if number is None:
        raise MachineLacks(
            f"{doing}: the bpf system call's number on {platform.machine()} is not known here. Use --vm on x86_64 or aarch64"
        )
    padded = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    result: int = _libc.syscall(number, command, padded, 128)
    if result < 0:
        raise LabError(f"{doing}: {os.strerror(ctypes.get_errno())}. Is the map still pinned? Type: ./run_lab.sh doctor")
    return result


class Map:
    """A pinned map with fixed key and value sizes [bytes]; flag 4 asks for the value's spin lock."""

    def __init__(self, pin: Path, key_bytes: int, value_bytes: int) -> None:
        path = ctypes.create_string_buffer(str(pin).encode())
        self.pin, self.key_bytes, self.value_bytes = pin, key_bytes, value_bytes
        self._fd = _bpf(OBJ_GET, struct.pack("=QII", ctypes.addressof(path), 0, 0), f"open the map {pin}")

    def _access(self, command: int, key: bytes, value: ctypes.Array[ctypes.c_char], flags: int) -> None:
        held = ctypes.create_string_buffer(key, self.key_bytes)
        attributes = struct.pack("=IIQQQ", self._fd, 0, ctypes.addressof(held), ctypes.addressof(value), flags)
        _bpf(command, attributes, f"{'read' if command == LOOKUP else 'write'} the map {self.pin}")

    def read(self, key: bytes, locked: bool = False) -> bytes:
        """The value under this key."""
        value = ctypes.create_string_buffer(self.value_bytes)
        self._access(LOOKUP, key, value, 4 if locked else 0)
        return value.raw

    def write(self, key: bytes, value: bytes, locked: bool = False) -> None:
        """Put a value under this key."""
        self._access(UPDATE, key, ctypes.create_string_buffer(value, self.value_bytes), 4 if locked else 0)

    def close(self) -> None:
        os.close(self._fd)
