"""An application with a limited rate: how many bytes are due in each turn, and what it skips."""

import pytest

from lab.engines.mininet.programs.flow import (
    UNSENT_BYTES,
    WRITING_TURN_S,
    Application,
    writable_bytes,
)
from lab.engines.sim.core import application

RATE_BPS = 1_000_003


def test_late_turns_do_not_lower_the_rate():
    """Turns begin 7 ms late, and one in ten half a second late."""
    turns, now, sent = Application(100.0), 100.0, 0
    for number in range(1000):
        sent += turns.due_bytes(RATE_BPS, now)
        now += turns.wait_s(now) + (0.5 if number % 10 == 0 else 0.007)
    assert sent * 8 / (now - 100.0) == pytest.approx(RATE_BPS, rel=1e-2)


def test_turns_are_at_fixed_times():
    turns, now = Application(0.0), 0.0
    for _ in range(50):
        turns.due_bytes(RATE_BPS, now)
        now += turns.wait_s(now + 0.003) + 0.003 + 0.001  # it works for 3 ms and wakes 1 ms late
    assert now == pytest.approx(50 * WRITING_TURN_S + 0.001, abs=1e-6)


def test_no_fraction_of_a_byte_is_lost():
    turns = Application(0.0)
    assert sum(turns.due_bytes(1000, n * WRITING_TURN_S) for n in range(500)) == pytest.approx(
        1250, abs=1
    )


def test_a_delay_of_more_than_a_second_is_not_made_up_for():
    turns = Application(0.0)
    turns.due_bytes(8_000, 0.0)
    assert turns.due_bytes(8_000, 60.0) == 1000


def test_time_without_a_limit_is_not_due_later():
    turns = Application(0.0)
    turns.restart(10.0)
    assert turns.due_bytes(8_000_000, 10.5) == 500_000


def test_data_that_tcp_cannot_send_is_skipped():
    assert writable_bytes(1000, 0) == 1000
    assert writable_bytes(1000, UNSENT_BYTES - 400) == 400
    assert writable_bytes(1000, UNSENT_BYTES + 5000) == 0
    assert writable_bytes(10 * UNSENT_BYTES, 0) == 10 * UNSENT_BYTES


def test_both_engines_have_the_same_turns_and_the_same_limit():
    assert WRITING_TURN_S * 1e9 == application.SLICE_NS
    assert UNSENT_BYTES == application.UNSENT_SEGMENTS * 1448
