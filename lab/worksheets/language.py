"""The language of checks: parser and syntax tree of a one-line condition on the results of runs.

    condition   mean(ap.wifi1.tier2_mbps, 20..40) < 0.2
    runs        result(users.ue1.throughput_mbps) of throttled > result(...) of plain
    events      flip(strategy=meter_throttling) before event(decision)
    others      count(event(handover)) >= 1, time(event(handover)) < 30, multipath() of real
    operators   + - * / < <= > >= before not and or ( ) abs()

Nothing is evaluated as Python. docs/worksheets.md describes the language for instructors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Literal, NoReturn, cast, get_args

from lab.errors import RequestError, show, unknown

# The syntax tree that `parse` returns.
#
# `run` is the id of a run step of the worksheet, or "" for the run that the check itself names.
# Times are in s since the start of the run.


Fold = Literal["mean", "min", "max", "last"]


@dataclass(frozen=True)
class Number:
    value: float


@dataclass(frozen=True)
class Sampled:
    """A number from the samples of a run in a time span, such as `mean(ap.wifi1.tier2_mbps,
    20..40)`.

    `path` is the name of the quantity in a sample. `fold` is the function that turns its values
    from `start_s` to `end_s` into one number. `run` is the id of the step in which the run is made,
    or "" for the default run of the check.
    """

    fold: Fold
    path: str
    start_s: float
    end_s: float
    run: str


@dataclass(frozen=True)
class Measured:
    """A number in the result of a run: `path` is its name in result.json, such as
    `users.ue1.throughput_mbps`."""

    path: str
    run: str


@dataclass(frozen=True)
class Occurrence:
    """All events of one `kind` in a run, such as `event(handover, user=ue1)`.

    `where` has pairs of a field and its required value, as text. Used as a condition, the
    expression is true if the run has at least one such event. A refused change does not count as an
    event.
    """

    kind: str
    where: tuple[tuple[str, str], ...]
    run: str


@dataclass(frozen=True)
class Time:
    """The time in s of the first of the events that `event` describes."""

    event: Occurrence


@dataclass(frozen=True)
class Count:
    """The number of the events that `event` describes."""

    event: Occurrence


@dataclass(frozen=True)
class Multipath:
    """True if the connections of a run really used Multipath TCP.

    This requires that they opened additional subflows and that none fell back to TCP.
    """

    run: str


@dataclass(frozen=True)
class Magnitude:
    """The absolute value of a number."""

    of: Numeric


@dataclass(frozen=True)
class Arithmetic:
    """`left + right`, or with another of the operators + - * /."""

    operator: str
    left: Numeric
    right: Numeric


@dataclass(frozen=True)
class Comparison:
    """`left < right`, or with another of the operators < <= > >=."""

    operator: str
    left: Numeric
    right: Numeric


@dataclass(frozen=True)
class Before:
    """True if both events occur and the first `left` event comes before the first `right` event."""

    left: Occurrence
    right: Occurrence


@dataclass(frozen=True)
class Not:
    of: Condition


@dataclass(frozen=True)
class Both:
    """`left and right`. If `either` is true, `left or right`."""

    left: Condition
    right: Condition
    either: bool = False


Numeric = Number | Sampled | Measured | Time | Count | Magnitude | Arithmetic
Condition = Comparison | Before | Occurrence | Multipath | Not | Both
Expression = Numeric | Condition


def parts(tree: Expression) -> Iterator[Expression]:
    """Yield `tree` and all expressions inside it, parents first."""
    yield tree
    for field in fields(tree):
        inner = getattr(tree, field.name)
        if is_dataclass(inner):
            yield from parts(inner)  # type: ignore[arg-type]


# Scanner


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
    """Reads a text from left to right, one word or symbol at a time. Spaces are skipped.

    `place` is the index of the next character.
    """

    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0

    @property
    def rest(self) -> str:
        """The remaining text, without leading spaces."""
        self._skip()
        return self.text[self.place :]

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Read and return the next text if it matches `pattern`. Otherwise return None and read
        nothing."""
        self._skip()
        found = pattern.match(self.text, self.place)
        if found:
            self.place = found.end()
        return found[0] if found else None

    def require(self, pattern: re.Pattern[str], what: str) -> str:
        """Read and return the next text, which must match `pattern`.

        If it does not, raise `RequestError` with a message such as "expected a value"; `what` is
        the text after "expected".
        """
        found = self.match(pattern)
        if found is None:
            self.fail(f"expected {what}")
        return found

    def take(self, *symbols: str) -> str:
        """Read and return the first of `symbols` with which the remaining text begins.

        Return "" if it begins with none of them.
        """
        self._skip()
        for symbol in symbols:
            if self.text.startswith(symbol, self.place):
                self.place += len(symbol)
                return symbol
        return ""

    def word(self, word: str) -> bool:
        """Read `word` if it comes next as a whole word. Return whether it did."""
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
        """Raise `RequestError` with the column, counted from 1, and advice on common mistakes such
        as `==`."""
        rest = self.rest
        cure = next(
            (f": {text}" for bad, text in OFTEN_WRITTEN.items() if rest.startswith(bad)), ""
        )
        raise RequestError(f"column {self.place + 1} of {show(self.text)}: {problem}{cure}")

    def _skip(self) -> None:
        space = SPACE.match(self.text, self.place)
        self.place = space.end() if space else self.place


# From tree to text


def spelled(tree: Expression) -> str:
    """Return the text of an expression, with brackets around each operation.

    Parsing the text gives an equal tree.
    """
    match tree:
        case Number(value):
            return repr(value)
        case Sampled(fold, path, start_s, end_s, run):
            return f"{fold}({path}, {start_s:g}..{end_s:g}){_of(run)}"
        case Measured(path, run):
            return f"result({path}){_of(run)}"
        case Multipath(run):
            return f"multipath(){_of(run)}"
        case Occurrence(kind, where, run):
            fields = "".join(f", {field}={value}" for field, value in where)
            return f"event({kind}{fields}){_of(run)}"
        case Time(event):
            return f"time({spelled(event)})"
        case Count(event):
            return f"count({spelled(event)})"
        case Magnitude(inner):
            return f"abs({spelled(inner)})"
        case Arithmetic(symbol, left, right) | Comparison(symbol, left, right):
            return f"({spelled(left)} {symbol} {spelled(right)})"
        case Before(left, right):
            return f"({spelled(left)} before {spelled(right)})"
        case Not(inner):
            return f"not ({spelled(inner)})"
        case Both(left, right, either):
            return f"({spelled(left)} {'or' if either else 'and'} {spelled(right)})"


def _of(run: str) -> str:
    return f" of {run}" if run else ""


LONGEST = 500  # characters in a check
DEEPEST = 40  # nested brackets
FOLDS = get_args(Fold)
COMPARISONS = ("<=", ">=", "<", ">")
AROUND = ("time", "count", "abs")  # functions whose argument is an expression
FUNCTIONS = (*FOLDS, "result", "event", "flip", "multipath", *AROUND)
KEYWORDS = ("and", "or", "not", "before", "of")


def parse(text: str) -> Condition:
    """Parse a condition.

    Raise `RequestError` if the text is no condition of the language. The message names the column,
    counted from 1.
    """
    parser = _Parser(text)
    return parser.condition(parser.whole())


def parse_number(text: str) -> Numeric:
    """Parse an expression for a number, such as `result(throughput_mbps) of plain`.

    Raise `RequestError` if the text is no such expression.
    """
    parser = _Parser(text)
    return parser.number(parser.whole())


class _Parser:
    """A recursive descent parser. Each method from `_either` to `_operand` parses one level of
    precedence, the lowest level first."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise RequestError(f"a check of {len(text)} characters: write at most {LONGEST}")
        self.scan, self.depth = Scanner(text), 0

    def whole(self) -> Expression:
        """Parse the whole text. Raise `RequestError` if some of it cannot be parsed."""
        tree = self._either()
        if rest := self.scan.rest:
            self.scan.fail(f"{show(rest)} is left over")
        return tree

    def _either(self) -> Expression:
        tree = self._all()
        while self.scan.word("or"):
            tree = Both(self.condition(tree), self.condition(self._all()), either=True)
        return tree

    def _all(self) -> Expression:
        tree = self._negation()
        while self.scan.word("and"):
            tree = Both(self.condition(tree), self.condition(self._negation()))
        return tree

    def _negation(self) -> Expression:
        if self.scan.word("not"):
            return Not(self.condition(self._nested(self._negation)))
        return self._comparison()

    def _comparison(self) -> Expression:
        left = self._sum()
        if self.scan.word("before"):
            return Before(self._event(left), self._event(self._sum()))
        if operator := self.scan.take(*COMPARISONS):
            return Comparison(operator, self.number(left), self.number(self._sum()))
        return left

    def _sum(self) -> Expression:
        tree = self._product()
        while operator := self.scan.take("+", "-"):
            tree = Arithmetic(operator, self.number(tree), self.number(self._product()))
        return tree

    def _product(self) -> Expression:
        tree = self._operand()
        while operator := self.scan.take("*", "/"):
            tree = Arithmetic(operator, self.number(tree), self.number(self._operand()))
        return tree

    def _operand(self) -> Expression:
        if self.scan.take("-"):
            return Arithmetic("-", Number(0), self.number(self._nested(self._operand)))
        if self.scan.take("("):
            tree = self._nested(self._either)
            self.scan.expect(")")
            return tree
        if (digits := self.scan.match(NUMBER)) is not None:
            if not math.isfinite(float(digits)):
                self.scan.fail(f"{show(digits)} is too large a number")
            return Number(float(digits))
        return self._call()

    def _call(self) -> Expression:
        scan, start = self.scan, self.scan.place
        name = scan.match(NAME)
        if name is None or name in KEYWORDS:
            scan.place = start
            scan.fail(f"expected a number or a function: {', '.join(FUNCTIONS)}")
        if name not in FUNCTIONS:
            scan.place = start
            scan.fail(f"function {unknown(name, FUNCTIONS)}")
        scan.expect("(")
        if name in AROUND:
            inner = self._nested(self._either)
            scan.expect(")")
            return self._around(name, inner)
        of_run = self._of_run(name)
        scan.expect(")")
        return of_run(self._run())

    def _run(self) -> str:
        """Parse `of RUN` if it comes next, and return the id RUN. Otherwise return ""."""
        return self.scan.require(NAME, "the id of a run") if self.scan.word("of") else ""

    def _around(self, name: str, inner: Expression) -> Expression:
        if name == "abs":
            return Magnitude(self.number(inner))
        event = self._event(inner)
        if not event.run:
            event = replace(event, run=self._run())
        return (Time if name == "time" else Count)(event)

    def _of_run(self, name: str) -> Callable[[str], Expression]:
        """Parse the arguments of the function `name`, which looks at one run.

        Return a constructor that makes the expression from the id of the run. The id is not known
        yet, because `of RUN` comes after the arguments.
        """
        scan = self.scan
        if name in FOLDS:
            path = scan.require(PATH, "a figure of the samples, such as ap.wifi1.tier2_mbps")
            scan.expect(",")
            return partial(Sampled, cast(Fold, name), path, *self._window())
        if name == "result":
            return partial(Measured, scan.require(PATH, "a figure such as throughput_mbps"))
        if name == "multipath":
            return Multipath
        if name == "flip":
            target = ("target", scan.require(PATH, "a target, such as link.wifi.loss"))
            value = [("value", scan.require(WORD, "a value"))] if scan.take("=") else []
            return partial(Occurrence, "flip", (target, *value))
        kind = scan.require(NAME, "the kind of an event, such as handover")
        where = []
        while scan.take(","):
            field = scan.require(NAME, "a field of the event")
            scan.expect("=")
            where.append((field, scan.require(WORD, "a value")))
        return partial(Occurrence, kind, tuple(where))

    def _window(self) -> tuple[float, float]:
        """Parse a time span such as `20..40`, in s. Raise `RequestError` if it does not end after
        its start."""
        start = float(self.scan.require(NUMBER, "a time span in s, such as 20..40"))
        self.scan.expect("..")
        end = float(self.scan.require(NUMBER, "the end of the time span, in s"))
        if end <= start:
            self.scan.fail(f"the time span {start:g}..{end:g} ends before it starts")
        return start, end

    def condition(self, tree: Expression) -> Condition:
        """Return `tree` if it is a condition. Raise `RequestError` if it is a number."""
        if not isinstance(tree, get_args(Condition)):
            self.scan.fail("expected a condition before this place. Compare the number: ... < 0.2")
        return cast(Condition, tree)

    def number(self, tree: Expression) -> Numeric:
        """Return `tree` if it is a number. Raise `RequestError` if it is a condition."""
        if not isinstance(tree, get_args(Numeric)):
            self.scan.fail("expected a number before this place, not a condition")
        return cast(Numeric, tree)

    def _event(self, tree: Expression) -> Occurrence:
        if not isinstance(tree, Occurrence):
            self.scan.fail("expected event(...) or flip(...) before this place")
        return tree

    def _nested(self, read: Callable[[], Expression]) -> Expression:
        self.depth += 1
        if self.depth > DEEPEST:
            self.scan.fail(f"more than {DEEPEST} brackets inside one another")
        tree = read()
        self.depth -= 1
        return tree
