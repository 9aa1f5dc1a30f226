"""While the rate of a link or an LTE station is 0, nothing leaves, and what waits stays."""

from __future__ import annotations

import re

import pytest

from lab.errors import RequestError
from lab.scenario.targets import targets

FULL_MBPS = 1448 / 1514  # payload of 1 Mb/s of frames
BOTH_WAYS = re.compile(r"cell\.lte\d\.\w+\.rate_mbps")
PATH = {"rate_mbps": 10, "delay_ms": 10, "queue_packets": 50}


def link(simulation, end="p1"):
    return simulation.network.tables.links["path1", end]


@pytest.mark.parametrize("kind", ["fifo", "codel", "fq_codel", "red"])
@pytest.mark.parametrize("target", ["link.path1.rate_mbps", "link.path1.down.rate_mbps"])
@pytest.mark.parametrize("protocol", ["udp", "bulk"])
def test_a_link_holds_what_waits(paths, kind, target, protocol):
    traffic = {"kind": "udp", "rate_mbps": 12} if protocol == "udp" else {}
    simulation = paths(PATH | {"queue": {"kind": kind}}, traffic=traffic)
    simulation.run(2)
    hop = link(simulation)
    simulation.flip(target, 0)
    waiting = simulation.network.queued(hop)
    assert waiting > 0
    sent = simulation.network.sent(hop)[1]
    simulation.run(0.1, 0.1)
    stopped = simulation.run(2)
    assert simulation.network.sent(hop)[1] <= sent + 1
    assert simulation.network.queued(hop) >= waiting
    assert simulation.mbps(stopped) == 0
    assert {frame["link"]["path1"]["mbps_ab"] for frame in stopped} <= {0.0, 0.00001}
    simulation.flip(target, 10)
    held = simulation.network.queued(hop)
    simulation.run(held * 1514 * 8 / 10e6 + 0.02, 1)
    assert simulation.network.sent(hop)[1] >= sent + waiting
    simulation.run(3)
    assert simulation.mbps(simulation.run(3)) == pytest.approx(10 * FULL_MBPS, rel=0.08)


def test_the_other_direction_goes_on(paths):
    simulation = paths(PATH, traffic={"direction": "up", "kind": "udp", "rate_mbps": 6})
    simulation.run(1)
    simulation.flip("link.path1.down.rate_mbps", 0)
    assert simulation.mbps(simulation.run(2)) == pytest.approx(6, rel=0.01)
    simulation.flip("link.path1.up.rate_mbps", 0)
    simulation.run(0.1, 0.1)
    assert simulation.mbps(simulation.run(1)) == 0


def test_events_stop_a_link_and_a_second_path_takes_over(paths):
    simulation = paths(
        PATH,
        PATH,
        events=[
            {"at_s": 3, "target": "link.path1.rate_mbps", "value": 0},
            {"at_s": 8, "target": "link.path1.rate_mbps", "value": 10},
        ],
    )
    assert simulation.scenario.events[0].value == 0
    simulation.run(3)
    simulation.flip("link.path1.rate_mbps", 0)
    simulation.run(2)
    alone = simulation.mbps(simulation.run(3))
    assert alone == pytest.approx(10 * 1420 / 1514, rel=0.05)
    simulation.flip("link.path1.rate_mbps", 10)
    simulation.run(12)
    assert simulation.mbps(simulation.run(4)) > 1.7 * alone


def test_a_connection_that_begins_during_an_outage_is_not_late_after_it(paths):
    late = {"start_s": 1.5, "warm": True}
    simulation = paths(PATH, traffic=late)
    simulation.run(1)
    simulation.flip("link.path1.rate_mbps", 0)
    simulation.run(2)
    simulation.flip("link.path1.rate_mbps", 10)
    simulation.run(5)
    assert simulation.mbps(simulation.run(2)) == pytest.approx(10 * FULL_MBPS, rel=0.05)


def test_a_station_of_lte_holds_what_waits_and_leaves_its_share_to_the_others(testbed):
    simulation = testbed("duration_s=60")
    names = [name for name in simulation_targets(simulation) if BOTH_WAYS.fullmatch(name)]
    target = names[0]
    _, ap, user, _ = target.split(".")
    simulation.run(5)
    others = {name.split(".")[2] for name in names[1:]}
    hop = simulation.network.tables.stations[ap, user, "down"]
    simulation.flip(target, 0)
    out, waiting = hop.out_packets, hop.queue_count
    before = {each: sent(simulation, ap, each) for each in others}
    simulation.run(3)
    assert hop.out_packets == out
    assert hop.queue_count >= waiting > 0
    assert all(sent(simulation, ap, each) > before[each] for each in others)
    simulation.flip(target, 5)
    simulation.run(3)
    assert hop.out_packets > out + waiting


def simulation_targets(simulation):
    return targets(simulation.scenario)


def sent(simulation, ap, user):
    return simulation.network.tables.stations[ap, user, "down"].out_packets


def test_a_wifi_station_has_a_rate(testbed):
    simulation = testbed()
    target = next(
        name
        for name in simulation_targets(simulation)
        if name.startswith("cell.wifi") and name.endswith(".rate_mbps")
    )
    with pytest.raises(RequestError, match=r"is not within 0\.001 to"):
        simulation.flip(target, 0)
