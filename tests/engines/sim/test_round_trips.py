"""RTT samples and the RTO, compared with Linux's own arithmetic (tcp_rtt_estimator in
tcp_input.c)."""

from __future__ import annotations

import random

import pytest

from lab.engines.sim.core import round_trips

from .ends import Ends
from .networks import MS

LEAST_US = 200_000


class LinuxEstimator:
    """Fields of tcp_sock in us; `srtt` is scaled by 8, the deviations by 4."""

    def __init__(self, rtt_us):
        self.srtt, self.mdev = rtt_us << 3, rtt_us << 1
        self.rttvar = self.mdev_max = max(self.mdev, LEAST_US)

    def sample(self, rtt_us, *, ends_round):
        error = rtt_us - (self.srtt >> 3)
        self.srtt += error
        change = abs(error) - (self.mdev >> 2)
        self.mdev += change >> 3 if error < 0 and change > 0 else change
        self.mdev_max = max(self.mdev_max, self.mdev)
        self.rttvar = max(self.rttvar, self.mdev_max)
        if ends_round:
            self.rttvar -= (self.rttvar - self.mdev_max) >> 2
            self.mdev_max = LEAST_US

    @property
    def rto_ms(self):
        return ((self.srtt >> 3) + self.rttvar) / 1000


def measure(ends, rtt_ms):
    """Send a segment; its acknowledgement comes after `rtt_ms`."""
    ends.write(1)
    ends.now_ns += round(rtt_ms * MS)
    ends.arrive_and_acknowledge(ends.s.snd_una)


@pytest.mark.parametrize(("rtt_ms", "rto_ms"), [(20, 220), (66, 266), (300, 900)])
def test_the_handshake_gives_the_first_rto(rtt_ms, rto_ms):
    ends = Ends()
    round_trips.start(ends.s, rtt_ms * MS)
    assert ends.s.rto_ns == rto_ms * MS


@pytest.mark.parametrize("seed", range(20))
def test_the_rto_is_that_of_linux(seed):
    """There is one segment per RTT, so each acknowledgement but the first ends a round."""
    draw = random.Random(seed)
    ends, linux = Ends(), LinuxEstimator(50_000)
    round_trips.start(ends.s, 50 * MS)
    for _ in range(100):
        rtt_ms = 50 * draw.choice((1, 1, 2, 10, 40)) * draw.uniform(0.8, 1.2)
        measure(ends, rtt_ms)
        linux.sample(round(rtt_ms * 1000), ends_round=True)
        assert ends.s.rto_ns / MS == pytest.approx(linux.rto_ms, rel=0.001)


def test_the_variance_falls_once_per_round_trip():
    """All samples are of one flight: the largest deviation stays until the flight is
    acknowledged."""
    ends, linux = Ends(), LinuxEstimator(50_000)
    round_trips.start(ends.s, 50 * MS)
    measure(ends, 50)
    linux.sample(50_000, ends_round=True)
    ends.write(8)
    ends.now_ns += 900 * MS
    for segment in range(1, 9):
        ends.arrive_and_acknowledge(segment)
        linux.sample(900_000, ends_round=segment == 1)
    assert ends.s.rto_ns / MS == pytest.approx(linux.rto_ms, rel=0.001)
    assert linux.rto_ms > 1500
