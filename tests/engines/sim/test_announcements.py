"""Announced addresses of a server: packets that take their time and are lost."""

from __future__ import annotations

from itertools import pairwise

import pytest

from lab.engines.sim.core import state as at

from .losses import lose
from .networks import MS, SECOND
from .test_subflows import both_sides, end

RTT_NS = 2 * 2 * 5 * MS  # over one switch
NAMES = {
    at.SYN: "SYN",
    at.THIRD_ACK: "third ACK",
    at.REQUEST: "request",
    at.ADD_ADDR: "ADD_ADDR",
    at.ADD_ADDR_ECHO: "echo",
}


@pytest.fixture
def watched(monkeypatch, interpreted, simulation_of):
    """Let a connection open for some seconds. Return its simulation, and when its packets were
    sent [s]: the n-th of a kind, with n from 1. Those in `losses` are lost."""

    def run(scenario, losses=(), seconds=1.0, off=()):
        sent, simulation = {}, simulation_of(scenario)

        def is_lost(p):
            if p.kind not in NAMES or p.step not in (p.subflow.data_route, p.subflow.ack_route):
                return False  # counted at its first hop
            n = sum(kind == NAMES[p.kind] for kind, _ in sent) + 1
            sent[NAMES[p.kind], n] = simulation.network.w.now_ns / SECOND
            return (NAMES[p.kind], n) in losses

        lose(monkeypatch, is_lost)
        for interface in off:
            simulation.flip(f"iface.{interface}.up", False)
        simulation.run(seconds)
        return simulation, sent

    return run


def signalling(*numbers, direction="down", own=(), **keys):
    ends = [end("srv1", n, "signal") for n in numbers]
    traffic = [{"user": "ue1", "direction": direction, "kind": "rate", "rate_mbps": 0.1}]
    return both_sides([*ends, *own], interfaces=max(numbers), traffic=traffic, **keys)


def joined(simulation):
    """The numbers of the server's interfaces to which subflows are open."""
    found = simulation.network.tables.subflows["ue1-1"]
    return sorted(
        int(each.ends.server.name[-1]) for each in found if each.record.state == at.ESTABLISHED
    )


@pytest.mark.parametrize(("direction", "third_ack"), [("down", "request"), ("up", "third ACK")])
def test_addresses_are_announced_one_per_round_trip(watched, direction, third_ack):
    simulation, sent = watched(signalling(2, 3, 4, direction=direction))
    times = [sent[third_ack, 1] + RTT_NS / 2 / SECOND]
    times += [sent["ADD_ADDR", n] for n in (1, 2, 3)]
    assert [b - a for a, b in pairwise(times)] == pytest.approx(
        [0, RTT_NS / SECOND, RTT_NS / SECOND], abs=0.002
    )
    assert joined(simulation) == [1, 1, 1, 1, 2, 3, 4]


def test_a_subflow_begins_when_its_address_is_heard(watched):
    _, sent = watched(signalling(3, own=[end("ue1", 2), end("ue1", 3)]))
    assert sent["SYN", 2] == pytest.approx(sent["ADD_ADDR", 1] + RTT_NS / 2 / SECOND, abs=0.001)


def test_a_lost_announcement_is_repeated_after_two_minutes(watched):
    simulation, sent = watched(signalling(2, 3), [("ADD_ADDR", 1)])
    assert joined(simulation) == [1, 1, 1]
    simulation.run(120, 20)
    assert sent["ADD_ADDR", 2] - sent["ADD_ADDR", 1] == pytest.approx(120, abs=0.001)
    assert joined(simulation) == [1, 1, 1, 2, 3]


def test_after_three_repetitions_the_next_address_follows(watched):
    lost = [("ADD_ADDR", n) for n in (1, 2, 3, 4)]
    simulation, sent = watched(signalling(2, 3), lost, 481)
    assert sent["ADD_ADDR", 5] - sent["ADD_ADDR", 1] == pytest.approx(480, abs=0.001)
    assert joined(simulation) == [1, 1, 1, 3]


def test_an_address_whose_echo_is_lost_is_announced_twice_and_opened_once(watched):
    simulation, sent = watched(signalling(2), [("echo", 1)], 121)
    assert [n for kind, n in sent if kind == "ADD_ADDR"] == [1, 2]
    assert joined(simulation) == [1, 1, 2]


def test_addresses_beyond_the_limit_are_announced_too(watched):
    scenario = signalling(2, 3, limits={"add_addr_accepted": 1})
    simulation, sent = watched(scenario)
    assert ("ADD_ADDR", 2) in sent
    assert joined(simulation) == [1, 1, 1, 2]


def test_an_address_that_is_off_is_announced_when_it_is_back(watched):
    simulation, sent = watched(signalling(2), off=["srv1.eth2"])
    assert joined(simulation) == [1, 1]
    assert ("ADD_ADDR", 1) not in sent
    simulation.flip("iface.srv1.eth2.up", True)
    simulation.run(1)
    assert ("ADD_ADDR", 1) in sent
    assert joined(simulation) == [1, 1, 2]


def test_a_connection_without_announced_addresses_sends_none(watched):
    _, sent = watched(both_sides())
    assert not [kind for kind, _ in sent if kind in ("ADD_ADDR", "echo")]
