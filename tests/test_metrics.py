"""Metrics of runs, with numbers that can be checked by mental arithmetic."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import summaries
from lab.frame import ApSample, Frame, SubflowSample, UserSample
from lab.run import result as result_json
from lab.run.report import Overload, Report

HEADER = result_json.Header("r", "s", "none", "fake", 1, 1.0, "complete")


def frame(t, wifi=(0.0, 0.0), occupancy=1.0, sf=None, **users):
    ap = ApSample(wifi[0], wifi[1], occupancy)
    return Frame(
        t, {"wifi1": ap}, {}, {name: UserSample(rate) for name, rate in users.items()}, sf or {}
    )


def subflow(mbps, **fields):
    sample = SubflowSample(mbps, None, None, 1, False, None, 0.0)
    return replace(sample, **fields)


def test_means_weigh_frames_by_their_interval(load_testbed):
    frames = [frame(1, (4, 1), 0.5, ue1=4, ue2=0), frame(4, (8, 1), 0.9, ue1=8, ue2=4)]
    got = result_json.document(HEADER, load_testbed().network, frames, None)
    assert got["duration_s"] == 4
    expected = {"kind": "single_path", "throughput_mbps": 7.0, "by_ap": {}}
    assert got["users"]["ue1"].items() >= expected.items()
    assert got["users"]["ue2"]["throughput_mbps"] == 3.0
    assert got["users"]["ue2"]["kind"] == "multipath"
    assert got["users"]["ue4"]["throughput_mbps"] is None
    assert got["throughput_mbps"] == 10.0
    expected = {
        "kind": "wifi",
        "throughput_mbps": 8.0,
        "tier1_mbps": 7.0,
        "tier2_mbps": 1.0,
        "mac_occupancy_mean": 0.8,
    }
    assert got["aps"]["wifi1"].items() >= expected.items()
    assert got["aps"]["lte1"]["throughput_mbps"] is None
    assert got["tiers"] == {"1": 7.0, "2": 1.0}
    assert got["fairness"]["jain"] == pytest.approx(100 / (2 * 58), abs=1e-6)
    assert got["fairness"]["sd_mbps"] == 2.0


def test_measured_intervals_count_instead_of_planned_ones(load_testbed):
    """The first sample comes 0.5 s late: 12 Mbit have arrived by then, and none after that."""
    late = [
        replace(frame(1, ue1=12 / 1.5), interval_s=1.5),
        replace(frame(2, ue1=0), interval_s=0.5),
    ]
    got = result_json.document(HEADER, load_testbed().network, late, None)
    assert got["users"]["ue1"]["throughput_mbps"] == 6.0
    assert [Frame.from_json(each.to_json()) for each in late] == late
    assert "interval_s" not in frame(1).to_json()


def test_a_crash_before_the_first_sample_gives_nulls_not_zeros(load_testbed):
    got = result_json.document(replace(HEADER, status="failed"), load_testbed().network, [], None)
    assert got["throughput_mbps"] is None
    assert got["tiers"] == {"1": None, "2": None}
    assert got["fairness"] == {"jain": None, "sd_mbps": None}
    assert got["cc"] is None
    assert got["mptcp"] == {"verified": False, "joins": 0, "fallbacks": 0, "why": None}
    assert got["status"] == "failed"


def test_shares_per_access_point_come_from_subflow_samples(load_testbed):
    sf = {
        "c/1": subflow(3.0, user="ue2", ap="wifi1"),
        "c/2": subflow(1.0, user="ue2", ap="lte1"),
    }
    got = result_json.document(
        HEADER, load_testbed().network, [frame(1, sf=sf, ue2=4), frame(2, ue2=0)], None
    )
    assert got["users"]["ue2"]["by_ap"] == {"lte1": 0.5, "wifi1": 1.5}


def test_shares_per_access_point_else_come_from_the_report(load_testbed):
    from fake_engine import REPORT

    got = result_json.document(HEADER, load_testbed().network, [frame(1, ue2=4)], REPORT)
    assert got["users"]["ue2"]["by_ap"] == {"lte1": 1.0, "wifi1": 3.0}
    assert got["connections"][0]["completion_s"] is None
    assert got["connections"][0]["subflows"][0]["rtt_ms_mean"] is None
    assert (got["cc"], got["mptcp"]["joins"], got["overloaded"]) == ("reno", 1, False)


def test_shares_before_anybody_was_moved_are_those_of_the_first_access_point():
    """The simulator names access points in samples only from then on."""
    from fake_engine import REPORT

    from lab.scenario.loading import Overrides, load

    settings = ("topology.users=2", "topology.multipath_percent=100")  # ue2 is at wifi1 and lte1
    network = load("thirty_users", Overrides(settings=settings)).network
    before = {"c1/1": subflow(3.0), "c1/2": subflow(1.0)}
    after = {
        "c1/1": subflow(5.0, user="ue2", ap="wifi3"),
        "c1/2": subflow(2.0, user="ue2", ap="lte1"),
    }
    frames = [frame(1, sf=before, ue2=4), frame(2, sf=after, ue2=7)]
    got = result_json.document(HEADER, network, frames, REPORT)
    assert got["users"]["ue2"]["by_ap"] == {"lte1": 1.5, "wifi1": 1.5, "wifi3": 2.5}


def test_overload_is_kept_with_its_evidence(load_testbed):
    report = Report(overload=Overload(True, ("no idle time",)))
    got = result_json.document(HEADER, load_testbed().network, [frame(1)], report)
    assert got["overloaded"] is True
    assert got["overload"]["reasons"] == ["no idle time"]


def test_without_access_points_tiers_are_sums_over_subflows():
    from lab.scenario.loading import from_data

    raw = {
        "name": "x",
        "title": "x",
        "traffic": [{"user": "ue1"}],
        "topology": {"kind": "parallel_paths", "paths": [{"rate_mbps": 5}]},
    }
    sf = {"c/1": subflow(3.0, tier=None), "c/2": subflow(1.0, tier=2)}
    frames = [Frame(1, {}, {}, {"ue1": UserSample(4)}, sf)]
    got = result_json.document(HEADER, from_data(raw, "x").network, frames, None)
    assert got["tiers"] == {"1": 3.0, "2": 1.0}
    assert got["aps"] == {}


def test_jain_and_sd():
    assert summaries.jain([1, 1, 1, 1]) == 1
    assert summaries.jain([4, 0, 0, 0]) == 0.25
    assert summaries.jain([0, 0]) is None
    assert summaries.sd([1, 3]) == 1
    assert summaries.sd([]) is None


@given(st.lists(st.floats(0.01, 1000), min_size=1, max_size=30))
def test_jain_lies_between_one_nth_and_one(rates):
    assert 1 / len(rates) - 1e-9 <= summaries.jain(rates) <= 1 + 1e-9


def test_convergence_is_from_the_last_start_until_every_rate_stays():
    """Three users start and end one after the other, as in `pooling`; the last one settles after
    0.5 s."""

    def at(t):
        rates = {"ue1": 10.0 if t <= 50 else 0.0, "ue2": 12.0 if 5 < t <= 55 else 0.0}
        return frame(t, **rates, ue3=0.0 if t <= 10 else 3.0 if t <= 10.5 else 12.0)

    assert summaries.convergence_s([at(n / 2) for n in range(1, 121)]) == 0.5
    assert summaries.convergence_s([at(n / 10) for n in range(1, 601)]) == pytest.approx(0.4)


def test_convergence_does_not_depend_on_units_and_allows_rare_outliers():
    def frames(scale, *outside):
        return [
            frame(n / 2, ue1=scale * (3.0 if n < 13 or n in outside else 10.0 + n % 2 * 0.5))
            for n in range(1, 121)
        ]

    assert summaries.convergence_s(frames(1)) == summaries.convergence_s(frames(1000)) == 6.0
    assert summaries.convergence_s(frames(1, 60, 70)) == 6.0
    assert summaries.convergence_s(frames(1, 18)) == 9.0  # within the first 5 s
    assert summaries.convergence_s(frames(1, *range(20, 119, 5))) is None


def test_short_silent_or_unsettled_runs_have_no_convergence():
    assert summaries.convergence_s([frame(n / 2, ue1=1.0) for n in range(1, 20)]) is None
    assert summaries.convergence_s([frame(float(n), ue1=0.0) for n in range(1, 40)]) is None
    assert summaries.convergence_s([frame(float(n), ue1=float(n)) for n in range(1, 40)]) is None
