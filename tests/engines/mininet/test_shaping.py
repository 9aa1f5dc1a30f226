"""Lines for tc, and the kernel that accepts them."""

import struct
import subprocess

import pytest
from machine import needs_root

from controller.units import STOPPED_BPS
from lab.engines.mininet.kernel import netlink, shaping
from lab.engines.mininet.kernel.shaping import Shape
from lab.topologies.bursts import Bursts


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


def test_bursts_reordering_and_duplicates_are_words_of_netem():
    line = netem(
        rate_bps=1_000_000,
        delay_ns=5_000_000,
        loss_ppm=38_000,
        bursts=Bursts(10_000, 250_000, 500, 950_000),
        reorder_ppm=20_000,
        duplicate_ppm=5,
    )
    assert "us loss gemodel 1% 25% 95% 0.05% reorder 2% duplicate 0.0005% rate" in line
    host = shaping.host_link("h", Shape(10_000_000, 5_000_000, bursts=Bursts(10, 20)))
    assert "loss gemodel 0.001% 0.002% 100% 0% rate" in host


def test_netlink_sets_the_same_impairments_as_tc():
    """The options of netem as the kernel reads them (linux/pkt_sched.h), and the loss read back."""
    shape = Shape(
        10_000_000,
        5_000_000,
        1_000_000,
        bursts=Bursts(10_000, 250_000, 1_000, 800_000),
        reorder_ppm=20_000,
        duplicate_ppm=30_000,
    )
    message = netlink._netem(7, 1000, shape)
    options = netlink.first_attribute(message[20:], netlink.TCA_OPTIONS)
    _, limit, loss, gap, duplicate, _ = struct.unpack_from("=6I", options)
    assert (limit, loss, gap) == (1000, 0, 1)
    own = dict(netlink.attributes(options[24:]))
    model = dict(netlink.attributes(own[5]))[2]
    whole = 2**32 - 1
    fractions = [each / whole for each in struct.unpack("=4I", model)]
    assert fractions == pytest.approx([0.01, 0.25, 0.2, 0.001])
    assert duplicate / whole == pytest.approx(0.03)
    assert struct.unpack("=2I", own[3])[0] / whole == pytest.approx(0.02)
    mean = (0.25 * 0.001 + 0.01 * 0.8) / 0.26
    assert netlink._configured_loss(options) == pytest.approx(mean, rel=1e-5)
    plain = netlink._netem(7, 1000, Shape(10_000_000, loss_ppm=50_000))
    options = netlink.first_attribute(plain[20:], netlink.TCA_OPTIONS)
    assert netlink._configured_loss(options) == pytest.approx(0.05)
    assert {kind for kind, _ in netlink.attributes(options[24:])} == {10, 11}


def test_a_stopped_link_owes_htb_no_more_than_a_second():
    """Its class can be set at all: the burst of a slower one does not fit into the request."""
    shape = Shape(STOPPED_BPS, 0, 0, 0, 50)
    frame_s = 8 * shaping.MTU_BYTES / shape.line_bps
    assert frame_s == 1
    burst = shaping.burst_bytes(shape.line_bps, shaping.LINK_BUCKET_MS)
    assert netlink._htb_class(1, shape.line_bps, burst)


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
        input=shaping.batch(shaping.rate(veth, Shape(rate_bps, queue_packets=200))),
        text=True,
        check=True,
    )
    shown = subprocess.run(
        ["tc", "class", "show", "dev", veth], capture_output=True, text=True, check=True
    ).stdout
    assert f"rate {rate_bps // 1000}Kbit ceil {rate_bps // 1000}Kbit" in shown
