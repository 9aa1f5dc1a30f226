"""Fixtures that simulate scenarios step by step, without a run folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest

from lab.engines.sim import compiled
from lab.engines.sim.engine import SimEngine
from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides
from lab.scenario.targets import change, check_flip


@dataclass
class Notes:
    """In place of a recorder: keeps events, drops texts."""

    events: list[dict[str, Any]] = field(default_factory=list)

    def event(self, t: float, kind: str, **fields: Any) -> None:
        self.events.append({"t": t, "kind": kind, **fields})

    def log(self, text: str) -> None:
        pass


class Simulation:
    """An open engine that runs for as long as it is told; `t` is the time [s]."""

    def __init__(self, loaded: scenario.Scenario) -> None:
        self.scenario, self.notes, self.engine = loaded, Notes(), SimEngine()
        self.engine.open(loaded, self.notes)
        self.network, self.t = self.engine.network, 0.0

    def run(self, seconds: float, step_s: float = 0.5) -> list[dict[str, Any]]:
        """Frames of the next seconds; rates are as on the wire."""
        frames, end = [], self.t + seconds
        while self.t < end - 1e-9:
            self.t = round(min(self.t + step_s, end), 9)
            frames += [frame.to_json() for frame in self.engine.advance(self.t)]
        return frames

    def flip(self, target: str, value: Any) -> None:
        self.engine.apply(change(self.scenario, target, check_flip(self.scenario, target, value)))

    def mbps(self, frames: list[dict[str, Any]], user: str = "ue1") -> float:
        """Mean goodput over frames of equal length."""
        return sum(frame["user"].get(user, {"mbps": 0.0})["mbps"] for frame in frames) / len(frames)

    def report(self) -> dict[str, Any]:
        report = self.engine.report()
        parts = {"connections": report.connections_json(), "mptcp": asdict(report.mptcp)}
        return parts | {"cc": report.cc, "overload": report.overload.to_json()}


@pytest.fixture
def simulation_of() -> Callable[[scenario.Scenario], Simulation]:
    return Simulation


@pytest.fixture
def paths() -> Callable[..., Simulation]:
    """Simulate one user with these paths; `traffic` and `multipath` are as in a scenario file."""

    def make(*paths: dict[str, Any], traffic: Any = None, **keys: Any) -> Simulation:
        flows = traffic if isinstance(traffic, list) else [{"user": "ue1", **(traffic or {})}]
        data = {
            "name": "paths",
            "title": "Paths",
            "topology": {"kind": "parallel_paths", "paths": list(paths)},
            "traffic": flows,
        }
        return Simulation(scenario.from_data(data | keys, "paths.yaml"))

    return make


@pytest.fixture
def shared() -> Callable[..., Simulation]:
    """Simulate users that share one link of 20 ms; other keys are as in a scenario file."""

    def make(users: Any, traffic: Any, mbps: float = 20, **keys: Any) -> Simulation:
        data = {
            "name": "shared",
            "title": "Shared",
            "topology": {
                "kind": "shared_bottleneck",
                "rate_mbps": mbps,
                "delay_ms": 20,
                "users": users,
            },
            "traffic": traffic,
        }
        return Simulation(scenario.from_data(data | keys, "shared.yaml"))

    return make


@pytest.fixture
def testbed() -> Callable[..., Simulation]:
    """Simulate testbed_wifi_lte with these `--set` values."""

    def make(*settings: str, strategy: str = "none") -> Simulation:
        return Simulation(
            scenario.load("testbed_wifi_lte", Overrides(strategy=strategy, settings=settings))
        )

    return make


@pytest.fixture
def simulated() -> Callable[..., Simulation]:
    """Simulate a scenario that comes with the lab, with these `--set` values."""

    def make(name: str, *settings: str, strategy: str | None = None) -> Simulation:
        return Simulation(scenario.load(name, Overrides(strategy=strategy, settings=settings)))

    return make


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the core as Python, so that a test can replace its functions."""
    if compiled.is_fast():
        compiled.slow_down()
    monkeypatch.setattr(compiled, "speed_up_if_possible", lambda: None)
