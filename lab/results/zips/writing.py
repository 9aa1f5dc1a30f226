"""Write a zip archive piece by piece. The same members always give the same bytes."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import plain_file
from lab.results.zips.names import SUMS

PIECE = 1 << 18  # bytes
TIME = (1980, 1, 1, 0, 0, 0)  # of every member: the archive does not depend on when it is made
MODE = 0o100644  # of every member: a plain file


@dataclass(frozen=True)
class Member:
    """A file of an archive. `pieces` is its content, and is read once."""

    name: str
    pieces: Iterable[bytes]


def zipped(members: Iterable[Member]) -> Iterator[bytes]:
    """Yield the bytes of a zip archive. Memory holds one piece and the list of names."""
    output = _Output()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in members:
            entry = zipfile.ZipInfo(member.name, TIME)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, MODE << 16
            entry.create_system = 3  # Unix, also where it is written on another system
            with archive.open(entry, "w", force_zip64=True) as file:
                for piece in member.pieces:
                    file.write(piece)
                    yield output.taken()
            yield output.taken()
    yield output.taken()


def with_digests(members: Iterable[Member]) -> Iterator[Member]:
    """Yield the members, and then a file with the digest of each, for `sha256sum -c`."""
    lines = []
    for member in members:
        digest = hashlib.sha256()
        yield Member(member.name, _noted(member.pieces, digest))
        lines.append(f"{digest.hexdigest()}  {member.name}\n")
    yield Member(SUMS, (each.encode() for each in lines))


def _noted(pieces: Iterable[bytes], digest: Any) -> Iterator[bytes]:
    for piece in pieces:
        digest.update(piece)
        yield piece


def pieces_of(path: Path) -> Iterator[bytes]:
    """Yield the content of a plain file. If it cannot be read on, the rest is missing."""
    with suppress(OSError), plain_file.opened(path) as file:
        while piece := file.read(PIECE):
            yield piece


def can_be_read(path: Path) -> bool:
    try:
        with plain_file.opened(path):
            return True
    except OSError:
        return False


class _Output(io.RawIOBase):
    """A write-only stream that collects bytes. `taken` returns the bytes and removes them."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def taken(self) -> bytes:
        found, self._pieces = b"".join(self._pieces), []
        return found
