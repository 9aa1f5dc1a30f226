"""A storage for TinyDB that survives lost processes and full disks: the state in memory, replaced on disk as a whole.

1) write beside, fsync, keep the last good copies as NAME.1 to NAME.3, rename into place, fsync the folder
2) a file that another process replaced is read again
3) a file that cannot be read is moved aside, and the newest good copy takes its place
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tinydb.storages import Storage

COPIES = 3
State = dict[str, dict[str, Any]]


class AtomicStorage(Storage):
    """One JSON file. `recovered` says what was lost and kept if the file was damaged, for people."""

    def __init__(self, path: Path) -> None:
        self.path, self.recovered = path, ""
        self._state: State | None = None
        self._seen: tuple[int, int, int] | None = None
        self._held = False
        path.parent.mkdir(parents=True, exist_ok=True)

    def read(self) -> State | None:
        if not self._held and self._stamp() != self._seen:
            self._load()
        return self._state

    def write(self, data: State) -> None:
        self._state = data
        if not self._held:
            self._save()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Several changes become one write; none of them if an error interrupts them."""
        self.read()
        before = json.dumps(self._state)
        self._held = True
        try:
            yield
        except BaseException:
            self._state = json.loads(before)
            raise
        finally:
            self._held = False
        if json.dumps(self._state) != before:
            self._save()

    def _load(self) -> None:
        self._state = None
        for path in (self.path, *self._copies()):
            try:
                self._state = _parsed(path.read_bytes())
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                aside = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
                path.replace(aside)
                self.recovered = (
                    f"{path.name} could not be read ({error}) and is kept as {aside.name}"
                )
                continue
            if path != self.path:
                self.recovered += f"; {path.name} took its place"
                self._save()
            break
        self._seen = self._stamp()

    def _save(self) -> None:
        beside = self.path.with_name(f".{self.path.name}.new")
        with beside.open("w", encoding="utf-8") as file:
            json.dump(self._state, file, ensure_ascii=False, separators=(",", ":"))
            file.flush()
            os.fsync(file.fileno())
        self._rotate()
        beside.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._seen = self._stamp()

    def _rotate(self) -> None:
        """The file there is becomes copy 1; it also stays in place until it is replaced."""
        if not self.path.exists():
            return
        copies = self._copies()
        for younger, older in zip(reversed(copies[:-1]), reversed(copies[1:]), strict=True):
            with suppress(FileNotFoundError):
                younger.replace(older)
        os.link(self.path, copies[0])

    def _copies(self) -> list[Path]:
        return [self.path.with_name(f"{self.path.name}.{n}") for n in range(1, COPIES + 1)]

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            return None
        return stat.st_mtime_ns, stat.st_ino, stat.st_size


def _parsed(text: bytes) -> State:
    state = json.loads(text)
    if not isinstance(state, dict) or not all(isinstance(table, dict) for table in state.values()):
        raise ValueError("it holds no tables")
    return state
