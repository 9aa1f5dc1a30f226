"""Simulated runs of scenarios, frame by frame."""

from __future__ import annotations

from typing import Any

from lab.engines.sim.engine import SimEngine
from lab.scenario import loading
from lab.scenario.overrides import Overrides


class _Notes:
    def __getattr__(self, _name: str) -> Any:
        return lambda *_args, **_fields: None


def frames(name: str, end_s: float, strategy: str, *settings: str) -> list[dict[str, Any]]:
    """Return the samples of a scenario with these `--set` values, one each 0.5 s, until `end_s`."""
    engine = SimEngine()
    engine.open(loading.load(name, Overrides(strategy=strategy, settings=settings)), _Notes())
    found = []
    for n in range(1, round(end_s * 2) + 1):
        found += [frame.to_json() for frame in engine.advance(n / 2)]
    engine.close()
    return found
