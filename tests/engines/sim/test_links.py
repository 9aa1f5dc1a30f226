"""Links and the packet table, on results that can be computed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.engines.sim import network as world
from lab.scenario.flows import Flow
from lab.scenario.targets import SetLinkUp

from .networks import SECOND, chain, started
from .rows import free, on_links, places


def test_ten_links_of_10_ms_make_a_200_ms_round_trip():
    network = started(
        chain(10, delay_ns=10_000_000), Flow("ue1-1", "ue1", "down", "reno", None, 100 * 1448)
    )
    network.run(3 * SECOND)
    s = next(network.subflows()).record
    assert 200e6 <= s.srtt_ns < 220e6


def test_a_20_mbps_link_carries_1448_of_1514_bytes():
    network = started(chain(2, rate_bps=20_000_000, delay_ns=5_000_000))
    network.run(2 * SECOND)
    c, _ = places(network)
    before = c.data_rcv_nxt
    network.run(7 * SECOND)
    rate_bps = (c.data_rcv_nxt - before) * 1448 * 8 / 5
    assert rate_bps == pytest.approx(20e6 * 1448 / 1514, rel=0.002)


def test_a_queue_holds_as_many_packets_as_its_size():
    network = started(chain(2, rate_bps=5_000_000, delay_ns=50_000_000, queue_packets=30))
    deepest = 0
    for step in range(1, 400):
        network.run(step * 20_000_000)
        deepest = max(deepest, *(network.queued(place) for place in network.tables.links.values()))
    assert 25 <= deepest <= 30
    assert sum(place.drops for place in network.tables.links.values()) > 0


def test_jitter_does_not_reorder_packets():
    network = started(chain(2, rate_bps=5_000_000, delay_ns=20_000_000, jitter_ns=15_000_000))
    network.run(3 * SECOND)
    _, s = places(network)
    assert s.segments_received > 500
    assert s.segments_out_of_order <= s.segments_dropped * 60  # only what follows a drop


@settings(max_examples=25)
@given(
    rate_bps=st.integers(200_000, 20_000_000),
    loss_ppm=st.sampled_from([0, 1_000, 50_000, 500_000]),
    loss_back_ppm=st.sampled_from([0, 20_000]),
    queue_packets=st.integers(1, 60),
    jitter_ns=st.sampled_from([0, 3_000_000]),
    milliseconds=st.integers(1, 1500),
)
def test_every_segment_is_received_dropped_or_in_flight(
    rate_bps, loss_ppm, loss_back_ppm, queue_packets, jitter_ns, milliseconds
):
    shape = {
        "delay_ns": 4_000_000,
        "jitter_ns": jitter_ns,
        "loss_ppm": loss_ppm,
        "loss_back_ppm": loss_back_ppm,
    }
    network = started(chain(2, rate_bps=rate_bps, queue_packets=queue_packets, **shape))
    network.run(milliseconds * 1_000_000)
    w, (c, s) = network.w, places(network)
    assert len(on_links(network)) + len(free(network)) == w.heap_size
    data = [place for place in on_links(network) if not place.kind]
    assert s.segments_sent == s.segments_received + s.segments_dropped + len(data)
    for place in network.tables.links.values():
        in_packets, out, lost = (
            getattr(place, each) for each in ("in_packets", "out_packets", "drops")
        )
        assert in_packets == out + lost
        assert place.in_bytes == place.out_bytes + place.dropped_bytes
    assert 0 <= s.pipe <= len(data) + s.segments_dropped + s.segments_received
    assert c.data_rcv_nxt == s.rcv_nxt


def test_results_do_not_depend_on_the_space_for_packets(monkeypatch):
    results = []
    for packets in (world.PACKETS, 100_000):
        monkeypatch.setattr(world, "PACKETS", packets)
        network = started(chain(2, rate_bps=50_000_000, delay_ns=20_000_000, queue_packets=3_000))
        network.run(4 * SECOND)
        network.set_link(SetLinkUp("l1", False))
        network.set_link(SetLinkUp("l1", True))
        network.run(6 * SECOND)
        c, s = places(network)
        results.append((c.data_rcv_nxt, s.segments_sent, network.w.events_scheduled))
    assert results[0] == results[1]
    assert results[0][0] > 10_000


def test_the_packet_table_grows_when_packets_run_out():
    network = started(chain(2, rate_bps=1_000_000_000, delay_ns=50_000_000, queue_packets=9_000))
    before = network.w.heap_size
    network.run(3 * SECOND)
    assert network.w.heap_size > before
    taken = [*free(network), *on_links(network)]
    assert len(set(taken)) == len(taken) == network.w.heap_size
