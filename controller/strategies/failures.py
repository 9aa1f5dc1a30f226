"""Turn exceptions of a strategy into `StrategyFailed`, which names the strategy's file and line."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager

from controller.command import Decision
from controller.errors import ControllerError, StrategyFailed
from controller.observation import Observation
from controller.strategies.base import Strategy
from controller.user_file import described, line_of


@contextmanager
def failures_of(strategy: type[Strategy], method: str) -> Iterator[None]:
    """Turn an exception in the `with` block into `StrategyFailed`.

    The block must call the method `method` of the strategy. The error names the innermost line of
    the strategy's file in the traceback, or else the first line of the method. A `ControllerError`
    is not changed.
    """
    try:
        yield
    except ControllerError:
        raise
    except Exception as error:
        file = source_file(strategy)
        line = line_of(error, file) or _line(getattr(strategy, method))
        text = f"strategy '{strategy.name}' failed in {method}: {described(error, file, line)}"
        raise StrategyFailed(text, file, line) from error


def decisions(strategy: Strategy, method: str, observation: Observation) -> list[Decision]:
    """Call `strategy.decide` or `strategy.withdraw`, as `method` says, and return its decisions.

    Raise `StrategyFailed` if the method raises an exception or does not return a list of decisions.
    """
    with failures_of(type(strategy), method):
        found = list(getattr(strategy, method)(observation))
        wrong = next((each for each in found if not isinstance(each, Decision)), None)
        if wrong is not None:
            raise TypeError(f"it returned {wrong!r}, which is no Decision")
        return found


def source_file(strategy: type[Strategy]) -> str:
    """Return the path of the file that defines a strategy, as tracebacks show it.

    If the file is unknown, return the name of the strategy's module.
    """
    try:
        return inspect.getfile(strategy)
    except (OSError, TypeError):
        return strategy.__module__


def _line(method: object) -> int:
    try:
        return inspect.getsourcelines(method)[1]  # type: ignore[arg-type]
    except (OSError, TypeError):
        return 0
