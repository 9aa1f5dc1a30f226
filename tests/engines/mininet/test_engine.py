"""What the engine tells the runner about changes that POX makes."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from lab.engines.mininet.controller_client import Answered, ControllerClient, Line, RunningStrategy
from lab.engines.mininet.engine import MininetEngine
from lab.engines.mininet.machine.ledger import Ledger
from lab.run.engine import Answer, Reported
from lab.scenario import targets


@pytest.fixture
def engine(tmp_path):
    (tmp_path / "pox" / "inbox").mkdir(parents=True)
    ledger, strategy = Ledger(tmp_path / "ledger"), RunningStrategy("none", {})
    pox = ControllerClient(tmp_path / "pox", tmp_path, ledger, strategy, tmp_path / "key")
    made = MininetEngine()
    links = SimpleNamespace(change=lambda _: None, shape=lambda _: {"rate_mbps": 5})
    made.emulated = SimpleNamespace(pox=pox, links=links)
    made.telemetry, made._untold, made.started_at = SimpleNamespace(heard=list), [], 0.0
    made.workload = SimpleNamespace(zero_s=time.monotonic() - 7)
    return made


def test_changes_of_the_strategy_wait_for_pox_and_changes_of_links_do_not(engine):
    assert engine.apply(targets.SetStrategyParameter("cth", 0.5)) == 1
    assert engine.apply(targets.SetStrategy("none", {})) == 2
    assert engine.apply(targets.SetTier1Demand("wifi1", None)) == 3
    assert engine.apply(targets.SetLinkRate("wifi", 5_000_000)) is None
    assert engine.apply(targets.SetLinkUp("wifi", False)) is None


def test_answers_of_pox_are_no_events_but_moved_flows_are(engine):
    value = {"link": "wifi", "up": False}
    moved = {"seq": 5, "what": "link", "state": "applied", "value": value, "flows_moved": 2}
    lines = [
        Answered(1.0, "flip", {"seq": 1, "what": "params", "state": "applied"}),
        Answered(2.0, "flip", {"seq": 2, "state": "refused", "why": "no"}),
        Answered(3.0, "flip", moved),
        Answered(4.0, "flip", moved | {"flows_moved": None}),
        Answered(5.0, "steps", {"seq": 6, "held": True}),
        Line(6.0, "warning", {"text": "late"}),
    ]
    engine.emulated.pox._heard += lines
    assert engine.news() == [
        Answer(1, 1.0),
        Answer(2, 2.0, "no"),
        Reported(3.0, "reroute", {"link": "wifi", "flows_moved": 2}),
        Reported(5.0, "steps", {"seq": 6, "held": True}),
        Reported(6.0, "warning", {"text": "late"}),
    ]
    assert engine.news() == []


def test_the_start_is_found_again_after_the_clock_was_set(engine, monkeypatch):
    now_s = time.time()
    for jump_s in (-86_400, 86_400):
        monkeypatch.setattr("time.time", lambda jump_s=jump_s: now_s + jump_s)
        engine.news()
        assert engine.started_at == pytest.approx(now_s + jump_s - 7, abs=2)


def test_what_pox_wrote_before_the_traffic_is_told_also_if_the_start_fails(engine):
    engine.started_at = None
    engine.emulated.pox._heard.append(Line(6.0, "warning", {"text": "no switch"}))
    assert engine.news() == [Reported(6.0, "warning", {"text": "no switch"})]
