"""Loss detection, recovery and the RTO case by case (RFC 2018, 5681, 6298, 6675 and 8985)."""

from __future__ import annotations

import pytest

from lab.engines.sim.core import acknowledgements, links
from lab.engines.sim.core import layout as at

from .ends import Ends
from .networks import BULK, MS, chain, started
from .rows import places


@pytest.fixture
def ends():
    return Ends()


def test_three_later_arrivals_are_a_loss_and_lost_segments_go_before_new_ones(ends):
    """RFC 6675: IsLost after three; pipe = sent - arrived - lost; NextSeg (1), then (2); one cut of
    the window."""
    ends.write(14)
    assert ends.state() == (10, 0, at.OPEN)
    ends.arrive_and_acknowledge(0, 1)
    ends.send()  # segments 10 and 11
    ends.arrive_and_acknowledge(3, 4)
    ends.send()  # segments 12 and 13
    assert ends.state() == (10, 0, at.OPEN)
    ends.arrive_and_acknowledge(5)
    assert ends.w.window[ends.f + at.CWND] == pytest.approx(5, abs=0.3)
    assert ends.state() == (8, 1, at.RECOVERY)  # 14 sent; 0, 1, 3, 4 and 5 have arrived, 2 is lost
    assert ends.send() == []
    ends.arrive_and_acknowledge(6, 7, 8)
    ends.write(3)
    assert ends.state() == (5, 1, at.RECOVERY)
    ends.arrive_and_acknowledge(9)
    assert ends.send() == [2]
    ends.arrive_and_acknowledge(10)
    assert ends.send() == [14]
    assert ends.w.row[ends.f + at.SEGMENTS_RETRANSMITTED] == 1


def test_recovery_ends_at_recover_and_reduces_the_window_once(ends):
    ends.write(10)
    ends.arrive_and_acknowledge(1, 2, 3)
    cwnd = ends.w.window[ends.f + at.CWND]
    ends.arrive_and_acknowledge(5, 6)  # segment 4 is lost too
    assert ends.state()[1:] == (2, at.RECOVERY)
    assert ends.w.window[ends.f + at.CWND] == cwnd
    ends.arrive_and_acknowledge(7, 8, 9)
    assert ends.send() == [0, 4]
    ends.arrive_and_acknowledge(0)
    assert ends.state() == (1, 0, at.RECOVERY)
    ends.arrive_and_acknowledge(4)
    assert ends.state() == (0, 0, at.OPEN)


def test_a_lost_acknowledgement_is_made_up_for_by_the_next_one(ends):
    """RFC 2018: the acknowledgements of 3 and 4 are lost, but only segment 2 is retransmitted."""
    ends.write(10)
    ends.arrive_and_acknowledge(0, 1)
    ends.arrive(3, 4)
    ends.arrive_and_acknowledge(5, 6, 7)
    assert ends.w.row[ends.f + at.SEGMENTS_LOST] == 1
    assert ends.state() == (2, 1, at.RECOVERY)  # segments 8 and 9
    assert ends.send() == [2]


def test_an_acknowledgement_does_not_cover_what_arrived_after_it_was_sent(ends):
    ends.write(10)
    ends.arrive_and_acknowledge(1, 2)
    ends.arrive(3)
    p, w = links.new_packet(ends.w.row, ends.f, at.ACK, 0, 66), ends.w
    w.row[p + at.SEQ], w.row[p + at.TRANSMISSION], w.row[p + at.SEGMENTS_SO_FAR] = (
        0,
        3,
        w.row[ends.f + at.SEGMENTS_RECEIVED],
    )
    ends.arrive(0)  # after this acknowledgement was sent
    acknowledgements.receive_ack(w, ends.f, p, ends.now_ns)
    assert ends.state() == (6, 1, at.RECOVERY)


def test_a_lost_retransmission_is_detected_without_the_timer(ends):
    """RFC 8985, section 1; with RFC 6675 alone it would wait for the RTO."""
    ends.write(12)
    ends.arrive_and_acknowledge(1, 2, 3, 4, 5, 6)
    assert ends.send() == [0, 10]
    ends.arrive_and_acknowledge(7, 8, 9)
    assert ends.w.row[ends.f + at.LOST] == 0
    ends.arrive_and_acknowledge(10)
    assert ends.w.row[ends.f + at.LOST] == 1
    assert ends.send() == [0, 11]


def test_reordering_causes_one_retransmission_and_nothing_is_counted_twice(ends):
    """Three others overtake segment 2: it is retransmitted, and both copies arrive."""
    ends.write(10)
    ends.arrive_and_acknowledge(0, 1, 3, 4, 5, 6, 7)
    assert ends.send() == [2]
    ends.arrive_as(2, 2)
    ends.acknowledge()
    assert ends.state() == (
        2,
        0,
        at.RECOVERY,
    )  # segments 8 and 9; the copy of 2 is no longer in flight
    assert ends.w.row[ends.f + at.RCV_NXT] == 8
    ends.arrive_and_acknowledge(8, 9)
    ends.arrive_as(2, 10)
    ends.acknowledge()
    assert ends.state() == (0, 0, at.OPEN)
    assert ends.w.row[ends.f + at.RCV_NXT] == ends.w.row[ends.f + at.SND_UNA] == 10


def test_fewer_later_arrivals_are_a_loss_if_no_more_segments_are_in_flight(ends):
    """RFC 5827, early retransmit."""
    ends.write(3)
    ends.arrive_and_acknowledge(1)
    assert ends.state() == (2, 0, at.OPEN)
    ends.arrive_and_acknowledge(2)
    assert ends.state() == (0, 1, at.RECOVERY)


def test_after_a_timeout_everything_is_retransmitted_in_slow_start_from_one_segment(ends):
    ends.write(10)
    acknowledgements.on_timeout(ends.w, ends.f, ends.now_ns)
    assert ends.state() == (0, 10, at.TIMED_OUT)
    assert (ends.w.window[ends.f + at.CWND], ends.w.window[ends.f + at.SSTHRESH]) == (1, 5)
    assert ends.send() == [0]
    ends.arrive_and_acknowledge(0)
    assert ends.w.window[ends.f + at.CWND] == 2
    assert ends.send() == [1, 2]


def test_a_timeout_is_undone_when_the_segments_were_only_late(ends):
    """RFC 4015: 0 arrives in its first transmission, so nothing was lost."""
    ends.write(10)
    acknowledgements.on_timeout(ends.w, ends.f, ends.now_ns)
    assert ends.send() == [0]
    ends.arrive_as(0, 0)
    ends.acknowledge()
    assert ends.state() == (9, 0, at.OPEN)
    assert ends.w.window[ends.f + at.CWND] == pytest.approx(10, abs=0.2)
    assert ends.w.window[ends.f + at.SSTHRESH] == 5
    assert [ends.w.row[ends.f + each] for each in (at.BACKOFF, at.SEGMENTS_LOST)] == [0, 1]
    ends.arrive_and_acknowledge(2, 3, 4, 5)
    assert ends.state()[1:] == (1, at.RECOVERY)  # segment 1 is lost
    assert ends.send() == [1]


def test_the_arrival_of_the_retransmission_undoes_nothing(ends):
    ends.write(10)
    acknowledgements.on_timeout(ends.w, ends.f, ends.now_ns)
    acknowledgements.on_timeout(ends.w, ends.f, ends.now_ns)
    assert ends.send() == [0]
    ends.arrive_and_acknowledge(0)
    assert ends.state() == (0, 9, at.TIMED_OUT)
    ends.arrive_as(2, 2)  # F-RTO, RFC 5682: it was transmitted once, before the timeout
    ends.acknowledge()
    assert ends.state() == (8, 0, at.OPEN)


def test_a_timeout_in_recovery_reduces_ssthresh_no_further_and_is_not_undone(ends):
    ends.write(10)
    ends.arrive_and_acknowledge(1, 2, 3)
    assert ends.w.window[ends.f + at.SSTHRESH] == pytest.approx(5, abs=0.3)
    before = ends.w.window[ends.f + at.SSTHRESH]
    ends.w.row[ends.f + at.SENT_BEFORE_TIMEOUT] = 100  # from an earlier timeout
    acknowledgements.on_timeout(ends.w, ends.f, ends.now_ns)
    assert ends.w.window[ends.f + at.SSTHRESH] == before
    ends.arrive_and_acknowledge(4)
    assert ends.state()[2] == at.TIMED_OUT


def test_lost_acknowledgements_cause_no_retransmissions():
    """A tenth of the acknowledgements are lost; only what the queue drops is retransmitted."""
    network = started(
        chain(2, rate_bps=10_000_000, delay_ns=10 * MS, queue_packets=60, loss_back_ppm=100_000),
        BULK,
    )
    network.run(4_000 * MS)
    row, (_, f) = network.w.row, places(network)
    assert row[f + at.SEGMENTS_DROPPED] > 0
    assert row[f + at.SEGMENTS_LOST] <= row[f + at.SEGMENTS_DROPPED]
