"""The page that compares both engines on every scenario."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from command_line import lab  # noqa: F401 - a fixture

from lab.batch import slower_clocks
from lab.batch.job import Job
from lab.errors import RequestError
from lab.run.engine import Options
from lab.scenario import loading
from papers import crosscheck_all
from papers.agreement import judged
from papers.crosscheck_all import cases, page_text
from papers.page_file import merged, rows_below
from papers.run_figures import RunFigures, read_figures, with_new, write_figures


def run(scenario, strategy, engine, seed, mbps, **more) -> RunFigures:
    numbers = {} if more.get("left_out") else {"total": mbps, "Jain's index": 1.0}
    return RunFigures(
        scenario,
        strategy,
        engine,
        seed,
        rate_scale=0.25,
        duration_s=60,
        numbers=numbers,
        made_on="a machine",
        **more,
    )


def compared(scenario, strategy, emulated, simulated, left_out=()) -> list[RunFigures]:
    return [
        run(scenario, strategy, engine, seed, mbps)
        for engine, side in (("mininet", emulated), ("sim", simulated))
        for seed, mbps in enumerate(side, 1)
    ] + [
        run(scenario, strategy, "mininet", seed, 0, left_out=why)
        for seed, why in enumerate(left_out, len(emulated) + 1)
    ]


def cells(text: str, start: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return line[2:-2].split(" | ")


@pytest.mark.parametrize(
    ("emulated", "simulated", "difference", "result"),
    [
        ([10] * 5, [10.5] * 5, "+5 %", "within 5 %"),
        ([10] * 5, [9.2] * 5, "-8 %", "within 10 %"),
        ([10] * 5, [12] * 5, "+20 %", "beyond"),
        ([10] * 4, [10] * 4, "+0 %", "within 5 %, open, add 1"),
        ([10, 13], [12, 14], "+13 %", "beyond, open, add 3"),
        ([10, 11, 12, 13, 14], [11, 12, 13, 14, 15], "+8 %", "within 10 %"),
        (
            [10, 11, 12, 13, 14],
            [12, 11, 12.5, 14, 13.5],
            "+5 %",
            "within 5 %, open, add 200 or more",
        ),
        ([0, 0], [0.004, 0], "-", "within 5 %"),
        ([0] * 5, [1] * 5, "-", "beyond"),
        ([], [1], "-", "not judged"),
        ([1], [], "-", "not judged"),
        ([10, 10], [6, 14], "+0 %", "not steady"),
        ([10, 10], [12, 18], "+50 %", "not steady"),
        ([10] * 6, [15, 19] * 3, "+70 %", "beyond"),
    ],
)
def test_the_class_of_a_difference(emulated, simulated, difference, result):
    assert judged(dict(enumerate(emulated)), dict(enumerate(simulated))) == (difference, result)


def test_only_equal_seeds_are_compared_but_all_say_whether_a_row_is_steady():
    assert judged({2: 10}, {1: 12, 2: 10.2, 3: 11}) == ("+2 %", "within 5 %, open, add 4")
    assert judged({2: 10}, {1: 20, 2: 10.2, 3: 11}) == ("+2 %", "not steady")
    assert judged({4: 10}, {1: 12, 2: 10, 3: 11}) == ("-", "not judged")


def test_every_scenario_runs_with_none_and_with_its_own_strategy():
    found = {(case.scenario, case.strategy) for case in cases()}
    assert len({scenario for scenario, _ in found}) == 37
    assert {scenario for scenario, strategy in found if strategy == "none"} == {
        scenario for scenario, _ in found
    }
    assert ("pooling", "expected_throughput") in found
    assert ("fifteen_paths", "subflow_selection") in found
    only_plain = {"eight_cities", "rat_setup_1", "rat_setup_2", "rat_setup_3"}
    only_plain |= {"satellite_and_lte", "shared_pipe", "two_paths", "wifi_walk"}
    only_plain |= {
        "call_and_download",
        "evening_at_home",
        "incast_on_a_fat_tree",
        "video_while_walking",
        "web_over_two_paths",
    }
    only_plain |= {each.stem for each in (loading.FOLDER / loading.FIELD).glob("*.yaml")}
    assert {name for name, _ in found} - {n for n, s in found if s != "none"} == only_plain
    with pytest.raises(RequestError, match="scenario 'pool' is unknown"):
        cases(["pool"])


def test_the_files_of_the_rat_setups_are_larger_than_on_a_slow_machine_and_other_runs_are_not():
    for case in cases():
        scenario, experiment = loading.load(case.scenario), case.experiment()
        settings, at_1 = experiment.settings, case.experiment(rate_scale=1)
        direction = ("traffic_direction=up",) if case.is_up else ()
        assert (at_1.settings, at_1.duration_s) == (direction, None)
        if not case.scenario.startswith("rat_setup"):
            stored = ("topology.air=cell",) if case.scenario == "campus" else direction
            assert (settings, experiment.duration_s) == (stored, None)
            continue
        name, _, value = settings[0].partition("=")
        assert (name, settings[1:]) == ("rate_scale", ("traffic_volume_mb=15",))
        assert float(value) == pytest.approx(4 * scenario.slow_machine_rate_scale)
        assert experiment.duration_s == 20


def test_a_scenario_that_is_named_twice_is_run_once():
    assert cases(["pooling", "pooling"]) == cases(["pooling"])


def test_overloaded_runs_are_counted_and_not_used():
    found = compared("pooling", "none", [], [30], ["overloaded: the processors were busy"] * 2)
    text = page_text(found, {})
    assert cells(text, "| pooling | none | total")[3:] == [
        *("-", "30.00", "-", "not judged"),
        "no valid run of the emulation",
    ]
    made = cells(text, "| pooling | none | 60 ")
    assert made[3:8] == [
        "0.25",
        "-",
        "-",
        "0 of 2; 2 overloaded: the processors were busy",
        "1 of 1",
    ]
    assert "1 cases (0 of them refused by the emulation), 2 rows: 0 within" in text


def test_the_second_table_shows_verified_runs_and_the_idle_processors():
    found = [
        run("pooling", "none", "mininet", seed, 30, verified=ok, idle_mean=m, idle_min=least)
        for seed, ok, m, least in ((1, True, 0.5, 0.1), (2, False, 0.7, 0.2))
    ]
    assert cells(page_text(found, {}), "| pooling | none | 60 ")[8:10] == ["1 of 2", "60, 10"]


def test_the_share_of_steady_rows_within_ten_percent_is_stated():
    found = [
        *compared("pooling", "none", [10], [10]),
        *compared("campus", "none", [10], [20]),
        *compared("two_paths", "none", [10, 10], [5, 15]),
        *compared("fat_tree", "none", [10] * 5, [10] * 5),
    ]
    text = page_text(found, {})
    assert "6 within 5 %, 0 within 10 %, 1 beyond, 1 not steady, 0 not judged" in text
    assert "Of 7 steady rows, 86 % are within 10 % in the means, and 2 are decided" in text


def test_a_refused_scenario_is_listed_with_the_reason():
    text = page_text([], {}, {("rat_setup_1", "none"): "topology 'rat_setup': no radios"})
    assert (
        "| rat_setup_1 | none | - | - | - | - | refused: topology 'rat_setup': no radios "
        "| - | - | - | - |" in text
    )
    assert "1 cases (1 of them refused by the emulation), 0 rows" in text


def test_a_time_is_compared_only_if_every_file_arrived():
    def titles(*times):
        result = {
            "throughput_mbps": 1.0,
            "aps": {},
            "users": {"ue1": {}, "ue2": {}},
            "fairness": {"jain": 1.0},
            "connections": [{"completion_s": each} for each in times],
        }
        return [title for title, _ in crosscheck_all.numbers(result)]

    assert titles(1.0, 3.0) == ["total", "Jain's index", "time to complete [s]"]
    assert "time to complete [s]" not in titles(1.0, None)
    assert "time to complete [s]" not in titles()


def test_times_of_transfers_and_what_people_notice_are_compared():
    of_kind = {"completed": 40, "fct_p50_s": 0.5, "fct_p95_s": 2.0, "fct_p99_s": 3.0}
    result = {
        "throughput_mbps": 1.0,
        "aps": {},
        "users": {"ue1": {}},
        "connections": [{"completion_s": None}],
        "flows": {"by_kind": {"web": of_kind, "video": of_kind, "file": of_kind}},
        "video": {"bitrate_mbps": 4.4},
        "call": {"mos": 4.0, "mos_worst": 3.0},
    }
    assert dict(crosscheck_all.numbers(result)) == {
        "total": 1.0,
        "pages complete": 40,
        "pages: 50 % within [s]": 0.5,
        "pages: 95 % within [s]": 2.0,
        "bitrate of the video": 4.4,
        "MOS of the call": 4.0,
        "MOS of its worst 5 s": 3.0,
    }


def test_the_second_table_shows_slower_clocks_and_the_wall_time_of_emulations():
    found = [
        run("pooling", "none", "mininet", seed, 30, dilation=factor, wall_s=wall_s)
        for seed, factor, wall_s in ((1, 3.0, 200.0), (2, 6.0, 300.0), (3, 6.0, None))
    ]
    found += [run("pooling", "none", "sim", 1, 30, wall_s=2.0)]
    assert cells(page_text(found, {}), "| pooling | none | 60 ")[3:6] == ["0.25", "3, 6", "250"]


def test_a_reason_can_belong_to_one_rate_scale():
    rows = compared("pooling", "none", [10] * 5, [20] * 5)  # at 0.25
    reasons = {"pooling/none@1": "never shown", "pooling": "for all"}
    assert cells(page_text(rows, reasons), "| pooling | none | total")[-1] == "for all"
    reasons["pooling@0.25"] = "for this one"
    assert cells(page_text(rows, reasons), "| pooling | none | total")[-1] == "for this one"


def test_the_factor_that_is_expected_to_suffice_grows_with_the_rate_scale():
    def factor(name, *settings, strategy=None):
        scenario = loading.load(name, loading.Overrides(strategy, settings=settings))
        return crosscheck_all.expected_factor(Job(scenario, "mininet", Options(1.0), vm=True))

    assert factor("testbed_wifi_lte", "rate_scale=1") == crosscheck_all.FACTORS["testbed_wifi_lte"]
    assert factor("testbed_wifi_lte", "rate_scale=0.01") == 1
    assert factor("two_paths", "rate_scale=0.4") == 2  # 1.2 of `USUAL_FACTOR`, as a whole number
    own = {key.partition("/")[0]: key for key in crosscheck_all.FACTORS if "/" in key}
    for name, key in own.items():
        strategy = key.partition("/")[2]
        assert factor(name, "rate_scale=1", strategy=strategy) == crosscheck_all.FACTORS[key]


def test_later_seeds_are_expected_to_need_what_earlier_ones_needed(tmp_path):
    def written(seed, **more):
        result = {"status": "complete", "overloaded": False, **more}
        (tmp_path / f"none-{seed}").mkdir()
        (tmp_path / f"none-{seed}" / "result.json").write_text(json.dumps(result))

    job = Job(loading.load("fat_tree"), "mininet", Options(1.0), tmp_path / "none-9", vm=True)
    assert crosscheck_all.expected_factor(job) == crosscheck_all.FACTORS["fat_tree"]
    written(1, time_dilation=12.0, overloaded=True)
    assert crosscheck_all.expected_factor(job) == crosscheck_all.FACTORS["fat_tree"]
    written(2, time_dilation=2.0)
    written(3, time_dilation=6.0)
    assert crosscheck_all.expected_factor(job) == 6


def test_the_factors_are_those_of_cases():
    known = {"/".join(case.key) for case in cases()} | set(loading.names())
    assert set(crosscheck_all.FACTORS) <= known
    assert all(1 <= each <= slower_clocks.SLOWEST for each in crosscheck_all.FACTORS.values())


def test_reasons_belong_to_rows_beyond_ten_percent():
    rows = compared("pooling", "none", [10] * 5, [20] * 5)
    rows += compared("campus", "none", [10] * 5, [10] * 5)
    text = page_text(rows, {"pooling/none": "for a start", "campus": "never shown"})
    assert cells(text, "| pooling | none | total")[-2:] == ["beyond", "for a start"]
    assert cells(text, "| campus | none | total")[-2:] == ["within 5 %", "-"]
    text = page_text(rows, {"pooling/none": "for a start", "pooling/none/total": "found now"})
    assert cells(text, "| pooling | none | total")[-1] == "found now"
    assert cells(page_text(rows, {}), "| pooling | none | total")[-1] == "not found yet"


def test_a_run_made_later_replaces_its_own_figures_and_leaves_the_others(tmp_path):
    order = [("campus", "none"), ("pooling", "none")]
    first = compared("pooling", "none", [10] * 3, [10] * 3) + compared("campus", "none", [1], [1])
    file = tmp_path / "runs.jsonl"
    write_figures(file, with_new([], first, order))
    made = [run("pooling", "none", "sim", seed, 10.8) for seed in (1, 2, 3)]
    second = with_new(read_figures(file), made, order)
    text = page_text(second, {})
    assert "| campus | none | total | 1.00 | 1.00 | +0 % | within 5 %, open, add 4 | - |" in text
    assert "(10.80 to 10.80) | +8 % | within 10 %, open, add 2 | - |" in text
    assert [each.case for each in second] == [order[0]] * 2 + [order[1]] * 6
    assert with_new(second, [], order) == second


def test_a_run_that_cannot_be_used_does_not_replace_a_valid_one():
    old, order = compared("pooling", "none", [10], [10]), [("pooling", "none")]
    late = run("pooling", "none", "mininet", 1, 0, left_out="overloaded")
    assert with_new(old, [late], order) == old
    assert with_new([late], old[:1], order) == old[:1]


def test_runs_at_another_rate_scale_or_of_another_duration_are_left_out():
    old, order = compared("pooling", "none", [10], [10]), [("pooling", "none")]
    for change in ({"rate_scale": 0.5}, {"duration_s": 30}):
        new = replace(old[1], **change)
        assert with_new(old, [new], order) == [new]


def test_a_damaged_file_of_figures_is_refused(tmp_path):
    path = tmp_path / "runs.jsonl"
    assert read_figures(path) == []
    for text in ("{}", "1", "{"):
        path.write_text(text)
        with pytest.raises(RequestError, match=r"runs.jsonl line 1: not the figures of a run"):
            read_figures(path)


def test_rows_are_read_back_with_empty_cells():
    text = "## A\n\n| a | b |\n|---|---|\n| 1 |  |\n| 2 | x |\n\n## B\n\n| c | d |\n|---|---|\n| 3 | 4 |\n"
    assert rows_below(text, "## A") == [("1", ""), ("2", "x")]
    assert rows_below(text, "## B") == [("3", "4")]
    assert rows_below(text, "## C") == []
    new = merged([("b", "1"), ("a", "1")], [("b", "2")], lambda row: row[:1], ["a", "b"])
    assert new == [("a", "1"), ("b", "2")]


def test_a_reason_for_an_unknown_row_is_refused(tmp_path):
    path = tmp_path / "reasons.yaml"
    path.write_text("reasons: {pooling/none/total: it is | so}\n", encoding="utf-8")
    assert crosscheck_all.read_reasons(path) == {"pooling/none/total": "it is / so"}
    path.write_text("reasons: {pooling@0.125: it is so}\n", encoding="utf-8")
    assert crosscheck_all.read_reasons(path) == {"pooling@0.125": "it is so"}
    path.write_text("reasons: {pooling/nothing: it is so}\n", encoding="utf-8")
    with pytest.raises(RequestError, match=r"reasons.yaml: 'pooling/nothing' is unknown"):
        crosscheck_all.read_reasons(path)


def test_the_reasons_and_the_page_of_the_lab_are_valid():
    figures = read_figures(crosscheck_all.PAGE.with_suffix(".jsonl"))
    text = crosscheck_all.PAGE.read_text(encoding="utf-8")
    assert page_text(figures, crosscheck_all.read_reasons()) == text
