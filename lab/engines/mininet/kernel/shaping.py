"""Build `tc` lines from rates and delays. Nothing is run, so tests need no root.

These rules decide where a queue or a delay is placed:

- A queue that must drop packets or be observed is on a forwarding device; on the sending host it
  would never fill (TCP small queues).
- The delay of an access point is on its wired side, so that a radio's queue holds only packets that
  wait for the channel.
- netem always has a rate, because with one it keeps the order of packets in spite of jitter.
- Each line is one command of `tc -batch`: one process shapes a whole host.
"""

from __future__ import annotations

from collections.abc import Iterable

MTU_BYTES = 1514
UNLIMITED_PACKETS = 20_000
FQ, PFIFO, NETEM = 0x1, 0x10, 0x30  # major numbers of the qdiscs of `air`, `rate` and `link`
LINE_RATE_BPS = 1_000_000_000  # of an unshaped link; also keeps netem first-in first-out


def burst_bytes(rate_bps: int) -> int:
    """Return the depth of a token bucket: 4 ms of traffic, at least two frames."""
    return max(2 * MTU_BYTES, rate_bps * 4 // 8 // 1000)


def link(
    device: str,
    rate_bps: int | None,
    delay_ns: int,
    jitter_ns: int = 0,
    loss_ppm: int = 0,
    queue_packets: int = UNLIMITED_PACKETS,
) -> str:
    """Return the netem of one direction of a wired link: rate, delay without reordering, loss.

    netem's limit counts packets that are queued or in flight, so it is the queue's length plus the
    bandwidth-delay product.
    """
    line_bps = rate_bps or LINE_RATE_BPS
    limit = queue_packets + (delay_ns + jitter_ns) * line_bps // (8 * MTU_BYTES * 10**9)
    jitter = f" {jitter_ns / 1000:.6g}us" if jitter_ns else ""
    loss = f" loss {loss_ppm / 10_000:.6g}%" if loss_ppm else ""
    return (
        f"qdisc replace dev {device} root handle 30: netem limit {limit} "
        f"delay {delay_ns / 1000:.6g}us{jitter}{loss} rate {line_bps}bit"
    )


def rate(device: str, rate_bps: int, queue_packets: int, verb: str = "replace") -> list[str]:
    """Return an HTB with one class of this rate over a finite first-in first-out queue."""
    return [
        f"qdisc {verb} dev {device} root handle 1: htb default 1",
        rate_class(device, rate_bps),
        f"qdisc {verb} dev {device} parent 1:1 handle 10: pfifo limit {queue_packets}",
    ]


def rate_class(device: str, rate_bps: int) -> str:
    """Return the class of `rate`; it can be replaced while traffic flows."""
    burst = burst_bytes(rate_bps)
    return (
        f"class replace dev {device} parent 1: classid 1:1 htb rate {rate_bps}bit "
        f"burst {burst} cburst {burst} quantum {MTU_BYTES}"
    )


def air(device: str, section: str, pins: str) -> list[str]:
    """Return the queue of a radio.

    The cell's program gives each packet its departure time, and fq keeps it until then.
    """
    return [
        f"qdisc replace dev {device} root handle 1: fq limit 20000 flow_limit 20000 nopacing",
        f"qdisc add dev {device} clsact",
        f"filter add dev {device} egress bpf da pinned {pins}/{section}",
    ]


def paced(device: str, shaped: bool) -> str:
    """Return the fq of a sender whose sockets are paced.

    TCP gives each packet its departure time, and fq keeps it until then. TCP's own timer would send
    one packet at a time and never make up for a delay; fq holds several packets and sends those
    that are due together. `shaped`: the device has the netem of `link`, and fq is its child.
    """
    place = "parent 30:1" if shaped else "root"
    return f"qdisc replace dev {device} {place} handle 40: fq limit 20000 flow_limit 20000"


def batch(lines: Iterable[str]) -> str:
    """Return the text for `tc -batch -`."""
    return "\n".join(lines) + "\n"
