"""Selective acknowledgements, timers and pauses, case by case: what RFC 6675, 8985, 6298 and 2861 ask for, computed by hand.

`Ends` is a subflow whose sender and receiver are driven by hand: no link, no time but what a test says.
"""

from __future__ import annotations

import pytest

from lab.engines.sim.core import acknowledgements, links, receiver, rings, sender
from lab.engines.sim.core import layout as at

from .rows import places
from .test_links import BULK, chain, started

MS = 1_000_000


class Ends:
    """A sender with a window of ten segments in congestion avoidance, and its receiver."""

    def __init__(self):
        network = started(chain(2, delay_ns=10 * MS))
        self.w, (_, self.f) = network.w, places(network)
        self.now_ns = 1000 * MS
        self.w.row[self.f + at.STATE] = at.ESTABLISHED
        self.window(10.0)

    def window(self, cwnd, ssthresh=1.0):
        self.w.window[self.f + at.CWND], self.w.window[self.f + at.SSTHRESH] = cwnd, ssthresh

    def has(self, segments):
        """Give the sender so many more segments, and let it send."""
        for _ in range(segments):
            sender.queue_segment(self.w.row, self.f, self.w.row[self.f + at.WRITE_SEQ])
        self.sends()

    def sends(self):
        """Segments that go out now."""
        before = self.w.row[self.f + at.TRANSMISSIONS]
        sender.send(self.w, self.f, 64, self.now_ns)
        return [
            int(self.w.row[rings.segment(self.w.row, self.f, n) + rings.SENT_SEQ])
            for n in range(before, self.w.row[self.f + at.TRANSMISSIONS])
        ]

    def arrive(self, *seqs):
        """The last transmission of each arrives; nobody hears of it yet."""
        for seq in seqs:
            self.arrive_as(
                seq, self.w.row[rings.segment(self.w.row, self.f, seq) + rings.SEG_TRANSMISSION]
            )

    def arrive_as(self, seq, transmission):
        p = links.new_packet(self.w.row, self.f, at.SEGMENT, 0, 1514)
        self.w.row[p + at.SEQ], self.w.row[p + at.TRANSMISSION] = seq, transmission
        receiver.receive_segment(self.w.row, self.f, p)

    def told(self):
        """The receiver's acknowledgement comes to the sender."""
        p, w = links.new_packet(self.w.row, self.f, at.SEGMENT, 0, 1514), self.w
        w.row[p + at.SEQ], w.row[p + at.TRANSMISSION] = (
            w.row[self.f + at.RCV_NXT],
            w.row[self.f + at.LAST_TRANSMISSION],
        )
        w.row[p + at.SEGMENTS_SO_FAR] = w.row[self.f + at.SEGMENTS_RECEIVED]
        acknowledgements.receive_ack(w, self.f, p, self.now_ns)

    def tells(self, *seqs):
        """Each arrives and is acknowledged."""
        for seq in seqs:
            self.arrive(seq)
            self.told()

    def state(self):
        """Under way, to be sent again, mode."""
        return tuple(int(self.w.row[self.f + each]) for each in (at.PIPE, at.LOST, at.MODE))


@pytest.fixture
def ends():
    return Ends()


def test_three_later_arrivals_are_a_loss_and_what_is_lost_goes_before_what_is_new(ends):
    """RFC 6675: IsLost after three, pipe = sent - arrived - lost, NextSeg (1) and then (2), one cut of the window."""
    ends.has(14)
    assert ends.state() == (10, 0, at.OPEN)
    ends.tells(0, 1)
    ends.sends()  # 10 and 11
    ends.tells(3, 4)
    ends.sends()  # 12 and 13
    assert ends.state() == (10, 0, at.OPEN)
    ends.tells(5)
    assert ends.w.window[ends.f + at.CWND] == pytest.approx(5, abs=0.3)
    assert ends.state() == (8, 1, at.RECOVERY)  # 14 sent; 0, 1, 3, 4 and 5 have arrived, 2 is lost
    assert ends.sends() == []
    ends.tells(6, 7, 8)
    ends.has(3)
    assert ends.state() == (5, 1, at.RECOVERY)
    ends.tells(9)
    assert ends.sends() == [2]
    ends.tells(10)
    assert ends.sends() == [14]
    assert ends.w.row[ends.f + at.SEGMENTS_RETRANSMITTED] == 1


def test_recovery_ends_where_it_began_and_cuts_once(ends):
    ends.has(10)
    ends.tells(1, 2, 3)
    cwnd = ends.w.window[ends.f + at.CWND]
    ends.tells(5, 6)  # 4 is lost too
    assert ends.state()[1:] == (2, at.RECOVERY)
    assert ends.w.window[ends.f + at.CWND] == cwnd
    ends.tells(7, 8, 9)
    assert ends.sends() == [0, 4]
    ends.tells(0)
    assert ends.state() == (1, 0, at.RECOVERY)
    ends.tells(4)
    assert ends.state() == (0, 0, at.OPEN)


def test_what_a_lost_acknowledgement_told_the_next_one_tells_too(ends):
    """RFC 2018: 3 and 4 have arrived, the acknowledgements of both are lost; only 2 is sent again."""
    ends.has(10)
    ends.tells(0, 1)
    ends.arrive(3, 4)
    ends.tells(5, 6, 7)
    assert ends.w.row[ends.f + at.SEGMENTS_LOST] == 1
    assert ends.state() == (2, 1, at.RECOVERY)  # 8 and 9
    assert ends.sends() == [2]


def test_what_arrived_after_an_acknowledgement_had_left_is_not_known_from_it(ends):
    ends.has(10)
    ends.tells(1, 2)
    ends.arrive(3)
    p, w = links.new_packet(ends.w.row, ends.f, at.ACK, 0, 66), ends.w
    w.row[p + at.SEQ], w.row[p + at.TRANSMISSION], w.row[p + at.SEGMENTS_SO_FAR] = (
        0,
        3,
        w.row[ends.f + at.SEGMENTS_RECEIVED],
    )
    ends.arrive(0)  # late, but it was there when this acknowledgement had left
    acknowledgements.receive_ack(w, ends.f, p, ends.now_ns)
    assert ends.state() == (6, 1, at.RECOVERY)


def test_a_retransmission_that_is_lost_is_found_without_the_timer(ends):
    """RFC 8985, section 1; with RFC 6675 alone it would wait for the timer."""
    ends.has(12)
    ends.tells(1, 2, 3, 4, 5, 6)
    assert ends.sends() == [0, 10]
    ends.tells(7, 8, 9)
    assert ends.w.row[ends.f + at.LOST] == 0
    ends.tells(10)
    assert ends.w.row[ends.f + at.LOST] == 1
    assert ends.sends() == [0, 11]


def test_a_path_that_does_not_keep_the_order_costs_a_segment_and_nothing_is_counted_twice(ends):
    """2 is overtaken by three others: sent again, and both copies arrive."""
    ends.has(10)
    ends.tells(0, 1, 3, 4, 5, 6, 7)
    assert ends.sends() == [2]
    ends.arrive_as(2, 2)
    ends.told()
    assert ends.state() == (
        2,
        0,
        at.RECOVERY,
    )  # 8 and 9: one copy of 2 was under way, and is not any more
    assert ends.w.row[ends.f + at.RCV_NXT] == 8
    ends.tells(8, 9)
    ends.arrive_as(2, 10)
    ends.told()
    assert ends.state() == (0, 0, at.OPEN)
    assert ends.w.row[ends.f + at.RCV_NXT] == ends.w.row[ends.f + at.SND_UNA] == 10


def test_fewer_than_three_others_are_enough_where_no_more_are_under_way(ends):
    """RFC 5827, early retransmit."""
    ends.has(3)
    ends.tells(1)
    assert ends.state() == (2, 0, at.OPEN)
    ends.tells(2)
    assert ends.state() == (0, 1, at.RECOVERY)


def test_the_timer_follows_the_round_trip(ends):
    """RFC 6298, section 2: rttvar 50 + (40 - 50)/4, srtt 100 + 40/8, and Linux's least distance of 200 ms."""
    w = ends.w
    ends.has(2)
    w.row[ends.f + at.SRTT_NS], w.row[ends.f + at.RTTVAR_NS] = 100 * MS, 50 * MS
    ends.now_ns += 140 * MS
    ends.tells(0)
    assert [w.row[ends.f + each] / MS for each in (at.SRTT_NS, at.RTTVAR_NS, at.RTO_NS)] == [
        105,
        47.5,
        305,
    ]
    w.row[ends.f + at.RTTVAR_NS] = 80 * MS
    ends.tells(1)
    assert (
        w.row[ends.f + at.RTO_NS] == w.row[ends.f + at.SRTT_NS] + 4 * w.row[ends.f + at.RTTVAR_NS]
    )


def test_after_a_timeout_all_is_sent_again_from_one_segment_in_slow_start(ends):
    ends.has(10)
    acknowledgements.on_timeout(ends.w, ends.f, ends.now_ns)
    assert ends.state() == (0, 10, at.TIMED_OUT)
    assert (ends.w.window[ends.f + at.CWND], ends.w.window[ends.f + at.SSTHRESH]) == (1, 5)
    assert ends.sends() == [0]
    ends.tells(0)
    assert ends.w.window[ends.f + at.CWND] == 2
    assert ends.sends() == [1, 2]


@pytest.mark.parametrize(("pause_ms", "cwnd", "ssthresh"), [
    (299, 40, 20), (350, 20, 30), (650, 10, 30), (5000, 10, 30),
])  # fmt: skip
def test_a_pause_halves_the_window_for_every_timeout_of_it(ends, pause_ms, cwnd, ssthresh):
    """RFC 2861; tcp_cwnd_restart: down to ten segments, and the threshold at three quarters of what was."""
    ends.window(40.0, 20.0)
    ends.w.row[ends.f + at.RTO_NS], ends.w.row[ends.f + at.LAST_SENT_NS] = 300 * MS, ends.now_ns
    ends.now_ns += pause_ms * MS
    ends.has(1)
    assert (ends.w.window[ends.f + at.CWND], ends.w.window[ends.f + at.SSTHRESH]) == (
        cwnd,
        ssthresh,
    )


def test_a_pause_does_not_make_a_small_window_larger_and_stops_cubics_clock(ends):
    ends.window(4.0, 3.0)
    (
        ends.w.row[ends.f + at.RTO_NS],
        ends.w.row[ends.f + at.LAST_SENT_NS],
        ends.w.row[ends.f + at.EPOCH_NS],
    ) = (
        300 * MS,
        900 * MS,
        700 * MS,
    )
    ends.has(1)
    assert ends.w.window[ends.f + at.CWND] == 4
    assert ends.w.row[ends.f + at.EPOCH_NS] == 800 * MS


def test_what_is_under_way_is_no_pause(ends):
    ends.has(1)
    ends.window(40.0, 20.0)
    ends.now_ns += 5000 * MS
    ends.has(1)
    assert ends.w.window[ends.f + at.CWND] == 40


def test_acknowledgements_that_get_lost_cost_no_data():
    """A tenth of them: nothing is sent again but what a queue has dropped."""
    network = started(
        chain(2, rate_bps=10_000_000, delay_ns=10 * MS, queue_packets=60, loss_back_ppm=100_000),
        BULK,
    )
    network.run(4_000 * MS)
    row, (_, f) = network.w.row, places(network)
    assert row[f + at.SEGMENTS_DROPPED] > 0
    assert row[f + at.SEGMENTS_LOST] <= row[f + at.SEGMENTS_DROPPED]


def test_slow_start_doubles_what_was_under_way_and_no_more(ends):
    """tcp_is_cwnd_limited: four of ten segments are under way, so the window grows while it is below eight, and here not at all."""
    ends.window(10.0, ssthresh=100.0)
    ends.has(4)
    ends.tells(0, 1, 2, 3)
    assert ends.w.window[ends.f + at.CWND] == 10
    ends.has(6)
    ends.tells(*range(4, 10))
    assert ends.w.window[ends.f + at.CWND] == 12  # 2 x 6; the next acknowledgements bring nothing


def test_a_window_that_was_full_grows_for_the_whole_round(ends):
    """The last of ten acknowledgements finds nine places empty; the round is the window's nevertheless (tcp_cwnd_validate)."""
    ends.has(10)
    ends.tells(*range(10))
    assert ends.w.window[ends.f + at.CWND] == pytest.approx(11, abs=0.1)
    ends.has(3)
    before = ends.w.window[ends.f + at.CWND]
    ends.tells(10, 11, 12)
    assert (
        ends.w.window[ends.f + at.CWND] == before
    )  # three of eleven: the application's limit, not the window's


def test_a_sender_with_nothing_to_send_forgets_nothing_of_its_window(ends):
    """Its round is over and three are under way; that it was full then stays true until something is sent."""
    ends.has(10)
    ends.tells(*range(5))
    ends.has(3)
    ends.tells(*range(5, 10))
    assert ends.sends() == []
    before = ends.w.window[ends.f + at.CWND]
    ends.tells(10)
    assert ends.w.window[ends.f + at.CWND] > before
