"""The rate at which the segments of a subflow are delivered, and the pacing of the subflow. Only
congestion controls that set their window by this rate need it (`Subflow.is_rate_based`).

A sample of the rate (Linux, tcp_rate.c; draft-cheng-iccrg-delivery-rate-estimation) is made for
each acknowledgement:
1) Each transmission remembers how many segments were delivered when it was sent, and when the last
   acknowledgement had come.
2) When it is acknowledged, the segments delivered since then, divided by the time since then, are
   the rate. The time is at least that in which these segments were sent. If several are
   acknowledged at once, the one that was sent last counts.
3) A sample says little about the path if meanwhile there was nothing to send. It is then marked.

Pacing (Linux, tcp_update_skb_after_send): a burst of one or two segments, or of a millisecond at
higher rates, is sent at once. The next one follows after the time that the pacing rate gives it.
Whoever is late catches up, by at most half of this time. The first ten segments are not paced.
"""

from __future__ import annotations

from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Subflow, Transmission, transmission

UNPACED = 10  # segments
SINGLE_BELOW_BPS = 1_200_000.0  # Linux, bbr_min_tso_rate
BURSTS_PER_S = 1024.0  # sk_pacing_shift
LARGEST_BURST = 127


@jit
def begin(s: Subflow) -> None:
    """Begin a sample, before anything else is done with an acknowledgement of subflow `s`."""
    if s.is_rate_based == 1:
        d = s.delivery
        d.number, d.prior_delivered, d.in_flight_before = at.NOTHING, 0, s.pipe


@jit
def note(s: Subflow, number: int) -> None:
    """Note that the segment of transmission `number` of subflow `s` is delivered (2)."""
    if s.is_rate_based == 0 or number < s.transmissions - s.ring_size:
        return
    d, sent = s.delivery, transmission(s, number)
    if sent.delivered_ns > 0 and (d.number == at.NOTHING or sent.delivered > d.prior_delivered):
        d.number, d.prior_delivered = number, sent.delivered


@jit
def measure(s: Subflow, number: int, changed: tuple[int, int], now_ns: int) -> None:
    """Complete the sample of an acknowledgement of subflow `s`, caused by transmission `number`.
    `changed` are the segments that are newly known to have arrived, and newly lost."""
    d = s.delivery
    d.acked, d.lost = changed
    d.delivered += d.acked
    d.interval_ns = d.count = d.is_app_limited = 0
    is_new = d.acked > 0 and number >= s.transmissions - s.ring_size
    d.rtt_ns = now_ns - transmission(s, number).sent_ns if is_new else at.NOTHING
    if d.app_limited > 0 and d.delivered > d.app_limited:
        d.app_limited = 0
    if d.acked > 0:
        d.delivered_ns = now_ns
    if d.number == at.NOTHING:
        return
    sent = transmission(s, d.number)
    d.first_sent_ns, d.prior_ns = sent.sent_ns, sent.delivered_ns
    d.is_app_limited = sent.is_app_limited
    d.count = d.delivered - d.prior_delivered
    d.is_delayed = int(d.acked == 1 and d.count == 1 and s.mode == at.OPEN)
    interval_ns = max(sent.sent_ns - sent.first_sent_ns, now_ns - d.prior_ns)
    d.interval_ns = interval_ns if interval_ns >= s.base_rtt_ns else 0


@jit
def tag(s: Subflow, sent: Transmission, is_only: bool) -> None:
    """Note what is known when subflow `s` makes the transmission `sent` (1). `is_only` is True if
    nothing else is in flight."""
    if s.is_rate_based == 0:
        sent.delivered_ns = 0
        return
    d = s.delivery
    if is_only:
        d.first_sent_ns = d.delivered_ns = sent.sent_ns
    sent.delivered, sent.delivered_ns = d.delivered, d.delivered_ns
    sent.first_sent_ns = d.first_sent_ns
    sent.is_app_limited = int(d.app_limited > 0)


@jit
def check_limited(s: Subflow) -> None:
    """Call this when the application has nothing to send. Mark the samples of what subflow `s` has
    in flight, and of the next segments (3), if it is this that limits its rate."""
    if s.snd_nxt == s.write_seq and s.lost == 0 and s.pipe < int(s.cwnd):
        s.delivery.app_limited = max(1, s.delivery.delivered + s.pipe)


@jit
def pacing_rate(s: Subflow) -> float:
    """Return the pacing rate of subflow `s` in segments/s. It is at most the expected rate."""
    if s.expected_bps > 0:
        return min(s.pacing_rate, s.expected_bps / (8 * s.connection.frame_bytes))
    return s.pacing_rate


@jit
def burst(s: Subflow) -> int:
    """Return how many segments subflow `s` sends at once."""
    rate = pacing_rate(s)
    least = 1 if rate * 8 * s.connection.segment_bytes < SINGLE_BELOW_BPS else 2
    return min(max(int(rate / BURSTS_PER_S), least), LARGEST_BURST)


@jit
def is_in_burst(s: Subflow, now_ns: int) -> bool:
    return s.paced_burst > 0 and s.paced_burst_ns == now_ns


@jit
def pace(s: Subflow, now_ns: int) -> None:
    """Set when subflow `s` may send again, now that it has sent a segment."""
    if s.segments_sent < UNPACED:
        s.paced_until_ns = now_ns
        return
    interval_ns = int(at.NS_PER_S / pacing_rate(s))
    if is_in_burst(s, now_ns):
        s.paced_burst -= 1
    else:
        late_ns = max(0, now_ns - s.paced_until_ns)
        segments = burst(s)
        s.paced_burst, s.paced_burst_ns = segments - 1, now_ns
        s.paced_until_ns = now_ns - min(segments * interval_ns // 2, late_ns)
    s.paced_until_ns += interval_ns
