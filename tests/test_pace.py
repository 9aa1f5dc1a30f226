"""Speed, pause and resume of simulated runs."""

from __future__ import annotations

import threading
import time

import pytest
from fake_engine import FakeEngine

from lab.errors import RequestError
from lab.run import inbox
from lab.run.engine import Options
from lab.run.pace import Pace, checked_speed
from lab.run.reading import read_events
from lab.run.runner import run


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_a_speed_is_real_seconds_per_simulated_second():
    clock = Clock()
    pace = Pace(10, clock)
    assert pace.wait_s(5) == 0.5
    clock.now += 0.2
    assert pace.wait_s(5) == pytest.approx(0.3)
    assert pace.wait_s(1) == 0


def test_a_run_as_fast_as_possible_never_waits():
    assert Pace(0, Clock()).wait_s(1000) == 0


def test_a_run_that_was_late_does_not_catch_up():
    clock = Clock()
    pace = Pace(1, clock)
    clock.now += 30
    assert pace.wait_s(1.0) == 0
    assert pace.wait_s(1.5) == 0.5


def test_no_time_is_caught_up_after_a_pause():
    clock = Clock()
    pace = Pace(1, clock)
    pace.control("pause", None, 2.0)
    clock.now += 60
    assert pace.wait_s(2.0) > 1e9
    pace.control("resume", None, 2.0)
    assert pace.wait_s(2.5) == 0.5


def test_a_new_speed_counts_from_now():
    clock = Clock()
    pace = Pace(1, clock)
    pace.control("speed", 2, 10.0)
    assert pace.wait_s(11.0) == 0.5
    pace.control("speed", "max", 11.0)
    assert pace.wait_s(99.0) == 0


@pytest.mark.parametrize("value", [0, -1, 5000, "fast", None, True, float("nan")])
def test_impossible_speeds_are_refused(value):
    with pytest.raises(RequestError, match="write max, 1 or 10"):
        checked_speed(value)


def test_unknown_controls_are_refused_with_the_known_ones():
    with pytest.raises(RequestError, match="choose from stop, pause, resume, speed"):
        Pace(1).control("rewind", None, 0)


def test_a_paused_run_accepts_flips_and_can_be_resumed(load_testbed, record):
    scenario = load_testbed("duration_s=1")
    recorder, engine = record(scenario), FakeEngine()
    engine.options, engine.real_time = Options(20.0), False
    pause = {"control": "pause"}
    engine.on_advance = lambda until_s: until_s == 0.5 and inbox.send(recorder.folder, pause)
    going = threading.Thread(target=run, args=(scenario, engine, recorder))
    going.start()
    deadline = time.monotonic() + 5
    while not read_events(recorder.folder) and time.monotonic() < deadline:
        time.sleep(0.01)
    inbox.send(recorder.folder, {"target": "user.ue1.demand_mbps", "value": 8})
    while not engine.changes and time.monotonic() < deadline:
        time.sleep(0.01)
    assert going.is_alive()
    inbox.send(recorder.folder, {"control": "speed", "value": "max"})
    inbox.send(recorder.folder, {"control": "resume"})
    going.join(5)
    assert not going.is_alive()
    told = [
        (event["t"], event.get("control"), event.get("ok"))
        for event in read_events(recorder.folder)
    ]
    assert told == [
        (0.5, "pause", True),
        (0.5, None, None),
        (0.5, None, True),
        (0.5, "speed", True),
        (0.5, "resume", True),
    ]


def test_a_paused_run_can_be_stopped(load_testbed, record):
    scenario = load_testbed("duration_s=1")
    recorder, engine = record(scenario), FakeEngine()
    engine.real_time = False
    for control in ("pause", "stop"):
        inbox.send(recorder.folder, {"control": control})
    assert run(scenario, engine, recorder).result["status"] == "interrupted"
