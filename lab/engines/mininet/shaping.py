"""Traffic-control text, nothing else: from rates and delays to `tc` lines. Tested on any laptop, without root.

Where what happens is decided by these rules:

- A queue that must drop or be observed sits on a forwarding device; on the sending host it would never fill
  (TCP small queues).
- Delay sits on the wired side of an access point, in a netem of its own, so that a radio's queue holds only what waits
  for the air. `rate` makes netem keep the order of packets in spite of jitter.
- Each line is one command of `tc -batch`: one process shapes a whole host.
"""

from __future__ import annotations

from collections.abc import Iterable

MTU_BYTES = 1514
LINE_RATE_BPS = 1_000_000_000  # of an unshaped link; also keeps netem first-in first-out


def burst_bytes(rate_bps: int) -> int:
    """A token bucket's depth: 4 ms of traffic, two frames at least."""
    return max(2 * MTU_BYTES, rate_bps * 4 // 8 // 1000)


def delay(device: str, delay_ns: int, jitter_ns: int = 0, loss_ppm: int = 0, parent: str = "root", handle: str = "30:") -> str:
    """A netem that delays (and loses) in order; its own queue never drops."""
    loss = f" loss {loss_ppm / 10_000:.6g}%" if loss_ppm else ""
    jitter = f" {jitter_ns / 1000:.6g}us" if jitter_ns else ""
    where = "root" if parent == "root" else f"parent {parent}"
    return (
        f"qdisc replace dev {device} {where} handle {handle} netem limit 20000"
        f" delay {delay_ns / 1000:.6g}us{jitter}{loss} rate {LINE_RATE_BPS}bit"
    )


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


def batch(lines: Iterable[str]) -> str:
    """The text for `tc -batch -`."""
    return "\n".join(lines) + "\n"
