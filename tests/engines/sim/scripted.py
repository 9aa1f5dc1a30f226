"""A strategy that issues the commands of a test."""

from __future__ import annotations

import pytest

from controller import strategies
from controller.command import Decision, subflow_name
from controller.strategies.base import Strategy
from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides

from .conftest import Simulation

FIRST, SECOND = ("ue1-1", 1), ("ue1-1", 2)
TWO = {"rate_mbps": 20, "delay_ms": 10}, {"rate_mbps": 12, "delay_ms": 30}
WIRE = 1420 / 1514  # payload in a frame


class Scripted(Strategy):
    """Issues each command in `todo` once its subflow is there; `observations` has what it saw."""

    name = "scripted"
    wakes_on_subflows = True

    def __init__(self, params):
        super().__init__(params)
        self.observations, self.todo = [], []

    def decide(self, observation):
        self.observations.append(observation)
        known = {each.key for each in observation.subflows}
        now = [command for command in self.todo if command.subflow in known]
        self.todo = [command for command in self.todo if command not in now]
        return [
            Decision(subflow_name(command.subflow), "the test says so", command) for command in now
        ]

    def withdraw(self, observation):
        return []


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setitem(strategies.STRATEGIES, "scripted", Scripted)


def request(simulation, *commands):
    """Let the strategy issue these commands at its next step."""
    strategy = simulation.engine.controller.control.strategy
    strategy.todo += commands
    return strategy


@pytest.fixture
def two(paths):
    """Two paths of 20 and 12 Mb/s; the scripted strategy decides twice a second."""
    return lambda **keys: paths(
        *TWO, strategy={"name": "scripted", "params": {"interval_s": 0.5}}, **keys
    )


@pytest.fixture
def colliding():
    """Two subflows whose hashes choose the same path."""

    def make(*settings, strategy="scripted"):
        settings = ("strategy.params.interval_s=0.5", *settings)
        return Simulation(
            scenario.load(
                "collision_within", Overrides(strategy=strategy, seed=1, settings=settings)
            )
        )

    return make


def goodput(frames, subflow):
    return sum(frame["sf"][subflow_name(subflow)]["mbps"] for frame in frames) / len(frames)
