"""The loop of a run: samples, events, flips, and every possible end."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest
from fake_engine import FakeEngine

from lab.errors import LabError, MachineLacks
from lab.run import inbox
from lab.run.engine import Answer, Reported
from lab.run.reading import read_events, read_samples
from lab.run.runner import run
from lab.scenario.targets import SetDemand, SetLinkUp, SetStrategyParameter


def flips(outcome):
    """Final event of each flip. A flip must have been recorded as sent exactly once before."""
    found = [event for event in read_events(outcome.folder) if event["kind"] == "flip"]
    sent, ended = [], []
    for each in found:
        if each["state"] == "sent":
            assert "ok" not in each
            sent.append(each["seq"])
        else:
            assert "target" not in each or sent.count(each["seq"]) == 1
            assert each["ok"] == (each["state"] == "applied")
            ended.append(each)
    return ended


def test_a_run_is_sampled_to_its_end(go):
    outcome, engine = go()
    assert outcome.exit_code == 0
    assert [frame["t"] for frame in read_samples(outcome.folder)] == [0.5, 1.0, 1.5, 2.0]
    assert outcome.result == json.loads((outcome.folder / "result.json").read_text())
    assert (outcome.result["status"], outcome.result["throughput_mbps"], outcome.result["cc"]) == (
        "complete",
        4.0,
        "reno",
    )
    assert outcome.result["tiers"] == {"1": 4.0, "2": 1.0}
    assert engine.closed


def test_a_duration_that_is_no_multiple_of_the_interval_ends_with_a_short_sample(go):
    outcome, _ = go("duration_s=1.2")
    assert [frame["t"] for frame in read_samples(outcome.folder)] == [0.5, 1.0, 1.2]


def test_scenario_events_happen_at_their_time_in_file_units(go):
    events = (
        "events=[{at_s: 1, target: user.ue1.demand_mbps, value: 8}, {at_s: 0, target:"
        " user.ue2.demand_mbps, value: 4}]"
    )
    outcome, engine = go(events, "rate_scale=0.25")
    rates = [frame["user"]["ue1"]["mbps"] for frame in read_samples(outcome.folder)]
    assert rates == [4.0, 4.0, 8.0, 8.0]  # without a demand the fake gives 1 Mb/s on the wire
    assert [
        (event["t"], event["target"], event["old"], event["value"]) for event in flips(outcome)
    ] == [
        (0, "user.ue2.demand_mbps", None, 4.0),
        (1, "user.ue1.demand_mbps", None, 8.0),
    ]
    assert engine.changes[1] == SetDemand("ue1", 2_000_000)  # on the wire


def test_scenario_events_between_two_samples_happen_at_their_time(go):
    times_s = [0.1, 0.2, 0.2, 0.7, 1.0]
    events = [f"{{at_s: {t}, target: user.ue1.demand_mbps, value: {t}}}" for t in times_s]
    outcome, engine = go(f"events=[{', '.join(events)}]", "sample_interval_s=1")
    assert [event["t"] for event in flips(outcome)] == times_s
    assert engine.stops_s == [0.1, 0.2, 0.7]
    rates = [frame["user"]["ue1"]["mbps"] for frame in read_samples(outcome.folder)]
    assert rates[:2] == [0.7, 1.0]


def test_what_probably_has_no_effect_is_the_first_event_of_a_run(go):
    settings = ("events=[{at_s: 50, target: link.wifi.up, value: false}]", "multipath.cc=dctcp")
    outcome, _ = go(*settings)
    events = read_events(outcome.folder)
    warnings = [event for event in events if event["kind"] == "warning"]
    assert [event["t"] for event in warnings] == [0.0, 0.0]
    assert "before its events at 50 s" in warnings[0]["text"]
    assert "so dctcp behaves as reno" in warnings[1]["text"]


def test_flips_from_the_inbox_are_checked_applied_and_recorded(load_testbed, record):
    scenario = load_testbed("duration_s=2")
    recorder, engine = record(scenario), FakeEngine()

    def at(until_s):
        if until_s == 1.0:
            inbox.send(recorder.folder, {"target": "user.ue1.demand_mbps", "value": 12})
            inbox.send(recorder.folder, {"target": "strategy", "value": "meter_throttling"})
            inbox.send(recorder.folder, {"target": "strategy.cth", "value": 0.3})
            inbox.send(recorder.folder, {"target": "strategy.cth", "value": 3})
            inbox.send(recorder.folder, {"target": "link.lte.up", "value": False})
            inbox.send(recorder.folder, {"control": "pause"})
            (recorder.folder / "inbox" / "99999999999999999999.json").write_text("{nonsense")

    engine.on_advance = at
    outcome = run(scenario, engine, recorder)
    assert [event["ok"] for event in flips(outcome)] == [True, True, True, False, False, False]
    refused = [event["error"] for event in flips(outcome) if not event["ok"]]
    assert "at most 1" in refused[0]
    assert "the fake refuses" in refused[1]
    assert "nonsense" not in refused[2]
    control = next(event for event in read_events(outcome.folder) if event["kind"] == "control")
    assert "choose stop" in control["error"]
    demand, strategy, parameter, link = engine.changes
    assert isinstance(demand, SetDemand)
    assert strategy.params["alpha"] == 0.5
    assert parameter == SetStrategyParameter("cth", 0.3)
    assert link == SetLinkUp("lte", False)
    assert [flip["target"] for flip in outcome.result["flips"]] == [
        "user.ue1.demand_mbps",
        "strategy",
        "strategy.cth",
    ]
    old = [None, "none", 0.85]
    assert [flip["old"] for flip in outcome.result["flips"]] == old
    assert [event["old"] for event in flips(outcome) if event["ok"]] == old
    assert list((recorder.folder / "inbox").glob("*.json")) == []
    assert outcome.result["strategy"] == "none"  # the one at the start


def test_stop_from_the_inbox_keeps_the_samples(load_testbed, record):
    scenario = load_testbed("duration_s=2")
    recorder, engine = record(scenario), FakeEngine()
    engine.on_advance = lambda until_s: (
        until_s == 1.0 and inbox.send(recorder.folder, {"control": "stop"})
    )
    outcome = run(scenario, engine, recorder)
    assert (outcome.exit_code, outcome.result["status"], outcome.result["duration_s"]) == (
        130,
        "interrupted",
        1.0,
    )
    assert outcome.result["throughput_mbps"] == 4.0
    assert engine.closed


def test_a_signal_keeps_the_samples(load_testbed, record):
    before = signal.getsignal(signal.SIGTERM)
    for number in (signal.SIGINT, signal.SIGTERM):
        scenario, engine = load_testbed("duration_s=2"), FakeEngine()
        engine.on_advance = lambda until_s, number=number: (
            until_s == 1.5 and os.kill(os.getpid(), number)
        )
        outcome = run(scenario, engine, record(scenario, number.name))
        assert (outcome.exit_code, outcome.result["status"]) == (130, "interrupted")
        assert len(read_samples(outcome.folder)) == 3
        assert engine.closed
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_signal_while_opening_still_closes(go):
    class Opening(FakeEngine):
        def open(self, scenario, recorder):
            super().open(scenario, recorder)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)

    outcome, engine = go(engine=Opening())
    assert (outcome.exit_code, outcome.result["status"]) == (130, "interrupted")
    assert engine.closed


def test_a_failing_engine_is_closed_and_the_run_kept_as_failed(go):
    engine = FakeEngine()

    def fail(until_s):
        if until_s == 1.5:
            raise ZeroDivisionError("division by zero")

    engine.on_advance = fail
    outcome, _ = go(engine=engine)
    assert (outcome.exit_code, outcome.result["status"]) == (4, "failed")
    assert "ZeroDivisionError" in outcome.error
    assert "Traceback" in (outcome.folder / "log.txt").read_text()
    assert outcome.result["duration_s"] == 1.0
    assert outcome.result["error"] == outcome.error
    assert engine.closed


def test_an_engine_that_cannot_open_is_closed(go):
    engine = FakeEngine()
    engine.fails_to_open = "start Open vSwitch: it is not running"
    outcome, _ = go(engine=engine)
    assert (outcome.exit_code, outcome.error) == (4, "start Open vSwitch: it is not running")
    assert engine.closed


def test_what_the_machine_lacks_has_its_own_exit_code(go):
    class Lacking(FakeEngine):
        def open(self, scenario, recorder):
            raise MachineLacks("start the emulation: no root. Try: sudo ./run_lab.sh run ...")

        def close(self):
            return None

    assert go(engine=Lacking())[0].exit_code == 3


def test_a_failure_while_closing_does_not_hide_the_first(go):
    class Both(FakeEngine):
        def advance(self, until_s):
            raise LabError("first")

        def close(self):
            raise LabError("second")

    outcome, _ = go(engine=Both())
    assert outcome.error == "first"
    assert "second" in (outcome.folder / "log.txt").read_text()


def test_a_full_disk_ends_the_run_with_one_error(load_testbed, record):
    scenario = load_testbed("duration_s=2")
    recorder, engine = record(scenario), FakeEngine()

    def fill(until_s):
        if until_s == 1.0:
            recorder.broken = LabError("record samples.jsonl: no space left")

    engine.on_advance = fill
    outcome = run(scenario, engine, recorder)
    assert outcome.exit_code == 4
    assert "no space left" in outcome.error
    assert [frame["t"] for frame in read_samples(outcome.folder)] == [0.5]
    assert engine.closed


@pytest.mark.parametrize("name", ["samples.jsonl", "events.jsonl"])
@pytest.mark.parametrize("edit", [lambda text: text + "\n", lambda text: text[:-9], lambda _: ""])
def test_a_run_whose_files_another_program_changes_has_failed(load_testbed, record, name, edit):
    scenario = load_testbed(
        "duration_s=2", "events=[{at_s: 0.6, target: user.ue1.demand_mbps, value: 3}]"
    )
    recorder, engine = record(scenario), FakeEngine()

    def change(until_s):
        if until_s == 1.5:
            path = recorder.folder / name
            path.write_text(edit(path.read_text()))

    engine.on_advance = change
    outcome = run(scenario, engine, recorder)
    assert outcome.exit_code == 4
    assert f"another program changed {name}" in outcome.error
    assert (outcome.result["status"], outcome.result["throughput_mbps"]) == ("failed", None)


def test_reports_of_the_engine_are_recorded_with_times_of_the_run(load_testbed, record):
    scenario = load_testbed("duration_s=1")
    recorder, engine = record(scenario), FakeEngine()
    engine.started_at = 1000.0

    def report(until_s):
        if until_s == 1.0:
            fields = {"ap": "wifi1", "reason": "because"}
            engine.reports.append(Reported(1000.75, "decision", fields))

    engine.on_advance = report
    outcome = run(scenario, engine, recorder)
    assert [event for event in read_events(outcome.folder) if event["kind"] == "decision"] == [
        {"t": 0.75, "kind": "decision", "ap": "wifi1", "reason": "because"}
    ]


def asked(load_testbed, record, answers):
    """Set cth to 0.3 at 0.5 s and to 0.5 at 1 s; the engine reports `answers` at 1.5 s.

    Return the outcome, and (t, value, state, ok) of each flip event.
    """
    scenario = load_testbed("duration_s=2", "strategy.name=meter_throttling")
    recorder, engine = record(scenario), FakeEngine()
    engine.asks, engine.started_at = True, 1000.0

    def at(until_s):
        if until_s in (0.5, 1.0):
            value = {0.5: 0.3, 1.0: 0.5}[until_s]
            inbox.send(recorder.folder, {"target": "strategy.cth", "value": value})
        if until_s == 1.5:
            engine.reports += answers

    engine.on_advance = at
    outcome = run(scenario, engine, recorder)
    events = [event for event in read_events(outcome.folder) if event["kind"] == "flip"]
    return outcome, [(each["t"], each["value"], each["state"], each.get("ok")) for each in events]


def test_a_flip_is_applied_when_the_engine_has_answered(load_testbed, record):
    outcome, events = asked(load_testbed, record, [Answer(1, 1001.2), Answer(2, 1001.4)])
    assert events == [
        (0.5, 0.3, "sent", None),
        (1.0, 0.5, "sent", None),
        (1.2, 0.3, "applied", True),
        (1.4, 0.5, "applied", True),
    ]
    applied = {"target": "strategy.cth", "state": "applied", "ok": True}
    assert outcome.result["flips"] == [
        {"t": 1.2, "old": 0.85, "value": 0.3} | applied,
        {"t": 1.4, "old": 0.3, "value": 0.5} | applied,
    ]


def test_a_flip_that_is_refused_later_says_why_and_is_not_in_the_result(load_testbed, record):
    outcome, events = asked(load_testbed, record, [Answer(1, 1001.2, "no"), Answer(2, 1001.4)])
    assert events[2:] == [(1.2, 0.3, "refused", False), (1.4, 0.5, "applied", True)]
    refused = flips(outcome)[0]
    assert (refused["why"], refused["error"]) == ("no", "no")
    assert [each["value"] for each in outcome.result["flips"]] == [0.5]


def test_a_flip_that_nobody_answers_ends_as_sent(load_testbed, record):
    outcome, events = asked(load_testbed, record, [Answer(9, 1001.2, "about something else")])
    assert [state for _, _, state, _ in events] == ["sent", "sent"]
    assert [(each["state"], each["ok"]) for each in outcome.result["flips"]] == [
        ("sent", False),
        ("sent", False),
    ]
    warnings = [each for each in read_events(outcome.folder) if each["kind"] == "warning"]
    assert [each["text"] for each in warnings] == ["about something else"]


def test_the_check_of_a_later_flip_forgets_one_that_was_refused(load_testbed, record):
    """The parameter belongs to a strategy that the engine has refused."""
    scenario = load_testbed("duration_s=2")
    recorder, engine = record(scenario), FakeEngine()

    def refuse(change):
        raise LabError("no such strategy here")

    engine.apply = refuse

    def at(until_s):
        if until_s == 0.5:
            inbox.send(recorder.folder, {"target": "strategy", "value": "meter_throttling"})
            inbox.send(recorder.folder, {"target": "strategy.cth", "value": 0.5})

    engine.on_advance = at
    whys = [each["why"] for each in flips(run(scenario, engine, recorder))]
    assert whys[0] == "no such strategy here"
    assert "target" in whys[1]


def test_progress_has_phase_time_and_remaining_time(load_testbed, record):
    scenario, seen = load_testbed("duration_s=1"), []
    run(scenario, FakeEngine(), record(scenario), seen.append)
    assert [progress.phase for progress in seen] == ["starting", "running", "running", "stopping"]
    assert seen[2].eta_s == 0
    assert seen[1].frame.ap["wifi1"].tier1_mbps == 2.0


def test_an_incomplete_engine_cannot_be_instantiated():
    import pytest

    from lab.run.engine import Engine

    class Half(Engine):
        def open(self, topology, scenario, recorder): ...

    with pytest.raises(TypeError, match="abstract"):
        Half()


def test_a_flip_is_always_in_the_inbox_or_in_the_record(load_testbed, record):
    """A reader that looked between the two would miss it."""
    recorder = record(load_testbed())
    seq = inbox.send(recorder.folder, {"target": "cc", "value": "cubic"})
    for taken, _message, _problem in inbox.receive(recorder.folder):
        assert (recorder.folder / "inbox" / f"{taken}.json").exists()
        assert taken == seq
    assert list((recorder.folder / "inbox").glob("*.json")) == []


def test_late_samples_of_a_slow_machine_are_left_out(load_testbed, record):
    scenario = load_testbed("duration_s=1", "sample_interval_s=0.1")
    recorder, engine = record(scenario), FakeEngine()
    engine.on_advance = lambda until_s: until_s == 0.1 and time.sleep(0.45)
    run(scenario, engine, recorder)
    times = [frame["t"] for frame in read_samples(recorder.folder)]
    assert times[0] == 0.1
    assert times[1] >= 0.4
    assert times[-1] == 1.0


def test_the_event_of_a_new_congestion_control_says_that_it_is_for_open_connections_too(go):
    outcome, _ = go(
        "events=[{at_s: 1, target: cc, value: olia}, {at_s: 1, target: strategy, value: none}]"
    )
    notes = [event.get("note") for event in flips(outcome)]
    assert notes == [
        "open connections use it too, from their present windows on; UDP has none",
        None,
    ]


def test_a_strategy_that_fails_in_pox_ends_the_run_as_failed(go):
    engine = FakeEngine()
    text = "strategy 'mine' failed in decide: /home/me/mine.py, line 12: KeyError: 'x'"
    failed = Reported(0, "failed", {"strategy": "mine", "line": 12, "text": text})
    engine.on_advance = lambda until_s: until_s == 1.0 and engine.reports.append(failed)
    outcome, _ = go(engine=engine)
    assert (outcome.exit_code, outcome.result["status"]) == (4, "failed")
    assert "/home/me/mine.py, line 12: KeyError" in outcome.result["error"]
    assert [frame["t"] for frame in read_samples(outcome.folder)] == [0.5, 1.0]
    assert engine.closed
    assert [event["kind"] for event in read_events(outcome.folder)] == ["failed", "error"]
