"""The names of files in a zip archive of runs."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath

SUMS = "sha256sums"
LONGEST_NAME, LONGEST_PART = 1000, 200  # bytes; file systems take 255
NOT_IN_A_NAME = '\\:"<>|?*'  # some systems read them as folders, drives or patterns
CONTROL = ("Cc", "Cf", "Cs", "Zl", "Zp")  # Unicode categories that terminals and lists misread


def wrong(name: str) -> str:
    """Return why a file must not have this name below the folder of an archive, or ""."""
    parts = name.split("/")
    if name.startswith("/"):
        return "it is an absolute path"
    if not all(parts):
        return "it is no file"
    if any(each in (".", "..") for each in parts):
        return "it leaves its folder"
    if any(not _is_plain(each) for each in name):
        return "a character of it is not allowed"
    if any(each.endswith((".", " ")) for each in parts):
        return "a part of it ends with a dot or space, which some systems drop"
    if len(name.encode()) > LONGEST_NAME or any(len(p.encode()) > LONGEST_PART for p in parts):
        return "it is too long"
    return ""


def _is_plain(character: str) -> bool:
    return character not in NOT_IN_A_NAME and unicodedata.category(character) not in CONTROL


def key(name: str) -> str:
    """Return what is equal for two names that are one file on some file systems."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def twins(names: Iterable[str]) -> str:
    """Return a name that some systems take for another one, or that is a file and a folder; ""
    if there is none."""
    files: set[str] = set()
    folders: dict[str, str] = {}
    for name in names:
        if (own := key(name)) in files:
            return name
        files.add(own)
        for each in list(PurePosixPath(name).parents)[:-1]:
            spelled = folders.setdefault(key(str(each)), str(each))
            if spelled != str(each):
                return name
    return next((spelled for folded, spelled in folders.items() if folded in files), "")
