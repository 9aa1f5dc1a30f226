"""Runs of a race stay together in simulated time, and make a change at the same time."""

from __future__ import annotations

import threading
import time

import pytest
from fake_engine import FakeEngine

from lab.errors import RequestError
from lab.run import inbox, lanes
from lab.run.engine import Options
from lab.run.reading import read_events, readable_samples
from lab.run.recorder import Recorder
from lab.run.runner import run

STEP_S = 0.5


def reached(recorder):
    return max((each["t"] for each in readable_samples(recorder.folder)), default=0.0)


@pytest.fixture
def race(load_testbed, tmp_path, monkeypatch):
    """A function that begins a race in threads: (recorders, engines, threads)."""

    def begin(*steps_s, duration_s=6, speed=0.0):
        names = [f"lane{n}" for n, _ in enumerate(steps_s)]
        monkeypatch.setenv(lanes.LANES, ",".join(names))
        scenario = load_testbed(f"duration_s={duration_s}")
        recorders, engines, threads = [], [], []
        for name, step_s in zip(names, steps_s, strict=True):
            (tmp_path / name).mkdir()
            recorders.append(Recorder(tmp_path / name, scenario, "sim"))
            engine = FakeEngine()
            engine.real_time, engine.options, engine.step_s = False, Options(speed), step_s
            engines.append(engine)
        for recorder, engine in zip(recorders, engines, strict=True):
            threads.append(threading.Thread(target=run, args=(scenario, engine, recorder)))
            threads[-1].start()
        return recorders, engines, threads

    return begin


def ended(threads):
    for each in threads:
        each.join(20)
    return not any(each.is_alive() for each in threads)


@pytest.mark.parametrize("steps_s", [(0.0, 0.03), (0.02, 0.0, 0.005, 0.03)])
def test_a_slow_lane_holds_the_others(race, steps_s):
    recorders, _, threads = race(*steps_s)
    apart = []
    while any(each.is_alive() for each in threads):
        slow = min(
            reached(each) for each in recorders
        )  # read first: the others may go on meanwhile
        fast = max(reached(each) for each in recorders)
        again = min(reached(each) for each in recorders)
        if slow == again:
            apart.append(fast - slow)
        time.sleep(0.002)
    assert max(apart) == STEP_S
    assert [reached(each) for each in recorders] == [6.0] * len(steps_s)


def test_a_change_is_made_at_the_same_time_in_all_lanes(race):
    recorders, _engines, threads = race(0.0, 0.01, 0.004)
    folders = [each.folder for each in recorders]
    sent = 0
    while all(each.is_alive() for each in threads) and sent < 8:
        if lanes.reached_s(folders) < 0.5 + sent / 2:
            continue
        with lanes.turn(folders) as is_held:
            assert is_held
            after_s = lanes.reached_s(folders)
            for each in folders:
                message = {"target": "user.ue1.demand_mbps", "value": 2 + sent, "after_s": after_s}
                inbox.send(each, message)
        sent += 1
    assert ended(threads)
    made = [
        [
            (each["t"], each["value"])
            for each in read_events(folder)
            if each.get("state") == "applied"
        ]
        for folder in folders
    ]
    assert [value for _, value in made[0]] == list(range(2, 2 + sent))
    assert sent == 8
    assert made[1:] == made[:1] * 2


def test_a_lane_that_has_ended_does_not_hold_the_others(race):
    recorders, _, threads = race(0.0, 0.02)
    while reached(recorders[1]) < 1:
        time.sleep(0.002)
    inbox.send(recorders[1].folder, {"control": "stop"})
    assert ended(threads)
    assert reached(recorders[1]) < 6
    assert reached(recorders[0]) == 6


def test_a_paused_lane_holds_the_others_and_all_can_be_stopped(race):
    recorders, _, threads = race(0.0, 0.0, duration_s=600, speed=20.0)
    inbox.send(recorders[0].folder, {"control": "pause"})
    while not read_events(recorders[0].folder):
        time.sleep(0.002)
    time.sleep(0.2)
    assert abs(reached(recorders[0]) - reached(recorders[1])) <= STEP_S
    for each in recorders:
        inbox.send(each.folder, {"control": "stop"})
    assert ended(threads)


def test_a_lane_that_never_begins_is_not_waited_for(tmp_path):
    (tmp_path / "here").mkdir()
    assert lanes.Lanes(tmp_path / "here", ()).wait_s(1.0) == 0
    race = lanes.Lanes(tmp_path / "here", ("here", "gone"))
    assert race.wait_s(0.0) == 0
    assert race.wait_s(0.5) > 0
    time.sleep(lanes.LOOKS_EVERY_S)
    assert race.wait_s(0.5) == 0


def test_only_one_has_the_turn(tmp_path, monkeypatch):
    monkeypatch.setattr(lanes, "TURN_WITHIN_S", 0.02)
    with lanes.turn([tmp_path]) as first, lanes.turn([tmp_path]) as second:
        assert (first, second) == (True, False)
    with lanes.turn([tmp_path]) as is_held:
        assert is_held


def test_a_time_that_is_none_is_refused(tmp_path):
    (tmp_path / "inbox").mkdir()
    inbox.send(tmp_path, {"target": "user.ue1.demand_mbps", "value": 1, "after_s": "soon"})
    ((_, message, problem),) = inbox.receive(tmp_path, 0.0)
    assert (message, "after_s" in problem) == ({}, True)
    with pytest.raises(RequestError):
        inbox.send(tmp_path / "nowhere", {})
