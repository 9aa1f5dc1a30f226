"""Unpack a zip archive of runs that may come from anybody.

Names, numbers and sizes are checked before a byte is unpacked. The real bytes are counted while
unpacking, because an archive can lie about them. Only what `writing` can write is accepted.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lab import plain_file
from lab.errors import LabError, RequestError, show
from lab.results.zips import names
from lab.results.zips.names import SUMS

MOST_MEMBERS = 500_000
MOST_BYTES = 64 * 2**30  # of all members together
MOST_OF_SUMS = 64 * 2**20
MOST_OF_LIST = 128 * 2**20  # bytes of the list at the end, which is read into memory
MOST_RATIO, SMALL = 500, 1 << 20  # bytes per packed byte; a smaller member may have any ratio
PIECE = 1 << 18
LOCAL_HEADER = 30  # bytes, without the name
END, END_64, LOCATOR = struct.Struct("<4s4H2LH"), struct.Struct("<4sQ2H2L4Q"), 20
BAD_FLAGS = ~(0x800 | 0x8 | 0x6)  # UTF-8, sizes behind the data, effort; others, as of encryption
FOUR_GIB = 0xFFFFFFFF
SUM = re.compile(r"([0-9a-f]{64}) [ *](.+)")
DAMAGED = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError),
    *(NotImplementedError, RuntimeError, ValueError, OverflowError),
)


@dataclass(frozen=True)
class Unpacked:
    """The files of an archive, in a folder.

    `digests` are those of the unpacked files, and `promised` those that the archive gives for them.
    """

    folder: Path
    digests: Mapping[str, str]
    promised: Mapping[str, str]

    @property
    def differing(self) -> tuple[str, ...]:
        """The files whose digest is not the promised one, or of which only one is there."""
        names = sorted(self.digests.keys() | self.promised.keys())
        return tuple(each for each in names if self.digests.get(each) != self.promised.get(each))


def unpack(path: Path, folder: Path) -> Unpacked:
    """Unpack the archive at `path` into the new or empty `folder`.

    Raise `RequestError` if it is no zip archive of runs, or if it is damaged. Nothing is written
    outside of `folder`.
    """
    with _opened(path) as archive:
        members = _checked(path, archive)
        room = shutil.disk_usage(folder).free
        if (size := sum(each.file_size for each in members)) > room:
            raise LabError(
                f"verify {path}: unpacked it takes {size >> 20} MiB, and {folder} has "
                f"{room >> 20} MiB: free space, or choose another place with --out"
            )
        sums = next(each for each in members if each.filename == SUMS)
        promised = _promised(path, b"".join(_pieces(archive, sums)))
        digests = {
            each.filename: _unpacked(archive, each, folder) for each in members if each is not sums
        }
    return Unpacked(folder, digests, promised)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with plain_file.opened(path, follow=True) as file:
            _check_list(path, file)
            with zipfile.ZipFile(file) as archive:
                yield archive
    except DAMAGED as error:
        raise _refused(path, f"it is damaged: {error}") from error
    except OSError as error:
        raise RequestError(f"verify {path}: {error.strerror or error}") from error


def _refused(path: Path, why: str) -> RequestError:
    return RequestError(
        f"verify {path}: {why}. Give a file that ./run_lab.sh export RUN... -o X.zip has written"
    )


def _check_list(path: Path, file: BinaryIO) -> None:
    """Check number and size of the list of members, before it is read into memory."""
    size = file.seek(0, os.SEEK_END)
    if size < END.size:
        raise _refused(path, "it is no zip archive")
    file.seek(size - END.size)
    mark, disk, of_list, here, count, length, offset, comment = END.unpack(file.read(END.size))
    if mark != b"PK\5\6" or comment or disk or of_list:
        raise _refused(path, "it is no zip archive, or other bytes follow it")
    end = size - END.size
    if FOUR_GIB in (length, offset) or count == 0xFFFF:
        end -= LOCATOR + END_64.size
        file.seek(max(0, end))
        large = END_64.unpack(file.read(END_64.size))
        if large[0] != b"PK\6\6":
            raise _refused(path, "its list of members is damaged")
        here, count, length, offset = large[6:]
    if count > MOST_MEMBERS or length > MOST_OF_LIST:
        raise _refused(path, f"it has more than {MOST_MEMBERS} members, or a list too long to read")
    if here != count or offset + length != end:
        raise _refused(path, "its list of members is not where it says")
    file.seek(0)


def _checked(path: Path, archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    members = archive.infolist()
    for each in members:
        if problem := _wrong(each):
            raise _refused(path, f"{show(each.filename)}: {problem}")
    if twin := names.twins(each.filename for each in members):
        raise _refused(path, f"{show(twin)} is there twice, or as a file and a folder")
    if sum(each.file_size for each in members) > MOST_BYTES:
        raise _refused(path, f"it is larger than {MOST_BYTES >> 30} GiB unpacked")
    in_order = sorted(members, key=lambda each: each.header_offset)
    ends = [*(each.header_offset for each in in_order[1:]), archive.start_dir]
    for each, end in zip(in_order, ends, strict=True):
        if each.header_offset + LOCAL_HEADER + each.compress_size > end:
            raise _refused(path, f"{show(each.filename)} overlaps another member")
    found = {each.filename for each in members}
    if SUMS not in found or not any(each.endswith("/manifest.json") for each in found):
        raise _refused(path, f"it holds no {SUMS} or no run")
    return members


def _wrong(member: zipfile.ZipInfo) -> str:
    """Return why a member must not be unpacked, or ""."""
    if member.filename != member.orig_filename:
        return "its name holds a null byte"
    if problem := names.wrong(member.filename):
        return problem
    if not member.flag_bits & 0x800 and not member.filename.isascii():
        return "its name is not UTF-8"
    if member.flag_bits & BAD_FLAGS:
        return "it is encrypted, or has another mark that is unknown"
    if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
        return "it is a link, a folder or a device"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "it is packed in another way than deflate"
    if member.file_size > max(SMALL, MOST_RATIO * member.compress_size):
        return f"it grows to more than {MOST_RATIO} times its size"
    if member.filename == SUMS and member.file_size > MOST_OF_SUMS:
        return "it is too large"
    return ""


def _pieces(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    size = 0
    with archive.open(member) as file:
        while piece := file.read(PIECE):
            size += len(piece)
            if size > member.file_size:
                raise zipfile.BadZipFile(f"{show(member.filename)} is larger than it says")
            yield piece
    if size != member.file_size:
        raise zipfile.BadZipFile(f"{show(member.filename)} is shorter than it says")


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path) -> str:
    """Write a member into a new file and return its digest."""
    try:
        return _written(_pieces(archive, member), folder / member.filename)
    except OSError as error:
        raise LabError(
            f"verify: write {member.filename} in {folder}: {error.strerror or error}: free space, "
            "or choose another place with --out"
        ) from error


def _written(pieces: Iterator[bytes], target: Path) -> str:
    digest = hashlib.sha256()
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(target, flags, 0o600), "wb") as file:
        for piece in pieces:
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def _promised(path: Path, content: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in content.decode(errors="replace").splitlines():
        parts = SUM.fullmatch(line)
        if parts is None or names.wrong(parts[2]) or parts[2] in found:
            raise _refused(path, f"{SUMS} is damaged")
        found[parts[2]] = parts[1]
    return found
