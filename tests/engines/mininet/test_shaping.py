"""Lines for tc, and the kernel that accepts them."""

import subprocess

import pytest
from machine import needs_root

from lab.engines.mininet.kernel import shaping


def test_a_link_has_a_rate_so_that_netem_keeps_the_order():
    line = shaping.link("s1-eth1", None, 20_000_000, 2_000_000)
    assert "delay 20000us 2000us" in line
    assert line.endswith("rate 1000000000bit")


def test_a_links_limit_is_its_queue_and_the_packets_in_flight():
    line = shaping.link("s1-eth1", 20_000_000, 10_000_000, queue_packets=100)
    assert "limit 116 " in line  # 100, and 20 Mb/s x 10 ms / 1514 bytes


def test_loss_in_ppm_becomes_percent():
    assert " loss 5% " in shaping.link("x", 1_000_000, 0, loss_ppm=50_000)
    assert "loss" not in shaping.link("x", 1_000_000, 0)


@pytest.mark.parametrize("rate_bps", [64_000, 1_000_000, 11_500_000, 1_000_000_000])
def test_a_bucket_holds_at_least_two_frames(rate_bps):
    assert shaping.burst_bytes(rate_bps) >= 2 * shaping.MTU_BYTES


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
