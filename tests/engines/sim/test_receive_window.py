"""The receive window of Linux by hand, and what small receive buffers carry compared with Linux."""

from __future__ import annotations

import pytest

from lab.engines.sim.core import receiver

from .networks import two_subflows

FIRST = {"rate_mbps": 1, "delay_ms": 10, "queue_packets": 10}
SECOND = {"rate_mbps": 2, "delay_ms": 20, "queue_packets": 10}
LOSSY_SECOND = SECOND | {"loss": 0.01}
LOSSY_THIRD = {"rate_mbps": 3, "delay_ms": 30, "loss": 0.02, "queue_packets": 15}


def test_linux_doubles_the_buffer_and_counts_the_memory_of_whole_packets():
    """100 kB hold 200000 / 2304 = 86 segments of 1420 bytes in Linux, and 70 without its rule."""
    for scheduler, segments in (("linux", 86), ("lowest_rtt", 70)):
        connection = two_subflows(scheduler=scheduler, receive_buffer_kb=100)
        assert connection.record.receive_window == segments


def test_data_that_waits_takes_room_of_the_window_and_its_end_never_moves_back():
    connection = two_subflows(scheduler="linux", receive_buffer_kb=100)
    c = connection.record
    for expected, waiting, end in ((10, 0, 96), (20, 10, 96), (30, 60, 96), (95, 0, 181)):
        c.data_rcv_nxt, c.reorder_buffered = expected, waiting
        assert receiver.window_end(c) == end


def carried_mbps(paths, shapes, buffer_kb):
    """Mean goodput of three simulated runs after their first 10 s."""
    rates = []
    for seed in (1, 2, 3):
        multipath = {"cc": "reno", "stack": "linux", "receive_buffer_kb": buffer_kb}
        simulation = paths(*shapes, multipath=multipath, seed=seed)
        simulation.run(10)
        rates.append(simulation.mbps(simulation.run(50)))
    return sum(rates) / len(rates)


@pytest.mark.parametrize(
    ("shapes", "buffer_kb", "linux_mbps"),
    [
        pytest.param([FIRST, SECOND], 100, 1.941, id="no loss"),
        pytest.param([FIRST, LOSSY_SECOND], 100, 1.894, id="two paths"),
        pytest.param([FIRST, LOSSY_SECOND], 1000, 2.660, id="large buffer"),
        pytest.param([FIRST, LOSSY_SECOND, LOSSY_THIRD], 100, 1.799, id="three paths"),
    ],
)
def test_a_small_buffer_costs_what_it_costs_with_linux(paths, shapes, buffer_kb, linux_mbps):
    """Goodput of Linux 6.18 with Reno over paths in user space (tests/emulation/kernel_paths.py):
    the last 50 of 60 s, two runs each. The simulator has 13 % less in the first case, and is
    within 7 % in the others. With a constant window it would carry 2.6 and 2.4 Mb/s in the
    first two cases."""
    assert carried_mbps(paths, shapes, buffer_kb) == pytest.approx(linux_mbps, rel=0.14)
