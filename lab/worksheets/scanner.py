"""Read the text of a check from left to right, one word or symbol at a time."""

from __future__ import annotations

import re
from typing import NoReturn

from lab.errors import RequestError, show

NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
NAME = re.compile(r"[A-Za-z_]\w*")
PATH = re.compile(r"[A-Za-z_]\w*(?:\.[\w/:-]+)*")
WORD = re.compile(r"[\w./:-]+")
SPACE = re.compile(r"\s*")
OFTEN_WRITTEN = {
    "==": "write a range: abs(a - b) < 0.1",
    "!=": "write a range: abs(a - b) > 0.1",
    "=": "write <, <=, > or >=",
    "&": "write 'and'",
    "|": "write 'or'",
    "!": "write 'not'",
}


class Scanner:
    """Hold a text and the place up to which it has been read."""

    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0

    @property
    def rest(self) -> str:
        """Return the text that has not been read, without leading spaces."""
        self._skip()
        return self.text[self.place :]

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Read the text that fits `pattern`, if it comes next. Return it, else None."""
        self._skip()
        found = pattern.match(self.text, self.place)
        if found:
            self.place = found.end()
        return found[0] if found else None

    def require(self, pattern: re.Pattern[str], what: str) -> str:
        """Read the text that fits `pattern`. Raise `RequestError`, which names `what` was expected,
        if another text comes next."""
        found = self.match(pattern)
        if found is None:
            self.fail(f"expected {what}")
        return found

    def take(self, *symbols: str) -> str:
        """Read the first of `symbols` that comes next, and return it; else return an empty text."""
        self._skip()
        for symbol in symbols:
            if self.text.startswith(symbol, self.place):
                self.place += len(symbol)
                return symbol
        return ""

    def word(self, word: str) -> bool:
        """Read `word` if it comes next and is not the start of a longer one. Return whether."""
        self._skip()
        found = NAME.match(self.text, self.place)
        if not found or found[0] != word:
            return False
        self.place = found.end()
        return True

    def expect(self, symbol: str) -> None:
        if not self.take(symbol):
            self.fail(f"expected '{symbol}'")

    def fail(self, problem: str) -> NoReturn:
        """Raise `RequestError` with the column, counted from 1, and a cure for common mistakes."""
        rest = self.rest
        cure = next(
            (f": {text}" for bad, text in OFTEN_WRITTEN.items() if rest.startswith(bad)), ""
        )
        raise RequestError(f"column {self.place + 1} of {show(self.text)}: {problem}{cure}")

    def _skip(self) -> None:
        space = SPACE.match(self.text, self.place)
        self.place = space.end() if space else self.place
