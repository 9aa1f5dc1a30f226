"""Congestion control laws that a test registers in the simulator are removed afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lab.engines.sim import compiled
from lab.engines.sim.core import dispatch


@contextmanager
def laws_kept() -> Iterator[None]:
    """Restore the table of laws and the compiled code that belongs to it."""
    laws, cache = dict(dispatch.LAWS), compiled._cache
    yield
    if laws != dispatch.LAWS:
        compiled.slow_down()
        dispatch.LAWS.clear()
        dispatch.LAWS.update(laws)
        dispatch.define()
        compiled._cache = cache
