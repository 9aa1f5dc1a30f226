"""Overload: what lasts counts, what passes does not."""

import pytest

from lab.engines.mininet.watchdog import Look, Watchdog, idle_and_total, time_squeeze

HEALTHY = Look(0.01, 0.5, 2.0)


@pytest.mark.parametrize("bad", [Look(0.6, 0.5, 2.0), Look(0.01, 0.05, 2.0), Look(0.01, 0.5, 80.0)])
def test_twice_in_a_row_is_overload_and_once_is_not(bad):
    dog = Watchdog()
    assert dog.judge(1.0, bad) == []
    assert dog.judge(1.5, HEALTHY) == []
    assert dog.judge(2.0, bad) == []
    assert len(dog.judge(2.5, bad)) == 1
    assert dog.judge(3.0, bad) == []  # said once


def test_kernel_counters():
    assert idle_and_total("cpu  10 0 20 60 10 0 0 0 0 0\n") == (70, 100)
    assert time_squeeze("0000 0000 0000000a 0\n0000 0000 00000001 0\n") == 11
