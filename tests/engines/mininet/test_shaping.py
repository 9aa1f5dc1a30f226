"""Lines for tc, and the kernel that accepts them."""

import subprocess

import pytest
from machine import needs_root

from lab.engines.mininet.kernel import shaping
from lab.engines.mininet.kernel.shaping import Shape


def netem(**shape):
    (line,) = (line for line in shaping.link("s1-eth1", Shape(**shape)) if "netem" in line)
    return line


def test_netem_has_a_rate_so_that_it_keeps_the_order():
    line = netem(rate_bps=None, delay_ns=20_000_000, jitter_ns=2_000_000)
    assert "delay 20000us 2000us" in line
    assert line.endswith("rate 1000000000bit")


def test_a_frame_is_delayed_by_the_time_that_it_takes():
    assert "delay 11211.2us " in netem(rate_bps=10_000_000, delay_ns=10_000_000)
    assert "delay 10068.8us " in netem(rate_bps=10**7, delay_ns=10**7, frame_bytes=86)


def test_what_arrives_during_an_outage_is_not_late_after_it():
    """The rate holds it back, and the delay is that of the rate before."""
    assert "delay 11211.2us " in netem(rate_bps=8, delay_ns=10_000_000, fastest_bps=10_000_000)


def test_a_queue_counts_only_packets_that_wait_for_the_rate():
    *_, queue = shaping.link("s1-eth1", Shape(20_000_000, 10_000_000, queue_packets=100))
    assert queue.endswith("parent 30:1 handle 10: pfifo limit 100")


def test_loss_in_ppm_becomes_percent():
    assert " loss 5% " in netem(rate_bps=1_000_000, loss_ppm=50_000)
    assert "loss" not in netem(rate_bps=1_000_000)


@pytest.mark.parametrize("rate_bps", [8, 50_000, 11_500_000, 1_000_000_000])
def test_a_bucket_holds_two_frames_and_10_ms(rate_bps):
    bucket = shaping.burst_bytes(rate_bps, 10)
    assert bucket == pytest.approx(max(2 * shaping.MTU_BYTES, rate_bps / 8 * 10e-3), abs=1)


def test_a_change_leaves_the_queue_alone():
    lines = shaping.changed_link("s1-eth1", Shape(2_000_000, 10_000_000))
    assert [line.split()[:2] for line in lines] == [["class", "replace"], ["qdisc", "replace"]]
    assert set(lines) < set(shaping.link("s1-eth1", Shape(2_000_000, 10_000_000)))


@needs_root
@pytest.mark.parametrize("rate_bps", [64_000, 11_500_000])
def test_a_rate_is_read_back_from_the_kernel(veth, rate_bps):
    subprocess.run(
        ["tc", "-batch", "-"],
        input=shaping.batch(shaping.rate(veth, rate_bps, 200)),
        text=True,
        check=True,
    )
    shown = subprocess.run(
        ["tc", "class", "show", "dev", veth], capture_output=True, text=True, check=True
    ).stdout
    assert f"rate {rate_bps // 1000}Kbit ceil {rate_bps // 1000}Kbit" in shown
