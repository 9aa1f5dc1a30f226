"""Measure the RTT of a subflow, and compute its retransmission timeout (RTO).

RFC 6298 leaves open how often the RTT variance is sampled. Here the rule is Linux's
(tcp_rtt_estimator): every acknowledgement gives a sample, the variance rises immediately, and it
falls only once per round trip. The RTO exceeds the smoothed RTT by at least 200 ms. The handshake
gives the first sample.
"""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core import rings
from lab.engines.sim.core.jit import Ints, jit

LEAST_MARGIN_NS = 200_000_000  # TCP_RTO_MIN: the RTO is longer than SRTT by at least this
LEAST_DEVIATION_NS = LEAST_MARGIN_NS // 4


@jit
def start(row: Ints, f: int, rtt_ns: int) -> None:
    """Set RTT and RTO of subflow `f` from the RTT of its handshake."""
    row[f + at.SRTT_NS] = row[f + at.BASE_RTT_NS] = rtt_ns
    row[f + at.RTT_DEVIATION_NS] = rtt_ns // 2
    row[f + at.RTTVAR_NS] = max(rtt_ns // 2, LEAST_DEVIATION_NS)
    row[f + at.LARGEST_DEVIATION_NS] = row[f + at.RTTVAR_NS]
    row[f + at.RTO_NS] = row[f + at.RECEIVER_RTO_NS] = rtt_ns + 4 * row[f + at.RTTVAR_NS]


@jit
def is_remembered(row: Ints, f: int, number: int) -> bool:
    """Return True if the ring buffer of subflow `f` still holds transmission `number`. It holds the
    last RING_SIZE transmissions."""
    return row[f + at.TRANSMISSIONS] - row[at.RING_SIZE] < number


@jit
def measure(row: Ints, f: int, number: int, expected: int, now_ns: int) -> None:
    """Update RTT and RTO of subflow `f` with the acknowledgement of its transmission `number`.
    `expected` is the segment that the receiver expects next.

    Each retransmission has its own number, so RTT samples are as exact as with time stamps.
    """
    if not is_remembered(row, f, number):
        return
    sample_ns = now_ns - row[rings.segment(row, f, number) + rings.SENT_NS]
    error_ns = sample_ns - row[f + at.SRTT_NS]
    row[f + at.SRTT_NS] += error_ns // 8
    row[f + at.BASE_RTT_NS] = min(row[f + at.BASE_RTT_NS], sample_ns)
    row[f + at.ROUND_MIN_RTT_NS] = min(row[f + at.ROUND_MIN_RTT_NS], sample_ns)
    row[f + at.ROUND_RTT_SUM_NS] += sample_ns
    row[f + at.ROUND_SAMPLES] += 1
    _update_variance(row, f, error_ns, expected)
    row[f + at.RTO_NS] = row[f + at.SRTT_NS] + 4 * row[f + at.RTTVAR_NS]


@jit
def _update_variance(row: Ints, f: int, error_ns: int, expected: int) -> None:
    """Update RTTVAR of subflow `f` after an RTT sample. `error_ns` is the sample minus SRTT, and
    `expected` is the segment that the receiver expects next.

    The mean deviation follows each sample. If the sample is below SRTT and would raise the mean
    deviation, it rises by only an eighth as much. RTTVAR is at least the largest mean deviation of
    this round trip. At the end of the round trip, RTTVAR falls a quarter of the way to this largest
    deviation.
    """
    change_ns = abs(error_ns) - row[f + at.RTT_DEVIATION_NS]
    if error_ns < 0 and change_ns > 0:
        change_ns //= 8
    row[f + at.RTT_DEVIATION_NS] += change_ns // 4
    largest_ns = max(row[f + at.LARGEST_DEVIATION_NS], row[f + at.RTT_DEVIATION_NS])
    row[f + at.LARGEST_DEVIATION_NS] = largest_ns
    row[f + at.RTTVAR_NS] = max(row[f + at.RTTVAR_NS], largest_ns)
    if expected > row[f + at.RTT_ROUND_END]:
        row[f + at.RTTVAR_NS] -= (row[f + at.RTTVAR_NS] - largest_ns) // 4
        row[f + at.LARGEST_DEVIATION_NS] = LEAST_DEVIATION_NS
        row[f + at.RTT_ROUND_END] = row[f + at.SND_NXT]
