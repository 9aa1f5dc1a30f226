"""Tail loss probes case by case (RFC 8985, section 7)."""

from __future__ import annotations

import pytest

from lab.engines.sim.core import acknowledgements, mptcp, sender, tail_loss_probe
from lab.engines.sim.core import state as at

from .ends import Ends
from .networks import MS


@pytest.fixture
def ends():
    return Ends()


def due_ms(ends):
    return (ends.s.timer.expires_ns - ends.now_ns) / MS


def probe(ends):
    """Let the timer expire when it is due; return how many segments are transmitted."""
    before = ends.s.transmissions
    expired = False
    while not expired:
        ends.now_ns = ends.s.timer.due_ns
        expired = mptcp.on_rto(ends.w, ends.s, ends.now_ns)
    return int(ends.s.transmissions - before)


def test_the_timer_is_for_a_probe_after_two_round_trips(ends):
    ends.s.srtt_ns, ends.s.rto_ns = 40 * MS, 240 * MS
    ends.write(2)
    assert (ends.s.timer_is_for, due_ms(ends)) == (at.PROBE, 82)


def test_a_single_segment_has_200_ms_more_but_the_rto_is_the_limit(ends):
    ends.s.srtt_ns, ends.s.rto_ns = 40 * MS, 300 * MS
    ends.write(1)
    assert due_ms(ends) == 280
    ends.s.rto_ns = 240 * MS
    sender.restart_timer(ends.w, ends.s, ends.now_ns, ends.now_ns)
    assert due_ms(ends) == 240


def test_a_probe_reveals_the_loss_before_it(ends):
    ends.write(10)
    ends.arrive_and_acknowledge(*range(8))
    assert probe(ends) == 1
    assert ends.state() == (2, 0, at.OPEN)
    assert ends.s.timer_is_for == at.RTO  # now it is the RTO
    ends.arrive_and_acknowledge(9)
    assert ends.state() == (0, 1, at.RECOVERY)
    assert ends.send() == [8]


def test_a_probe_is_a_new_segment_if_there_is_one_whatever_the_window(ends):
    ends.write(12)
    assert ends.state()[0] == 10
    assert probe(ends) == 1
    assert ends.state() == (11, 0, at.OPEN)
    assert ends.s.snd_nxt == 11


def test_there_is_one_probe_and_then_the_rto(ends):
    ends.write(2)
    probe(ends)
    assert ends.s.timer_is_for == at.RTO
    probe(ends)
    assert ends.state() == (0, 2, at.TIMED_OUT)


@pytest.mark.parametrize(("transmission", "cwnd"), [(2, 5), (1, 10)])
def test_only_a_loss_that_the_probe_repaired_reduces_the_window(ends, transmission, cwnd):
    """Transmission 1 is the last segment, transmission 2 its repetition."""
    ends.write(2)
    probe(ends)
    ends.arrive(0)
    ends.arrive_as(1, transmission)
    ends.acknowledge()
    assert ends.s.cwnd == pytest.approx(cwnd, abs=0.3)
    assert ends.s.probe_end == 0


def test_no_probe_is_sent_after_a_loss(ends):
    ends.write(10)
    ends.arrive_and_acknowledge(1, 2, 3)
    sender.restart_timer(ends.w, ends.s, ends.now_ns, ends.now_ns)
    assert ends.s.timer_is_for == at.RTO
    transmissions = ends.s.transmissions
    tail_loss_probe.send(ends.w, ends.s, ends.now_ns)
    assert ends.s.transmissions == transmissions
    acknowledgements.on_timeout(ends.w, ends.s, ends.now_ns)
    assert not sender.may_probe(ends.s)
