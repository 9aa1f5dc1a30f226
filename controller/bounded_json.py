"""Parse JSON within limits on size, depth and numbers, so that no input can stop this process.

All JSON from outside the process is parsed here: files of run folders, messages, datagrams, and
bodies of HTTP requests.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

MOST_BYTES = 64 * 2**20
MOST_DEPTH = 64  # of nested lists and objects
LARGEST_INTEGER = 2**64
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
_SHAPE = bytes.maketrans(b"123456789E", b"000000000e")
_LONG_NUMBERS = (b"0" * 19, b"e000", b"e+000")  # in a text that `_SHAPE` has translated
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class JsonRefused(ValueError):
    """Raised for a text that is not JSON or that exceeds a limit of this module."""


def parse(data: bytes | str, most_bytes: int = MOST_BYTES) -> Any:
    """Return the value of a JSON text in UTF-8.

    Raise `JsonRefused` for invalid JSON, for a text longer than `most_bytes`, and for nesting
    deeper than `MOST_DEPTH`. Also raise it for an integer of 2^64 or more, for a number that is not
    finite, and for half of a surrogate pair, which cannot be written to a file.
    """
    try:
        text = data.encode() if isinstance(data, str) else data
        if len(text) > most_bytes:
            raise JsonRefused(f"it has {len(text)} bytes: at most {most_bytes} are allowed")
        _check_depth(text)
        shape = text.translate(_SHAPE)  # faster than a regular expression
        decoder = _CAREFUL if any(each in shape for each in _LONG_NUMBERS) else _QUICK
        value = decoder.decode(text.decode())
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeError as error:
        raise JsonRefused(f"a character cannot be read or written as UTF-8: {error}") from error
    except JsonRefused:
        raise
    except (ValueError, RecursionError) as error:
        raise JsonRefused(f"it is no JSON: {error}") from error
    return value


def parse_object(data: bytes | str, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """Parse like `parse`, and also raise `JsonRefused` if the value is not a JSON object."""
    value = parse(data, most_bytes)
    if not isinstance(value, dict):
        raise JsonRefused("it is no JSON object")
    return value


def _check_depth(text: bytes) -> None:
    """Raise `JsonRefused` if brackets are nested deeper than `MOST_DEPTH`.

    A quick test accepts most texts: it keeps only the brackets, and removes the innermost pairs
    again and again. Brackets inside strings can make this test fail. A slower scan of the tokens
    then decides.
    """
    rest = text.translate(None, _NOT_BRACKETS)
    for removed in range(MOST_DEPTH + 1):
        if removed + len(rest) <= MOST_DEPTH:
            return
        rest = rest.replace(b"[]", b"").replace(b"{}", b"")
    depth = 0
    for token in _TOKENS.finditer(text):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(token.group(), 0)
        if depth > MOST_DEPTH:
            raise JsonRefused(f"it is nested deeper than {MOST_DEPTH} levels")


def _integer(digits: str) -> int:
    number = int(digits) if len(digits) <= 21 else LARGEST_INTEGER
    if abs(number) >= LARGEST_INTEGER:
        raise JsonRefused(f"the number {digits[:21]}... has too many digits")
    return number


def _fraction(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _not_finite(digits[:21])


def _not_finite(text: str) -> NoReturn:
    raise JsonRefused(f"{text} is not a finite number")


_QUICK = json.JSONDecoder(parse_constant=_not_finite)
_CAREFUL = json.JSONDecoder(parse_constant=_not_finite, parse_int=_integer, parse_float=_fraction)
