"""From text and reports to numbers."""

from lab.engines.mininet import probes
from lab.topologies import pooling
from lab.topologies.topology import wire

ASKED = {"rate_mbps": 10.0, "rtt_ms": 10.0}


def complaints(rate_bps, rtt_ms):
    return list(
        probes.complaints(
            "ue1-wlan0", probes.compare(ASKED, {"rate_bps": rate_bps, "rtt_ms": rtt_ms})
        )
    )


def test_within_a_tenth_nobody_complains():
    assert complaints(9.2e6, 11.5) == []


def test_more_than_a_tenth_off_is_said_with_the_figure():
    assert complaints(8.0e6, 10.0) == ["ue1-wlan0: asked for 10 Mb/s, measured 8 (-20%)"]
    assert "asked for 10 ms, measured 20 (+100%)" in complaints(10e6, 20.0)[0]


def test_silence_is_said():
    assert len(complaints(None, None)) == 2


def test_a_link_is_measured_again_when_something_is_off_and_the_best_counts():
    good, slow, both = (
        {"rate_bps": 9.9e6, "rtt_ms": 10.0},
        {"rate_bps": 7e6, "rtt_ms": 10.0},
        {"rate_bps": 7e6, "rtt_ms": 30.0},
    )

    def tried(*answers):
        left = list(answers)
        measured, wrong = probes.tried("ue1-wlan0", ASKED, lambda: left.pop(0))
        return measured["measured"]["rate_mbps"], len(wrong), len(left)

    assert tried(good, slow) == (9.9, 0, 1)
    assert tried(both, good) == (9.9, 0, 0)
    assert tried(slow, both) == (7.0, 1, 0)
    assert tried(both, slow) == (7.0, 1, 0)


def test_lte_occupancy_is_that_of_tier_1_bearers():
    report = {
        "ap": "lte1",
        "mac_occupancy": 0.6,
        "stations": {"ue2": {"mac_occupancy": 0.2}, "ue4": {"mac_occupancy": 1.0}},
    }
    assert probes.tier1_occupancy(report, {"ue2": {"lte1": 2}, "ue4": {"lte1": 1}}) == 1.0
    assert (
        probes.tier1_occupancy({"ap": "wifi1", "mac_occupancy": 0.7, "stations": {"ue1": {}}}, {})
        == 0.7
    )


def test_mptcp_counters_by_name():
    text = "TcpExt: A B\nTcpExt: 1 2\nMPTcpExt: MPCapableSYNRX MPJoinSynAckRx\nMPTcpExt: 3 4\n"
    assert probes.mptcp_counters(text) == {"MPCapableSYNRX": 3, "MPJoinSynAckRx": 4}
    assert probes.mptcp_counters("") == {}


def test_joins_and_fallbacks_are_the_kernels_own_counts():
    counters = {
        "ue2": {"MPJoinSynAckRx": 1, "MPCapableFallbackACK": 2},
        "ue3": {"MPJoinSynAckRx": 3},
    }
    assert (probes.joins(counters), probes.fallbacks(counters)) == (4, 2)


def test_what_is_asked_of_a_path_is_its_slowest_link_and_all_its_delays():
    topology = pooling.build(pooling.Params(path_delay_ms=30))
    asked = probes.asked(topology, wire(topology).at("ue3", "link16"))
    assert asked["rate_mbps"] == 9
    assert 60 <= asked["rtt_ms"] < 61


def test_what_is_asked_of_a_radio_counts_the_wires_behind_it(load):
    topology = load().network
    asked = probes.asked(topology, wire(topology).at("ue3", "lte1"))
    assert asked["rate_mbps"] == 46
    assert 40 <= asked["rtt_ms"] < 41
