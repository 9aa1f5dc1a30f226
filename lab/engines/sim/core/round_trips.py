"""Measure the RTT of a subflow, and compute its retransmission timeout (RTO).

RFC 6298 leaves open how often the RTT variance is sampled. Here the rule is Linux's
(tcp_rtt_estimator): every acknowledgement gives a sample, the variance rises immediately, and it
falls only once per round trip. The RTO exceeds the smoothed RTT by at least 200 ms. The handshake
gives the first sample.
"""

from __future__ import annotations

from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Subflow, transmission

LEAST_MARGIN_NS = 200_000_000  # TCP_RTO_MIN: the RTO is longer than SRTT by at least this
LEAST_DEVIATION_NS = LEAST_MARGIN_NS // 4


@jit
def first_rto_ns(rtt_ns: int) -> int:
    """Return the RTO after the first sample of the RTT."""
    return rtt_ns + 4 * max(rtt_ns // 2, LEAST_DEVIATION_NS)


@jit
def start(s: Subflow, rtt_ns: int) -> None:
    """Set RTT and RTO of the sender of subflow `s` from the RTT of its handshake."""
    s.srtt_ns = s.base_rtt_ns = rtt_ns
    s.rtt_deviation_ns = rtt_ns // 2
    s.rttvar_ns = max(rtt_ns // 2, LEAST_DEVIATION_NS)
    s.largest_deviation_ns = s.rttvar_ns
    s.rto_ns = first_rto_ns(rtt_ns)


@jit
def is_remembered(s: Subflow, number: int) -> bool:
    """Return True if the ring buffer of subflow `s` still holds transmission `number`. It holds the
    last RING_SIZE transmissions."""
    return s.transmissions - s.ring_size < number


@jit
def measure(s: Subflow, number: int, expected: int, now_ns: int) -> None:
    """Update RTT and RTO of subflow `s` with the acknowledgement of its transmission `number`.
    `expected` is the segment that the receiver expects next.

    Each retransmission has its own number, so RTT samples are as exact as with time stamps.
    """
    if not is_remembered(s, number):
        return
    sample_ns = now_ns - transmission(s, number).sent_ns
    error_ns = sample_ns - s.srtt_ns
    s.srtt_ns += error_ns // 8
    s.base_rtt_ns = min(s.base_rtt_ns, sample_ns)
    s.round_min_rtt_ns = min(s.round_min_rtt_ns, sample_ns)
    s.round_rtt_sum_ns += sample_ns
    s.round_samples += 1
    _update_variance(s, error_ns, expected)
    s.rto_ns = s.srtt_ns + 4 * s.rttvar_ns


@jit
def _update_variance(s: Subflow, error_ns: int, expected: int) -> None:
    """Update RTTVAR of subflow `s` after an RTT sample. `error_ns` is the sample minus SRTT, and
    `expected` is the segment that the receiver expects next.

    The mean deviation follows each sample. If the sample is below SRTT and would raise the mean
    deviation, it rises by only an eighth as much. RTTVAR is at least the largest mean deviation of
    this round trip. At the end of the round trip, RTTVAR falls a quarter of the way to this largest
    deviation.
    """
    change_ns = abs(error_ns) - s.rtt_deviation_ns
    if error_ns < 0 and change_ns > 0:
        change_ns //= 8
    s.rtt_deviation_ns += change_ns // 4
    largest_ns = max(s.largest_deviation_ns, s.rtt_deviation_ns)
    s.largest_deviation_ns = largest_ns
    s.rttvar_ns = max(s.rttvar_ns, largest_ns)
    if expected > s.rtt_round_end:
        s.rttvar_ns -= (s.rttvar_ns - largest_ns) // 4
        s.largest_deviation_ns = LEAST_DEVIATION_NS
        s.rtt_round_end = s.snd_nxt


@jit
def take_handshake(s: Subflow, is_client: bool, tries: int, rtt_ns: int) -> None:
    """Give the RTT of the handshake to the end of subflow `s` that has measured it.

    This end has sent the packet that was answered `tries` times. If the end sends the data, and
    more than one of these packets was lost, its window is one segment (Linux, tcp_init_transfer).
    """
    if is_client:
        s.client_rtt_ns = rtt_ns
    if is_client == (s.connection.is_upload == 1):
        start(s, rtt_ns)
        if tries > 2:
            s.cwnd = 1.0
    else:
        s.receiver_rto_ns = first_rto_ns(rtt_ns)
