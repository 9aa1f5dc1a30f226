"""Exchange netlink messages with the kernel: read packet queues (qdiscs) and change their rates.

Netlink starts no process and parses no text, so it is fast enough for a sampling loop. A netlink
socket stays in the network namespace in which it was opened, so one process can have a socket in
each host. Struct layouts: linux/pkt_sched.h.

`Family` and `Listener` use generic netlink (linux/genetlink.h). A family is a kernel interface with
a name, such as `mptcp_pm` or `nl80211`.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lab.engines.mininet.kernel.shaping import Shape
from lab.errors import LabError
from lab.topologies.bursts import Bursts

NETLINK_ROUTE, NETLINK_SOCK_DIAG = 0, 4
REQUEST, DUMP, ACK, ECHO = 0x1, 0x300, 0x4, 0x8
ERROR, DONE = 2, 3
RTM_GETLINK, RTM_NEWQDISC, RTM_GETQDISC, RTM_NEWTCLASS = 18, 36, 38, 40
TCA_KIND, TCA_OPTIONS, TCA_STATS = 1, 2, 3
TCA_NETEM_REORDER, TCA_NETEM_LOSS, TCA_NETEM_LATENCY64, TCA_NETEM_JITTER64 = 3, 5, 10, 11
NETEM_LOSS_GE = 2  # in TCA_NETEM_LOSS: the model of Gilbert and Elliott
NETEM_OPTIONS_BYTES = 24  # before the attributes: struct tc_netem_qopt
NETEM_WHOLE = 0xFFFFFFFF  # all packets, as a fraction
CLONE_NEWNET = 0x40000000
TICK_NS = 64  # the packet scheduler's clock
BATCH = 16  # requests whose answers fit into a socket's buffer
Handle = tuple[int, int]  # of a qdisc: its interface's number, its major number
T = TypeVar("T")


def inside(pid: int, function: Callable[[], T]) -> T:
    """Call `function` in the network namespace of the process `pid`, and return its result.

    The calling thread enters the namespace and comes back. Raises `LabError` without root.
    """
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        _set_namespace(there)
        try:
            return function()
        finally:
            _set_namespace(here)
    finally:
        os.close(here)
        os.close(there)


def _set_namespace(fd: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(fd, CLONE_NEWNET) != 0:
        raise LabError(
            f"enter a network namespace: {os.strerror(ctypes.get_errno())}. "
            "The emulation needs root: use --vm, or sudo"
        )


@dataclass(frozen=True)
class Queue:
    """The counters of a qdisc.

    `backlog_packets` is the number of packets in the queue now. The others count since the qdisc
    was made.
    """

    backlog_packets: int
    drops: int
    sent_bytes: int
    sent_packets: int


class Scheduler:
    """Read qdiscs and change their rates, in the network namespace in which this object is created.

    A `Handle` identifies a qdisc: the number of its interface, and its major number.
    """

    def __init__(self) -> None:
        self._socket = open_socket(NETLINK_ROUTE)

    def index(self, device: str) -> int:
        """Return the number of a network interface. Raises `LabError` if it does not exist."""
        body = struct.pack("=BxHiII", 0, 0, 0, 0, 0) + attribute(3, device.encode() + b"\0")
        try:
            _kind, payload = next(request(self._socket, RTM_GETLINK, REQUEST, body))
        except (LabError, StopIteration) as problem:
            raise LabError(
                f"find the interface {device}: {problem or 'no answer'}. See `ip link`"
            ) from problem
        return int(struct.unpack_from("=i", payload, 4)[0])

    def queues(self, wanted: Sequence[Handle]) -> dict[Handle, Queue]:
        """Return the counters of the qdiscs in `wanted`, without those that do not exist.

        It is too slow to read all qdiscs of a machine with many switches. So the caller lists the
        ones that it needs.
        """
        return {
            each: _queue(first_attribute(answer, TCA_STATS).ljust(36, b"\0"))
            for each, answer in self._qdiscs(wanted)
        }

    def losses(self, wanted: Sequence[Handle]) -> dict[Handle, float]:
        """Return the configured random loss, from 0 to 1, of each netem qdisc in `wanted`. Of
        losses in bursts, this is the mean."""
        return {
            each: _configured_loss(first_attribute(answer, TCA_OPTIONS))
            for each, answer in self._qdiscs(wanted)
            if first_attribute(answer, TCA_KIND) == b"netem\0"
        }

    def losses_of(self, names: Mapping[int, str]) -> dict[str, float]:
        """Return the configured random loss of interfaces by name, whatever handles netem has.

        `names` has the number and the name of each interface. Of several netem qdiscs of an
        interface, a packet passes all. This reads every qdisc of the network namespace.
        """
        body, kept = struct.pack("=BxxxiIII", 0, 0, 0, 0, 0), dict.fromkeys(names.values(), 1.0)
        for _, answer in request(self._socket, RTM_GETQDISC, REQUEST | DUMP, body):
            name = names.get(struct.unpack_from("=i", answer, 4)[0])
            if name and first_attribute(answer[20:], TCA_KIND) == b"netem\0":
                kept[name] *= 1.0 - _configured_loss(first_attribute(answer[20:], TCA_OPTIONS))
        return {name: 1.0 - share for name, share in kept.items()}

    def _qdiscs(self, wanted: Sequence[Handle]) -> Iterator[tuple[Handle, bytes]]:
        """Yield the encoded attributes of those qdiscs in `wanted` that exist."""
        bodies = [
            struct.pack("=BxxxiIII", 0, interface, major << 16, 0, 0) for interface, major in wanted
        ]
        for each, answer in zip(
            wanted, request_each(self._socket, RTM_GETQDISC, bodies), strict=True
        ):
            if answer is not None:
                yield each, answer[20:]

    def set_rates(self, rates: Mapping[int, tuple[int, int]]) -> None:
        """Change rate and burst of the HTB class 1:1 of interfaces, as `tc class replace` does.

        `rates` maps the number of an interface to a rate [bit/s] and a burst [bytes]. If the kernel
        refuses some of the changes, the others are made, and `LabError` is raised.
        """
        change_each(
            self._socket,
            RTM_NEWTCLASS,
            [_htb_class(interface, *limit) for interface, limit in rates.items()],
        )

    def set_netem(self, interface: int, limit: int, shape: Shape) -> None:
        """Change the netem qdisc 30: in the HTB class 1:1 of an interface, as `tc qdisc change`.

        `limit` is the most packets that are being delayed. Its rate stays. A link that loses in
        bursts begins in the good state again. Raises `LabError` if the kernel refuses.
        """
        change_each(self._socket, RTM_NEWQDISC, [_netem(interface, limit, shape)])

    def close(self) -> None:
        self._socket.close()


def _netem(interface: int, limit: int, shape: Shape) -> bytes:
    loss, reorder, duplicate = (
        ppm * NETEM_WHOLE // 1_000_000
        for ppm in (shape.loss_ppm, shape.reorder_ppm, shape.duplicate_ppm)
    )
    gap = int(reorder > 0)  # any packet may skip the delay, as with tc
    loss = 0 if shape.bursts else loss
    options = struct.pack("=6I", 0, limit, loss, gap, duplicate, 0)
    if shape.bursts:
        options += attribute(TCA_NETEM_LOSS, attribute(NETEM_LOSS_GE, _bursts(shape.bursts)))
    if reorder:
        options += attribute(TCA_NETEM_REORDER, struct.pack("=2I", reorder, 0))
    options += attribute(TCA_NETEM_LATENCY64, struct.pack("=q", shape.netem_ns))
    options += attribute(TCA_NETEM_JITTER64, struct.pack("=q", shape.jitter_ns))
    head = struct.pack("=BxxxiIII", 0, interface, 0x300000, 0x10001, 0)
    return head + attribute(TCA_KIND, b"netem\0") + attribute(TCA_OPTIONS, options)


def _bursts(bursts: Bursts) -> bytes:
    """Encode a struct tc_netem_gemodel: p, r, h and 1-k. h is what the bad state lets through."""
    passed_ppm = 1_000_000 - bursts.bad_ppm
    values = (bursts.begin_ppm, bursts.end_ppm, passed_ppm, bursts.good_ppm)
    return struct.pack("=4I", *(ppm * NETEM_WHOLE // 1_000_000 for ppm in values))


def _configured_loss(options: bytes) -> float:
    """Return the loss in the options of a netem qdisc, from 0 to 1."""
    model = first_attribute(options[NETEM_OPTIONS_BYTES:], TCA_NETEM_LOSS)
    if bursts := first_attribute(model, NETEM_LOSS_GE):
        begin, end, passed, good = struct.unpack_from("=4I", bursts)
        bad = NETEM_WHOLE - passed
        return float((end * good + begin * bad) / (begin + end) / NETEM_WHOLE)
    return float(struct.unpack_from("=I", options, 8)[0] / NETEM_WHOLE)


def _htb_class(interface: int, rate_bps: int, burst_bytes: int) -> bytes:
    limit = struct.pack("=BBHhHI", 0, 1, 0, 0, 0, rate_bps // 8)
    ticks = burst_bytes * 8 * 1_000_000_000 // rate_bps // TICK_NS
    options = attribute(1, limit + limit + struct.pack("=5I", ticks, ticks, 1514, 0, 0))
    head = struct.pack("=BxxxiIII", 0, interface, 0x10001, 0x10000, 0)
    return head + attribute(1, b"htb\0") + attribute(2, options)


def _queue(stats: bytes) -> Queue:
    """Decode a struct tc_stats: bytes, packets, drops, overlimits, bps, pps, qlen, backlog."""
    sent_bytes, sent_packets, drops, _overlimits, _bps, _pps, waiting = struct.unpack_from(
        "=QIIIIII", stats
    )
    return Queue(waiting, drops, sent_bytes, sent_packets)


def open_socket(protocol: int) -> socket.socket:
    """Open a netlink socket of this `protocol` in the network namespace of the calling thread."""
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    opened.bind((0, 0))
    opened.settimeout(5)
    return opened


def request(
    netlink: socket.socket, kind: int, flags: int, body: bytes
) -> Iterator[tuple[int, bytes]]:
    """Send one netlink request, and yield the message type and the payload of each answer.

    `kind` is the message type of the request. The answers end at a message of type DONE or ERROR.
    The kernel sends such a message only if `flags` has DUMP or ACK. Otherwise the answers end after
    the first datagram. Raises `LabError` with the kernel's reason if the kernel refuses.
    """
    netlink.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)
    while True:
        data, at = netlink.recv(1 << 18), 0
        while at < len(data):
            length, answer = struct.unpack_from("=IH", data, at)
            payload = data[at + 16 : at + length]
            if answer == DONE:
                return
            if answer == ERROR:
                status = struct.unpack_from("=i", payload)[0]
                if status < 0:  # some families answer with a positive number
                    raise LabError(f"netlink request {kind}: {os.strerror(-status)}")
                return
            yield answer, payload
            at += (length + 3) & ~3
        if not flags & DUMP & ~REQUEST and not flags & ACK:
            return


def request_each(
    netlink: socket.socket, kind: int, bodies: Sequence[bytes]
) -> Iterator[bytes | None]:
    """Send one netlink request per body, and yield the payload of each answer in the same order.

    All requests have the message type `kind`. The answer is None if the kernel refuses a request,
    for example because the requested object does not exist.
    """
    for start in range(0, len(bodies), BATCH):
        batch = bodies[start : start + BATCH]
        netlink.send(
            b"".join(
                struct.pack("=IHHII", 16 + len(body), kind, REQUEST | ECHO, 1, 0) + body
                for body in batch
            )
        )
        answers = [netlink.recv(1 << 16) for _ in batch]
        yield from (
            None if struct.unpack_from("=H", answer, 4)[0] == ERROR else answer[16:]
            for answer in answers
        )


def change_each(netlink: socket.socket, kind: int, bodies: Sequence[bytes]) -> None:
    """Send netlink requests in one system call, and wait until the kernel has done them all.

    All requests have the message type `kind`. If the kernel refuses some requests, it still does
    the others. `LabError` is then raised with the kernel's reason for the first refusal.
    """
    if not bodies:
        return
    number, last, refused = 0, len(bodies), list[int]()
    netlink.send(
        b"".join(
            struct.pack("=IHHII", 16 + len(body), kind, REQUEST | ACK * (n == last), n, 0) + body
            for n, body in enumerate(bodies, 1)
        )
    )
    while number < last:
        number, status = struct.unpack_from("=I4xi", netlink.recv(1 << 16), 8)
        refused += [-status] if status < 0 else []
    if refused:
        raise LabError(f"netlink request {kind}: {os.strerror(refused[0])}")


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            return
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += (length + 3) & ~3


def first_attribute(data: bytes, wanted: int) -> bytes:
    """Return the body of the first netlink attribute numbered `wanted`, or b"" if there is none."""
    return next((body for kind, body in attributes(data) if kind == wanted), b"")


def attribute(kind: int, body: bytes) -> bytes:
    """Encode the netlink attribute number `kind`, padded to a multiple of 4 bytes."""
    length = 4 + len(body)
    return struct.pack("=HH", length, kind) + body + b"\0" * (-length % 4)


NETLINK_GENERIC = 16
CONTROLLER, GET_FAMILY, FAMILY_ID, FAMILY_NAME, GROUPS = 16, 3, 1, 2, 7
GROUP_NAME, GROUP_ID = 1, 2
SOL_NETLINK, ADD_MEMBERSHIP = 270, 1
HEADER_BYTES, NETLINK_HEADER_BYTES = 4, 16


class Family:
    """Send commands to the generic netlink family `name`.

    The commands act in the network namespace in which this object was created. The constructor
    raises `LabError` if the kernel does not have the family.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._socket = open_socket(NETLINK_GENERIC)
        try:
            query = _message(GET_FAMILY, attribute(FAMILY_NAME, name.encode() + b"\0"))
            reply = next(request(self._socket, CONTROLLER, REQUEST, query))
        except LabError as problem:
            self._socket.close()
            raise LabError(
                f"find the netlink family '{name}': {problem}. Its module is missing or not loaded"
            ) from problem
        described = dict(attributes(reply[1][HEADER_BYTES:]))
        self._id = struct.unpack("=H", described[FAMILY_ID])[0]
        self._groups = dict(
            _group(each) for _number, each in attributes(described.get(GROUPS, b""))
        )

    def request(self, command: int, body: bytes, flags: int = ACK) -> list[bytes]:
        """Send a command to the family, and return the encoded netlink attributes of each answer.

        `command` is the number of the command. `body` has its encoded attributes. `flags` are
        netlink flags; REQUEST is added to them. Raises `LabError` with the kernel's reason if the
        kernel refuses.
        """
        answers = request(self._socket, self._id, REQUEST | flags, _message(command, body))
        return [payload[HEADER_BYTES:] for _kind, payload in answers]

    def listen(self, group: str) -> Listener:
        """Listen to a multicast group of the family, in the calling thread's network namespace."""
        return Listener(self._groups[group])

    def close(self) -> None:
        self._socket.close()


class Listener:
    def __init__(self, group: int) -> None:
        self._socket = open_socket(NETLINK_GENERIC)
        self._socket.setblocking(False)
        self._socket.setsockopt(SOL_NETLINK, ADD_MEMBERSHIP, group)

    def fileno(self) -> int:
        return self._socket.fileno()

    def messages(self) -> Iterator[tuple[int, dict[int, bytes]]]:
        """Yield command number and attributes of each message received so far, without waiting.

        Messages are lost if they do not fit into the socket's buffer.
        """
        while True:
            try:
                data = self._socket.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:  # ENOBUFS: messages were lost
                continue
            payload = data[NETLINK_HEADER_BYTES:]
            yield payload[0], dict(attributes(payload[HEADER_BYTES:]))

    def close(self) -> None:
        self._socket.close()


def _group(described: bytes) -> tuple[str, int]:
    found = dict(attributes(described))
    return found[GROUP_NAME].rstrip(b"\0").decode(), struct.unpack("=I", found[GROUP_ID])[0]


def _message(command: int, body: bytes) -> bytes:
    return struct.pack("=BBH", command, 1, 0) + body
