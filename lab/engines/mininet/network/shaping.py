"""Traffic-control text, nothing else: from rates and delays to `tc` lines. Tested on any laptop, without root.

Where what happens is decided by these rules:

- A queue that must drop or be observed sits on a forwarding device; on the sending host it would never fill
  (TCP small queues).
- The delay of an access point sits on its wired side, so that a radio's queue holds only what waits for the air.
- netem is always given a rate, because that makes it keep the order of packets in spite of jitter.
- Each line is one command of `tc -batch`: one process shapes a whole host.
"""

from __future__ import annotations

from collections.abc import Iterable

MTU_BYTES = 1514
UNLIMITED_PACKETS = 20_000
FQ, PFIFO, NETEM = 0x1, 0x10, 0x30  # the major numbers of the queues of `air`, `rate` and `link`
LINE_RATE_BPS = 1_000_000_000  # of an unshaped link; also keeps netem first-in first-out


def burst_bytes(rate_bps: int) -> int:
    """A token bucket's depth: 4 ms of traffic, two frames at least."""
    return max(2 * MTU_BYTES, rate_bps * 4 // 8 // 1000)


def link(
    device: str,
    rate_bps: int | None,
    delay_ns: int,
    jitter_ns: int = 0,
    loss_ppm: int = 0,
    queue_packets: int = UNLIMITED_PACKETS,
) -> str:
    """One direction of a wired link in one netem: rate, delay in order, loss.

    netem's limit counts what is queued and what is under way, so it is the queue plus a bandwidth-delay product.
    """
    line_bps = rate_bps or LINE_RATE_BPS
    limit = queue_packets + (delay_ns + jitter_ns) * line_bps // (8 * MTU_BYTES * 10**9)
    jitter = f" {jitter_ns / 1000:.6g}us" if jitter_ns else ""
    loss = f" loss {loss_ppm / 10_000:.6g}%" if loss_ppm else ""
    return f"qdisc replace dev {device} root handle 30: netem limit {limit} delay {delay_ns / 1000:.6g}us{jitter}{loss} rate {line_bps}bit"


def rate(device: str, rate_bps: int, queue_packets: int, verb: str = "replace") -> list[str]:
    """An HTB with one class of this rate over a finite first-in first-out queue."""
    return [
        f"qdisc {verb} dev {device} root handle 1: htb default 1",
        rate_class(device, rate_bps),
        f"qdisc {verb} dev {device} parent 1:1 handle 10: pfifo limit {queue_packets}",
    ]


def rate_class(device: str, rate_bps: int) -> str:
    """The class of `rate`, also to change it while traffic flows."""
    burst = burst_bytes(rate_bps)
    return f"class replace dev {device} parent 1: classid 1:1 htb rate {rate_bps}bit burst {burst} cburst {burst} quantum {MTU_BYTES}"


def air(device: str, section: str, pins: str) -> list[str]:
    """A radio: the cell's program gives each packet its departure time, fq keeps it until then."""
    return [
        f"qdisc replace dev {device} root handle 1: fq limit 20000 flow_limit 20000 nopacing",
        f"qdisc add dev {device} clsact",
        f"filter add dev {device} egress bpf da pinned {pins}/{section}",
    ]


def paced(device: str, shaped: bool) -> str:
    """A sender whose sockets are held to rates: TCP gives each packet its time, fq keeps it until then.

    TCP's own timer would let one packet go at a time, and what it is late is lost; in fq several wait, and those that are due go
    together. `shaped`: the device has the netem of `link`, and fq stands behind it.
    """
    place = "parent 30:1" if shaped else "root"
    return f"qdisc replace dev {device} {place} handle 40: fq limit 20000 flow_limit 20000"


def batch(lines: Iterable[str]) -> str:
    """The text for `tc -batch -`."""
    return "\n".join(lines) + "\n"
