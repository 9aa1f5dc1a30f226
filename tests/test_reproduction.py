"""Reproductions of papers: relations, numbers of a run, and cases that the lab can run."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest
from command_line import lab  # noqa: F401 - a fixture

from lab.frame import ApSample, Frame
from lab.results.documents import FinishedRun
from lab.scenario.loading import Overrides, load
from papers import dtmc, mp_sdn_runs, mptcp_la_benefit, mptcp_la_runs, s_mptcp
from papers.base import Case, Claim
from papers.list import PAPERS
from papers.relations import Constant, Every, Relation, Value

LOW, HIGH, NEAR, WIDE = (
    [9.9, 10, 10.1, 10, 10],
    [12, 12.1, 11.9, 12, 12],
    [10.2, 10.1, 10.3, 10.2, 10.2],
    [2, 18, 9, 12, 10],
)
FOUND = {
    name: [{"T": each} for each in values]
    for name, values in {"low": LOW, "high": HIGH, "near": NEAR, "wide": WIDE}.items()
}


def value(case: str) -> Value:
    return Value(case, "T", case)


@pytest.mark.parametrize(
    ("left", "operator", "right", "times", "said"),
    [
        ("high", ">", "low", 1, "holds"),
        ("low", ">", "high", 1, "fails"),
        ("wide", ">", "low", 1, "open"),
        ("high", ">", "low", 1.2, "open"),
        ("high", ">", "low", 1.3, "fails"),
        ("wide", ">=", "low", 1, "open"),
        ("low", ">=", "high", 1, "fails"),
        ("low", "<=", "high", 1, "holds"),
        ("wide", "<=", "low", 1, "open"),
        ("high", "<=", "low", 1, "fails"),
        ("low", ">=", "low", 1, "holds"),
        ("low", ">", "low", 1, "fails"),
        ("near", "~", "low", 1, "holds"),
        ("wide", "~", "low", 1, "open"),
        ("near", "~", "low", 0.97, "open"),
        ("high", "~", "low", 1, "fails"),
        ("low", "~", "high", 1, "fails"),
    ],
)
def test_relations(left, operator, right, times, said):
    assert Relation(value(left), operator, value(right), times).judgement(FOUND).said == said


def test_a_relation_to_a_constant():
    assert Relation(value("high"), ">=", Constant(10), 1.1).judgement(FOUND).said == "holds"
    assert Relation(value("low"), ">=", Constant(20), 0.8).judgement(FOUND).said == "fails"


def test_one_failed_relation_refutes_a_claim_and_is_shown_first():
    holds, fails, is_open = (
        Relation(value(each), ">", value("low")) for each in ("high", "low", "wide")
    )
    fails = Relation(value("low"), ">", value("high"))
    assert Claim("N", "S", "", (holds, is_open)).verdict(FOUND) == "open"
    claim = Claim("N", "S", "", (holds, is_open, fails))
    assert claim.verdict(FOUND) == "disagrees"
    assert claim.evidence(FOUND).startswith(
        "1 of 3: low 10 > high 12 (fails); wide 10.2 > low 10 (open, add 200 or more)"
    )


def test_a_claim_of_which_relations_were_not_run_does_not_agree():
    holds = Relation(value("high"), ">", value("low"))
    fails = Relation(value("low"), ">", value("high"))
    claim = Claim("N", "S", "", (holds, fails, holds))
    part = claim.part(lambda each: each is holds)
    assert part.verdict(FOUND) == "open"
    assert part.evidence(FOUND).startswith("2 of 3, 1 not run: high 12 > low 10; ")
    assert claim.part(lambda each: each is fails).verdict(FOUND) == "disagrees"
    assert part.part(lambda _each: True) == part


def test_the_rate_that_tier_1_lacks_of_its_demand():
    """10, 10, 5 and 5 Mb/s of frames are demanded; Tier 2 gets 1, 1, 3 and 3."""
    tiers = [(5, 9.0, 1.0), (10, 10.0, 1.0), (15, 4.0, 3.0), (20, 5.0, 3.0)]
    frames = [Frame(t, {"wifi1": ApSample(first, second)}) for t, first, second in tiers]
    got = mp_sdn_runs.swapped(FinishedRun({}, Path()), frames)
    part = 1448 / 1514
    assert got["un"] == pytest.approx((20 * part - 19 + 10 * part - 9) / 4)
    assert got["un+"] == pytest.approx((10 * part - 9 + 5 * part - 4) / 4)
    assert got["ac"] == 2


def test_a_limit_for_every_run():
    assert Every(value("high"), ">=", 11.9).judgement(FOUND).said == "holds"
    assert Every(value("wide"), ">=", 9.0).judgement(FOUND).said == "fails"  # its mean is 10.2
    assert Every(value("wide"), "<=", 18.0).judgement(FOUND).said == "holds"
    few = {"high": FOUND["high"][:4]}
    assert Every(value("high"), ">=", 11.9).judgement(few).text == "open, add 1"
    assert Every(value("high"), ">=", 12).judgement(few).said == "fails"  # one run refutes it
    assert Every(value("wide"), "<=", 17.0).shown(FOUND) == "every wide, 18 at worst, <= 17"


def written(folder, name, rows):
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_total_sd_and_settling_time_of_several_connections(tmp_path):
    """ue2 begins at 10 s; from 20 to 50 s the connections carry 6 and 12 Mb/s."""

    def users(t):
        return {"ue1": {"mbps": 6.0}} | ({"ue2": {"mbps": 12.0}} if t > 10 else {})

    folder = written(
        tmp_path, "samples.jsonl", [{"t": n / 2, "user": users(n / 2)} for n in range(1, 121)]
    )
    assert s_mptcp.measure(Case("pooling-lia", ""), FinishedRun({}, folder)) == {
        "total": 18.0,
        "sd": 3.0,
        "settles": 0.0,
    }
    assert s_mptcp.measure(Case("within-none", ""), FinishedRun({}, folder)) == {"total": 18.0}


def subflow(mbps):
    rest = ("cwnd", "rtt_ms", "tier", "backup", "expected_mbps", "out_of_order")
    return {"mbps": mbps} | dict.fromkeys(rest)


def test_paths_before_during_and_after_a_loss(tmp_path):
    """WiFi carries 40 Mb/s, 3 in the first 0.5 s of the loss, then 0, and 20 after it; LTE carries
    30."""
    wifi = [
        40.0 if t <= 60 else 3.0 if t == 61 else 0.0 if t <= 120 else 20.0 for t in range(1, 181)
    ]
    rows = [
        {"t": n / 2, "sf": {"ue1-1/1": subflow(mbps), "ue1-1/2": subflow(30.0)}}
        for n, mbps in enumerate(wifi, 1)
    ]
    folder = written(tmp_path, "samples.jsonl", rows)
    got = mptcp_la_runs.measure(
        Case("dynamic-none", ""), FinishedRun({"throughput_mbps": 50.0}, folder)
    )
    wanted = {
        "wifi_before": 40.0,
        "wifi_lossy": 0.0,
        "wifi_lossy_most": 0.0,
        "wifi_back_most": 20.0,
        "wifi_late": 20.0,
    }
    assert got == {
        "T": 50.0,
        **wanted,
        **dict.fromkeys(["lte_before", "lte_lossy", "lte_late"], 30.0),
    }
    assert mptcp_la_runs.measure(
        Case("clean-10-10-none", ""), FinishedRun({"throughput_mbps": 50.0}, folder)
    ) == {"T": 50.0}


def test_numbers_of_a_subflow_selection(tmp_path):
    def subflow(segments, retransmitted, lost, rtt_ms):
        return {
            "segments": segments,
            "retransmitted_segments": retransmitted,
            "lost_segments": lost,
            "rtt_ms_mean": rtt_ms,
        }

    subflows = [subflow(300, 3, 2, 50.0), subflow(100, 1, 2, 90.0), subflow(0, 0, 0, None)]
    result = {
        "throughput_mbps": 2.0,
        "connections": [{"subflows": subflows, "out_of_order_fraction": 0.25}],
    }
    forecasts = [
        {"t": 1.0, "kind": "decision", "action": "forecast", "active": names, "forecast_mbps": mbps}
        for names, mbps in ((["a"], 1.0), (["a", "b"], 1.514))
    ]
    folder = written(
        tmp_path, "events.jsonl", [*forecasts, {"t": 2.0, "kind": "decision", "action": "backup"}]
    )
    got = dtmc.measure(Case("", ""), FinishedRun(result, folder))
    assert got == pytest.approx(
        {
            "T": 2.0,
            "out_of_order": 25.0,
            "retransmitted": 1.0,
            "lost": 1.0,
            "rtt": 60.0,
            "active": 2.0,
            "forecast": 1.42,
        }
    )
    written(tmp_path, "events.jsonl", [])
    assert (
        dtmc.measure(Case("", ""), FinishedRun(result, folder))["active"] == 3.0
    )  # without a forecast all are active


def connections(*settled_at_s):
    """(t, Mb/s) of each connection every half second: 10 Mb/s from its time on, 5 before."""
    ends = [n / 2 for n in range(1, 121)]
    return [[(t, 10.0 if t > begins_s else 5.0) for t in ends] for begins_s in settled_at_s]


def test_connections_have_settled_when_the_last_one_has():
    assert (
        s_mptcp.settles_s(connections(2, 2, 11)) == 1.0
    )  # the second from 11 to 12 s is the first one that is right
    assert s_mptcp.settles_s(connections(2, 16, 11)) == 6.0
    assert s_mptcp.settles_s(connections(2, 2, 46)) == s_mptcp.MOST_S
    restless = [[(t, 10.0 if int(t) % 2 else 5.0) for t, _ in each] for each in connections(0)]
    assert s_mptcp.settles_s(restless) == s_mptcp.MOST_S


def test_half_of_a_rate_is_a_collision():
    found = {"within-none": [{"total": each} for each in (18.7, 9.4) * 5]}
    assert s_mptcp.Halved("within-none", 18.76, 0.2, 0.8).judgement(found).said == "holds"
    assert s_mptcp.Halved("within-none", 18.76, 0.8, 0.9).judgement(found).said == "fails"


def lossy(falling):
    """Each path alone carries 10 Mb/s; both together 10 plus the gain of each loss."""
    found = defaultdict(lambda: [{"T": 10.0}] * 5)
    for side in ("wifi", "lte"):
        for loss, gained in zip(mptcp_la_runs.LOSSES, falling, strict=True):
            for pair in mptcp_la_runs.PAIRS:
                found[mptcp_la_runs.pair_name(side, loss, pair, "none")] = [
                    {"T": 10.0 + gained}
                ] * 5
    return found


def lte_gains(found, loss):
    return found | {
        mptcp_la_runs.pair_name("lte", loss, pair, "none"): [{"T": 11.0}] * 5
        for pair in mptcp_la_runs.PAIRS
    }


def test_the_benefit_of_all_pairs():
    found = lossy((9, 8, 5, -1, -2, -5))
    alone = 10 * 1420 / 1448  # of plain TCP
    assert mptcp_la_benefit.Benefit("wifi", 0.0).median(found) == pytest.approx(
        (19 - alone) / alone
    )
    assert mptcp_la_benefit.Benefit("lte", 0.1).median(found) == pytest.approx((5 - alone) / alone)
    assert mptcp_la_benefit.Falls("wifi").judgement(found).said == "holds"
    assert mptcp_la_benefit.Falls("wifi").judgement(lossy((9, 8, 9, 0, 0, 0))).said == "fails"
    assert (
        mptcp_la_benefit.Bound(mptcp_la_benefit.Benefit("wifi", 1e-3), False, 0.0)
        .judgement(found)
        .said
        == "holds"
    )
    assert (
        mptcp_la_benefit.Bound(mptcp_la_benefit.Benefit("wifi", 1e-4), False, 0.0)
        .judgement(found)
        .said
        == "fails"
    )
    assert mptcp_la_benefit.ThresholdsApart().judgement(found).said == "fails"  # both from 0.1 % on
    assert (
        mptcp_la_benefit.ThresholdsApart().judgement(lte_gains(found, 1e-3)).said == "holds"
    )  # WiFi from 0.1 %, LTE from 1 % on
    assert (
        mptcp_la_benefit.ThresholdsApart()
        .judgement(lte_gains(lossy((9, 9, 9, 9, 9, -5)), 1e-1))
        .said
        == "open"
    )  # LTE at none of the losses
    assert (
        mptcp_la_benefit.ThresholdsApart().judgement(lossy((-1, -2, -3, -3, -3, -3))).said == "open"
    )  # no gain even without loss


@pytest.mark.parametrize("name", PAPERS)
def test_every_case_loads_and_has_its_own_name(name):
    cases = PAPERS[name].cases
    assert len({case.name for case in cases}) == len(cases)
    for case in cases[:: max(1, len(cases) // 12)]:
        load(case.scenario, Overrides(case.strategy, case.cc, 1, case.duration_s, case.settings))
