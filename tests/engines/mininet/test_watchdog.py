"""A condition that lasts is overload; one that passes is not."""

import pytest

from lab.engines.mininet.watchdog import MachineSample, Watchdog, idle_and_total, time_squeeze

HEALTHY = MachineSample(0.01, 0.5, 2.0)


BAD = {
    "late": (MachineSample(0.6, 0.5, 2.0), 4),
    "busy": (MachineSample(0.01, 0.05, 2.0), 4),
    "lag": (MachineSample(0.01, 0.5, 80.0), 2),
}


@pytest.mark.parametrize("name", BAD)
def test_a_condition_that_lasts_is_overload(name):
    bad, samples = BAD[name]
    dog = Watchdog()
    assert dog.judge(0.5, HEALTHY) == []
    reasons = []
    for n in range(1, samples):
        reasons += dog.judge(0.5 + 0.5 * n, bad)
    reasons += dog.judge(3.0, HEALTHY)
    assert reasons == []
    for n in range(1, samples + 3):
        reasons += dog.judge(3.0 + 0.5 * n, bad)
    assert len(reasons) == 1  # reported once
    assert reasons[0].startswith(f"at {3.0 + 0.5 * samples:.1f} s")


def test_one_tick_that_is_very_late_is_enough():
    dog = Watchdog()
    assert dog.judge(0.5, HEALTHY) == []
    assert dog.judge(1.0, MachineSample(2.5, 0.5, 2.0)) == [
        "at 1.0 s the sampling tick came 2.50 s late"
    ]


def test_a_long_interval_counts_in_full():
    dog = Watchdog()
    assert dog.judge(5.0, HEALTHY) == []
    assert len(dog.judge(10.0, MachineSample(0.01, 0.05, 2.0))) == 1


def test_kernel_counters():
    assert idle_and_total("cpu  10 0 20 60 10 0 0 0 0 0\n") == (70, 100)
    assert time_squeeze("0000 0000 0000000a 0\n0000 0000 00000001 0\n") == 11
