"""Comparisons: groups, estimates, and verdicts that rule out chance."""

from __future__ import annotations

import json
import math
import re
import shutil
import time
import tracemalloc

import numpy
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from run_edits import seal

from lab.errors import RequestError
from lab.results import compare, compare_text, statistics
from lab.scenario.loading import resolved


def verdict(base, other, direction=1):
    return statistics.verdict(base, other, direction).text


@pytest.fixture
def runs(load_testbed, tmp_path):
    """Finished runs of a strategy, one for each total [Mb/s]; their seeds are 1, 2, ..."""
    from lab.frame import Frame, UserSample
    from lab.run import result as result_json

    def make(strategy, totals, *settings, status="complete", engine="fake", **unit):
        folders = []
        for seed, total in enumerate(totals, 1):
            scenario = load_testbed(f"strategy.name={strategy}", f"seed={seed}", *settings)
            folder = tmp_path / f"{strategy}-{seed}-{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            (folder / "scenario.yaml").write_text(yaml.safe_dump(resolved(scenario)))
            header = result_json.Header(
                folder.name, "s", strategy, engine, seed, scenario.rate_scale, status
            )
            frames = [Frame(1.0, user={"ue1": UserSample(total)})]
            result = result_json.document(header, scenario.network, frames, None)
            (folder / "result.json").write_text(json.dumps(result | unit))
            folders.append(folder)
        return folders

    return make


def test_a_clear_difference_is_reported_with_its_interval(runs):
    base, better = runs("none", [9.8, 10, 10.2] * 4), runs("meter_throttling", [11.7, 12, 12.3] * 4)
    said = compare_text.report([*base, *better], as_json=False)
    assert "none (n = 12, rate scale 1)" in said
    assert "\n\nmeter_throttling against none:\n  throughput_mbps: better by 20 % [" in said
    assert "n = 12" in said


def test_a_heading_says_how_much_slower_the_clocks_were(runs):
    real, slow = runs("none", [1, 2], time_dilation=1), runs("none", [3], time_dilation=4)
    mixed = compare_text.report([*real, *runs("disjoint", [1, 2, 3], time_dilation=2)])
    assert "none (n = 2, rate scale 1)" in mixed
    assert "disjoint (n = 3, rate scale 1, clocks 2 times slower)" in mixed
    more = runs("none", [5] * 5, time_dilation=8)[3:]
    assert "none (n = 3, rate scale 1, clocks 4 times slower or clocks 8 times slower)" in (
        compare_text.report([*slow, *more])
    )


def test_in_markdown_each_cell_has_estimate_and_verdict(runs):
    said = compare_text.report(
        [*runs("none", [9.8, 10, 10.2] * 4), *runs("disjoint", [11.7, 12, 12.3] * 4)],
        as_markdown=True,
    )
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in said.splitlines()]
    assert rows[0] == ["metric", "none (n = 12, rate scale 1)", "disjoint (n = 12, rate scale 1)"]
    assert rows[2][0] == "`throughput_mbps`"
    assert rows[2][2].startswith("12 [11.8, 12.2]: better by 20 % [")


def test_a_copy_of_a_run_and_in_the_simulator_the_same_seed_count_once(runs, tmp_path):
    one, other = runs("none", [10.0, 11.0])
    shutil.copytree(one, tmp_path / "copy")
    said = compare_text.report([one, other, tmp_path / "copy"])
    assert "none (n = 2, " in said
    assert f"careful: run {one.name} repeats a run or a seed, so it is left out" in said
    cut, whole = (
        runs("none", [1.0], status="interrupted", engine="sim"),
        runs("none", [12.0], engine="sim"),
    )
    (group,) = compare.grouped([*cut, *whole])
    assert (group.values("throughput_mbps"), group.left_out) == ([12.0], (cut[0].name,))
    (group,) = compare.grouped(
        [*runs("none", [1.0], engine="mininet"), *runs("none", [2.0], engine="mininet")]
    )
    assert group.left_out == ()


def test_strategies_that_ran_for_different_times_are_a_warning_and_scenarios_have_their_names(runs):
    said = compare_text.report([*runs("none", [10.0]), *runs("disjoint", [11.0], "duration_s=7")])
    assert "careful: they differ in duration_s, too" in said
    assert "differ in" not in compare_text.report(
        [*runs("none", [10.0]), *runs("disjoint", [11.0])]
    )
    (first, second) = [*runs("none", [10.0]), *runs("none", [11.0])]
    text = (second / "scenario.yaml").read_text()
    (second / "scenario.yaml").write_text(re.sub("(?m)^name: .*$", "name: elsewhere", text))
    labels = [each.label for each in compare.grouped([first, second])]
    assert labels[1] == "elsewhere none"
    other = compare_text.report([first, second])
    assert other.startswith("careful: these are different scenarios\n\nmetric")
    assert other.count("different scenarios") == 1
    assert "different scenarios" not in said
    assert labels[0].endswith(" none")
    assert "=" not in labels[0]


def test_less_throughput_is_worse(runs):
    document = json.loads(
        compare_text.report(
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


def test_for_some_metrics_less_is_better_and_for_some_neither():
    few, many = [0.4, 0.41, 0.42, 0.43, 0.44], [0.8, 0.81, 0.82, 0.83, 0.84]
    assert verdict(many, few, compare.direction("out_of_order_fraction")).startswith(
        "better by 49 % ["
    )
    assert verdict(few, many, compare.direction("fairness.sd_mbps")).startswith("worse by 95 % [")
    for neither in ("aps.wifi1.mac_occupancy_mean", "nobody.knows"):
        assert verdict(few, many, compare.direction(neither)).startswith("higher by 95 % [")


OPEN = "open, not enough runs to tell this from chance"
SPREADS = {  # total in Mb/s, by seed
    "a few percent": lambda rng, n: rng.normal(14, 0.4, n),
    "long tail": lambda rng, n: 10 + rng.exponential(2, n),
    "three levels": lambda rng, n: rng.choice(
        [9.4, 14.1, 18.8], n, p=[0.25, 0.5, 0.25]
    ),  # with or without collisions
}


@pytest.mark.parametrize("n", [5, 10])
@pytest.mark.parametrize("spread", SPREADS)
def test_a_strategy_does_not_differ_from_itself(spread, n):
    said = []
    for trial in range(100):
        rng = numpy.random.default_rng((trial, n))
        said.append(verdict(SPREADS[spread](rng, n).tolist(), SPREADS[spread](rng, n).tolist()))
    assert sum(OPEN in words for words in said) >= 90


@pytest.mark.parametrize("spread", SPREADS)
def test_a_gain_of_half_is_found_in_ten_runs(spread):
    said = []
    for trial in range(20):
        rng = numpy.random.default_rng(trial)
        base, other = SPREADS[spread](rng, 10), SPREADS["a few percent"](rng, 10) * 1.5
        said.append(verdict(base.tolist(), other.tolist()))
    assert sum(words.startswith("better by ") for words in said) >= 16


def test_noise_is_not_reported_as_a_difference():
    words = verdict([8, 12, 9, 11, 10, 10], [9, 13, 8, 12, 10, 9.5])
    assert OPEN in words
    assert re.search(r", add \d+( or more)?$", words)


def test_too_few_runs_give_no_verdict_and_the_number_to_add():
    assert verdict([10], [12]) == f"+20 %, n = 1: {OPEN}, add 4"


def test_equal_runs_are_the_same():
    assert verdict([4.0] * 5, [4.0] * 5) == "no difference, n = 5"


def test_a_difference_that_is_rounded_to_nothing_asks_for_no_more_runs():
    base, other = [10.0, 11, 12, 13, 14], [10.001, 10.999, 12.001, 12.999, 14.001]
    found = statistics.verdict(base, other, paired=True)
    assert found.text == "no difference above 0.5 %, n = 5"


def test_one_run_each_is_said_once_and_settings_are_in_words(runs):
    folders = [*runs("none", [10]), *runs("none", [12], "multipath.cc=bbr")]
    said = compare_text.report(folders)
    assert said.count("not enough runs to tell this from chance") == 1
    against = "none, congestion control bbr against none, congestion control reno (one run each)"
    assert f"\n\n{against}: open, not enough runs to tell this from chance, add 4\n" in said
    assert "\n  throughput_mbps: +20 %\n" in said
    assert "none, congestion control bbr (n = 1, rate scale 1)" in said
    assert "multipath.cc" not in said


def test_other_groups_are_compared_with_strategy_none(runs):
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
def test_runs_without_throughput_can_be_compared(base, other):
    assert verdict(base, other).endswith(
        (f"n = {min(len(base), len(other))}", " more", "compared with")
    ) or re.search(r", add \d+( or more)?$", verdict(base, other))


def test_a_metric_that_is_mostly_zero_in_the_base_can_be_better():
    assert verdict([0.0, 0.0, 0.0, 0.0, 1.0], [1.0, 2.0, 3.0, 2.0, 1.0]).startswith(
        "better by 800 % [67, "
    )


def test_a_metric_that_was_not_measured_has_no_verdict():
    assert verdict([], [1, 2]) == "not measured"
    assert verdict([0.0] * 5, [1.0] * 5) == "1, and 0 in every run that it is compared with"
    assert verdict([0.0] * 5, [0.0] * 5) == "no difference, n = 5"


def test_the_same_strategy_with_another_setting_is_another_group(runs):
    folders = [*runs("none", [10]), *runs("none", [11], "topology.multipath=[]")]
    labels = [group.label for group in compare.grouped(folders)]
    assert labels == ['none topology.multipath=["ue2", "ue3"]', "none topology.multipath=[]"]


def test_an_interrupted_run_is_a_warning(runs):
    said = compare_text.report(
        [*runs("none", [10]), *runs("meter_throttling", [11], status="interrupted")], as_json=False
    )
    assert "is interrupted" in said


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(RequestError, match=r"holds no result\.json"):
        compare_text.report([tmp_path], as_json=False)


def test_runs_of_wire_rates_are_never_compared_with_runs_in_scenario_units(runs):
    old, new = runs("none", [10, 11], schema=1), runs("disjoint", [10])
    with pytest.raises(RequestError) as refused:
        compare_text.report([*old, *new])
    assert f"runs {old[0].name}, {old[1].name} hold wire rates (schema 1)" in str(refused.value)
    assert f"run {new[0].name} hold" in str(refused.value)
    assert "Repeat the runs of schema 1" in str(refused.value)
    assert "none (n = 2, wire rates)" in compare_text.report(old)


def test_runs_with_handshakes_without_packets_are_named_and_never_compared_with_newer_ones(runs):
    old, new = runs("none", [10, 11], schema=2), runs("disjoint", [10])
    with pytest.raises(RequestError) as refused:
        compare_text.report([*old, *new])
    said = str(refused.value)
    assert f"{old[0].name}, {old[1].name} hold handshakes without packets (schema 2)" in said
    assert f"run {new[0].name} hold handshakes of packets (schema 3)" in said
    assert "Repeat the runs of schema 2" in said
    assert "none (n = 2, rate scale 1, handshakes without packets)" in compare_text.report(old)


def test_every_column_says_its_rate_scale_and_scales_are_never_pooled(runs):
    folders = [*runs("none", [10.0, 11.0]), *runs("none", [9.0, 9.5], rate_scale=0.25)]
    said = compare_text.report(folders)
    assert "none (n = 2, rate scale 1)" in said
    assert "none (n = 2, rate scale 0.25)" in said
    assert "none, rate scale 0.25 against none, rate scale 1 (n = 2): open," in said
    assert "rate scale 1 and rate scale 0.25: queueing delay grows as 1/scale" in said
    assert "they differ in" not in said
    groups = json.loads(compare_text.report(folders, as_json=True))["groups"]
    assert [group["rate_scale"] for group in groups] == [1.0, 0.25]


def with_fields(folders, name, **fields):
    """Add fields to a JSON file of each run. A value may be a function of the run's number."""
    for n, folder in enumerate(folders):
        path = folder / name
        document = json.loads(path.read_text()) if path.exists() else {}
        document |= {key: each(n) if callable(each) else each for key, each in fields.items()}
        path.write_text(json.dumps(document))
    return folders


@given(
    common=st.lists(st.floats(5, 50), min_size=6, max_size=12),
    gain=st.sampled_from([0.9, 0.97, 1.03, 1.1]),
)
@settings(max_examples=15, deadline=None)
def test_a_gain_that_every_seed_shows_is_found_in_pairs_however_much_seeds_differ(common, gain):
    others = [gain * each for each in common]
    assert re.match("(better|worse) by", statistics.verdict(common, others, paired=True).text)


def test_pairs_of_noise_are_rarely_called_a_difference():
    rng, found = numpy.random.default_rng(11), 0
    for _ in range(100):
        network = rng.uniform(5, 50, 10)
        base, other = ((network + rng.normal(0, 1, 10)).tolist() for _ in range(2))
        found += "by" in statistics.verdict(base, other, paired=True).short
    assert found <= 12


def test_runs_are_paired_by_seed_in_any_order_and_only_in_the_same_network(runs):
    totals = [10.0, 20.0, 35.0, 15.0, 40.0, 27.0]
    none = with_fields(runs("none", totals), "manifest.json", topology_sha256=str)
    better = with_fields(
        runs("disjoint", [1.05 * each for each in totals]), "manifest.json", topology_sha256=str
    )
    said = compare_text.report([*none, *reversed(better)])
    assert "throughput_mbps: better by 5 % [5, 5], n = 6" in said
    assert "disjoint and none: compared in 6 pairs of the same seed and network" in said
    with_fields(better, "manifest.json", topology_sha256=lambda n: f"other {n}")
    said = compare_text.report([*none, *better])
    assert "throughput_mbps: +5 % [" in said
    assert "pairs" not in said


def test_groups_that_share_few_seeds_are_not_paired(runs):
    none, other = runs("none", [10.0, 20, 30, 40, 50, 60]), runs("disjoint", [11.0] * 12)[4:]
    assert "pairs" not in compare_text.report([*none, *other])
    assert "6 pairs" in compare_text.report([*none, *runs("disjoint", [11.0] * 12)])


def test_identical_samples_are_named(runs):
    totals = [10.0, 12, 11, 13, 12]
    none, other = runs("none", totals), runs("disjoint", totals)
    assert "identical" not in compare_text.report([*none, *other])
    for folder, total in zip([*none, *other], totals * 2, strict=True):
        sampled(folder, [total])
        seal(folder)
    names = "disjoint and none: the samples are identical, in 5 pairs of the same seed"
    notes = json.loads(compare_text.report([*none, *other], as_json=True))["notes"]
    assert notes == [names]
    sampled(other[-1], [1.0])
    seal(other[-1])
    assert "identical" not in compare_text.report([*none, *other])


def test_one_network_for_all_seeds_is_said(runs):
    none = with_fields(runs("none", [10.0, 11.0]), "manifest.json", topology_sha256="a")
    assert "not other networks" in compare_text.report(none)
    assert "not other networks" not in compare_text.report(none[:1])
    with_fields(none, "manifest.json", topology_sha256=str)
    assert "not other networks" not in compare_text.report(none)


def sampled(folder, rates):
    """Write a sample of ue1's throughput for each second."""
    lines = [
        json.dumps({"t": float(t), "user": {"ue1": {"mbps": rate}}, "ap": {}, "sf": {}, "link": {}})
        for t, rate in enumerate(rates, 1)
    ]
    (folder / "samples.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return folder


def test_a_window_compares_only_its_samples(runs):
    (folder,) = runs("none", [10.0])
    sampled(folder, [1.0, 2.0, 6.0, 8.0])
    (group,) = compare.compared([folder], compare.Window(2, 4)).groups
    assert group.values("throughput_mbps") == [7.0]
    assert group.values("users.ue1.throughput_mbps") == [7.0]
    assert group.values("convergence_s") == []
    assert "samples from 2 s to 4 s" in compare_text.report([folder], window=compare.Window(2, 4))
    (group,) = compare.compared([folder], compare.Window(1)).groups
    assert group.values("throughput_mbps") == [pytest.approx(16 / 3, abs=1e-6)]


def test_a_window_without_samples_or_without_length_is_refused(runs):
    (folder,) = runs("none", [10.0])
    sampled(folder, [1.0, 2.0])
    for late in ((5, 9), (1, 9), (0, 3), (2, math.inf)):
        with pytest.raises(RequestError, match=r"its last sample is at 2 s"):
            compare_text.report([folder], window=compare.Window(*late))
    compare_text.report([folder], window=compare.Window(1, 2.5))
    (folder / "scenario.yaml").write_text("name: damaged\nstrategy: {name: none}\n")
    with pytest.raises(RequestError, match=r"compare .* from 0 s to 2 s: .* has no scenario yet"):
        compare_text.report([folder], window=compare.Window(0, 2))
    for window in ((9, 5), (5, 5), (-1, 5)):
        with pytest.raises(RequestError, match="the end must be after the start"):
            compare.Window(*window)


def test_many_groups_get_their_titles_soon():
    """The page compares up to 200 runs, each of which can be a group of its own."""
    same = {f"key.{n}": "1" for n in range(100)} | {"name": '"a"', "strategy.name": '"none"'}
    groups = [same | {"key.7": str(n)} for n in range(200)]
    began = time.monotonic()
    assert compare.titles(groups) == [f"none key.7={n}" for n in range(200)]
    assert time.monotonic() - began < 5


def test_an_interval_of_thousands_of_runs_takes_little_memory():
    values = list(numpy.random.default_rng(3).normal(10, 1, 2000))
    tracemalloc.start()
    found = statistics.estimate(values)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 60 * 2**20
    assert found.low < found.mean < found.high


def test_of_many_runs_that_are_left_out_the_first_are_named(tmp_path):
    folders = [tmp_path / f"run{n}" for n in range(40)]
    for folder in folders:
        folder.mkdir()
        (folder / "result.json").write_text("{")
    with pytest.raises(RequestError) as refused:
        compare_text.report([tmp_path], as_json=False)
    assert [f"run{n}" in str(refused.value) for n in (0, 39)] == [True, False]
    assert str(refused.value).endswith("\n35 more runs are left out")
    assert len(str(refused.value).splitlines()) == 6
