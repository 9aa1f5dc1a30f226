"""No verdict about a change before the rates have settled: in the card, and in the outcome."""

from __future__ import annotations

import pytest
from test_reasons import scene, subflow

from lab.engines import registry
from lab.frame import Frame
from lab.results.explain import changes as changes
from lab.results.explain import delays as delays
from lab.results.explain import stretches as stretches
from lab.run.engine import Options
from lab.run.recorder import Recorder
from lab.run.runner import run
from lab.scenario import loading
from lab.scenario.yaml_text import read

DECIDED = {"t": 12.0, "kind": "decision", "action": "meter", "ap": "wifi1"}


@pytest.mark.parametrize(
    ("target", "events", "rtt_ms", "settling_s"),
    [
        ("link.wifi.rate_mbps", [], 150.0, 3.0),  # nothing is decided
        ("link.wifi.rate_mbps", [DECIDED], 150.0, 7.0),
        ("strategy.cth", [], 150.0, 7.0),
        ("strategy", [], 900.0, 10.0),  # not more than the window of a card
    ],
)
def test_rates_settle_by_the_longest_round_trip_and_the_interval_of_the_strategy(
    target, events, rtt_ms, settling_s
):
    def frame(t):
        slow = subflow(3.0, rtt_ms=rtt_ms if t > 10 else 2000.0)
        return Frame(t, sf={"ue3-1/1": subflow(9.0, rtt_ms=40.0), "ue3-1/2": slow})

    throttling = ("strategy.name=meter_throttling",)
    found = scene("testbed_wifi_lte", frame, *events, settings=throttling)
    assert delays.settling_s(found, target, 10.0) == settling_s


def changed(folder, name, index, at_s):
    """Run a scenario with one of its suggestions, and return the row and the outcome of it."""
    raw = read(loading.find(name))
    suggestion = loading.load(name).to_try[index]
    flip = {"at_s": at_s, "target": suggestion.target, "value": suggestion.value}
    scenario = loading.from_data(raw | {"events": [flip]}, name)
    recorder = Recorder(folder, scenario, "sim")
    assert run(scenario, registry.create("sim", Options(0.0)), recorder).error == ""
    return changes.changes(folder)[0], stretches.told(folder)


@pytest.mark.parametrize("before_end_s", [0.5, 2.5, 5.5])
@pytest.mark.parametrize("name", ["fifteen_paths", "pooling", "idle_wifi"])
def test_a_change_shortly_before_the_end_has_no_verdict(name, before_end_s, tmp_path):
    duration_s = loading.load(name).duration_s
    row, outcome = changed(tmp_path, name, 0, duration_s - before_end_s)
    assert "too early to tell, it settles about" in row["sentence"]
    assert outcome == "" or row["sentence"] in outcome  # "" if the part is too short for a mean
    assert (row["is_early"], row["is_clear"], row["why"], row["also"]) == (True, False, [], "")


def test_a_change_in_time_has_a_verdict(tmp_path):
    row, outcome = changed(tmp_path, "fifteen_paths", 0, 20.0)
    assert (row["is_early"], row["is_measured"]) == (False, True)
    assert "\u2212" in outcome  # the fifteen paths carry less
