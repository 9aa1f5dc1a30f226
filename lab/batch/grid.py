"""The points of a grid: every combination of the values of the keys that `--vary` names."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice, product
from typing import Any

from lab.errors import RequestError, show
from lab.scenario.yaml_text import parse, text_of

NUMBER = r"(-?\d+(?:\.\d+)?)"
RANGE = re.compile(rf"{NUMBER}\.\.{NUMBER}(?:\.\.{NUMBER})?")
UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")  # in the name of a folder
MOST_POINTS = 10_000  # each is checked before the first run starts
LONGEST = 200  # of the name of a folder
DIGITS = 8  # of the digest of a value that cannot be a name
Point = tuple[str, ...]  # settings such as `topology.users=10`, one for each varied key


def points(vary: Sequence[str]) -> list[Point]:
    """Return every combination of the values in texts such as `topology.users=10,20,30`.

    A value is YAML; `10..40..10` stands for 10, 20, 30 and 40. Raise `RequestError` if a text is
    no list of different values, if a key is varied twice, or if there are more than `MOST_POINTS`
    combinations.
    """
    axes = [_axis(text) for text in vary]
    keys = [key for key, _ in axes]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise RequestError(f"--vary {twice}: it is varied twice: write all its values in one list")
    return _combined(axes)


def _combined(axes: Sequence[tuple[str, list[str]]]) -> list[Point]:
    if math.prod(len(values) for _, values in axes) > MOST_POINTS:
        raise _too_many(", ".join(key for key, _ in axes))
    return list(product(*([f"{key}={value}" for value in values] for key, values in axes)))


def ranges(keys: Iterable[tuple[str, Any]]) -> list[Point]:
    """Return every combination of the values of keys: lists, or ranges such as `10..40..10`.

    Raise `RequestError` as `points` does.
    """
    return _combined([(key, _values(value, f"grid: {key}")) for key, value in keys])


def folder_name(point: Point) -> str:
    """Return the name of the folder of a point, such as `topology.users=10,multipath.cc=lia`.

    A value that cannot be a part of it is replaced by its letters and digits, and a digest.
    """
    name = ",".join(_plain(each) for each in point)
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}-{_digest(name)}"


def _axis(text: str) -> tuple[str, list[str]]:
    key, equals, listed = text.partition("=")
    key = key.strip()
    if not equals or not key or not listed.strip():
        raise RequestError(
            f"--vary {text}: write key.path=a,b,c, such as topology.users=10,20 or 10..40..10"
        )
    return key, _values(parse(f"[{listed}]", f"--vary {key}"), f"--vary {key}")


def _values(listed: Any, where: str) -> list[str]:
    """Return the values in a list as YAML. `where` begins an error message: option and key."""
    if where.endswith(" seed"):
        raise RequestError(f"{where}: use repeat, and seed for the first seed")
    given = (
        value
        for each in (listed if isinstance(listed, list) else [listed])
        for value in _range(each, where)
    )
    values = [text_of(value, one_line=True) for value in islice(given, MOST_POINTS + 1)]
    if len(values) > MOST_POINTS:
        raise _too_many(where)
    if not values or len(set(values)) < len(values):
        raise RequestError(f"{where}: the same value is listed twice, or none is")
    return values


def _range(value: Any, where: str) -> Iterator[Any]:
    found = RANGE.fullmatch(value) if isinstance(value, str) else None
    if not found:
        yield value
        return
    start, end, step = (Decimal(each) for each in (found[1], found[2], found[3] or "1"))
    if step <= 0 or end < start:
        raise RequestError(f"{where}={value}: write START..END..STEP, such as 10..40..10")
    for n in range(int((end - start) / step) + 1):
        at = start + n * step
        yield int(at) if at == int(at) else float(at)


def _too_many(where: str) -> RequestError:
    return RequestError(
        f"{show(where)}: at most {MOST_POINTS} combinations are possible. Give fewer values, or "
        "several commands"
    )


def _plain(setting: str) -> str:
    key, _, value = setting.partition("=")
    plain = UNSAFE.sub("-", value)
    return f"{key}={plain}" if plain == value else f"{key}={plain.strip('-')}-{_digest(value)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
