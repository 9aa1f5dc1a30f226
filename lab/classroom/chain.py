"""Lines of a log of which each names the line before it, so that later changes are seen.

A line is a JSON object: `{"before": DIGEST, ..., "sha256": DIGEST}`. `sha256` is the digest of the
line without this field. `before` is the digest of the line before. The first such line names the
SHA-256 of all bytes before it: of none in a new log, else of the lines that an older version of the
lab wrote without digests.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_LINE = re.compile(
    rb'\{"before":"(?P<before>[0-9a-f]{64})",(?P<body>.*),"sha256":"(?P<digest>[0-9a-f]{64})"\}',
    re.DOTALL,
)
NOTHING = hashlib.sha256(b"").hexdigest()  # what the first line of a new log names
CHANGED = "it was changed after it was written"


@dataclass(frozen=True)
class Fault:
    """What is wrong with a line. `line` counts the lines of the file from 1."""

    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"


@dataclass(frozen=True)
class Line:
    """A line of the file: its JSON without the two digests, which are empty in an older line."""

    number: int
    body: bytes
    before: str = ""
    digest: str = ""


@dataclass(frozen=True)
class Chain:
    """The lines of a log.

    `lines` are those to believe, and `faults` says what is wrong with others or between two lines.
    The first `older` lines have no digests. `count` counts all whole lines. `head` is what the next
    line has to name.
    """

    lines: tuple[Line, ...]
    faults: tuple[Fault, ...]
    older: int
    count: int
    head: str


def sealed(body: bytes, before: str) -> tuple[bytes, str]:
    """Return a line, without newline, and its digest. `body` is a JSON object with a key."""
    begin = b'{"before":"%s",%s' % (before.encode(), body[1:-1])
    digest = hashlib.sha256(begin).hexdigest()
    return b'%s,"sha256":"%s"}' % (begin, digest.encode()), digest


def read(content: bytes, may_be_older: bool = True) -> Chain:
    """Read the lines of a log.

    `may_be_older` says that the first lines may lack digests, because an older version wrote them.
    A line with digests is believed if its own is right and a later line names it, or if it is the
    last one. A line that was cut off while it was written is left out.
    """
    *texts, tail = content.split(b"\n")
    if not _was_cut_off(tail, texts[-1:]):
        texts.append(tail)
    older = _without_digests(texts) if may_be_older else 0
    start = hashlib.sha256(b"".join(text + b"\n" for text in texts[:older])).hexdigest()
    intact = {n: _line(n, text) for n, text in enumerate(texts[older:], older + 1)}
    believed, unnamed = _named(intact, len(texts))
    faults = [*_unconnected(intact, start), *unnamed]
    first = [Line(n, text) for n, text in enumerate(texts[:older], 1)]
    if intact and first and not any(each and each.before == start for each in intact.values()):
        faults.append(Fault(older, f"this line or one before it: {CHANGED}"))
        first = []
    return Chain(
        lines=(*first, *believed),
        faults=tuple(sorted(faults, key=lambda each: each.line)),
        older=older,
        count=len(texts),
        head=next((each.digest for each in reversed(list(intact.values())) if each), start),
    )


def _was_cut_off(tail: bytes, before: Sequence[bytes]) -> bool:
    """Return whether what follows the last newline is the beginning of a line after the line
    `before`. A power cut can leave zeros behind it."""
    found = _LINE.fullmatch(before[0]) if before else None
    named = found["digest"] if found else NOTHING.encode()
    begin = b'{"before":"%s",' % named
    first = tail.rstrip(b"\0")[: len(begin)]
    is_older = not found and tail.startswith(b'{"n":'[: len(tail)])
    if tail[-1:] != b"\0" and _line(0, tail[:-1]):
        return False  # a whole line: its newline became another character
    return begin.startswith(first) or is_older


def _without_digests(texts: Sequence[bytes]) -> int:
    """Return how many lines come before the first one with digests."""
    return next((n for n, text in enumerate(texts) if _LINE.fullmatch(text)), len(texts))


def _line(number: int, text: bytes) -> Line | None:
    """Return the line if its digest is right, else None."""
    found = _LINE.fullmatch(text)
    if not found:
        return None
    body, before = b"{%s}" % found["body"], found["before"].decode()
    made, digest = sealed(body, before)
    return Line(number, body, before, digest) if made == text else None


def _unconnected(intact: Mapping[int, Line | None], start: str) -> Iterator[Fault]:
    """Name the changed lines, and those that name another line than the one before them."""
    before = start
    for number, each in intact.items():
        if each is None:
            yield Fault(number, CHANGED)
        elif before and each.before != before:
            after = f"line {number - 1}" if number > 1 else "the beginning"
            text = f"it does not follow {after}: lines between were removed, moved or changed"
            yield Fault(number, text)
        before = each.digest if each else ""


def _named(intact: Mapping[int, Line | None], last: int) -> tuple[list[Line], list[Fault]]:
    """Return the lines that a later one names, with the last one, and the faults of the others."""
    named: set[str] = set()
    believed, faults = [], []
    for number, each in reversed(list(intact.items())):
        if each is None:
            continue
        if number == last or each.digest in named:
            believed.append(each)
        else:
            text = "no line after it names it: it, or the line after it, was changed or moved"
            faults.append(Fault(number, text))
        named.add(each.before)
    return believed[::-1], faults
