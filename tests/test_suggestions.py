"""Suggested changes: every scenario has three, and a run accepts them in every order."""

from __future__ import annotations

from itertools import permutations

import pytest

from lab import metrics
from lab.engines import registry
from lab.errors import RequestError
from lab.run.engine import Options
from lab.run.reading import read_events
from lab.run.recorder import Recorder
from lab.run.runner import run
from lab.scenario import loading, targets
from lab.scenario.files import Files
from lab.scenario.loading import Overrides
from lab.scenario.yaml_text import read

STEP_S = 0.1


@pytest.mark.parametrize("name", loading.names())
def test_a_run_accepts_the_three_suggestions_in_every_order(name, tmp_path):
    scenario = loading.load(name)
    assert len(scenario.to_try) == 3
    assert len({(each.target, str(each.value)) for each in scenario.to_try}) == 3
    order = [each for several in permutations(scenario.to_try) for each in several]
    raw = read(loading.find(name)) | {"events": [], "sample_interval_s": STEP_S}
    raw["duration_s"] = (len(order) + 1) * STEP_S
    files = Files(loading.find(name).parent, None, reads_anywhere=False)
    short = loading.from_data(raw, name, files=files)
    flips = [
        {"at_s": n * STEP_S, "target": each.target, "value": each.value}
        for n, each in enumerate(order, 1)
    ]
    short = loading.from_data(raw | {"events": flips}, name, files=files)
    recorder = Recorder(tmp_path, short, "sim")
    outcome = run(short, registry.create("sim", Options(0.0)), recorder)
    assert outcome.error == ""
    happened = [each for each in read_events(tmp_path) if each["kind"] == "flip"]
    assert [each["state"] for each in happened] == ["sent", "applied"] * 18


def test_a_suggestion_stays_valid_whatever_the_strategy_is():
    scenario = loading.load("testbed_wifi_lte")
    for strategy in ("none", "meter_throttling", "disjoint"):
        value = targets.check_flip(scenario, "strategy", strategy)
        now = targets.after(scenario, "strategy", value)
        for each in scenario.to_try:
            targets.check_flip(now, each.target, each.value)


def suggested(**changes):
    raw = read(loading.find("two_paths"))
    raw["try"] = [raw["try"][0] | changes]
    return loading.from_data(raw, "mine.yaml")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"target": "strategy.interval_s", "value": 1}, "try[1]: target strategy.interval_s: a"),
        ({"target": "link.path7.up"}, "mine.yaml: try[1]: target 'link.path7.up' is unknown"),
        ({"value": -1}, "try[1]: link.path2.rate_mbps: -1 is not within"),
        ({"watch": "user.ue7.mbps"}, "try[1]: watch: user.ue7.mbps: 'ue7' is unknown"),
        ({"watch": "user.ue1.rtt"}, "try[1]: watch: user.ue1.rtt: 'rtt' is unknown"),
        ({"watch": "link.access1.mbps"}, "'access1' is unknown: choose from path1, path2"),
        ({"watch": "ue1"}, "write KIND.ID.FIELD, such as user.ue1.mbps"),
        ({"after": "It got {after} Mb/s."}, "{before} is missing"),
        ({"after": "{before} {after} {later}"}, "{later} is unknown"),
        ({"after": "{before} {after"}, "try[1]: after:"),
        ({"befor": "x"}, "unknown key 'befor' (did you mean 'before'?)"),
        ({"before": ""}, "try[1].before"),
    ],
)
def test_a_wrong_suggestion_is_refused_with_the_cure(changes, told):
    with pytest.raises(RequestError) as refused:
        suggested(**changes)
    assert told in str(refused.value)


def test_suggestions_that_no_longer_fit_a_changed_network_are_left_out():
    single_path = Overrides(settings=("topology.multipath=[]",))
    found = loading.load("testbed_wifi_lte", single_path).to_try
    assert [each.target for each in found] == ["strategy", "link.lte.up"]


def test_suggestions_are_kept_in_the_run_folder_and_change_no_experiment():
    scenario = loading.load("two_paths")
    again = loading.from_data(loading.resolved(scenario), "scenario.yaml")
    assert again.to_try == scenario.to_try
    bare = scenario.model_copy(update={"to_try": ()})
    assert loading.experiment(bare, "sim") == loading.experiment(scenario, "sim")


def test_a_watched_number_is_named_in_words():
    network = loading.load("testbed_wifi_lte").network
    assert metrics.watched_number("ap.wifi1.tier2_mbps", network).text == "wifi1: Tier 2 throughput"
    assert metrics.watched_number("user.*.mbps", network).text == "all users: throughput"
    assert metrics.watched_number("link.wifi.loss", network).unit == ""
    held = metrics.watched_number("user.ue1.held_back_kb", network)
    assert (held.text, held.unit) == ("ue1: data held back", "kB")
