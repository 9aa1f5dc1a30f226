"""What a path achieves, compared with what it should achieve; and its counters."""

import pytest

from lab.engines.mininet.traffic import probes
from lab.engines.mininet.traffic.probes import MISLEADING, Comparison, PathFigures
from lab.radio import dcf
from lab.scenario.loading import Overrides
from lab.scenario.loading import load as load_scenario
from lab.topologies import pooling, rat_setup
from lab.topologies.topology import wire

EXPECTED = PathFigures(rate_mbps=10.0, rtt_ms=10.0)


def comparison(rate_bps, rtt_ms, rate_scale=1.0):
    return probes.compare(EXPECTED, rate_bps, rtt_ms, rate_scale)


def complaints(rate_bps, rtt_ms):
    return list(comparison(rate_bps, rtt_ms).complaints("ue1-wlan0"))


def test_figures_within_a_tenth_cause_no_complaint():
    assert complaints(9.2e6, 11.5) == []


def test_a_figure_more_than_a_tenth_off_is_reported():
    assert complaints(8.0e6, 10.0) == ["ue1-wlan0: expected 10 Mb/s, measured 8 (-20%)"]
    assert "expected 10 ms, measured 20 (+100%)" in complaints(10e6, 20.0)[0]


def test_a_missing_answer_is_reported():
    assert len(complaints(None, None)) == 2


def test_a_measured_rate_is_reported_in_the_scenarios_units():
    found = comparison(2.3e6, 11.0, rate_scale=0.25)
    assert found.to_json() == {
        "asked": {"rate_mbps": 10.0, "rtt_ms": 10.0, "up_mbps": None},
        "measured": {"rate_mbps": 9.2, "rtt_ms": 11.0, "up_mbps": None},
    }
    assert list(found.complaints("ue1-wlan0")) == []


def test_an_uplink_is_compared_with_the_rate_of_its_link():
    expected = PathFigures(rate_mbps=10.0, rtt_ms=10.0, up_mbps=10.0)
    good, unlimited, silent = (
        probes.compare(expected, 2.5e6, 10.0, 0.25, up_bps) for up_bps in (2.4e6, 12.75e6, None)
    )
    assert list(good.complaints("ue4-lte0")) == []
    assert list(unlimited.complaints("ue4-lte0")) == [
        "ue4-lte0: expected 10 Mb/s up, measured 51 (+410%)"
    ]
    assert len(list(silent.complaints("ue4-lte0"))) == 1


def test_an_uplink_is_expected_only_where_it_is_measured(load_testbed):
    topology = load_testbed().network
    bearer = wire(topology).at("ue3", "lte1")
    assert probes.expected_figures(topology, bearer, up=True).up_mbps == 46
    assert probes.expected_figures(topology, bearer).up_mbps is None


def test_a_link_is_measured_twice_when_a_figure_is_off_and_the_best_counts():
    good, slow, both = (
        comparison(9.9e6, 10.0),
        comparison(7e6, 10.0),
        comparison(7e6, 30.0),
    )

    def attempt(*answers):
        left = list(answers)
        best = probes.best_attempts(["ue1-wlan0"], lambda names: {"ue1-wlan0": left.pop(0)})
        comparison, wrong = best["ue1-wlan0"]
        return comparison.measured.rate_mbps, len(wrong), len(left)

    assert attempt(good, slow) == (9.9, 0, 1)
    assert attempt(both, good) == (9.9, 0, 0)
    assert attempt(slow, both) == (7.0, 1, 0)
    assert attempt(both, slow) == (7.0, 1, 0)


def test_only_paths_with_complaints_are_measured_once_more():
    measured = []

    def measure(names):
        measured.append(list(names))
        return {name: comparison(9.9e6 if name == "a" else 7e6, 10.0) for name in names}

    assert set(probes.best_attempts(["a", "b"], measure)) == {"a", "b"}
    assert measured == [["a", "b"], ["b"]]


def thirty_users(rate_scale):
    """The network, the users' interfaces, and the lists of interfaces that are probed together."""
    topology = load_scenario(
        "thirty_users", Overrides(settings=(f"rate_scale={rate_scale}",))
    ).network
    users = [each for each in wire(topology).interfaces if each.node != "srv1"]
    return topology, users, probes.rounds(topology, users)


def rates_bps(topology, interfaces):
    expected = (probes.expected_figures(topology, each).rate_mbps for each in interfaces)
    return [round(rate * 1e6) for rate in expected]


def test_every_path_is_measured_once_and_no_wifi_channel_or_user_is_measured_twice_at_a_time():
    for rate_scale in (1, 0.05):
        topology, users, found = thirty_users(rate_scale)
        names = sorted(each.name for one in found for each in one)
        assert names == sorted(each.name for each in users)
        for together in found:
            assert len({each.node for each in together}) == len(together)
            wifi = [each.link for each in together if each.link != "lte1"]
            assert len(set(wifi)) == len(wifi)
            bearers = [each for each in together if each.link == "lte1"]
            at_most = probes.BEARERS_BPS if len(bearers) > 1 else float("inf")
            assert sum(rates_bps(topology, bearers)) <= at_most


def test_bearers_are_measured_together_so_the_largest_wifi_cell_decides_how_many_lists_there_are():
    _, users, found = thirty_users(0.05)
    counts = {ap: sum(each.link == ap for each in users) for ap in ("wifi1", "wifi2", "wifi3")}
    assert sum(each.link == "lte1" for each in users) > max(counts.values())
    assert len(found) <= max(counts.values()) + 1


def test_paths_over_links_with_a_rate_are_measured_one_after_the_other():
    topology = pooling.build(pooling.Params())
    users = [each for each in wire(topology).interfaces if each.node.startswith("ue")]
    assert [len(each) for each in probes.rounds(topology, users)] == [1] * len(users)


def test_the_burst_on_a_fast_path_lasts_longer_than_a_busy_reader_is_away():
    packets = [probes.burst(PathFigures(mbps, 5.0), 1.0)["packets"] for mbps in (10, 50, 500)]
    assert packets == [165, 826, probes.MOST_PACKETS]


def test_a_slow_path_is_measured_with_fewer_packets():
    assert probes.burst(PathFigures(4.0, 5.0), 1.0)["packets"] == probes.PACKETS
    assert probes.burst(PathFigures(10.0, 5.0), 0.05)["packets"] == 41
    assert probes.burst(PathFigures(1.0, 5.0), 0.05)["packets"] == probes.LEAST_PACKETS
    assert probes.burst(PathFigures(None, 5.0), 1.0) == {"packets": probes.PACKETS, "send_bps": 0}


def test_a_burst_leaves_at_twice_the_expected_rate():
    assert probes.burst(PathFigures(10.0, 5.0), 0.5)["send_bps"] == 10_000_000


def test_mptcp_counters_by_name():
    text = "TcpExt: A B\nTcpExt: 1 2\nMPTcpExt: MPCapableSYNRX MPJoinSynAckRx\nMPTcpExt: 3 4\n"
    assert probes.mptcp_counters(text) == {"MPCapableSYNRX": 3, "MPJoinSynAckRx": 4}
    assert probes.mptcp_counters("") == {}


def test_joins_and_fallbacks_are_the_kernels_own_counts():
    counters = {
        "ue2": {"MPJoinSynAckRx": 1, "MPCapableFallbackACK": 2},
        "ue3": {"MPJoinSynAckRx": 3},
    }
    assert probes.fallbacks(counters) == 2
    refused = {"srv1": {"MPJoinSynRx": 3, "MPJoinAckRx": 1}, "srv2": {"MPJoinAckRx": 3}, "srv3": {}}
    assert probes.joins(refused) == 4


def test_a_path_is_as_fast_as_its_slowest_link_and_has_all_its_delays():
    topology = pooling.build(pooling.Params(path_delay_ms=30))
    expected = probes.expected_figures(topology, wire(topology).at("ue3", "link16"))
    assert expected.rate_mbps == 9
    assert 60 <= expected.rtt_ms < 61


def test_the_path_to_a_radio_counts_the_wires_behind_it(load_testbed):
    topology = load_testbed().network
    expected = probes.expected_figures(topology, wire(topology).at("ue3", "lte1"))
    assert expected.rate_mbps == 46
    assert 40 <= expected.rtt_ms < 41


def test_expected_rates_are_in_the_scenarios_units(load_testbed):
    lte, wifi = (
        [
            probes.expected_figures(each.network, wire(each.network).at("ue3", ap), each.rate_scale)
            for each in (load_testbed(), load_testbed("rate_scale=0.25"))
        ]
        for ap in ("lte1", "wifi1")
    )
    assert lte[0].rate_mbps == lte[1].rate_mbps == 46
    assert lte[0].rtt_ms == lte[1].rtt_ms == 40  # a token bucket lets a single ping pass at once
    assert wifi[0].rtt_ms < wifi[1].rtt_ms  # a ping takes longer on slower air


def test_a_path_over_relays_has_the_rate_of_its_slowest_cell_and_all_delays():
    topology = rat_setup.build(rat_setup.Params(setup=2, air="cell", lte_rtt_ms=40, wifi_rtt_ms=8))
    first, second = wire(topology).of("ue2")
    bearer = topology.cell("lte1").stations[0].rate_bps / 1e6
    by_wifi, by_lte = (probes.expected_figures(topology, each) for each in (first, second))
    assert by_wifi.rate_mbps > bearer
    assert by_lte.rate_mbps == bearer
    assert 8 < by_wifi.rtt_ms < 8.1
    assert 44 < by_lte.rtt_ms < 44.1  # the bearer's 40 ms, and twice a quarter of 8 ms for wifi3


def test_paths_are_measured_together_only_over_different_channels():
    def together(setup):
        topology = rat_setup.build(rat_setup.Params(setup=setup, pairs=2))
        found = probes.rounds(topology, wire(topology).interfaces[:4])
        return [[each.name for each in one] for one in found]

    assert together(2) == [["ue1-wlan0", "ue2-wlan1"], ["ue1-wlan1", "ue2-wlan0"]]
    assert together(3) == [["ue1-wlan0"], ["ue1-wlan1"], ["ue2-wlan0"], ["ue2-wlan1"]]


def test_a_path_far_off_makes_the_run_worthless():
    expected = PathFigures(10.0, 20.0)
    near, far = (Comparison(expected, PathFigures(9.0, rtt_ms)) for rtt_ms in (27.9, 32.0))
    assert list(near.complaints("path1", MISLEADING)) == []
    assert list(far.complaints("path1", MISLEADING)) == [
        "path1: expected 20 ms, measured 32 (+60%)"
    ]


def test_a_ping_in_a_dcf_cell_takes_two_accesses_of_a_lone_node():
    settings = ("topology.air=dcf", "rate_scale=0.2")
    topology = load_scenario("testbed_wifi_lte", Overrides(settings=settings)).network
    cell = topology.cell("wifi1")
    (station,) = (each for each in cell.stations if each.user == "ue1")
    (interface,) = wire(topology).of("ue1")
    found = probes.expected_figures(topology, interface, 0.2)
    delay_ms = 2 * 5.0  # wifi_delay_ms, there and back
    assert found.rtt_ms == pytest.approx(delay_ms + 2 * dcf.alone_ns(cell, station, 98) / 1e6)
