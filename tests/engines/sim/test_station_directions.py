"""Directions of a simulated WiFi station or LTE bearer that differ: rate, queue, delay and loss."""

from __future__ import annotations

import pytest

from lab.engines.sim.routes import DOWN, UP
from lab.scenario import loading

from .conftest import Simulation

PAYLOAD = 1472 / 1514  # of a frame with UDP


def simulated(air="cell", kind="bulk", direction=DOWN, **user):
    near = "wifi" if any(key.startswith("wifi") for key in user) else "lte"
    topology = {"kind": "wifi_lte", "users": [{"id": "ue1", "near": near, **user}], "air": air}
    flow = {"user": "ue1", "kind": kind, "direction": direction}
    flow |= {"rate_mbps": 30} if kind == "udp" else {}
    data = {"name": "own", "title": "Own", "topology": topology, "traffic": [flow]}
    return Simulation(loading.from_data(data, "own.yaml"))


def carried_mbps(simulation):
    simulation.run(1)
    return simulation.mbps(simulation.run(3))


@pytest.mark.parametrize(("near", "air"), [("wifi", "cell"), ("wifi", "dcf"), ("lte", "cell")])
@pytest.mark.parametrize("own", [DOWN, UP])
def test_a_direction_has_its_own_rate(near, air, own):
    user = {f"{near}_mbps": 12, f"{near}_{own}": {"rate_mbps": 3}}
    for direction in (DOWN, UP):
        expected = 3 if direction == own else 12
        found = carried_mbps(simulated(air, "udp", direction, **user))
        assert found == pytest.approx(expected * PAYLOAD, rel=0.05)


@pytest.mark.parametrize("ap", ["wifi1", "lte1"])
def test_the_rate_of_one_direction_changes_alone(ap):
    near = ap.removesuffix("1")
    for direction, other in ((DOWN, UP), (UP, DOWN)):
        simulation = simulated("cell", "udp", direction, **{f"{near}_mbps": 12})
        simulation.flip(f"cell.{ap}.ue1.{other}.rate_mbps", 2)
        assert carried_mbps(simulation) == pytest.approx(12 * PAYLOAD, rel=0.03)
        simulation.flip(f"cell.{ap}.ue1.{direction}.rate_mbps", 5)
        assert carried_mbps(simulation) == pytest.approx(5 * PAYLOAD, rel=0.03)
        simulation.flip(f"cell.{ap}.ue1.rate_mbps", 8)
        assert carried_mbps(simulation) == pytest.approx(8 * PAYLOAD, rel=0.03)


def waits_ms(**user):
    simulation = simulated(lte_mbps=10, **user)
    simulation.run(3)
    frames = simulation.run(3)
    rtts_ms = [frame["sf"]["ue1-1/1"]["rtt_ms"] for frame in frames]
    return sum(rtts_ms) / len(rtts_ms) - 40, simulation.mbps(frames)


@pytest.mark.parametrize("kind", ["codel", "fq_codel", "red"])
def test_a_bearer_that_drops_early_keeps_its_queue_short(kind):
    deep_ms, _ = waits_ms(lte_queue={"packets": 800})
    short_ms, mbps = waits_ms(lte_queue={"kind": kind, "packets": 800})
    assert deep_ms > 150
    assert short_ms < deep_ms / 3
    assert mbps > 7


@pytest.mark.parametrize("kind", ["fifo", "codel", "fq_codel", "red"])
def test_the_queue_of_a_direction_counts_each_of_its_packets(kind):
    own = {"queue": {"kind": kind, "packets": 60}}
    simulation = simulated(kind="udp", direction=UP, lte_mbps=4, lte_up=own)
    up, down = (simulation.network.tables.stations["lte1", "ue1", way] for way in (UP, DOWN))
    most = 0
    for _ in range(40):
        simulation.run(0.1, 0.1)
        assert up.in_packets == up.out_packets + up.drops + up.queue_count
        assert simulation.network.w.packets_in_bearers == up.queue_count + down.queue_count
        most = max(most, up.queue_count)
    assert 0 < most <= 61
    assert up.drops > 100
    assert (up.has_managed, down.has_managed) == (int(kind != "fifo"), 0)
    assert up.out_bytes * 8 / 4e6 == pytest.approx(4, rel=0.05)


def test_a_direction_of_a_bearer_has_its_own_delay():
    rtts_ms = []
    for own in ({}, {"lte_up": {"delay_ms": 70}, "lte_down": {"delay_ms": 30}}):
        simulation = simulated(lte_mbps=400, **own)
        simulation.run(0.4, 0.1)
        rtts_ms.append(simulation.network.subflow(("ue1-1", 1)).record.srtt_ns / 1e6)
    assert rtts_ms[1] - rtts_ms[0] == pytest.approx(60, abs=8)


@pytest.mark.parametrize("loss", [0.2, {"p": 0.02, "r": 0.08}])
def test_a_direction_of_a_bearer_has_its_own_loss(loss):
    simulation = simulated(kind="udp", direction=UP, lte_mbps=60, lte_up={"loss": loss})
    simulation.run(4)
    up, down = (simulation.network.tables.stations["lte1", "ue1", way] for way in (UP, DOWN))
    assert up.drops / up.in_packets == pytest.approx(0.2, abs=0.03)
    assert down.loss_ppm == 0
