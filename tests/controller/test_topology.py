"""The topology has an arc for each direction of each link."""

from __future__ import annotations

import pytest

from controller.errors import TopologyRefused
from controller.observation import Arc
from controller.topology import Topology, read
from lab.scenario.loading import Overrides, load
from lab.topologies import parallel_paths
from lab.topologies.topology import as_json, wire


def arcs(topology):
    network = Topology.model_validate(as_json(topology, wire(topology)))
    return {(arc.tail, arc.head): arc for arc in network.arcs()}


@pytest.fixture
def testbed():
    return arcs(load("testbed_wifi_lte", Overrides()).network)


def test_a_station_is_behind_the_air_of_its_access_point(testbed):
    assert (
        testbed["wifi1", "wifi1~air"].capacity_bps
        == testbed["wifi1~air", "10.1.0.1"].capacity_bps
        == 42_000_000
    )
    assert testbed["wifi1~air", "10.1.0.3"].capacity_bps == 19_100_000
    assert ("wifi1", "10.1.0.1") not in testbed


def test_an_unshaped_link_counts_as_a_gigabit_and_has_the_delay_of_its_access_point(testbed):
    assert testbed["s1", "wifi1"] == Arc("wifi", "s1", "wifi1", 1_000_000_000, delay_s=0.005)
    assert testbed["10.0.0.1", "s1"].link == "server"


def test_every_link_has_two_directions(testbed):
    assert {(head, tail) for tail, head in testbed} == set(testbed)


def test_loss_acts_towards_the_user_and_jitter_is_a_standard_deviation():
    paths = (parallel_paths.Path(rate_mbps=20, delay_ms=10, jitter_ms=3, loss=0.05),)
    found = arcs(parallel_paths.build(parallel_paths.Params(paths=paths)))
    there, back = found["s1", "p1"], found["p1", "s1"]
    assert (there.capacity_bps, there.delay_s, there.loss, back.loss) == (
        20_000_000,
        0.01,
        pytest.approx(0.05),
        0,
    )
    assert there.jitter_s == pytest.approx(0.003 / 3**0.5)


def test_every_address_of_an_interface_has_its_arcs():
    from lab.topologies import shared_bottleneck

    users = ({"id": "mp", "subflows": 2}, {"id": "sp"})
    params = shared_bottleneck.Params.model_validate({"rate_mbps": 20, "users": users})
    assert {head for tail, head in arcs(shared_bottleneck.build(params)) if tail == "p1"} == {
        "10.16.0.1",
        "10.16.0.2",
        "10.16.0.3",
        "s1",
    }


LINK = '"link": "l", "a": "s1", "a_port": "1", "b": "s2", "b_port": "1"'


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ('"rate_scale": Infinity', "rate_scale: Input should be a finite number"),
        ('"rate_scale": 0', "rate_scale: Input should be greater than 0"),
        (f'"trunks": [{{{LINK}, "rate_mbps": NaN}}]', "trunks.0.rate_mbps: Input should be"),
        (f'"trunks": [{{{LINK}, "delay_ms": -1}}]', "trunks.0.delay_ms: Input should be"),
        (f'"trunks": [{{{LINK}, "loss": 1.1}}]', "trunks.0.loss: Input should be less than"),
        (f'"trunks": [{{{LINK}, "los": 1}}]', "trunks.0.los: Extra inputs"),
        ('"aps": {"s1": {"kind": "radio", "capacity_mbps": 1}}', "aps.s1.kind: .*'wifi' or 'lte'"),
        ('"aps": {"s1": {"kind": "lte", "capacity_mbps": -1}}', "aps.s1.capacity_mbps: Input"),
        ('"data": {"ue9": ["up"]}', "data names 'ue9', which is unknown: choose from none"),
        ('"receive_buffer_kb": 0', "receive_buffer_kb: Input should be greater than or equal to 1"),
    ],
)
def test_a_value_out_of_bounds_is_refused_with_its_key(fields, why):
    switches = '"switches": {"s1": {"dpid": 1}, "s2": {"dpid": 2}}'
    read(f"{{{switches}}}")
    with pytest.raises(TopologyRefused, match=f"read topology.json: .*{why}"):
        read(f"{{{switches}, {fields}}}")


def test_the_largest_and_smallest_values_are_taken():
    ap = {"kind": "wifi", "capacity_mbps": 0}
    link = {"link": "l", "a": "s1", "a_port": "1", "b": "s1", "b_port": "2", "loss": 1}
    switches = {"s1": {"dpid": 1}}
    network = Topology(switches=switches, aps={"s1": ap}, trunks=[link], receive_buffer_kb=1)
    assert [arc.loss for arc in network.arcs() if arc.link == "l"] == [1, 0]
    assert network.access_points()[0].capacity_bps == 0
    assert network.data_directions("anybody") == ("down",)
