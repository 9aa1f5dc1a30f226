"""Simulated runs of scenarios, frame by frame."""

from __future__ import annotations

from typing import Any

from lab.engines.sim.engine import SimEngine
from lab.scenario import loading
from lab.scenario.loading import Overrides


class Notes:
    def __getattr__(self, _name: str) -> Any:
        return lambda *_args, **_fields: None


def frames(name: str, end_s: float, strategy: str, *settings: str) -> list[dict[str, Any]]:
    """One frame every 0.5 s until `end_s`, with these `--set` values."""
    engine = SimEngine()
    engine.open(loading.load(name, Overrides(strategy=strategy, settings=settings)), Notes())
    found = []
    for n in range(1, round(end_s * 2) + 1):
        found += [frame.to_json() for frame in engine.advance(n / 2)]
    engine.close()
    return found


def one_path(path: dict[str, Any], cc: str, end_s: float, seed: int) -> float:
    """Goodput in Mb/s of one connection over one path.

    The first sixth of the run does not count.
    """
    data = {
        "name": "one_path",
        "title": "One path",
        "seed": seed,
        "topology": {"kind": "parallel_paths", "paths": [path]},
        "traffic": [{"user": "ue1", "cc": cc}],
    }
    engine = SimEngine()
    engine.open(loading.from_data(data, "one_path.yaml"), Notes())
    found = [frame.to_json() for n in range(1, 7) for frame in engine.advance(n * end_s / 6)]
    engine.close()
    late = [frame["user"]["ue1"]["mbps"] for frame in found if frame["t"] > end_s / 6 + 1e-6]
    return sum(late) / len(late)
