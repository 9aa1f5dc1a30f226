"""Parse the language of checks: a condition over a student's runs, written as one line of text.

    condition   mean(ap.wifi1.tier2_mbps, 20..40) < 0.2
    runs        result(users.ue1.throughput_mbps) of throttled > result(...) of plain
    events      flip(strategy=meter_throttling) before event(decision)
    others      count(event(handover)) >= 1, time(event(handover)) < 30, multipath() of real
    operators   + - * / < <= > >= before not and or ( ) abs()

Nothing is evaluated as Python. docs/worksheets.md describes the language for instructors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import cast, get_args

from lab.errors import RequestError, show, unknown
from lab.worksheets import expressions as at
from lab.worksheets.expressions import Condition, Expression, Numeric, Occurrence
from lab.worksheets.scanner import NAME, NUMBER, PATH, WORD, Scanner

LONGEST = 500  # characters of a check
DEEPEST = 40  # brackets inside one another
FOLDS = get_args(at.Fold)
COMPARISONS = ("<=", ">=", "<", ">")
AROUND = ("time", "count", "abs")  # functions of another expression
FUNCTIONS = (*FOLDS, "result", "event", "flip", "multipath", *AROUND)
KEYWORDS = ("and", "or", "not", "before", "of")


def parse(text: str) -> Condition:
    """Return the condition that `text` describes.

    Raise `RequestError` if the text is not a condition of the language; the message names the
    column, counted from 1.
    """
    parser = _Parser(text)
    return parser.condition(parser.whole())


def parse_number(text: str) -> Numeric:
    """Return the number that `text` describes, such as `result(throughput_mbps) of plain`.

    Raise `RequestError` as `parse` does.
    """
    parser = _Parser(text)
    return parser.number(parser.whole())


class _Parser:
    """Build the tree of a check. Each method reads the expressions of one precedence."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise RequestError(f"a check of {len(text)} characters: write at most {LONGEST}")
        self.scan, self.depth = Scanner(text), 0

    def whole(self) -> Expression:
        """Read the whole text."""
        tree = self._either()
        if rest := self.scan.rest:
            self.scan.fail(f"{show(rest)} is left over")
        return tree

    def _either(self) -> Expression:
        tree = self._all()
        while self.scan.word("or"):
            tree = at.Both(self.condition(tree), self.condition(self._all()), either=True)
        return tree

    def _all(self) -> Expression:
        tree = self._negation()
        while self.scan.word("and"):
            tree = at.Both(self.condition(tree), self.condition(self._negation()))
        return tree

    def _negation(self) -> Expression:
        if self.scan.word("not"):
            return at.Not(self.condition(self._nested(self._negation)))
        return self._comparison()

    def _comparison(self) -> Expression:
        left = self._sum()
        if self.scan.word("before"):
            return at.Before(self._event(left), self._event(self._sum()))
        if operator := self.scan.take(*COMPARISONS):
            return at.Comparison(operator, self.number(left), self.number(self._sum()))
        return left

    def _sum(self) -> Expression:
        tree = self._product()
        while operator := self.scan.take("+", "-"):
            tree = at.Arithmetic(operator, self.number(tree), self.number(self._product()))
        return tree

    def _product(self) -> Expression:
        tree = self._operand()
        while operator := self.scan.take("*", "/"):
            tree = at.Arithmetic(operator, self.number(tree), self.number(self._operand()))
        return tree

    def _operand(self) -> Expression:
        if self.scan.take("-"):
            return at.Arithmetic("-", at.Number(0), self.number(self._nested(self._operand)))
        if self.scan.take("("):
            tree = self._nested(self._either)
            self.scan.expect(")")
            return tree
        if (digits := self.scan.match(NUMBER)) is not None:
            if not math.isfinite(float(digits)):
                self.scan.fail(f"{show(digits)} is too large a number")
            return at.Number(float(digits))
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
        """Read `of RUN` if it comes next. Return the id of the run, or an empty text."""
        return self.scan.require(NAME, "the id of a run") if self.scan.word("of") else ""

    def _around(self, name: str, inner: Expression) -> Expression:
        if name == "abs":
            return at.Magnitude(self.number(inner))
        event = self._event(inner)
        if not event.run:
            event = replace(event, run=self._run())
        return (at.Time if name == "time" else at.Count)(event)

    def _of_run(self, name: str) -> Callable[[str], Expression]:
        """Read the arguments of a function that looks at one run. Return a function that makes the
        expression, given the id of the run."""
        scan = self.scan
        if name in FOLDS:
            path = scan.require(PATH, "a figure of the samples, such as ap.wifi1.tier2_mbps")
            scan.expect(",")
            return partial(at.Sampled, cast(at.Fold, name), path, *self._window())
        if name == "result":
            return partial(at.Measured, scan.require(PATH, "a figure such as throughput_mbps"))
        if name == "multipath":
            return at.Multipath
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
        """Read a time span such as `20..40`. Return its start and end in s."""
        start = float(self.scan.require(NUMBER, "a time span in s, such as 20..40"))
        self.scan.expect("..")
        end = float(self.scan.require(NUMBER, "the end of the time span, in s"))
        if end <= start:
            self.scan.fail(f"the time span {start:g}..{end:g} ends before it starts")
        return start, end

    def condition(self, tree: Expression) -> Condition:
        """Return `tree`. Raise `RequestError` if it is a number and not a condition."""
        if not isinstance(tree, get_args(Condition)):
            self.scan.fail("expected a condition before this place. Compare the number: ... < 0.2")
        return cast(Condition, tree)

    def number(self, tree: Expression) -> Numeric:
        """Return `tree`. Raise `RequestError` if it is a condition and not a number."""
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
