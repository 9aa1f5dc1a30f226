"""Whole runs: the same seed gives the same bytes; changes, events and decisions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.engines import registry
from lab.run import inbox
from lab.run.engine import Options
from lab.run.recorder import Recorder
from lab.run.runner import run
from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides
from lab.scenario.targets import targets

ROOT = Path(__file__).resolve().parents[3]
SMALL = ("rate_scale=0.1", "sample_interval_s=1", "strategy.name=meter_throttling")


def record(folder, *settings, name="testbed_wifi_lte", on_progress=lambda _: None):
    """Run a scenario at a tenth of its rates into `folder`."""
    folder.mkdir()
    loaded = scenario.load(name, Overrides(settings=(*SMALL, *settings)))
    recorder = Recorder(folder, loaded, "sim")
    outcome = run(loaded, registry.create("sim", Options(speed=0.0)), recorder, on_progress)
    assert not outcome.error, outcome.error
    return outcome


def files(folder):
    return [(folder / name).read_bytes() for name in ("samples.jsonl", "events.jsonl")]


def lines(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        record(tmp_path / name, "duration_s=6", f"seed={seed}")
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert files(tmp_path / "a")[0] != files(tmp_path / "c")[0]


def test_a_change_affects_the_samples_after_it_and_none_before(tmp_path):
    record(tmp_path / "plain", "duration_s=8")
    record(
        tmp_path / "flipped",
        "duration_s=8",
        "events=[{at_s: 4, target: cell.wifi1.ue1.rate_mbps, value: 5}]",
    )
    plain, flipped = (lines(tmp_path / name, "samples.jsonl") for name in ("plain", "flipped"))
    assert plain[:4] == flipped[:4]
    assert plain[4:] != flipped[4:]


CHANGED = {
    "testbed_wifi_lte": {
        "cell.wifi1.ue1.rate_mbps": (42, 5),
        "link.wifi.up": ("true", "false"),
        "user.ue1.demand_mbps": (2, 20),
    },
    "two_paths": {
        "link.path1.rate_mbps": (20, 2),
        "link.path1.delay_ms": (10, 30),
        "link.path1.loss": (0, 0.02),
    },
}


@pytest.mark.parametrize(
    ("name", "target"), [(name, target) for name, targets in CHANGED.items() for target in targets]
)
def test_changes_happen_at_their_time_whatever_the_sample_interval(tmp_path, name, target):
    """A trace of 20 Hz: what flows does not depend on how often somebody looks."""
    values = CHANGED[name][target]
    strategy = "none" if name == "two_paths" else "meter_throttling"
    times_s = [round(0.013 + n * 0.05, 3) for n in range(60)]
    events = [
        f"{{at_s: {t}, target: {target}, value: {values[n % 2]}}}" for n, t in enumerate(times_s)
    ]
    totals = []
    for interval_s in (0.05, 0.5, 4):
        record(
            tmp_path / f"{interval_s}",
            "duration_s=4",
            f"sample_interval_s={interval_s}",
            f"events=[{', '.join(events)}]",
            f"strategy.name={strategy}",
            name=name,
        )
        made = lines(tmp_path / f"{interval_s}", "events.jsonl")
        made = [e["t"] for e in made if e["kind"] == "flip" and e["state"] == "applied"]
        assert made == times_s
        samples = lines(tmp_path / f"{interval_s}", "samples.jsonl")
        totals.append(sum(s["user"]["ue1"]["mbps"] for s in samples) * interval_s)
    assert totals == pytest.approx([totals[0]] * 3, abs=0.003)  # samples are rounded
    assert totals[0] > 0.1


def test_stop_keeps_the_measurements(tmp_path):
    folder = tmp_path / "run"

    def stop(progress):
        if progress.t == 3:
            inbox.send(folder, {"control": "stop"})

    outcome = record(folder, "duration_s=30", on_progress=stop)
    assert outcome.result["status"] == "interrupted"
    assert 3 <= outcome.result["duration_s"] <= 5


def test_decisions_are_events_with_reasons(tmp_path):
    outcome = record(tmp_path / "run", "duration_s=5")
    events = lines(tmp_path / "run", "events.jsonl")
    decisions = [event for event in events if event["kind"] == "decision"]
    assert {event["ap"] for event in decisions} == {"wifi1", "lte1"}
    assert all(
        event["reason"] and event["action"] == "meter" and event["addresses"] for event in decisions
    )
    assert [event["t"] for event in events if event["kind"] == "observation"] == [0, 2, 4]
    assert outcome.result["mptcp"]["verified"] is True
    assert outcome.result["cc"] == "reno"


def test_withdrawing_the_strategy_removes_the_meters(testbed):
    simulation = testbed("rate_scale=0.1", strategy="meter_throttling")
    wire_mbps = simulation.run(3)[-1]["ap"]["wifi1"]["meter_mbps"]
    assert wire_mbps == pytest.approx(0.05)  # the lowest meter; 0.1 Mb/s x 0.1 would be less
    simulation.flip("strategy", "none")
    assert simulation.run(3)[-1]["ap"]["wifi1"]["meter_mbps"] is None
    assert "release" in {event.get("action") for event in simulation.notes.events}


def test_every_target_can_be_changed(testbed):
    simulation = testbed("rate_scale=0.1", "duration_s=30", strategy="meter_throttling")
    simulation.run(1)
    for name, target in targets(simulation.scenario).items():
        value = (
            "cubic" if name == "cc" else "meter_throttling" if name == "strategy" else target.value
        )
        simulation.flip(name, 2.0 if value is None else value)
    simulation.run(1)


def test_a_changed_law_holds_for_open_and_for_new_connections(paths):
    later = [{"user": "ue1"}, {"user": "ue1", "start_s": 2}]
    simulation = paths({"rate_mbps": 5}, traffic=later)
    simulation.run(1)
    simulation.flip("cc", "cubic")
    simulation.run(3)
    assert [each["subflows"][0]["cc"] for each in simulation.report()["connections"]] == [
        "cubic",
        "cubic",
    ]
    assert simulation.report()["cc"] == "cubic"
