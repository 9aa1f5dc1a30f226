"""Loss detection, recovery and the RTO case by case (RFC 2018, 5681, 6298, 6675 and 8985)."""

from __future__ import annotations

import pytest

from lab.engines.sim.core import acknowledgements, links, tail_loss_probe, window_reduction
from lab.engines.sim.core import state as at

from .ends import Ends
from .networks import BULK, MS, chain, started
from .rows import places


@pytest.fixture
def ends():
    return Ends()


def test_three_later_arrivals_are_a_loss_and_lost_segments_go_before_new_ones(ends):
    """RFC 6675: IsLost after three; pipe = sent - arrived - lost; NextSeg (1), then (2). RFC 9937:
    two arrive for one that is sent, as the window is halved."""
    ends.write(14)
    assert ends.state() == (10, 0, at.OPEN)
    ends.arrive_and_acknowledge(0, 1)
    ends.send()  # segments 10 and 11
    ends.arrive_and_acknowledge(3, 4)
    ends.send()  # segments 12 and 13
    assert ends.state() == (10, 0, at.OPEN)
    ends.arrive_and_acknowledge(5)
    assert ends.s.ssthresh == pytest.approx(5, abs=0.3)
    assert ends.state() == (8, 1, at.RECOVERY)  # 14 sent; 0, 1, 3, 4 and 5 have arrived, 2 is lost
    assert ends.send() == [2]
    ends.arrive_and_acknowledge(6)
    ends.write(3)
    sent = []
    for seq in (7, 8, 9, 10, 11, 12, 13):
        ends.arrive_and_acknowledge(seq)
        sent.append(ends.send())
    assert sent == [[14], [], [15], [], [], [16], []]
    assert ends.s.segments_retransmitted == 1


def test_lost_segments_in_a_row_are_repeated_as_in_slow_start(ends):
    """RFC 9937, PRR-SSRB: the tail of a window of 40 was lost, and a probe shows it. The window is
    halved to 20, but few segments arrive, so few may leave."""
    ends.set_window(40.0)
    ends.write(40)
    ends.arrive_and_acknowledge(*range(10))
    tail_loss_probe.send(ends.w, ends.s, ends.now_ns)
    ends.arrive_and_acknowledge(39)
    assert ends.state()[1:] == (29, at.RECOVERY)  # 10 to 38
    flight, rounds = ends.send(), []
    while flight:
        rounds.append(len(flight))
        arriving, flight = flight, []
        for seq in arriving:
            ends.arrive_and_acknowledge(seq)
            flight += ends.send()
    assert rounds == [1, 2, 4, 8, 14]
    assert ends.state() == (0, 0, at.OPEN)
    assert ends.s.cwnd == pytest.approx(20, abs=1)
    assert ends.s.ssthresh == pytest.approx(20, abs=1)


def test_a_window_that_sends_at_a_rate_is_not_reduced(ends):
    ends.s.is_rate_based = 1
    window_reduction.begin(ends.s, ends.s.cwnd)
    window_reduction.go_on(ends.s, 3, 1, True)
    window_reduction.end(ends.s)
    assert ends.s.cwnd == 10


def test_recovery_ends_at_recover_and_reduces_the_window_once(ends):
    ends.write(10)
    ends.arrive_and_acknowledge(1, 2, 3)
    reduced = ends.s.ssthresh
    ends.arrive_and_acknowledge(5, 6)  # segment 4 is lost too
    assert ends.state()[1:] == (2, at.RECOVERY)
    assert ends.s.ssthresh == reduced
    ends.arrive_and_acknowledge(7, 8, 9)
    assert ends.send() == [0, 4]
    ends.arrive_and_acknowledge(0)
    assert ends.state() == (1, 0, at.RECOVERY)
    ends.arrive_and_acknowledge(4)
    assert ends.state() == (0, 0, at.OPEN)
    assert reduced < ends.s.cwnd < reduced + 0.2  # the last acknowledgement lets it grow


def test_a_lost_acknowledgement_is_made_up_for_by_the_next_one(ends):
    """RFC 2018: the acknowledgements of 3 and 4 are lost, but only segment 2 is retransmitted."""
    ends.write(10)
    ends.arrive_and_acknowledge(0, 1)
    ends.arrive(3, 4)
    ends.arrive_and_acknowledge(5, 6, 7)
    assert ends.s.segments_lost == 1
    assert ends.state() == (2, 1, at.RECOVERY)  # segments 8 and 9
    assert ends.send() == [2]


def test_an_acknowledgement_does_not_cover_what_arrived_after_it_was_sent(ends):
    ends.write(10)
    ends.arrive_and_acknowledge(1, 2)
    ends.arrive(3)
    p, w = links.new_packet(ends.w, ends.s, at.ACK, ends.w.end, 66), ends.w
    p.seq, p.transmission, p.segments_so_far = (
        0,
        3,
        ends.s.segments_received,
    )
    ends.arrive(0)  # after this acknowledgement was sent
    acknowledgements.receive_ack(w, ends.s, p, ends.now_ns)
    assert ends.state() == (6, 1, at.RECOVERY)


def test_a_lost_retransmission_is_detected_without_the_timer(ends):
    """RFC 8985, section 1; with RFC 6675 alone it would wait for the RTO."""
    ends.write(12)
    ends.arrive_and_acknowledge(1, 2, 3, 4, 5, 6)
    assert ends.send() == [0, 10]
    ends.arrive_and_acknowledge(7, 8, 9)
    assert ends.s.lost == 0
    ends.arrive_and_acknowledge(10)
    assert ends.s.lost == 1
    assert ends.send() == [0, 11]


def test_reordering_causes_one_retransmission_and_nothing_is_counted_twice(ends):
    """Three others overtake segment 2: it is retransmitted, and both copies arrive."""
    ends.write(10)
    ends.arrive_and_acknowledge(0, 1, 3, 4, 5, 6, 7)
    assert ends.send() == [2]
    ends.arrive_as(2, 2)
    ends.acknowledge()
    assert ends.state() == (2, 0, at.OPEN)  # 8 and 9; the copy of 2 is no longer in flight
    assert ends.s.rcv_nxt == 8
    ends.arrive_and_acknowledge(8, 9)
    ends.arrive_as(2, 10)
    ends.acknowledge()
    assert ends.state() == (0, 0, at.OPEN)
    assert ends.s.rcv_nxt == ends.s.snd_una == 10


def test_fewer_later_arrivals_are_a_loss_if_no_more_segments_are_in_flight(ends):
    """RFC 5827, early retransmit."""
    ends.write(3)
    ends.arrive_and_acknowledge(1)
    assert ends.state() == (2, 0, at.OPEN)
    ends.arrive_and_acknowledge(2)
    assert ends.state() == (0, 1, at.RECOVERY)


def test_after_a_timeout_everything_is_retransmitted_in_slow_start_from_one_segment(ends):
    ends.write(10)
    acknowledgements.on_timeout(ends.w, ends.s, ends.now_ns)
    assert ends.state() == (0, 10, at.TIMED_OUT)
    assert (ends.s.cwnd, ends.s.ssthresh) == (1, 5)
    assert ends.send() == [0]
    ends.arrive_and_acknowledge(0)
    assert ends.s.cwnd == 2
    assert ends.send() == [1, 2]


def test_a_timeout_is_undone_when_the_segments_were_only_late(ends):
    """RFC 4015: 0 arrives in its first transmission, so nothing was lost."""
    ends.write(10)
    acknowledgements.on_timeout(ends.w, ends.s, ends.now_ns)
    assert ends.send() == [0]
    ends.arrive_as(0, 0)
    ends.acknowledge()
    assert ends.state() == (9, 0, at.OPEN)
    assert ends.s.cwnd == pytest.approx(10, abs=0.2)
    assert ends.s.ssthresh == 5
    assert (ends.s.backoff, ends.s.segments_lost) == (0, 1)
    ends.arrive_and_acknowledge(2, 3, 4, 5)
    assert ends.state()[1:] == (1, at.RECOVERY)  # segment 1 is lost
    assert ends.send() == [1]


def test_the_arrival_of_the_retransmission_undoes_nothing(ends):
    ends.write(10)
    acknowledgements.on_timeout(ends.w, ends.s, ends.now_ns)
    acknowledgements.on_timeout(ends.w, ends.s, ends.now_ns)
    assert ends.send() == [0]
    ends.now_ns += 40 * MS
    ends.arrive_and_acknowledge(0)
    assert ends.state() == (0, 9, at.TIMED_OUT)
    ends.arrive_as(2, 2)  # F-RTO, RFC 5682: it was transmitted once, before the timeout
    ends.acknowledge()
    assert ends.state() == (8, 0, at.OPEN)


def test_a_timeout_in_recovery_reduces_ssthresh_no_further_and_is_not_undone(ends):
    ends.write(10)
    ends.arrive_and_acknowledge(1, 2, 3)
    assert ends.s.ssthresh == pytest.approx(5, abs=0.3)
    before = ends.s.ssthresh
    ends.s.sent_before_timeout = 100  # from an earlier timeout
    acknowledgements.on_timeout(ends.w, ends.s, ends.now_ns)
    assert ends.s.ssthresh == before
    ends.arrive_and_acknowledge(4)
    assert ends.state()[2] == at.TIMED_OUT


def test_lost_acknowledgements_cause_no_retransmissions():
    """A tenth of the acknowledgements are lost; only what the queue drops is retransmitted."""
    network = started(
        chain(2, rate_bps=10_000_000, delay_ns=10 * MS, queue_packets=60, loss_back_ppm=100_000),
        BULK,
    )
    network.run(4_000 * MS)
    _, s = places(network)
    assert s.segments_dropped > 0
    assert s.segments_lost <= s.segments_dropped
