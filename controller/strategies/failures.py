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
    """Turn an exception of the `with` block into `StrategyFailed`; pass on a `ControllerError`.

    The block must call the method `method` of the strategy. The error names the innermost line of
    the strategy's file in the traceback, or the first line of `method` if there is none.
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
    """Call `strategy.decide` or `strategy.withdraw`, named by `method`, and return its decisions.

    Raise `StrategyFailed` if it raises an exception or does not return a list of decisions.
    """
    with failures_of(type(strategy), method):
        found = list(getattr(strategy, method)(observation))
        wrong = next((each for each in found if not isinstance(each, Decision)), None)
        if wrong is not None:
            raise TypeError(f"it returned {wrong!r}, which is no Decision")
        return found


def source_file(strategy: type[Strategy]) -> str:
    """Return the file of a strategy as tracebacks name it; its module's name if unknown."""
    try:
        return inspect.getfile(strategy)
    except (OSError, TypeError):
        return strategy.__module__


def _line(method: object) -> int:
    try:
        return inspect.getsourcelines(method)[1]  # type: ignore[arg-type]
    except (OSError, TypeError):
        return 0
