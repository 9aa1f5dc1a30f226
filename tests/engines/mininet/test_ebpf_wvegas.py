"""wVegas's C code, compiled for this machine, compared with the simulator's wVegas."""

from __future__ import annotations

import random

import pytest
from engines.sim.networks import MS, Connection
from laws import Round, laws

from lab.engines.sim.core import congestion

__all__ = ["laws"]
RATE, ALPHA, MIN_QUEUE_US = range(3)  # indices in the memory of the law
RATE_UNIT = 1 << 20
MANY = 10  # samples in an RTT
INFINITE = 0x7FFFFFFF


def rate(window, rtt_ms):
    return int(window * 1000 * RATE_UNIT / rtt_ms)


def after(laws, others=(), **fields):
    """A path's state after an RTT; `others` are the rates of its siblings."""
    memory = (0, fields.pop("alpha", 0), fields.pop("min_queue_us", 0))
    plain = {"rtt_us": 36_000, "base_rtt_us": 30_000, "samples": MANY, "window": 24, "ssthresh": 1}
    its_round = Round(**plain | fields, memory=memory)
    laws["wvegas"].on_round([(24, 0.036, 0), *((1, 0.03, each) for each in others)], its_round)
    return its_round


def test_slow_start_ends_when_more_than_one_packet_is_in_queues(laws):
    ended = after(laws, ssthresh=INFINITE)
    assert (ended.window, ended.ssthresh) == (21, 20)
    goes_on = after(laws, ssthresh=INFINITE, rtt_us=31_000)
    assert (goes_on.window, goes_on.ssthresh) == (24, INFINITE)


@pytest.mark.parametrize(("weight", "alpha", "window"), [(0.601, 6, 25), (0.301, 3, 23)])
def test_the_window_approaches_the_share_of_ten_packets(laws, weight, alpha, window):
    """At an RTT of 36 ms, 4 of 24 packets are in queues."""
    own = rate(24, 36)
    done = after(laws, [int(own / weight) - own], ssthresh=24, min_queue_us=5000)
    assert (done.window, done.memory[ALPHA], done.memory[RATE]) == (window, alpha, own)
    assert done.ssthresh == (22 if window == 23 else 24)


def test_the_only_path_has_the_whole_share(laws):
    assert after(laws, ssthresh=24).memory[ALPHA] == 10


def test_a_doubled_queue_is_drained(laws):
    drained = after(laws, min_queue_us=2000)
    assert (drained.window, drained.memory[MIN_QUEUE_US]) == (10, 0)
    assert after(laws, rtt_us=30_000, window=39).ssthresh == 30  # of a window of 40


def test_a_path_without_a_queue_grows_and_does_not_drain(laws):
    assert after(laws, rtt_us=30_000).window == 25


def test_few_samples_make_it_grow_as_reno(laws):
    grown = after(laws, samples=2)
    assert (grown.window, grown.fraction) == (24, (1 << 40) // 24)


def test_a_loss_halves_the_window(laws):
    assert laws["wvegas"].after_loss([(24, 0.03, 0)], 0) == 12
    assert laws["wvegas"].after_loss([(3, 0.03, 0)], 0) == 2
    assert laws["wvegas"].increase([(24, 0.03, 0)], 0) == 0


def simulated(connection, others, its_round):
    """[window, threshold, alpha, smallest queue in us] after the same RTT in the simulator."""
    s, *siblings = connection.rows
    connection.set(s, its_round.window, float(its_round.ssthresh))
    s.base_rtt_ns = its_round.base_rtt_us * MS // 1000
    s.law.alpha = float(its_round.memory[ALPHA])
    s.law.min_queue_ns = its_round.memory[MIN_QUEUE_US] * 1000.0
    for sibling, its_rate in zip(siblings, others, strict=True):
        sibling.law.rate = its_rate / RATE_UNIT
    congestion.on_round(s, its_round.rtt_us * MS // 1000, its_round.samples)
    return [s.cwnd, s.ssthresh, s.law.alpha, s.law.min_queue_ns / 1000]


def random_round(rng):
    """Rates of three siblings, and the fields of a round trip in any state."""
    base_us = rng.randint(1000, 200_000)
    queue_us = rng.choice([0, rng.randint(0, 3000), rng.randint(0, base_us)])
    window = rng.choice([rng.randint(2, 40), rng.randint(2, 2000)])
    fields = {
        "rtt_us": base_us + queue_us,
        "base_rtt_us": base_us,
        "samples": rng.choice([1, 2, 3, MANY]),
        "window": window,
        "ssthresh": rng.choice([INFINITE, window + 1, window, max(1, window - 2), 2]),
        "memory": (0, rng.randint(0, 10), rng.choice([0, queue_us, queue_us // 3])),
    }
    others = [rate(rng.randint(1, 500), rng.randint(10, 300)) for _ in range(3)]
    return [others[0], *(each * rng.randint(0, 1) for each in others[1:])], fields


def test_random_round_trips_end_as_in_the_simulator(laws):
    rng, connection = random.Random("wvegas"), Connection("wvegas", (10,) * 4, (0.03,) * 4)
    changed = drained = 0
    for _ in range(1500):
        others, fields = random_round(rng)
        its_round = Round(**fields)
        wanted = simulated(connection, others, its_round)
        laws["wvegas"].on_round([(1, 0.03, 0), *((1, 0.03, each) for each in others)], its_round)
        window = its_round.window + its_round.fraction / (1 << 40)
        got = [window, its_round.ssthresh, *its_round.memory[1:]]
        assert got == pytest.approx(wanted, abs=1e-9), (others, fields)
        changed += window != fields["window"]
        drained += window < fields["window"] - 1 and fields["ssthresh"] <= fields["window"]
    assert changed > 700
    assert drained > 50
