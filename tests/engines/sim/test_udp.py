"""UDP traffic keeps its rate, whatever is lost."""

from __future__ import annotations

import pytest

from lab.engines import registry
from lab.engines.sim.wireless import Wireless
from lab.errors import RequestError
from lab.run.engine import Options
from lab.scenario import loading as scenario
from lab.scenario.flows import Flow

from .networks import MS, chain, started
from .rows import on_links, places

PATH = {"rate_mbps": 10, "delay_ms": 10, "queue_packets": 50}
UDP = {"user": "ue1", "kind": "udp", "rate_mbps": 3}


def test_udp_below_the_link_rate_loses_nothing(paths):
    simulation = paths(PATH, traffic=[UDP])
    simulation.run(1)
    assert simulation.mbps(simulation.run(4)) == pytest.approx(3, rel=0.002)
    (connection,) = simulation.report()["connections"]
    assert connection["subflows"][0]["lost_segments"] == 0


def test_udp_above_the_link_rate_is_lost_and_tcp_gets_the_rest(paths):
    simulation = paths(PATH, traffic=[{**UDP, "rate_mbps": 8}, {"user": "ue1"}])
    simulation.run(3)
    frames = simulation.run(5)
    rows = {
        name: sum(frame["sf"][name]["mbps"] for frame in frames) / len(frames)
        for name in ("ue1-1/1", "ue1-2/1")
    }
    assert rows["ue1-1/1"] == pytest.approx(8, rel=0.05)
    assert rows["ue1-2/1"] < 1.9
    alone = paths({**PATH, "rate_mbps": 2}, traffic=[UDP])
    alone.run(1)
    assert alone.mbps(alone.run(4)) == pytest.approx(2 * 1472 / 1514, rel=0.002)
    assert alone.report()["connections"][0]["subflows"][0]["lost_segments"] > 100


def test_every_datagram_is_received_dropped_or_in_flight():
    flow = Flow("ue1-1", "ue1", "down", "reno", 3_000_000, None, "udp")
    network = started(chain(3, rate_bps=2_000_000, delay_ns=20 * MS, loss_ppm=50_000), flow)
    for step in range(1, 40):
        network.run(step * 37 * MS)
        _, s = places(network)
        assert s.segments_sent == s.segments_received + s.segments_dropped + len(on_links(network))
    assert s.segments_sent == pytest.approx(39 * 0.037 * 3e6 / 8 / 1472, abs=1)
    assert s.segments_dropped > 0


def test_udp_starts_stops_and_changes_its_rate(paths):
    simulation = paths(PATH, traffic=[{**UDP, "start_s": 1, "stop_s": 4}])
    rates = [frame["user"].get("ue1", {"mbps": 0})["mbps"] for frame in simulation.run(2, 1)]
    assert rates == [0, pytest.approx(3, rel=0.02)]
    simulation.flip("user.ue1.demand_mbps", 1)
    assert simulation.mbps(simulation.run(1, 1)) == pytest.approx(1, rel=0.05)
    simulation.flip("user.ue1.demand_mbps", None)
    assert simulation.mbps(simulation.run(1, 1)) == pytest.approx(3, rel=0.05)
    assert simulation.mbps(simulation.run(2, 1)[1:]) == 0


def test_udp_uses_one_network_and_is_ignored_by_strategies_and_the_mptcp_verdict(paths):
    simulation = paths(PATH, PATH, traffic=[{"user": "ue1"}, UDP])
    simulation.run(2)
    assert set(simulation.engine.observer.active_subflows()) == {("ue1-1", 1), ("ue1-1", 2)}
    report = simulation.report()
    assert report["mptcp"] == {"verified": True, "joins": 1, "fallbacks": 0, "why": None}
    assert report["cc"] == "reno"
    assert [len(each["subflows"]) for each in report["connections"]] == [2, 1]
    assert report["connections"][1]["subflows"][0]["cc"] is None


def test_meters_do_not_count_udp(testbed):
    simulation = testbed("traffic=[{user: ue3, kind: udp, rate_mbps: 2}]", "rate_scale=1")
    for ap in ("wifi1", "lte1"):
        Wireless(simulation.network).set_meter(ap, ["ue3"], 100_000)
    simulation.run(1)
    assert simulation.mbps(simulation.run(2), "ue3") == pytest.approx(2, rel=0.01)


def udp(**keys):
    path = {"kind": "parallel_paths", "paths": [PATH]}
    data = {"name": "paths", "title": "Paths", "topology": path, "traffic": [UDP | keys]}
    return scenario.from_data(data, "paths.yaml")


def test_both_engines_admit_udp():
    registry.admit("mininet", udp(), Options())
    registry.admit("sim", udp(), Options(speed=0.0))


@pytest.mark.parametrize(
    ("keys", "message"),
    [({"rate_mbps": None}, "needs rate_mbps"), ({"cc": "reno"}, "no congestion control")],
)
def test_udp_without_a_rate_or_with_congestion_control_is_refused(keys, message):
    with pytest.raises(RequestError, match=message):
        udp(**keys)
