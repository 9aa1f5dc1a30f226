"""Windows of senders that are idle or limited by their application (RFC 2861 and 7661, as in
Linux)."""

from __future__ import annotations

import pytest

from .ends import Ends
from .networks import MS


@pytest.fixture
def ends():
    return Ends()


@pytest.mark.parametrize(("pause_ms", "cwnd", "ssthresh"), [
    (299, 40, 20), (350, 20, 30), (650, 10, 30), (5000, 10, 30),
])  # fmt: skip
def test_an_idle_period_halves_the_window_for_every_rto(ends, pause_ms, cwnd, ssthresh):
    """RFC 2861 and tcp_cwnd_restart: down to ten segments; ssthresh becomes three quarters of the
    earlier window."""
    ends.set_window(40.0, 20.0)
    ends.s.rto_ns, ends.s.last_sent_ns = 300 * MS, ends.now_ns
    ends.now_ns += pause_ms * MS
    ends.write(1)
    assert (ends.s.cwnd, ends.s.ssthresh) == (
        cwnd,
        ssthresh,
    )


def test_an_idle_period_keeps_a_small_window_and_stops_the_clock_of_cubic(ends):
    ends.set_window(4.0, 3.0)
    (
        ends.s.rto_ns,
        ends.s.last_sent_ns,
        ends.s.epoch_ns,
    ) = (
        300 * MS,
        900 * MS,
        700 * MS,
    )
    ends.write(1)
    assert ends.s.cwnd == 4
    assert ends.s.epoch_ns == 800 * MS


def test_a_sender_with_segments_in_flight_is_not_idle(ends):
    ends.write(1)
    ends.set_window(40.0, 20.0)
    ends.now_ns += 5000 * MS
    ends.write(1)
    assert ends.s.cwnd == 40


def test_slow_start_grows_to_twice_the_segments_in_flight(ends):
    """tcp_is_cwnd_limited: with four of ten segments in flight the window grows only while it is
    below eight."""
    ends.set_window(10.0, ssthresh=100.0)
    ends.write(4)
    ends.arrive_and_acknowledge(0, 1, 2, 3)
    assert ends.s.cwnd == 10
    ends.write(6)
    ends.arrive_and_acknowledge(*range(4, 10))
    assert ends.s.cwnd == 12  # 2 x 6; later acknowledgements do not change it


def test_a_window_that_was_full_grows_for_the_whole_round_trip(ends):
    """tcp_cwnd_validate: one segment is in flight at the last of ten acknowledgements, but the
    window was full in this round."""
    ends.write(10)
    ends.arrive_and_acknowledge(*range(10))
    assert ends.s.cwnd == pytest.approx(11, abs=0.1)
    ends.write(3)
    before = ends.s.cwnd
    ends.arrive_and_acknowledge(10, 11, 12)
    assert ends.s.cwnd == before  # three of eleven: the application limits the sender


def test_a_sender_without_data_remembers_that_its_window_was_full(ends):
    """Its round is over and three segments are in flight. It counts as limited by the window until
    it sends."""
    ends.write(10)
    ends.arrive_and_acknowledge(*range(5))
    ends.write(3)
    ends.arrive_and_acknowledge(*range(5, 10))
    assert ends.send() == []
    before = ends.s.cwnd
    ends.arrive_and_acknowledge(10)
    assert ends.s.cwnd > before
