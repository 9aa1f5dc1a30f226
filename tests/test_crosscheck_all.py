"""The page that compares both engines on every scenario."""

from __future__ import annotations

from dataclasses import replace

import pytest
from command_line import lab  # noqa: F401 - a fixture

from lab.errors import RequestError
from lab.evaluation import crosscheck_all
from lab.evaluation.agreement import judged
from lab.evaluation.crosscheck_all import Case, Compared, page
from lab.evaluation.paired_runs import Account
from lab.evaluation.table_rows import merged, rows_below
from lab.results.documents import FinishedRun

PAIR = ("fake", "slow")  # they stand for the emulation and the simulator


def run(mbps: float, tmp_path, seed: int = 1, **more) -> FinishedRun:
    return FinishedRun(
        {
            "seed": seed,
            "throughput_mbps": mbps,
            "aps": {},
            "tiers": {"1": mbps, "2": None},
            "fairness": {"jain": 1.0},
            "users": {"ue1": {}, "ue2": {}},
            "connections": [],
            "mptcp": {"verified": None},
        }
        | more,
        tmp_path,
    )


def compared(scenario, strategy, emulated, simulated, tmp_path, left_out=()):
    accounts = [
        Account(tuple(run(each, tmp_path, seed) for seed, each in enumerate(side, 1)), (), 3)
        for side in (emulated, simulated)
    ]
    accounts[0] = replace(accounts[0], left_out=tuple(left_out))
    return Compared(Case(scenario, strategy), "", *accounts, 0.25, 60, "a machine")


def cells(text: str, start: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return line[2:-2].split(" | ")


@pytest.mark.parametrize(
    ("emulated", "simulated", "difference", "result"),
    [
        ([10, 10], [10.5, 10.5], "+5 %", "within 5 %"),
        ([10, 10], [9.2, 9.2], "-8 %", "within 10 %"),
        ([10, 10], [12, 12], "+20 %", "beyond"),
        ([10, 13], [12, 14], "+13 %", "beyond, ranges overlap"),
        ([0, 0], [0.004, 0], "-", "within 5 %"),
        ([0, 0], [1, 1], "-", "beyond"),
        ([], [1], "-", "not judged"),
        ([1], [], "-", "not judged"),
        ([10, 10], [6, 14], "+0 %", "not steady"),
        ([10, 10], [12, 18], "+50 %", "not steady"),
        ([10, 10], [15, 19], "+70 %", "beyond"),
    ],
)
def test_the_class_of_a_difference(emulated, simulated, difference, result):
    assert judged(dict(enumerate(emulated)), dict(enumerate(simulated))) == (difference, result)


def test_only_equal_seeds_are_compared_but_all_say_whether_a_row_is_steady():
    assert judged({2: 10}, {1: 12, 2: 10.2, 3: 11}) == ("+2 %", "within 5 %")
    assert judged({2: 10}, {1: 20, 2: 10.2, 3: 11}) == ("+2 %", "not steady")
    assert judged({4: 10}, {1: 12, 2: 10, 3: 11}) == ("-", "not judged")


def test_every_scenario_runs_with_none_and_with_its_own_strategy():
    found = {(case.scenario, case.strategy) for case in crosscheck_all.cases()}
    assert len({scenario for scenario, _ in found}) == 21
    assert {scenario for scenario, strategy in found if strategy == "none"} == {
        scenario for scenario, _ in found
    }
    assert ("pooling", "expected_throughput") in found
    assert ("fifteen_paths", "subflow_selection") in found
    only_plain = {"rat_setup_1", "rat_setup_2", "rat_setup_3", "shared_pipe", "two_paths"}
    assert {name for name, _ in found} - {n for n, s in found if s != "none"} == only_plain
    with pytest.raises(RequestError, match="scenario 'pool' is unknown"):
        crosscheck_all.cases(["pool"])


def test_overloaded_runs_are_counted_and_not_used(tmp_path):
    found = compared(
        "pooling", "none", [], [30], tmp_path, ["overloaded: the processors were busy"] * 2
    )
    text = page("", [found], {})
    assert cells(text, "| pooling | none | total")[3:] == [
        *("-", "30.00", "-", "not judged"),
        "no valid run of the emulation",
    ]
    made = cells(text, "| pooling | none | 60 ")
    assert made[3:6] == [
        "0.25",
        "0 of 3; 2 overloaded: the processors were busy; not run",
        "1 of 3; 2 not run",
    ]
    assert "1 cases (0 of them refused by the emulation), 2 rows: 0 within" in text


def test_the_second_table_shows_verified_runs_and_the_idle_processors(tmp_path):
    idle = [
        {"idle_share_mean": m, "idle_share_min": least} for m, least in ((0.5, 0.1), (0.7, 0.2))
    ]
    runs = tuple(
        run(30, tmp_path, mptcp={"verified": ok}, overload=each)
        for ok, each in zip((True, False), idle, strict=True)
    )
    found = compared("pooling", "none", [30], [30], tmp_path)
    found = replace(found, emulated=Account(runs, (), 3))
    assert cells(page("", [found], {}), "| pooling | none | 60 ")[6:8] == ["1 of 2", "60, 10"]


def test_the_share_of_steady_rows_within_ten_percent_is_stated(tmp_path):
    found = [
        compared("pooling", "none", [10], [10], tmp_path),
        compared("campus", "none", [10], [20], tmp_path),
        compared("two_paths", "none", [10, 10], [5, 15], tmp_path),
    ]
    text = page("", found, {})
    assert "4 within 5 %, 0 within 10 %, 1 beyond, 1 not steady, 0 not judged" in text
    assert "Of 5 steady rows, 80 % are within 10 %." in text


def test_a_refused_scenario_is_listed_with_the_reason(tmp_path):
    text = page("", [Compared(Case("rat_setup_1", "none"), "topology 'rat_setup': no radios")], {})
    assert (
        "| rat_setup_1 | none | - | - | refused: topology 'rat_setup': no radios | - | - | - | - |"
        in text
    )
    assert "1 cases (1 of them refused by the emulation), 0 rows" in text


def test_a_time_is_compared_only_if_every_file_arrived(tmp_path):
    def titles(*times):
        connections = [{"completion_s": each} for each in times]
        return [
            title
            for title, _ in crosscheck_all.numbers(run(1, tmp_path, connections=connections).result)
        ]

    assert titles(1.0, 3.0) == ["total", "Jain's index", "time to complete [s]"]
    assert "time to complete [s]" not in titles(1.0, None)
    assert "time to complete [s]" not in titles()


def test_reasons_belong_to_rows_beyond_ten_percent_and_survive_a_new_page(tmp_path):
    rows = [
        compared("pooling", "none", [10] * 3, [20] * 3, tmp_path),
        compared("campus", "none", [10] * 3, [10] * 3, tmp_path),
    ]
    reasons = {"pooling/none": "for a start", "campus": "never shown"}
    text = page("", rows, reasons)
    assert cells(text, "| pooling | none | total")[-2:] == ["beyond", "for a start"]
    assert cells(text, "| campus | none | total")[-2:] == ["within 5 %", "-"]
    assert text.index("| campus |") < text.index("| pooling |")
    again = page(text, rows[1:], reasons | {"pooling/none/total": "found now"})
    assert cells(again, "| pooling | none | total")[-1] == "found now"
    assert cells(page(again, [], {}), "| pooling | none | total")[-1] == "not found yet"


def test_a_row_made_later_replaces_its_own_and_leaves_the_others(tmp_path):
    first = page(
        "",
        [
            compared("pooling", "none", [10] * 3, [10] * 3, tmp_path),
            compared("campus", "none", [1], [1], tmp_path),
        ],
        {},
    )
    second = page(first, [compared("pooling", "none", [10] * 3, [10.8] * 3, tmp_path)], {})
    assert "| campus | none | total | 1.00 | 1.00 | +0 % | within 5 % | - |" in second
    assert "(10.80 to 10.80) | +8 % | within 10 % | - |" in second
    assert second.count("| pooling | none | total") == 1
    assert page(second, [], {}) == second


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
    path.write_text("reasons: {pooling/nothing: it is so}\n", encoding="utf-8")
    with pytest.raises(RequestError, match=r"reasons.yaml: 'pooling/nothing' is unknown"):
        crosscheck_all.read_reasons(path)


def test_the_reasons_and_the_page_of_the_lab_are_valid():
    reasons = crosscheck_all.read_reasons()
    text = crosscheck_all.PAGE.read_text(encoding="utf-8")
    assert page(text, [], reasons) == text
