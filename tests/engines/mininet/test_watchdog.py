"""A condition that lasts is overload; one that passes is not."""

import pytest

from lab.engines.mininet.machine.lost_time import Reporter
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


@pytest.mark.parametrize(("idle", "lost"), [(0.8, 0.55), (0.68, 0.9), (0.11, 0.99)])
def test_what_others_take_is_no_overload_while_enough_is_left(idle, lost):
    """Most runs of small networks lose a third of the processor time that they want, and their
    paths are right."""
    dog = Watchdog()
    taken = MachineSample(0.01, idle, 2.0, lost)
    assert [reason for n in range(20) for reason in dog.judge(0.5 * n, taken)] == []


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


def test_steal_and_what_the_host_takes_are_lost(tmp_path):
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "softnet_stat").write_text("0000 0000 00000000 0\n")
    host = tmp_path / "lost_share"
    dog = Watchdog(host)
    stat = tmp_path / "stat"
    stat.write_text("cpu 0 0 0 0 0 0 0 0\n")
    dog.sample(0.5, 0.0, 0.0, tmp_path)
    stat.write_text("cpu 30 0 0 50 0 0 0 20\n")  # others got 20 of the 50 that were wanted
    dog.sample(1.0, 0.0, 0.0, tmp_path)
    assert dog.samples[-1].lost_share == pytest.approx(0.4)
    host.write_text("0.5\n")
    stat.write_text("cpu 80 0 0 100 0 0 0 20\n")
    dog.sample(1.5, 0.0, 0.0, tmp_path)
    assert dog.samples[-1].lost_share == pytest.approx(0.5)
    figures = dog.verdict(tmp_path).figures
    assert (figures["lost_share_max"], figures["lost_share_mean"]) == (0.5, 0.3)
    assert figures["taken_share_max"] == pytest.approx(0.5 * 50 / 100)


def test_a_reason_from_before_the_start_counts(tmp_path):
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "softnet_stat").write_text("0000 0000 00000000 0\n")
    dog = Watchdog()
    dog.add("before the start, ue1-eth1: expected 20 ms, measured 32 (+60%)")
    assert dog.verdict(tmp_path).overloaded


def test_the_host_of_a_vm_reports_what_the_vm_loses(tmp_path):
    proc, file = tmp_path, tmp_path / "lost_share"

    def machine(stat, *threads):
        (proc / "stat").write_text(f"cpu {stat}\n")
        for pid, times in threads:
            thread = proc / str(pid) / "task" / str(pid)
            thread.mkdir(parents=True, exist_ok=True)
            (thread / "schedstat").write_text(f"{times} 7\n")
            (thread / "children").write_text("8 " if pid == 7 else "")

    machine("0 0 0 0 0 0 0 0", (7, "0 0"), (8, "1000 1000"))
    reporter = Reporter(7, file, proc)
    machine("80 0 0 0 0 0 0 20", (7, "0 0"), (8, "1750 1250"))  # 25 % waiting, 20 % stolen
    reporter.poll(10.0)
    assert float(file.read_text()) == pytest.approx(0.4)
    machine("180 0 0 0 0 0 0 20", (8, "2750 1250"))
    reporter.poll(10.5)
    assert float(file.read_text()) == pytest.approx(0.4)
    reporter.poll(11.0)
    assert float(file.read_text()) == 0
