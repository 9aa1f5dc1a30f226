"""Make the records of a simulated network (`core.state`): Python objects for interpreted runs, rows
of eight-byte words for compiled ones.

A field of a row is an integer, a floating-point number, or the address of another row. From Python,
a row is read and written through a `Row` object, which has the fields of the record. Rows are equal
if they are the same row; two `Row` objects may stand for one. So compare records with `==`.
"""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from lab.engines.sim.core.jit import RECORDS

Record = TypeVar("Record")
Group = list[tuple[int, int]]  # addresses and numbers of words, see `Objects.group`
WORD = 8  # bytes
BLOCK_WORDS = 1 << 15
NUMBERS: dict[str, type[ctypes.c_int64 | ctypes.c_double]] = {
    "int": ctypes.c_int64,
    "float": ctypes.c_double,
}


class Row(ctypes.Structure):
    """A record in the memory of compiled code. `memory` keeps that memory while the row is in use.
    A row that compiled code returns has no `memory`: it must not be used longer than its world."""

    memory: Any = None
    record: str

    @property
    def address(self) -> int:
        return ctypes.addressof(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and self.address == other.address

    def __hash__(self) -> int:
        return self.address


class Table:
    """Rows of one kind, one after the other. There is no check that an index is in range."""

    def __init__(self, kind: type[Row], address: int, memory: Any) -> None:
        self.kind, self.address, self._memory = kind, address, memory

    def __getitem__(self, index: int) -> Row:
        return _at(self.kind, self.address + index * ctypes.sizeof(self.kind), self._memory)


class Numbers:
    """Integers, one after the other. There is no check that an index is in range."""

    def __init__(self, address: int, memory: Any) -> None:
        self.address, self._memory = address, memory
        self._words = ctypes.cast(address, ctypes.POINTER(ctypes.c_int64))

    def __getitem__(self, index: int) -> int:
        return int(self._words[index])

    def __setitem__(self, index: int, value: int) -> None:
        self._words[index] = value


def _at(kind: type[Row], address: int, memory: Any) -> Row:
    row = kind.from_address(address)
    row.memory = memory
    return row


def _reference(field: str, kind: str) -> property:
    """Return the property of a field that refers to another record or to a list."""
    hidden = f"_{field}"

    def read(row: Row) -> Any:
        address = getattr(row, hidden)
        if kind == "list[int]":
            return Numbers(address, row.memory)
        if kind.startswith("list["):
            return Table(ROWS[kind[5:-1]], address, row.memory)
        return _at(ROWS[kind], address, row.memory)

    def write(row: Row, value: Any) -> None:
        setattr(row, hidden, value.address)

    return property(read, write)


def _fields(kinds: dict[str, str]) -> list[tuple[str, Any]]:
    """Return the fields of a `ctypes.Structure` with the words of a record."""
    return [
        (field if kind in NUMBERS else f"_{field}", NUMBERS.get(kind, ctypes.c_int64))
        for field, kind in kinds.items()
    ]


def _row(name: str, record: type) -> type[Row]:
    """Return the class of the rows of a record."""
    kinds = record.__annotations__
    assert not [field for field in kinds if hasattr(Row, field)], f"{name}: a name of Row"
    references = {
        field: _reference(field, kind) for field, kind in kinds.items() if kind not in NUMBERS
    }
    return type(name, (Row,), {"_fields_": _fields(kinds), "record": name, **references})


ROWS: dict[str, type[Row]] = {}
ROWS.update((name, _row(name, record)) for name, record in RECORDS.items())
# rows without references, for the numbers of records that are no longer there
COPIES: dict[str, type[ctypes.Structure]] = {
    name: type(f"{name}Copy", (ctypes.Structure,), {"_fields_": _fields(record.__annotations__)})
    for name, record in RECORDS.items()
}


class Objects:
    """Makes records for interpreted code: Python objects."""

    def one(self, kind: type[Record], /, **fields: Any) -> Record:
        return _filled(kind(), **fields)

    def many(self, kind: type[Record], count: int) -> list[Record]:
        """Return a list of `count` records. Each is made when it is first used."""
        return cast(list[Record], defaultdict(kind))

    def ints(self, count: int) -> list[int]:
        return [0] * count

    def longer(self, kind: type[Record], old: list[Record], used: int, count: int) -> list[Record]:
        """Return a list of `count` records that begins with the first `used` ones of `old`."""
        return old

    def copy(self, record: Record) -> Record:
        """Return a record with the numbers of `record`, without its references and lists."""
        kinds = RECORDS[type(record).__name__].__annotations__
        numbers = {name: getattr(record, name) for name, kind in kinds.items() if kind in NUMBERS}
        return _filled(type(record)(), **numbers)

    @contextmanager
    def group(self, group: Group) -> Iterator[None]:
        """Add to `group` all that is made meanwhile, so that it can be given back together."""
        yield

    def give_back(self, group: Group) -> None:
        """Let the memory of a group be used again. Nothing may refer to it any more."""


class Rows(Objects):
    """Makes records for compiled code: rows in memory."""

    def __init__(self) -> None:
        self._blocks: list[Any] = []
        self._free, self._end = 0, 0
        self._group: Group | None = None
        self._given_back: dict[int, list[int]] = defaultdict(list)  # addresses, by number of words

    def one(self, kind: type[Record], /, **fields: Any) -> Record:
        row = ROWS[kind.__name__]
        address = self._take(ctypes.sizeof(row) // WORD)
        return cast(Record, _filled(_at(row, address, self._blocks), **fields))

    def many(self, kind: type[Record], count: int) -> list[Record]:
        row = ROWS[kind.__name__]
        address = self._take(count * ctypes.sizeof(row) // WORD)
        return cast(list[Record], Table(row, address, self._blocks))

    def ints(self, count: int) -> list[int]:
        return cast(list[int], Numbers(self._take(count), self._blocks))

    def longer(self, kind: type[Record], old: list[Record], used: int, count: int) -> list[Record]:
        new = self.many(kind, count)
        ctypes.memmove(new.address, old.address, used * ctypes.sizeof(ROWS[kind.__name__]))  # type: ignore[attr-defined]
        return new

    def copy(self, record: Record) -> Record:
        row = cast(Row, record)
        return cast(Record, COPIES[row.record].from_buffer_copy(row))

    @contextmanager
    def group(self, group: Group) -> Iterator[None]:
        self._group = group
        try:
            yield
        finally:
            self._group = None

    def give_back(self, group: Group) -> None:
        for address, words in group:
            self._given_back[words].append(address)
        group.clear()

    def _take(self, words: int) -> int:
        """Return the address of `words` words that are 0."""
        if given_back := self._given_back[words]:
            address = given_back.pop()
            ctypes.memset(address, 0, words * WORD)
        else:
            address = self._new(words)
        if self._group is not None:
            self._group.append((address, words))
        return address

    def _new(self, words: int) -> int:
        """Return the address of new words that are 0. Records that are made one after the other are
        neighbours in memory."""
        if self._free + words * WORD > self._end:
            if words > BLOCK_WORDS:
                return self._block(words)
            self._free = self._block(BLOCK_WORDS)
            self._end = self._free + BLOCK_WORDS * WORD
        address, self._free = self._free, self._free + words * WORD
        return address

    def _block(self, words: int) -> int:
        """Return the address of new memory. It uses none of the machine's before it is written."""
        import numpy

        self._blocks.append(numpy.zeros(words, dtype="int64"))
        return int(self._blocks[-1].ctypes.data)


def _filled(record: Record, /, **fields: object) -> Record:
    for field, value in fields.items():
        setattr(record, field, value)
    return record
