"""Overload: what lasts counts, what passes does not."""

import pytest

from lab.engines.mininet.watchdog import Look, Watchdog, idle_and_total, time_squeeze

HEALTHY = Look(0.01, 0.5, 2.0)


BAD = {
    "late": (Look(0.6, 0.5, 2.0), 4),
    "busy": (Look(0.01, 0.05, 2.0), 4),
    "lag": (Look(0.01, 0.5, 80.0), 2),
}


@pytest.mark.parametrize("name", BAD)
def test_what_lasts_is_overload_and_what_passes_is_not(name):
    bad, looks = BAD[name]
    dog = Watchdog()
    assert dog.judge(0.5, HEALTHY) == []
    said = []
    for n in range(1, looks):
        said += dog.judge(0.5 + 0.5 * n, bad)
    said += dog.judge(3.0, HEALTHY)
    assert said == []
    for n in range(1, looks + 3):
        said += dog.judge(3.0 + 0.5 * n, bad)
    assert len(said) == 1  # said once
    assert said[0].startswith(f"at {3.0 + 0.5 * looks:.1f} s")


def test_one_tick_that_came_very_late_is_enough():
    dog = Watchdog()
    assert dog.judge(0.5, HEALTHY) == []
    assert dog.judge(1.0, Look(2.5, 0.5, 2.0)) == ["at 1.0 s the sampling tick came 2.50 s late"]


def test_looks_far_apart_need_no_second_one():
    dog = Watchdog()
    assert dog.judge(5.0, HEALTHY) == []
    assert len(dog.judge(10.0, Look(0.01, 0.05, 2.0))) == 1


def test_kernel_counters():
    assert idle_and_total("cpu  10 0 20 60 10 0 0 0 0 0\n") == (70, 100)
    assert time_squeeze("0000 0000 0000000a 0\n0000 0000 00000001 0\n") == 11
