"""The redundant scheduler, and what holds for every scheduler."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.engines import registry
from lab.engines.sim import tables
from lab.engines.sim.core import mptcp
from lab.engines.sim.core import state as at
from lab.engines.sim.network import Network
from lab.errors import MachineLacks
from lab.run.engine import Options
from lab.scenario import loading as scenario
from lab.scenario.flows import Flow
from lab.scenario.loading import Overrides
from lab.scenario.schema import Multipath
from lab.topologies.topology import Link, Node, Topology

from .networks import FAST, MS, SLOW, two_subflows
from .rows import on_links, places


def test_every_subflow_sends_every_segment_and_the_receiver_keeps_one_copy(paths):
    simulation = paths(
        FAST, FAST, multipath={"scheduler": "redundant"}, traffic={"kind": "file", "volume_mb": 1}
    )
    simulation.run(3)
    (connection,) = simulation.report()["connections"]
    segments = -(-1_000_000 // 1420)
    assert connection["completion_s"] is not None
    assert places(simulation.network)[0].data_rcv_nxt == segments
    first, second = (
        each["segments"] - each["retransmitted_segments"] for each in connection["subflows"]
    )
    assert first >= 0.98 * segments
    assert second > 0.9 * segments
    assert simulation.mbps(simulation.run(1)) == 0


def test_a_copy_hides_the_losses_of_the_other_path(paths):
    """The connection waits neither for losses of the other path nor for its failure."""
    lossy = {**FAST, "loss": 0.05}
    simulation = paths(lossy, SLOW, multipath={"scheduler": "redundant"})
    simulation.run(3)
    assert simulation.mbps(simulation.run(3)) > 0.97 * 12 * 1420 / 1514
    simulation.flip("link.path1.up", False)
    rates = [frame["user"]["ue1"]["mbps"] for frame in simulation.run(3)]
    assert min(rates) > 0.9 * 12 * 1420 / 1514


def test_a_subflow_does_not_send_acknowledged_data():
    connection = two_subflows(scheduler="redundant")
    first, second = connection.rows
    assert [mptcp.take_next_dsn(connection.record, first) for _ in range(3)] == [0, 1, 2]
    assert mptcp.take_next_dsn(connection.record, second) == 0
    connection.record.data_snd_una = 3
    assert mptcp.take_next_dsn(connection.record, second) == 3
    assert mptcp.take_next_dsn(connection.record, first) == 3


def test_the_emulation_accepts_the_kernels_scheduler_by_both_names():
    for name in ("linux", "lowest_rtt"):
        registry.admit(
            "mininet",
            scenario.load("pooling", Overrides(settings=(f"multipath.scheduler={name}",))),
            Options(),
        )
    with pytest.raises(MachineLacks, match="one packet scheduler"):
        registry.admit(
            "mininet",
            scenario.load("pooling", Overrides(settings=("multipath.scheduler=redundant",))),
            Options(),
        )


def parallel(*shapes):
    """A network of two disjoint paths, s1 - p1 - ue1 and s1 - p2 - ue1."""
    nodes = [Node("ue1", "user", "a1"), Node("srv1", "server"), Node("s1", "switch")]
    links = [Link("server", "s1", "srv1")]
    for n, shape in enumerate(shapes, 1):
        nodes.append(Node(f"p{n}", "switch"))
        links += [Link(f"path{n}", "s1", f"p{n}", **shape), Link(f"a{n}", f"p{n}", "ue1")]
    return Topology("parallel", tuple(nodes), tuple(links), multipath=("ue1",))


SHAPES = st.fixed_dictionaries({
    "rate_bps": st.integers(100_000, 20_000_000),
    "delay_ns": st.integers(1, 100).map(lambda ms: ms * MS),
    "loss_ppm": st.sampled_from([0, 1_000, 50_000]), "loss_back_ppm": st.sampled_from([0, 20_000]),
    "queue_packets": st.integers(2, 60), "jitter_ns": st.sampled_from([0, 3_000_000]),
})  # fmt: skip


@settings(max_examples=25)
@given(
    scheduler=st.sampled_from(sorted(tables.SCHEDULERS)),
    shapes=st.tuples(SHAPES, SHAPES),
    buffer_kb=st.sampled_from([32, 4000]),
    milliseconds=st.integers(1, 1500),
    penalisation=st.booleans(),
)
def test_every_segment_is_received_dropped_or_in_flight(
    scheduler, shapes, buffer_kb, milliseconds, penalisation
):
    penalisation = penalisation and scheduler in ("lowest_rtt", "round_robin")
    multipath = Multipath(
        scheduler=scheduler, receive_buffer_kb=buffer_kb, penalisation=penalisation
    )
    flow = Flow("ue1-1", "ue1", "down", "cubic", None, None)
    network = Network(parallel(*shapes), multipath, [flow], seed=1)
    network.start(flow, flow.cc)
    network.run(milliseconds * MS)
    c, packets = places(network)[0], on_links(network)
    for s in (each.record for each in network.subflows()):
        data = [p for p in packets if p.subflow == s and not p.kind]
        assert s.segments_sent == s.segments_received + s.segments_dropped + len(data)
        assert s.snd_una <= s.rcv_nxt <= s.snd_nxt <= s.write_seq
        assert scheduler == "linux" or s.snd_nxt == s.write_seq
        ring = [at.segment(s, n).state for n in range(s.ring_size)]
        assert (s.pipe, s.lost) == tuple(
            sum(each == state for each in ring) for state in (at.IN_FLIGHT, at.LOST)
        )
    assert c.data_snd_una <= c.data_rcv_nxt <= c.data_snd_nxt <= c.data_snd_una + c.receive_window
    assert c.reorder_buffered_max <= c.receive_window
