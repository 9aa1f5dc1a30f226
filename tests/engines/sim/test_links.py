"""Links and the packet table, on results that can be computed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.engines.sim import network as world
from lab.engines.sim.core import layout as at
from lab.scenario.flows import Flow
from lab.scenario.targets import SetLinkUp

from .networks import SECOND, chain, started
from .rows import free, on_links, places


def test_ten_links_of_10_ms_make_a_200_ms_round_trip():
    network = started(
        chain(10, delay_ns=10_000_000), Flow("ue1-1", "ue1", "down", "reno", None, 100 * 1448)
    )
    network.run(3 * SECOND)
    f = next(network.subflows()).place
    assert 200e6 <= network.w.row[f + at.SRTT_NS] < 220e6


def test_a_20_mbps_link_carries_1448_of_1514_bytes():
    network = started(chain(2, rate_bps=20_000_000, delay_ns=5_000_000))
    network.run(2 * SECOND)
    c, _ = places(network)
    before = int(network.w.row[c + at.DATA_RCV_NXT])
    network.run(7 * SECOND)
    rate_bps = (int(network.w.row[c + at.DATA_RCV_NXT]) - before) * 1448 * 8 / 5
    assert rate_bps == pytest.approx(20e6 * 1448 / 1514, rel=0.002)


def test_a_queue_holds_as_many_packets_as_its_size():
    network = started(chain(2, rate_bps=5_000_000, delay_ns=50_000_000, queue_packets=30))
    deepest = 0
    for step in range(1, 400):
        network.run(step * 20_000_000)
        deepest = max(deepest, *(network.queued(place) for place in network.tables.links.values()))
    assert 25 <= deepest <= 30
    assert sum(network.hop(place, at.DROPS) for place in network.tables.links.values()) > 0


def test_jitter_does_not_reorder_packets():
    network = started(chain(2, rate_bps=5_000_000, delay_ns=20_000_000, jitter_ns=15_000_000))
    network.run(3 * SECOND)
    w, (_, f) = network.w, places(network)
    assert w.row[f + at.SEGMENTS_RECEIVED] > 500
    assert (
        w.row[f + at.SEGMENTS_OUT_OF_ORDER] <= w.row[f + at.SEGMENTS_DROPPED] * 60
    )  # only what follows a drop


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
    w, (c, f) = network.w, places(network)
    assert len(on_links(network)) + len(free(network)) == w.row[at.HEAP_SIZE]
    data = [place for place in on_links(network) if not w.row[place + at.PACKET_TYPE]]
    assert w.row[f + at.SEGMENTS_SENT] == w.row[f + at.SEGMENTS_RECEIVED] + w.row[
        f + at.SEGMENTS_DROPPED
    ] + len(data)
    for place in network.tables.links.values():
        in_packets, out, lost = (
            network.hop(place, each) for each in (at.IN_PACKETS, at.OUT_PACKETS, at.DROPS)
        )
        assert in_packets == out + lost
        assert network.hop(place, at.IN_BYTES) == network.hop(place, at.OUT_BYTES) + network.hop(
            place, at.DROPPED_BYTES
        )
    assert (
        0
        <= w.row[f + at.PIPE]
        <= len(data) + w.row[f + at.SEGMENTS_DROPPED] + w.row[f + at.SEGMENTS_RECEIVED]
    )
    assert w.row[c + at.DATA_RCV_NXT] == w.row[f + at.RCV_NXT]


def test_growing_the_table_does_not_change_results(monkeypatch):
    """Without spare rows the table is copied for every new route."""
    results = []
    for spare in (world.SPARE, 0):
        monkeypatch.setattr(world, "SPARE", spare)
        network = started(chain(2, rate_bps=50_000_000, delay_ns=20_000_000, queue_packets=3_000))
        size = len(network.w.row)
        network.run(4 * SECOND)
        network.set_link(SetLinkUp("l1", False))
        network.set_link(SetLinkUp("l1", True))
        network.run(6 * SECOND)
        c, f = places(network)
        results.append(
            [
                int(network.w.row[each])
                for each in (c + at.DATA_RCV_NXT, f + at.SEGMENTS_SENT, at.EVENTS_SCHEDULED)
            ]
        )
    assert results[0] == results[1]
    assert results[0][0] > 10_000
    assert len(network.w.row) > size


def test_the_packet_table_grows_when_packets_run_out():
    network = started(chain(2, rate_bps=1_000_000_000, delay_ns=50_000_000, queue_packets=9_000))
    before = int(network.w.row[at.HEAP_SIZE])
    network.run(3 * SECOND)
    assert network.w.row[at.HEAP_SIZE] > before
    taken = [*free(network), *on_links(network)]
    assert len(set(taken)) == len(taken) == network.w.row[at.HEAP_SIZE]
