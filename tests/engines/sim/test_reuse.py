"""The records of connections that are over are used again, and no number of a run changes."""

import random
from dataclasses import replace

import pytest
from engines.sim.rows import numbers, on_links, places

from lab.engines.sim import compiled
from lab.engines.sim.core import state as at
from lab.engines.sim.memory import Rows
from lab.engines.sim.network import Network
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.topologies.topology import Link, Node, Topology

SECOND = 1_000_000_000
SHAPE = {"rate_bps": 10_000_000, "delay_ns": 20_000_000, "queue_packets": 30, "loss_ppm": 20_000}
NODES = (Node("ue1", "user", "l2"), Node("s1", "switch"), Node("srv1", "server"))
ONE_LINK = Topology("one", NODES, (Link("l1", "s1", "srv1"), Link("l2", "s1", "ue1", **SHAPE)))
PATHS = ({"rate_mbps": 8, "delay_ms": 10, "loss": 0.02}, {"rate_mbps": 4, "delay_ms": 40})


def files(count, seed=1):
    """Short files, some of them stopped before their end."""
    chance = random.Random(seed)
    for n in range(count):
        start_s = round(chance.uniform(0, 6), 3)
        file = {"user": "ue1", "kind": "file", "volume_mb": round(chance.uniform(0.001, 0.1), 4)}
        stop = {"stop_s": start_s + 0.2} if n % 5 == 0 else {}
        yield file | stop | {"start_s": start_s, "direction": "down" if n % 3 else "up"}


def network_of(*sizes):
    flows = [Flow(f"ue1-{n}", "ue1", "down", "reno", None, size) for n, size in enumerate(sizes, 1)]
    return Network(ONE_LINK, Multipath(), flows, seed=3), flows


@pytest.mark.parametrize("scheduler", ["lowest_rtt", "linux", "redundant"])
def test_forgetting_changes_no_number(paths, monkeypatch, scheduler):
    def run():
        simulation = paths(
            *PATHS,
            traffic=list(files(30)),
            multipath={"scheduler": scheduler, "cc": "lia"},
            events=[
                {"at_s": 3.2, "target": "link.path1.up", "value": False},
                {"at_s": 4.1, "target": "link.path1.up", "value": True},
            ],
        )
        frames = simulation.run(3)
        simulation.flip("link.path1.up", False)
        frames += simulation.run(1)
        simulation.flip("link.path1.up", True)
        frames += simulation.run(8)
        forgotten = sum(each.is_forgotten for each in simulation.network.subflows())
        return forgotten, (frames, simulation.notes.events, simulation.report())

    forgotten, found = run()
    assert forgotten >= 50
    monkeypatch.setattr(Network, "forget_ended", lambda _: [])
    assert run() == (0, found)


def test_a_forgotten_connection_keeps_its_numbers():
    network, (flow,) = network_of(50_000)
    network.start(flow, "reno")
    network.run(10 * SECOND)
    c, s = places(network)
    before = numbers(c, "Connection"), numbers(s, "Subflow")
    assert c.done_ns > 0
    assert network.forget_ended() == ["ue1-1"]
    c, s = places(network)
    assert (numbers(c, "Connection"), numbers(s, "Subflow")) == before
    assert network.forget_ended() == []


@pytest.mark.parametrize("ends", ["done", "stopped", "stopped datagrams"])
def test_a_connection_is_forgotten_when_no_packet_and_no_event_names_it(ends):
    """That is after its end, in steps of a ms, and then nothing of it is left. UDP has no timer, so
    only packets name it."""
    network, (flow,) = network_of(200_000 if ends == "done" else None)
    if ends == "stopped datagrams":
        flow = replace(flow, protocol="udp", rate_bps=9_000_000)
    network.start(flow, "reno")
    network.run(SECOND // 5)
    if ends != "done":
        network.stop(flow)
    waited = 0
    while not network.forget_ended():
        c, _ = places(network)
        waited += c.done_ns > 0 or c.state == at.CLOSED
        network.run(network.now_ns + SECOND // 1000)
    assert waited > 15
    assert on_links(network) == []
    records = [network.w.heap[n].event.connection for n in range(network.w.heap_count)]
    assert all(each != c for each in records)


def test_a_running_connection_is_not_forgotten():
    network, flows = network_of(20_000, None)
    for flow in flows:
        network.start(flow, "reno")
    forgotten = []
    for _ in range(100):
        network.run(network.now_ns + SECOND // 10)
        forgotten += network.forget_ended()
    assert forgotten == ["ue1-1"]
    assert places(network, "ue1-2")[1].segments_received > 2000


def test_later_connections_use_the_memory_of_earlier_ones(monkeypatch):
    """40 files, one after another, need no more memory than four."""
    blocks = {}
    monkeypatch.setattr(compiled, "records", Rows)
    for count in (4, 40):
        network, flows = network_of(*[30_000] * count)
        for flow in flows:
            network.start(flow, "reno")
            while not network.forget_ended():
                network.run(network.now_ns + SECOND // 10)
        blocks[count] = len(network.tables.make._blocks)
    assert blocks[40] == blocks[4]


def test_memory_that_was_given_back_is_empty():
    make, group = Rows(), []
    with make.group(group):
        first = make.one(at.Subflow, snd_nxt=5, cwnd=2.5)
        ring = make.ints(64)
        ring[3] = 1
    other = make.one(at.Subflow, snd_nxt=9)
    kept = make.copy(first)
    kept_again = (kept.snd_nxt, kept.cwnd)
    addresses = {first.address, ring.address}
    make.give_back(group)
    again, ring = make.one(at.Subflow), make.ints(64)
    assert {again.address, ring.address} == addresses
    assert (again.snd_nxt, again.cwnd, ring[3], other.snd_nxt) == (0, 0.0, 0, 9)
    assert (kept.snd_nxt, kept.cwnd) == kept_again == (5, 2.5)
    with pytest.raises(AttributeError):
        _ = kept.law


def test_commands_for_a_forgotten_connection_do_nothing():
    network, (flow,) = network_of(20_000)
    network.start(flow, "reno")
    network.run(10 * SECOND)
    network.forget_ended()
    (subflow,) = network.tables.subflows["ue1-1"]
    scheduled = network.w.events_scheduled
    network.set_demand(flow, 1_000_000)
    network.expect(subflow, 1_000_000)
    network.set_backup(subflow, True)
    network.route(subflow, subflow.path)
    network.stop(flow)
    assert network.w.events_scheduled == scheduled
