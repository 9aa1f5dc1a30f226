"""When a receiver acknowledges every segment at once, as Linux does, and when every second one."""

import pytest

from lab.engines.sim.core import receiver, round_trips

from .ends import Ends
from .networks import MS

ALWAYS, EVERY_SECOND = [True] * 4, [False, True, False, True]


class Receiver(Ends):
    """Segments arrive, and acknowledgements that are due are sent."""

    def __init__(self):
        super().__init__()
        self.s.receiver_rto_ns = round_trips.first_rto_ns(20 * MS)

    def arrive_in_order(self, count):
        """For each of the next `count` segments: whether it was acknowledged at once."""
        return [self.arrives(self.s.rcv_nxt) for _ in range(count)]

    def arrives(self, seq):
        at_once = bool(self.arrive_as(seq, seq))
        if at_once:
            receiver.send_ack(self.w, self.s, self.now_ns)
        return at_once


@pytest.fixture
def after_the_start():
    found = Receiver()
    assert found.arrive_in_order(receiver.QUICK_ACKS) == [True] * receiver.QUICK_ACKS
    return found


def test_after_the_first_segments_every_second_one_is_acknowledged_at_once(after_the_start):
    assert after_the_start.arrive_in_order(4) == EVERY_SECOND


@pytest.mark.parametrize(("pause_ms", "expected"), [(219, EVERY_SECOND), (221, ALWAYS)])
def test_after_a_pause_longer_than_the_rto_segments_are_acknowledged_at_once(
    after_the_start, pause_ms, expected
):
    """The RTO is that of the handshake: its 20 ms, plus at least 200 ms."""
    after_the_start.now_ns += pause_ms * MS
    assert after_the_start.arrive_in_order(4) == expected


def test_after_a_segment_that_arrives_twice_segments_are_acknowledged_at_once(after_the_start):
    assert after_the_start.arrive_in_order(4) == EVERY_SECOND
    assert after_the_start.arrives(3)
    assert after_the_start.arrive_in_order(receiver.QUICK_ACKS - 1) == [True] * 15
    assert after_the_start.arrive_in_order(4) == EVERY_SECOND


def test_a_gap_does_not_begin_the_quick_mode(after_the_start):
    missing = after_the_start.s.rcv_nxt
    assert after_the_start.arrives(missing + 1)
    assert after_the_start.arrives(missing)
    assert after_the_start.arrive_in_order(4) == EVERY_SECOND
