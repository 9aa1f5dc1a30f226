"""No bytes from a socket end a task of the controller. POX itself is replaced by a stand-in."""

from __future__ import annotations

import random
import socket
import struct
from typing import Any

import pytest

from controller.pox_ext import openflow13_messages as messages


def test_a_datagram_that_raises_does_not_end_the_task(pox, caplog):
    taken: list[bytes] = []

    def take(data: bytes, sender: object) -> None:
        taken.append(data)
        if data == b"bad":
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")

    task = pox.component.DatagramSocket(0)
    task.receive(take)
    port = task._socket.getsockname()[1]
    run = task.run()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for data in (b"bad", b"good"):
            next(run)
            sender.sendto(data, ("127.0.0.1", port))
        next(run)
    assert taken == [b"bad", b"good"]
    assert "handle a datagram" in caplog.text
    task._socket.close()


def test_many_datagrams_leave_time_for_other_tasks(pox, monkeypatch):
    monkeypatch.setattr(pox.component, "MOST_AT_ONCE", 3)
    taken: list[bytes] = []
    task = pox.component.DatagramSocket(0)
    task.receive(lambda data, _: taken.append(data))
    port, run = task._socket.getsockname()[1], task.run()
    next(run)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(5):
            sender.sendto(b"x", ("127.0.0.1", port))
    next(run)
    assert len(taken) == 3
    task._socket.close()


class Listener:
    """Records a channel's warnings, and tries every reader on each reply of the bridge."""

    port = 6653

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def connected(self, channel: Any) -> None:
        for read in (messages.flows, messages.flow_counts, messages.meter_count, messages.ports):
            request = struct.pack("!HH4x", 1, 0)
            channel.request((1, request), lambda body, read=read: body and read(body))


@pytest.fixture
def connect(pox):
    """(channel, the bridge's end of its connection, warnings)."""
    ends: list[socket.socket] = []

    def made() -> tuple[Any, socket.socket, list[str]]:
        ours, bridge = socket.socketpair()
        ends.extend((ours, bridge))
        ours.setblocking(False)
        listener = Listener()
        return pox.channel.Channel(ours, listener), bridge, listener.warnings

    yield made
    for each in ends:
        each.close()


@pytest.mark.parametrize(
    "message",
    [
        messages.message(messages.FEATURES_REPLY, b"\0\0\0"),
        messages.message(messages.ERROR, b"\0"),
        struct.pack("!BBHL", 4, messages.ECHO_REQUEST, 3, 0),
    ],
)
def test_a_short_message_closes_the_connection_with_a_warning(connect, message):
    channel, bridge, warnings = connect()
    bridge.sendall(message)
    assert channel.receive() is False
    assert "it is wrong" in warnings[0]


def test_random_replies_raise_nothing(connect):
    rng = random.Random(5)
    for _ in range(300):
        channel, bridge, _ = connect()
        bridge.sendall(messages.message(messages.HELLO))
        bridge.sendall(messages.message(messages.FEATURES_REPLY, bytes(7) + b"\1" + bytes(16)))
        assert channel.receive()
        for xid in range(20):
            body = struct.pack("!HH4x", 1, 0) + rng.randbytes(rng.randrange(120))
            bridge.sendall(messages.message(messages.MULTIPART_REPLY, body, xid))
        channel.receive()
