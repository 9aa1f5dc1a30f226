"""With `moves: gains`, connections leave the paths of the hash only where that helps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hosts_that_confirm import Confirming

from controller.command import SetBackup
from controller.graph import build_graph, simple_paths, switches_on
from controller.observation import Subflow
from controller.strategies.expected_throughput import ExpectedThroughput
from controller.strategies.expected_throughput.moves import UNKNOWN_BPS, arcs_to_avoid
from controller.strategies.forms import named_forms
from lab.topologies import collision, pooling

FORM = named_forms(ExpectedThroughput)["expected_throughput/improved"]
TOPOLOGY = collision.build(collision.Params(among="connections"))


class Sending(Confirming):
    """Subflows send what they may, and 4 Mb/s without a limit; `sent_bps` has other rates by user.
    Links in `also` carry packets that are of no connection."""

    def __init__(self, topology=TOPOLOGY):
        super().__init__(topology, FORM(FORM.Params()))
        self.sent_bps: dict[str, int] = {}
        self.also: dict[str, int] = {}

    def observation(self):
        for key, each in self.subflows.items():
            most = 4_000_000 if each.expected_bps is None else each.expected_bps
            self.subflows[key] = replace(each, rate_bps=self.sent_bps.get(each.user, most))
        found = super().observation()
        arcs = [replace(each, used_bps=self.also.get(each.link, 0)) for each in found.arcs]
        return replace(found, arcs=tuple(arcs))

    def steps(self, seconds):
        for _ in range(seconds):
            self.now_s += 1
            self.step()

    def on(self, *cores):
        """Put the subflows on paths over these core switches, as if their hash had chosen them."""
        graph = build_graph(self.arcs)
        for (key, each), core in zip(list(self.subflows.items()), cores, strict=True):
            ends = (graph.vertex[end] for end in each.ends)
            found = (switches_on(graph, path) for path in simple_paths(graph, *ends, extra_hops=0))
            path = next(path for path in found if core in path)
            self.subflows[key] = replace(each, path=path)

    def cores(self, *users):
        return [path[2] for user in users for path in self.paths(user)]


UE1, UE2 = TOPOLOGY.users


def opened(*cores):
    """Both users with two subflows each; their paths are over these core switches."""
    network = Sending()
    network.open(UE1, UE2)
    network.on(*cores)
    return network


def test_connections_that_collide_move_apart_once_they_have_data_all_the_time():
    network = opened("c1", "c3", "c1", "c3")
    network.steps(2)
    assert network.cores(UE1, UE2) == ["c1", "c3", "c1", "c3"]
    network.steps(3)
    assert sorted(network.cores(UE1, UE2)) == ["c1", "c2", "c3", "c4"]


def test_one_connection_whose_subflows_collide_moves_them_apart():
    network = Sending(collision.build(collision.Params(among="subflows")))
    network.open("ue1")
    first = network.paths("ue1")[0]
    network.subflows = {key: replace(each, path=first) for key, each in network.subflows.items()}
    network.steps(5)
    assert len(set(network.paths("ue1"))) == 2


def test_nobody_moves_where_the_hash_has_kept_all_apart():
    network = opened("c2", "c3", "c1", "c4")
    network.steps(8)
    assert network.cores(UE1, UE2) == ["c2", "c3", "c1", "c4"]


def test_a_link_with_packets_of_no_connection_is_left_alone():
    network = opened("c1", "c3", "c1", "c3")
    calls = [arc.link for arc in network.arcs if "c2" in (arc.tail, arc.head)]
    network.also = dict.fromkeys(calls, 100_000)
    network.steps(8)
    assert sorted(network.cores(UE1, UE2)) == ["c1", "c1", "c3", "c4"]


def test_a_user_with_data_at_times_does_not_move():
    network = opened("c1", "c3", "c1", "c3")
    for second in range(12):
        network.sent_bps = {UE2: 0 if second % 4 == 3 else 4_000_000}
        network.steps(1)
    assert network.cores(UE2) == ["c1", "c3"]


@pytest.mark.parametrize(("sent_bps", "moves"), [(1_000_000, False), (3_000_000, True)])
def test_who_sends_less_than_half_of_its_fair_rate_does_not_move(sent_bps, moves):
    """Two subflows share each link of 10 Mb/s. Who sends less than 2.5 Mb/s waits for something
    else than the network, such as answers, and would wait longer."""
    network = opened("c1", "c3", "c1", "c3")
    network.sent_bps = {UE1: sent_bps, UE2: sent_bps}
    network.steps(8)
    assert (len(set(network.cores(UE1, UE2))) == 4) is moves


def test_nobody_enters_a_link_of_a_user_with_data_at_times():
    network = opened("c1", "c3", "c2", "c4")
    graph, seen = build_graph(network.arcs), network.observation()
    avoided = arcs_to_avoid(graph, seen, {f"{UE2}-1"})
    assert {graph.names[graph.head[arc]] for arc in avoided} >= {"c2", "c4"}
    assert not {graph.names[graph.head[arc]] for arc in avoided} & {"c1", "c3"}


@pytest.mark.parametrize(("used_bps", "found"), [(UNKNOWN_BPS, False), (2 * UNKNOWN_BPS, True)])
def test_packets_of_no_connection_are_seen_by_port_counters(used_bps, found):
    network = Sending()
    network.also = {network.arcs[0].link: used_bps}
    graph = build_graph(network.arcs)
    seen = arcs_to_avoid(graph, network.observation(), ())
    assert bool(seen) is found


def test_a_subflow_whose_link_fails_stays_as_it_is():
    """As a backup, it would not be used in the first second after the link is back."""
    network = Sending(pooling.build(pooling.Params()))
    network.open("ue1")
    network.steps(6)
    before = dict(network.subflows)
    network.down("link2")
    cut_off: list[Subflow] = []
    for _ in range(3):
        network.steps(1)
        assert not any(isinstance(each.command, SetBackup) for each in network.decided)
        cut_off += network.decided
    assert not cut_off
    network.down()
    network.steps(3)
    assert [each.backup for each in network.subflows.values()] == [False, False]
    assert network.paths("ue1") == [each.path for each in before.values()]
