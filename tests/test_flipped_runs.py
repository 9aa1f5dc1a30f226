"""A run that was changed by hand is another experiment: its name lists its flips, and it is not
pooled with other runs."""

from __future__ import annotations

import json

import pytest
import yaml

from dashboard import finished as repeats
from lab.batch.job import Job
from lab.batch.jobs import kept
from lab.frame import Frame, UserSample
from lab.results import compare, compare_text
from lab.results.explain import present
from lab.results.flips import each_once, is_accepted, label, made_by_hand
from lab.results.store import Store
from lab.run import result as result_json
from lab.run.engine import Options
from lab.scenario.loading import experiment, resolved

FLIP = {"t": 12.0, "target": "strategy.cth", "value": 0.3}


@pytest.fixture
def make(load_testbed, tmp_path):
    def write(name, total, *flips, seed=1, strategy="meter_throttling"):
        scenario = load_testbed(f"strategy.name={strategy}", f"seed={seed}")
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        (folder / "scenario.yaml").write_text(yaml.safe_dump(resolved(scenario)))
        header = result_json.Header(name, "s", strategy, "sim", seed, 1.0, "complete", flips)
        frames = [Frame(1.0, user={"ue1": UserSample(total)})]
        result = result_json.document(header, scenario.network, frames, None)
        (folder / "result.json").write_text(json.dumps(result))
        of = {"experiment": experiment(scenario, "sim"), "started": "", "schema": 2}
        (folder / "manifest.json").write_text(json.dumps(of | {"engine": "sim", "seed": seed}))
        return folder

    return write


def test_runs_with_and_without_flips_of_one_seed_are_two_groups_and_none_is_dropped(make):
    folders = [make("changed", 8.0, FLIP), make("plain", 5.0)]
    groups = compare.grouped(folders)
    assert [group.label for group in groups] == [
        "meter_throttling",
        "meter_throttling (changed: strategy.cth = 0.3 at 12 s)",
    ]
    assert [group.values("throughput_mbps") for group in groups] == [[5.0], [8.0]]
    assert [group.left_out for group in groups] == [(), ()]
    said = compare_text.report(folders)
    assert "meter_throttling (changed: strategy.cth = 0.3 at 12 s) (n = 1, rate scale 1)" in said
    assert "differ in" not in said


def test_equal_flips_are_one_group_and_a_flip_at_another_time_is_another(make):
    later = FLIP | {"t": 13.0}
    folders = [make(f"run{n}", n, flip, seed=n) for n, flip in enumerate([FLIP, FLIP, later], 1)]
    assert [len(group.runs) for group in compare.grouped(folders)] == [2, 1]


def test_a_flipped_run_alone_is_named_by_its_flips(make):
    (group,) = compare.grouped([make("alone", 5.0, FLIP)])
    assert "changed: strategy.cth = 0.3" in group.heading


def test_a_run_without_flips_is_the_base_of_a_comparison(make):
    folders = [make("changed", 8.0, FLIP, strategy="none"), make("plain", 5.0, strategy="none")]
    assert compare.grouped(folders)[0].label == "none"


def test_the_index_holds_the_flips_of_finished_and_of_lost_runs(make):
    finished, lost = make("finished", 5.0, FLIP), make("lost", 5.0)
    (lost / "result.json").unlink()
    events = [
        {"t": 1, "kind": "flip", "ok": True, "source": "scenario", "target": "cc", "value": "lia"},
        {"t": 2, "kind": "flip", "ok": False, "source": "inbox", "target": "cc", "value": "x"},
        {"kind": "flip", "ok": True, "source": "inbox", **FLIP},
    ]
    (lost / "events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))
    assert made_by_hand(events) == [FLIP]
    with_old = FLIP | {"old": 0.85}
    event = {"kind": "flip", "ok": True, "source": "inbox", **with_old}
    assert made_by_hand([event]) == [with_old]
    store = Store(finished.parent)
    store.refresh()
    assert [store.get(name)["flips"] for name in ("finished", "lost")] == [[FLIP], [FLIP]]


def test_a_flipped_run_does_not_count_as_a_run_of_its_scenario(make, load_testbed):
    scenario = load_testbed("strategy.name=meter_throttling", "seed=1")
    plain, flipped = make("plain", 5.0), make("flipped", 8.0, FLIP)
    assert kept(Job(scenario, "sim", Options(), plain)) is not None
    assert kept(Job(scenario, "sim", Options(), flipped)) is None


def test_a_label_names_three_flips_and_counts_the_others():
    strategy = {"t": 2.5, "target": "strategy", "value": {"name": "none", "params": {"a": 1}}}
    down = {"t": 3, "target": "link.wifi.up", "value": False}
    assert label([]) == ""
    assert label([strategy, down]) == "changed: strategy = none at 2.5 s, link.wifi.up = off at 3 s"
    named = {"old": "none", "target": "strategy", "value": {"name": "disjoint", "params": {}}}
    assert label([named | {"t": 4}]) == "changed: strategy: none -> disjoint at 4 s"
    assert label([down | {"old": True}]) == "changed: link.wifi.up: on -> off at 3 s"
    assert label([FLIP] * 5).endswith("at 12 s and 2 more")


SENT = FLIP | {"kind": "flip", "source": "inbox", "seq": "7", "state": "sent"}
APPLIED = SENT | {"t": 12.2, "state": "applied", "ok": True}


@pytest.mark.parametrize(
    ("events", "counted"),
    [
        ([SENT, APPLIED], [("applied", True)]),
        ([SENT], [("sent", False)]),
        ([SENT, SENT | {"state": "refused", "ok": False, "why": "no"}], []),
        ([SENT, SENT | {"seq": "8"}, APPLIED], [("applied", True), ("sent", False)]),
        ([SENT | {"source": "scenario"}, APPLIED | {"source": "scenario"}], []),
    ],
)
def test_a_flip_with_two_events_counts_once(events, counted):
    assert [(each["state"], each["ok"]) for each in made_by_hand(events)] == counted
    assert sum(map(is_accepted, events)) == sum(map(is_applied, each_once(events)))


def is_applied(event):
    return event["state"] == "applied"


def test_a_flip_without_an_answer_is_named_so_and_is_another_experiment(make):
    applied = FLIP | {"state": "applied", "ok": True}
    sent = FLIP | {"state": "sent", "ok": False}
    assert label([applied]) == label([FLIP])
    assert label([sent]) == f"{label([FLIP])} (no answer)"
    folders = [make("old", 5.0, FLIP), make("new", 5.0, applied, seed=2), make("sent", 5.0, sent)]
    assert sorted(len(group.runs) for group in compare.grouped(folders)) == [1, 2]


def test_a_repeated_run_gets_the_flips_that_took_effect():
    flips = [FLIP, FLIP | {"t": 20, "state": "sent", "ok": False}]
    assert json.loads(repeats.with_events({}, flips).partition("=")[2]) == [
        {"at_s": FLIP["t"], "target": FLIP["target"], "value": FLIP["value"]}
    ]


@pytest.mark.parametrize(
    ("second", "value"),
    [
        (None, 0.3),
        ({"state": "applied", "ok": True}, 0.3),
        ({"state": "refused", "ok": False, "why": "no"}, 0.85),
    ],
)
def test_a_page_shows_a_value_that_was_sent_unless_it_was_refused(make, second, value):
    folder = make("live", 5.0)
    (folder / "inbox").mkdir()
    events = [SENT] if second is None else [SENT, SENT | second]
    (folder / "events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))
    assert present.present_values(folder)["strategy.cth"] == value
