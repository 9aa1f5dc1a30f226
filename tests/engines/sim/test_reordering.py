"""The reordering window of a sender (RFC 8985, section 6.2), driven by hand."""

from __future__ import annotations

from lab.engines.sim.core import acknowledgements, reordering
from lab.engines.sim.core import state as at

from .ends import Ends
from .networks import MS


def reordered():
    """A sender with ten segments in flight that has seen the third arrive before the second. The
    RTT is 40 ms."""
    ends = Ends()
    ends.s.srtt_ns = ends.s.base_rtt_ns = 40 * MS
    ends.s.arrivals_known = 0
    ends.write(10)
    ends.now_ns += 40 * MS
    ends.arrive_and_acknowledge(0, 2, 1)
    return ends


def states(ends):
    return [at.segment(ends.s, n).state for n in range(ends.s.snd_una, ends.s.snd_nxt)]


def test_a_sender_sees_reordering_when_an_earlier_transmission_arrives_later():
    ends = reordered()
    assert ends.s.is_reordering == 1
    assert ends.s.mode == at.OPEN


def test_order_that_is_kept_is_no_reordering():
    ends = Ends()
    ends.write(10)
    ends.now_ns += 40 * MS
    ends.arrive_and_acknowledge(0, 1, 3, 4, 5, 6)
    assert ends.s.is_reordering == 0
    assert ends.s.mode == at.RECOVERY


def test_a_segment_is_lost_when_the_window_is_over_and_not_before():
    """A quarter of the smallest RTT, 10 ms, after those sent with it have arrived."""
    ends = reordered()
    ends.arrive_and_acknowledge(9)
    assert at.LOST not in states(ends)
    assert ends.s.timer_is_for == at.REORDERING
    assert ends.s.timer.expires_ns == ends.now_ns + 10 * MS
    ends.now_ns += 10 * MS - 1
    acknowledgements.on_reordering_timer(ends.w, ends.s, ends.now_ns)
    assert at.LOST not in states(ends)
    ends.now_ns += 1
    acknowledgements.on_reordering_timer(ends.w, ends.s, ends.now_ns)
    assert states(ends).count(at.LOST) == 6
    assert ends.s.mode == at.RECOVERY


def test_the_window_grows_once_per_round_trip_and_shrinks_after_16_recoveries():
    ends = reordered()
    s = ends.s
    s.segments_retransmitted = 9
    for number, steps in ((3, 1), (4, 1), (10, 2)):
        s.transmissions = max(s.transmissions, number)
        reordering.note_duplicate(s, number)
        s.transmissions = max(s.transmissions, 10)
        assert s.reorder_steps == steps
    for recovery in range(1, 17):
        assert s.reorder_steps == 2
        reordering.end_recovery(s)
        assert s.reorder_recoveries == 16 - recovery
    assert s.reorder_steps == 0


def test_more_duplicates_than_repetitions_come_from_the_network():
    ends = reordered()
    ends.s.segments_retransmitted = 2
    ends.s.duplicates_reported = 2
    reordering.note_duplicate(ends.s, 5)
    assert ends.s.reorder_steps == 0


def test_a_recovery_is_undone_when_all_was_only_late():
    ends = reordered()
    ends.s.cwnd, ends.s.ssthresh = 12.0, 8.0
    ends.arrive_and_acknowledge(9)
    before = ends.s.cwnd
    ends.now_ns += 20 * MS
    acknowledgements.on_reordering_timer(ends.w, ends.s, ends.now_ns)
    assert (ends.s.mode, ends.s.ssthresh) == (at.RECOVERY, before / 2)
    ends.arrive_as(3, 3)
    ends.acknowledge()
    assert ends.s.mode == at.OPEN
    assert ends.s.cwnd >= before
    assert states(ends) == [at.IN_FLIGHT] * 5 + [at.SACKED]


def test_a_recovery_with_a_real_loss_is_not_undone():
    """Segment 3 is repeated and arrives only then."""
    ends = reordered()
    ends.arrive_and_acknowledge(9)
    ends.now_ns += 20 * MS
    acknowledgements.on_reordering_timer(ends.w, ends.s, ends.now_ns)
    assert ends.send()[0] == 3
    ends.now_ns += 40 * MS
    ends.arrive_and_acknowledge(3)
    ends.arrive_as(4, 4)
    ends.acknowledge()
    assert ends.s.mode == at.RECOVERY
