"""Data that waits in a receive buffer, computed from the counters of its subflows."""

from lab.engines.mininet.programs.flow import ReceiveBuffer


def readings(*counters):
    """Most bytes held back. Each reading: segments of two subflows, and bytes delivered."""
    buffer = ReceiveBuffer(None, is_mptcp=True)
    for first, second, delivered in counters:
        buffer.take([(first, 1000), (second, 1000)], delivered)
    return buffer.most_bytes


def test_data_held_back_is_what_waits_for_another_subflow():
    assert readings((0, 0, 0), (10, 10, 20_000), (10, 50, 20_000), (11, 60, 71_000)) == 40_000


def test_duplicates_do_not_count_as_held_back():
    assert readings((0, 0, 0), (10, 10, 20_000), (10, 15, 20_000), (20, 15, 30_000)) == 0


def test_data_held_back_counts_in_the_interval_in_which_it_is_delivered():
    buffer = ReceiveBuffer(None, is_mptcp=True)
    assert buffer.take_recent_bytes() is None
    intervals = [
        [(10, 10, 20_000), (10, 50, 20_000)],  # 40 segments wait
        [(10, 60, 20_000)],  # more wait; nothing is delivered
        [(11, 60, 71_000), (20, 90, 80_000), (20, 90, 110_000)],  # all of them, then 30 others
        [(40, 110, 150_000)],
    ]
    found = []
    for readings in intervals:
        for first, second, delivered in readings:
            buffer.take([(first, 1000), (second, 1000)], delivered)
        found.append(buffer.take_recent_bytes())
    assert found == [0, 0, 50_000, 0]


def test_a_subflow_that_ends_takes_its_counters_with_it():
    buffer = ReceiveBuffer(None, is_mptcp=True)
    buffer.take([(100, 1000), (50, 1000)], 150_000)
    buffer.take([(110, 1000)], 160_000)
    buffer.take([(120, 1000)], 170_000)
    assert buffer.most_bytes == 0
