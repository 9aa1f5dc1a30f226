"""What terminal and pages say about the verdict on Multipath TCP and the unit of rates."""

from __future__ import annotations

import pytest
import yaml

from lab.cli.terminal import summary
from lab.results import labels


@pytest.mark.parametrize(
    ("mptcp", "text"),
    [
        (
            {"verified": True, "joins": 2, "fallbacks": 0},
            "Multipath TCP verified: 2 extra subflows, no fallback to plain TCP",
        ),
        (
            {"verified": False, "joins": 0, "fallbacks": 1, "why": "ue2-1 is plain TCP"},
            "Multipath TCP NOT verified: no extra subflow, 1 fallback to plain TCP "
            "(ue2-1 is plain TCP)",
        ),
        ({}, "Multipath TCP NOT verified: no extra subflow, no fallback to plain TCP"),
    ],
)
def test_the_multipath_verdict_in_words(mptcp, text):
    assert labels.describe(mptcp) == text


def test_a_scaled_run_says_what_is_scaled_and_what_is_not():
    assert labels.note(1) == labels.note(None) == labels.scale_label(1) == ""
    text = labels.note(0.25)
    assert "Rates on the wire are scaled by 0.25" in text
    assert "queueing delay is 4 times as long" in text
    assert labels.scale_label(0.25) == "rate scale 0.25"
    assert labels.scale_label(None, schema=1) == "wire rates"
    assert labels.scale_label(0.25, schema=2) == "rate scale 0.25, handshakes without packets"
    for schema in (1, 2):
        assert "cannot be compared" in labels.note(None, schema)


def test_slower_clocks_are_told_and_real_time_is_not():
    assert labels.clocks_label(1) == labels.clocks_note(None) == labels.clocks_note(1) == ""
    assert labels.clocks_label(2.5) == "clocks 2.5 times slower"
    assert "A second of the run takes 8 s" in labels.clocks_note(8)


TIMES = {"completed": 2, "count": 2, "fct_mean_s": 0.5, "slowdown_p50": 1.5}


def said(folder, traffic=(), **changed):
    """The summary of a run of two paths. `changed` are sections of its result."""
    text = yaml.safe_dump({"traffic": [{"user": user, "kind": kind} for user, kind in traffic]})
    (folder / "scenario.yaml").write_text(text)
    users = {
        f"ue{n}": {"kind": "multipath", "throughput_mbps": rate, "by_ap": {}}
        for n, rate in enumerate((9.0, 9.0, 0.1), 1)
    }
    head = {"scenario": "s", "strategy": "none", "cc": "reno", "engine": "sim", "seed": 1}
    rates = {"throughput_mbps": 18.1, "tiers": {"1": 18.1, "2": 0.0}, "fairness": {"jain": 0.67}}
    ended = {"duration_s": 9.0, "status": "complete", "overloaded": False, "convergence_s": None}
    known = {"aps": {}, "users": users, "mptcp": {"verified": True, "joins": 1}}
    return summary(head | rates | ended | known | changed, folder)


def test_without_access_points_the_summary_has_no_columns_and_tiers_of_them(tmp_path):
    text = said(tmp_path)
    assert "access point" not in text
    assert "Tier" not in text
    assert "rates did not settle within the run" in text
    assert "fairness (Jain) 0.670 " in text


def test_fairness_leaves_out_users_who_ask_for_little(tmp_path):
    text = said(tmp_path, [("ue1", "bulk"), ("ue2", "file"), ("ue3", "call")])
    assert "fairness (Jain) 1.000 " in text
    assert (
        "without ue3 (call), whose rate is limited by what it asks for. With them, it is 0.670."
        in text
    )
    alone = said(tmp_path, [("ue1", "bulk"), ("ue2", "web"), ("ue3", "call"), ("ue3", "web")])
    assert "fairness (Jain) - " in alone
    assert "not judged: the rate of ue2 (web), ue3 (call and web) is limited by what" in alone
    nobody = said(tmp_path, [(f"ue{n}", "rate") for n in (1, 2, 3)])
    assert "the rate of all users is limited by what they ask for. By rates alone" in nobody


def test_one_kind_and_size_of_transfers_is_one_row_and_words_are_explained(tmp_path):
    one = said(tmp_path, flows={**TIMES, "by_kind": {"rpc": TIMES}, "by_size": {"small": TIMES}})
    assert one.count("2 of 2") == 1
    assert "all (rpc, small)  2 of 2" in one
    assert "small: up to 100 kB; slowdown: the time taken over the time alone on" in one
    sizes = {"small": TIMES, "large": TIMES}
    several = said(tmp_path, flows={**TIMES, "by_kind": {"rpc": TIMES}, "by_size": sizes})
    assert several.count("2 of 2") == 3
    assert "large: above 10 MB" in several


def test_fewer_extra_subflows_than_connections_have_a_reason(tmp_path):
    flows = [{"user": "ue1", "completion_s": 0.1}] * 3
    reason = "Of 3 connections, short ones ended before their second subflow was there"
    assert reason in said(tmp_path, connections=flows)
    assert reason not in said(tmp_path, connections=flows[:1])
    missing = {"verified": False, "joins": 1, "why": "ue1-1 has 1 of 2 subflows"}
    assert reason not in said(tmp_path, connections=flows, mptcp=missing)
