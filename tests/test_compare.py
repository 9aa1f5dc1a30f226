"""A verdict in words, and only when chance can be ruled out."""

from __future__ import annotations

import json
import re
import shutil

import numpy
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import RequestError
from lab.results import compare
from lab.scenario.loading import build, resolved


@pytest.fixture
def runs(load, tmp_path):
    """Write finished runs: strategy, and the total of each repeat."""
    from lab.run import metrics

    def make(strategy, totals, *settings, status="complete", engine="fake"):
        folders = []
        for seed, total in enumerate(totals, 1):
            scenario = load(f"strategy.name={strategy}", f"seed={seed}", *settings)
            folder = tmp_path / f"{strategy}-{seed}-{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            (folder / "scenario.yaml").write_text(yaml.safe_dump(resolved(scenario)))
            header = {
                "run_id": folder.name,
                "scenario": "s",
                "strategy": strategy,
                "engine": engine,
                "seed": seed,
                "status": status,
            }
            frames = [{"t": 1.0, "user": {"ue1": {"mbps": total}}, "ap": {}, "sf": {}}]
            (folder / "result.json").write_text(
                json.dumps(metrics.result(header, build(scenario), frames, None))
            )
            folders.append(folder)
        return folders

    return make


def test_a_clear_difference_is_told_with_its_interval(runs):
    base, better = runs("none", [9.8, 10, 10.2] * 4), runs("meter_throttling", [11.7, 12, 12.3] * 4)
    said = compare.report([*base, *better], as_json=False)
    assert "none (n = 12)" in said
    assert "throughput_mbps: better by 20 % [" in said
    assert "n = 12" in said


def test_in_markdown_a_verdict_stands_beside_its_estimate(runs):
    said = compare.report(
        [*runs("none", [9.8, 10, 10.2] * 4), *runs("disjoint", [11.7, 12, 12.3] * 4)],
        as_markdown=True,
    )
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in said.splitlines()]
    assert rows[0] == ["metric", "none (n = 12)", "disjoint (n = 12)"]
    assert rows[2][0] == "`throughput_mbps`"
    assert rows[2][2].startswith("12 [11.8, 12.2]: better by 20 % [")


def test_a_copy_of_a_run_and_in_the_simulator_the_same_seed_count_once(runs, tmp_path):
    one, other = runs("none", [10.0, 11.0])
    shutil.copytree(one, tmp_path / "copy")
    said = compare.report([one, other, tmp_path / "copy"])
    assert "none (n = 2)" in said
    assert f"careful: run {one.name} is a run or a seed that is there already" in said
    cut, whole = (
        runs("none", [1.0], status="interrupted", engine="sim"),
        runs("none", [12.0], engine="sim"),
    )
    (group,) = compare.grouped([*cut, *whole])
    assert (group.values("throughput_mbps"), group.again) == ([12.0], (cut[0].name,))
    (group,) = compare.grouped(
        [*runs("none", [1.0], engine="mininet"), *runs("none", [2.0], engine="mininet")]
    )
    assert group.again == ()


def test_strategies_that_ran_for_different_times_are_a_warning_and_scenarios_have_their_names(runs):
    said = compare.report([*runs("none", [10.0]), *runs("disjoint", [11.0], "duration_s=7")])
    assert "careful: they differ in duration_s, too" in said
    assert "duration_s" not in compare.report([*runs("none", [10.0]), *runs("disjoint", [11.0])])
    (first, second) = [*runs("none", [10.0]), *runs("none", [11.0])]
    text = (second / "scenario.yaml").read_text()
    (second / "scenario.yaml").write_text(re.sub("(?m)^name: .*$", "name: elsewhere", text))
    labels = [each.label for each in compare.grouped([first, second])]
    assert labels[1] == "elsewhere none"
    assert labels[0].endswith(" none")
    assert "=" not in labels[0]


def test_the_other_way_round_is_worse(runs):
    document = json.loads(
        compare.report(
            [*runs("none", [12, 12.1] * 5), *runs("meter_throttling", [9, 9.1] * 5)], as_json=True
        )
    )
    assert document["verdicts"]["meter_throttling"]["throughput_mbps"].startswith("worse by 25 % [")
    assert document["metrics"]["throughput_mbps"]["none"]["mean"] == pytest.approx(12.05)
    assert (
        document["metrics"]["throughput_mbps"]["none"]["low"]
        < 12.05
        < document["metrics"]["throughput_mbps"]["none"]["high"]
    )


def test_less_may_be_better_and_may_be_neither():
    few, many = [0.4, 0.41, 0.42, 0.43, 0.44], [0.8, 0.81, 0.82, 0.83, 0.84]
    assert compare.verdict(many, few, compare.good("out_of_order_fraction")).startswith(
        "better by 49 % ["
    )
    assert compare.verdict(few, many, compare.good("fairness.sd_mbps")).startswith(
        "worse by 95 % ["
    )
    assert compare.verdict(few, many, compare.good("aps.wifi1.mac_occupancy_mean")).startswith(
        "higher by 95 % ["
    )


SPREADS = {  # of a total in Mb/s over seeds
    "a few percent": lambda chance, n: chance.normal(14, 0.4, n),
    "long tail": lambda chance, n: 10 + chance.exponential(2, n),
    "three levels": lambda chance, n: chance.choice(
        [9.4, 14.1, 18.8], n, p=[0.25, 0.5, 0.25]
    ),  # collisions or none
}


@pytest.mark.parametrize("n", [5, 10])
@pytest.mark.parametrize("spread", SPREADS)
def test_a_strategy_compared_with_itself_cannot_be_told_apart(spread, n):
    said = []
    for trial in range(100):
        chance = numpy.random.default_rng((trial, n))
        said.append(
            compare.verdict(
                SPREADS[spread](chance, n).tolist(), SPREADS[spread](chance, n).tolist()
            )
        )
    assert sum(words.startswith("cannot tell: ") for words in said) >= 90


@pytest.mark.parametrize("spread", SPREADS)
def test_a_third_more_is_told_from_ten_runs(spread):
    said = []
    for trial in range(20):
        chance = numpy.random.default_rng(trial)
        base, other = SPREADS[spread](chance, 10), SPREADS["a few percent"](chance, 10) * 1.5
        said.append(compare.verdict(base.tolist(), other.tolist()))
    assert sum(words.startswith("better by ") for words in said) >= 16


def test_noise_is_not_told_as_a_difference():
    words = compare.verdict([8, 12, 9, 11, 10, 10], [9, 13, 8, 12, 10, 9.5])
    assert words.startswith("cannot tell: ")
    assert words.endswith("more")


def test_too_few_repeats_cannot_tell_and_say_how_many_are_missing():
    assert compare.verdict([10], [12]) == "+20 %, but cannot tell: n = 1, run 4 more"


def test_equal_runs_are_the_same():
    assert compare.verdict([4.0] * 5, [4.0] * 5) == "the same in every run, n = 5"


def test_the_runs_without_a_strategy_are_what_others_are_compared_with(runs):
    folders = [*runs("meter_throttling", [11]), *runs("none", [10])]
    assert [group.label for group in compare.grouped(folders)] == ["none", "meter_throttling"]


@pytest.mark.filterwarnings("error")
@given(
    *[
        st.lists(st.sampled_from([0.0, 1e-9, 0.5, 1.0, 7.0]), min_size=5, max_size=6)
        for _ in range(2)
    ]
)
@settings(max_examples=40, deadline=None)
def test_runs_in_which_nothing_was_carried_can_be_compared_too(base, other):
    assert compare.verdict(base, other).endswith(
        (f"n = {min(len(base), len(other))}", " more", "nothing to compare it with")
    )


def test_from_now_and_then_to_always_is_better():
    assert compare.verdict([0.0, 0.0, 0.0, 0.0, 1.0], [1.0, 2.0, 3.0, 2.0, 1.0]).startswith(
        "better by 800 % [67, "
    )


def test_what_was_not_measured_is_no_verdict():
    assert compare.verdict([], [1, 2]) == "cannot tell: not measured"
    assert compare.verdict([0.0] * 5, [1.0] * 5) == "cannot tell: 1 and nothing to compare it with"
    assert compare.verdict([0.0] * 5, [0.0] * 5) == "the same in every run, n = 5"


def test_the_same_strategy_with_another_setting_is_another_group(runs):
    folders = [*runs("none", [10]), *runs("none", [11], "topology.multipath=[]")]
    labels = [group.label for group in compare.grouped(folders)]
    assert labels == ['none topology.multipath=["ue2", "ue3"]', "none topology.multipath=[]"]


def test_a_doubtful_run_is_pointed_out(runs):
    said = compare.report(
        [*runs("none", [10]), *runs("meter_throttling", [11], status="interrupted")], as_json=False
    )
    assert "is interrupted" in said


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(RequestError, match=r"holds no result\.json"):
        compare.report([tmp_path], as_json=False)
