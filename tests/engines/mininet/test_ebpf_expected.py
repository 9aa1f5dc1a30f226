"""The C code that limits windows to expected rates, compared with the simulator's."""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess

import pytest
from engines.sim.networks import MS, SECOND, Connection
from laws import PACKET, Round

from lab.engines.mininet.ebpf import SOURCES
from lab.engines.sim.core import congestion, expected_rate

MBPS = 1_000_000
INFINITE = 0x7FFFFFFF
EXPORTED = """
#include "expected.h"
void round_of(struct law_round *round, struct expected_state *state, u64 expected_bps)
{
	limit_round(round, state, expected_bps);
}
int compared(u32 window, u32 rtt_us, u64 expected_bps)
{
	return compare_rate(window, rtt_us, expected_bps);
}
u32 divisor(const struct expected_state *state, u64 expected_bps)
{
	return growth_divisor(state, expected_bps);
}
"""


class State(ctypes.Structure):
    """`struct expected_state` in expected.h."""

    _fields_ = [("divisor", ctypes.c_uint32), ("queue", ctypes.c_uint32)]


@pytest.fixture(scope="module")
def limit(tmp_path_factory):
    """The functions of expected.h, compiled for this machine."""
    compiler = shutil.which("clang") or shutil.which("gcc")
    if not compiler:
        pytest.skip("EXPECTED RATES IN C ARE NOT TESTED: no C compiler. Try: apt install clang")
    folder = tmp_path_factory.mktemp("expected")
    (folder / "expected.c").write_text(EXPORTED)
    argv = [compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", f"-I{SOURCES}"]
    argv += ["-shared", "-fPIC", folder / "expected.c", "-o", folder / "expected.so"]
    subprocess.run(argv, check=True)
    return ctypes.CDLL(str(folder / "expected.so"))


def ended(limit, state, bps, **fields):
    """End an RTT of a path whose base RTT is 30 ms; `state` is changed, too."""
    plain = {"rtt_us": 36_000, "base_rtt_us": 30_000, "samples": 10, "window": 40, "ssthresh": 1}
    its_round = Round(**plain | fields)
    limit.round_of(ctypes.byref(its_round), ctypes.byref(state), ctypes.c_uint64(bps))
    return its_round


def test_a_window_above_the_expected_rate_is_cut_while_its_queue_grows(limit):
    """Of 9 Mb/s over a base RTT of 30 ms, 0.9 are 20.06 packets."""
    state = State()
    cut = ended(limit, state, 9 * MBPS)
    assert cut.window + cut.fraction / PACKET == pytest.approx(20.06, abs=0.01)
    assert (cut.ssthresh, state.divisor) == (20, 5)
    shrinking = ended(limit, state, 9 * MBPS, rtt_us=34_000)
    assert (shrinking.window, state.divisor) == (40, 5)


def test_a_window_below_the_expected_rate_is_left_alone(limit):
    state = State(divisor=5)
    kept = ended(limit, state, 20 * MBPS)
    assert (kept.window, kept.ssthresh, state.divisor) == (40, 1, 1)
    assert limit.divisor(ctypes.byref(State(divisor=5)), ctypes.c_uint64(0)) == 1
    assert limit.divisor(ctypes.byref(State(divisor=5)), ctypes.c_uint64(MBPS)) == 5


def test_the_largest_numbers_do_not_overflow(limit):
    """A window of 2^18 packets and an RTT of 4.2 s at 137 Gb/s."""
    widest, longest, most = (1 << 18) - 1, (1 << 22) - 1, 1 << 37
    assert limit.compared(widest, longest, ctypes.c_uint64(most)) < 0
    assert limit.compared(widest, 1, ctypes.c_uint64(most)) > 0
    cut = ended(limit, State(), 10**9, rtt_us=longest, base_rtt_us=longest - 10**6, window=widest)
    assert cut.window == widest  # 700 Mb/s, less than expected
    base_us = 2_000_000
    cut = ended(limit, State(), 10**9, rtt_us=2_100_000, base_rtt_us=base_us, window=widest)
    assert cut.window == int(0.9 * 10**9 * base_us / 1e6 / (8 * 1514))


def simulated(connection, bps, its_round, state):
    """[window, threshold, divisor, queue] after the same RTT in the simulator."""
    (s,) = connection.rows
    connection.set(s, its_round.window + its_round.fraction / PACKET, float(its_round.ssthresh))
    s.base_rtt_ns, s.expected_bps = its_round.base_rtt_us * 1000, bps
    s.last_round_queue = state.queue / (1 << 16)
    congestion.on_round(s, its_round.rtt_us * 1000, its_round.samples)
    return [s.cwnd, s.ssthresh, s.growth_divisor, s.last_round_queue]


def test_random_round_trips_end_as_in_the_simulator(limit):
    rng, connection = random.Random(5), Connection("reno", (10,), (0.03,), expected_by="window")
    cuts = 0
    for _ in range(1500):
        base_us = rng.randint(1000, 200_000)
        rtt_us = base_us + rng.choice([0, rng.randint(0, 3000), rng.randint(0, base_us)])
        window = rng.choice([rng.randint(2, 40), rng.randint(2, 2000)])
        rate_bps = window * 8 * 1514 * 1_000_000 / rtt_us
        bps = int(rate_bps * rng.uniform(0.5, 1.5))
        state = State(rng.choice([0, 1, 5]), rng.choice([0, rng.randint(0, window << 16)]))
        its_round = Round(rtt_us, base_us, 10, window, rng.choice([INFINITE, window, 2]))
        wanted = simulated(connection, bps, its_round, state)
        limit.round_of(ctypes.byref(its_round), ctypes.byref(state), ctypes.c_uint64(bps))
        cwnd = its_round.window + its_round.fraction / PACKET
        got = [cwnd, its_round.ssthresh, state.divisor, state.queue / (1 << 16)]
        is_cut = its_round.window != window
        if is_cut:  # the simulator's threshold is the window with its fraction
            wanted[1] = float(int(wanted[1]))
        assert got == pytest.approx(wanted, abs=1e-3), (bps, base_us, rtt_us, window)
        cuts += is_cut
    assert cuts > 150


def test_slow_start_ends_at_the_expected_rate_as_in_the_simulator(limit):
    connection = Connection("reno", (10,), (0.03,), expected_by="window")
    (s,) = connection.rows
    for bps in (4_000_000, 4_037_000, 4_038_000, 5_000_000):
        s.srtt_ns, s.expected_bps = 30 * MS, bps
        connection.set(s, 10, SECOND)
        expected_rate.end_slow_start(s)
        reached = limit.compared(10, 30_000, ctypes.c_uint64(bps)) >= 0
        assert reached == (s.ssthresh == 10)
