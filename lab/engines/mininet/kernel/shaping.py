"""Build `tc` commands for rates, delays and losses. This module does not run the commands.

Each command is one line for `tc -batch`, so that one process can run all lines of a host. These
rules decide on which interface a queue or a delay is placed:

- A queue that must drop packets or be observed is on a forwarding interface. On the sending host it
  would never fill (TCP small queues).
- The delay of an access point is on its wired side. So the queue of its radio contains only packets
  that wait for the channel.
- Between switches HTB limits the rate, and not netem: netem computes on arrival when a packet
  leaves, so a new rate would not act on packets that wait.
- netem delays before the queue, so the queue contains only packets that wait because of the rate.
- netem always gets a rate. Without a rate, jitter would change the order of packets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from controller.units import STOPPED_BPS
from lab.topologies.bursts import Bursts
from lab.topologies.queues import FIFO, Discipline, red

MTU_BYTES, ACK_BYTES = 1514, 86  # of a frame with data, and of one without (with MPTCP's options)
UNLIMITED_PACKETS = 20_000
FQ, PFIFO, NETEM = 0x1, 0x10, 0x30  # major numbers of the qdiscs of `air`, `rate` and `link`
BEARER_BUCKET_MS, LINK_BUCKET_MS = 4, 10
FLOWS = "flows 1024 "  # of fq_codel: the kernel refuses to change it
LINE_RATE_BPS = 1_000_000_000  # of an unshaped link; also keeps netem first-in first-out


@dataclass(frozen=True)
class Shape:
    """One direction of a wired link. `rate_bps` is None without a limit.

    `queue_packets` is how many packets may wait because of the rate, not counting packets that are
    being delayed. Jitter does not change the order of packets. `frame_bytes` is the usual size of
    the frames. `fastest_bps` is the largest rate that the link has had. `discipline` says which of
    the packets that wait are dropped or marked. With `bursts`, `loss_ppm` is the mean of what they
    lose. `reorder_ppm` of the packets skip the delay, and `duplicate_ppm` are sent twice.
    """

    rate_bps: int | None
    delay_ns: int = 0
    jitter_ns: int = 0
    loss_ppm: int = 0
    queue_packets: int = UNLIMITED_PACKETS
    frame_bytes: int = MTU_BYTES
    fastest_bps: int = 0
    discipline: Discipline = FIFO
    bursts: Bursts | None = None
    reorder_ppm: int = 0
    duplicate_ppm: int = 0

    @property
    def line_bps(self) -> int:
        """The rate for HTB. A stopped link lets one full frame a second pass: HTB counts what it
        has sent as time, so it would wait for a slower frame also when the rate has risen."""
        if self.rate_bps and self.rate_bps <= STOPPED_BPS:
            return 8 * MTU_BYTES
        return self.rate_bps or LINE_RATE_BPS

    @property
    def transmission_ns(self) -> int:
        """How long a frame takes at the largest rate that the link has had. What arrives while the
        link is slower must not be late when it is fast again."""
        fastest_bps = max(self.rate_bps or 0, self.fastest_bps)
        return self.frame_bytes * 8 * 10**9 // fastest_bps if fastest_bps else 0

    @property
    def netem_ns(self) -> int:
        """By how much netem delays: HTB passes a packet on when its transmission begins."""
        return self.delay_ns + self.transmission_ns


def burst_bytes(rate_bps: int, bucket_ms: int = BEARER_BUCKET_MS) -> int:
    """Return the size of a token bucket [bytes], at least two frames.

    The bucket makes up for late timers of a busy machine: a smaller one would lose rate.
    """
    return max(2 * MTU_BYTES, rate_bps * bucket_ms // 8 // 1000)


def link(device: str, shape: Shape) -> list[str]:
    """Return the `tc` lines that shape one direction of a link between two switches.

    `device` is the interface that sends in this direction.
    """
    return [
        f"qdisc replace dev {device} root handle 1: htb default 1",
        *changed_link(device, shape),
        f"qdisc replace dev {device} parent 30:1 handle 10: {_queue(shape)}",
    ]


def changed_queue(device: str, shape: Shape, is_another_kind: bool) -> list[str]:
    """Return the `tc` lines that give a link made by `link` another queue.

    With another kind, what waits is dropped. With the same kind it stays, but red drops it, and
    what a smaller codel or fq_codel cannot hold is dropped from its head.
    """
    place = f"dev {device} parent 30:1 handle 10:"
    if is_another_kind:
        return [f"qdisc del {place}", f"qdisc add {place} {_queue(shape)}"]
    return [f"qdisc change {place} {_queue(shape).replace(FLOWS, '')}"]


def _queue(shape: Shape) -> str:
    """Return the qdisc in which packets wait because of the rate.

    netem hands it packets when HTB can send one. So CoDel finds each of them up to one transmission
    younger than it is.
    """
    packets, discipline = shape.queue_packets, shape.discipline
    if discipline.kind == "fifo":
        return f"pfifo limit {packets}"
    if discipline.kind == "red":
        return _red(shape)
    of_flows = f"{FLOWS}quantum 1514 memory_limit 1Gb " if discipline.kind == "fq_codel" else ""
    return (
        f"{discipline.kind} limit {packets} {of_flows}target {discipline.target_ms:g}ms "
        f"interval {discipline.interval_ms:g}ms {'ecn' if discipline.is_marking else 'noecn'}"
    )


def _red(shape: Shape) -> str:
    own = red(shape.discipline, shape.queue_packets)
    limit, least, most = (
        packets * MTU_BYTES for packets in (shape.queue_packets, own.min_packets, own.max_packets)
    )
    return (
        f"red limit {limit} min {least} max {most} avpkt {MTU_BYTES} burst {own.burst} probability "
        f"{shape.discipline.probability:g} bandwidth {shape.line_bps}bit"
        f"{' ecn' if shape.discipline.is_marking else ''}"
    )


def changed_link(device: str, shape: Shape) -> list[str]:
    """Return the `tc` lines that give a link made by `link` a new rate, delay, jitter and loss.

    Packets that wait stay in the queue. The new rate acts on them at once; only the last packet
    sent is paid for at the old rate. A new delay and a new loss act on packets that arrive later.
    """
    netem = _netem(shape, shape.netem_ns, UNLIMITED_PACKETS, LINE_RATE_BPS)
    return [
        rate_class(device, shape.line_bps, LINK_BUCKET_MS),
        f"qdisc replace dev {device} parent 1:1 handle 30: {netem}",
    ]


def host_link(device: str, shape: Shape) -> str:
    """Return the `tc` line that shapes one direction of a link of a host.

    netem also limits the rate. Its limit counts the packets that are being delayed, too, so the
    bandwidth-delay product is added to it. Expected rates put an fq qdisc behind it (`paced`), with
    which HTB stopped sending.
    """
    delayed = (shape.delay_ns + shape.jitter_ns) * shape.line_bps // (8 * MTU_BYTES * 10**9)
    netem = _netem(shape, shape.delay_ns, shape.queue_packets + delayed, shape.line_bps)
    return f"qdisc replace dev {device} root handle 30: {netem}"


def _netem(shape: Shape, delay_ns: int, limit: int, rate_bps: int) -> str:
    jitter = f" {shape.jitter_ns / 1000:.6g}us" if shape.jitter_ns else ""
    reorder = f" reorder {_percent(shape.reorder_ppm)}" if shape.reorder_ppm else ""
    duplicate = f" duplicate {_percent(shape.duplicate_ppm)}" if shape.duplicate_ppm else ""
    return (
        f"netem limit {limit} delay {delay_ns / 1000:.9g}us{jitter}{_loss(shape)}{reorder}"
        f"{duplicate} rate {rate_bps}bit"
    )


def _loss(shape: Shape) -> str:
    """Return netem's words for a loss. Those of bursts are, in this order: p, r, 1-h and 1-k."""
    if bursts := shape.bursts:
        values = (bursts.begin_ppm, bursts.end_ppm, bursts.bad_ppm, bursts.good_ppm)
        return f" loss gemodel {' '.join(map(_percent, values))}"
    return f" loss {_percent(shape.loss_ppm)}" if shape.loss_ppm else ""


def _percent(ppm: int) -> str:
    return f"{ppm / 10_000:.6g}%"


def rate(device: str, shape: Shape) -> list[str]:
    """Return the `tc` lines of an HTB qdisc that limits the rate, with a queue.

    Packets are delayed and lost before they enter the queue. So the queue contains only packets
    that wait because of the rate.
    """
    is_netem = shape.delay_ns or shape.loss_ppm
    delayed = [
        f"qdisc replace dev {device} parent 1:1 handle 20: netem limit {UNLIMITED_PACKETS} "
        f"delay {shape.delay_ns / 1000:.6g}us{_loss(shape)}"
    ]
    return [
        f"qdisc replace dev {device} root handle 1: htb default 1",
        rate_class(device, shape.line_bps),
        *(delayed if is_netem else ()),
        f"qdisc replace dev {device} parent {'20:1' if is_netem else '1:1'} handle 10: "
        f"{_queue(shape)}",
    ]


def rate_class(device: str, rate_bps: int, bucket_ms: int = BEARER_BUCKET_MS) -> str:
    """Return the `tc` line that sets the rate of the HTB qdisc made by `link` or `rate`.

    The line can also be run later, to change the rate while traffic flows.
    """
    burst = burst_bytes(rate_bps, bucket_ms)
    return (
        f"class replace dev {device} parent 1: classid 1:1 htb rate {rate_bps}bit "
        f"burst {burst} cburst {burst} quantum {MTU_BYTES}"
    )


def arriving(port: str, pin: str | None = None) -> list[str]:
    """Return the `tc` lines that add an ingress qdisc to `port`, for actions on arriving packets.

    `pin` is the path of a pinned eBPF program. The program becomes the first action on each packet.
    """
    lines = [f"qdisc add dev {port} handle ffff: ingress"]
    if pin:
        lines.append(f"filter add dev {port} parent ffff: pref 1 bpf da pinned {pin}")
    return lines


def uplink(port: str, device: str, shape: Shape) -> list[str]:
    """Return the `tc` lines that give packets arriving at `port` a queue, a rate and a delay.

    The kernel has no queue for arriving packets. So they are redirected to `device`, an ifb
    interface. It queues the packets and then passes them back to `port`. Run the lines of
    `arriving` for `port` first.
    """
    redirect = f"matchall action mirred egress redirect dev {device}"
    return [
        *rate(device, shape),
        f"filter add dev {port} parent ffff: pref 2 {redirect}",
    ]


def air(device: str, section: str, pins: Iterable[str]) -> list[str]:
    """Return the `tc` lines for a radio interface: an fq qdisc and eBPF programs of WiFi cells.

    A cell's program computes when each packet leaves, and fq keeps the packet until then. A station
    that can move needs the programs of all cells that it may enter. `pins` has one folder of pinned
    programs per cell. `section` is the program's name in these folders, "downlink" or "uplink".
    """
    return [
        f"qdisc replace dev {device} root handle 1: fq limit 20000 flow_limit 20000 nopacing",
        f"qdisc add dev {device} clsact",
        *(f"filter add dev {device} egress bpf da pinned {each}/{section}" for each in pins),
    ]


def paced(device: str, shaped: bool) -> str:
    """Return the `tc` line that adds an fq qdisc to an interface, for the pacing of TCP sockets.

    Without fq, TCP's own timer sends one packet at a time, and a late timer lowers the rate. fq
    sends all packets that are due. If `shaped` is True, the interface has the netem qdisc made by
    `host_link`, and fq becomes its child. Otherwise fq becomes the root qdisc.
    """
    place = "parent 30:1" if shaped else "root"
    return f"qdisc replace dev {device} {place} handle 40: fq limit 20000 flow_limit 20000"


def batch(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"
