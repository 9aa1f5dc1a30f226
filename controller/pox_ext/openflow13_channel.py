"""Exchange OpenFlow 1.3 messages with every bridge, for meters, table 0 and counters.

Each bridge has two controllers: POX, with OpenFlow 1.0, and the listener in this file, with
OpenFlow 1.3 (docs/formats.md). All code runs as a task in POX's cooperative loop, so nothing blocks
and nothing needs a lock.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Generator, Iterator
from typing import Any

from pox.lib.recoco import Select, Task

from controller.pox_ext import openflow13_messages as messages
from controller.pox_ext.sent_messages import OPENFLOW13_ERRORS, SentMessages

Callback = Callable[[bytes | None], None]
SELECT_TIMEOUT_S = 1.0


class Channel:
    """The OpenFlow 1.3 connection to one switch, and the requests that have no reply yet."""

    def __init__(self, connection: socket.socket, listener: Listener) -> None:
        self.socket, self._listener = connection, listener
        self.dpid: int | None = None
        self._inbox, self._outbox = b"", b""
        self.name = ""  # of the bridge, once it is known
        self._sent = SentMessages(OPENFLOW13_ERRORS)
        self._waiting: dict[int, tuple[Callback, list[bytes]]] = {}
        self.send(messages.message(messages.HELLO))

    def fileno(self) -> int:
        return self.socket.fileno()

    @property
    def has_unsent(self) -> bool:
        return bool(self._outbox)

    def send(self, message: bytes) -> None:
        """Queue a message and send as much of the queue as the socket accepts without blocking."""
        self._outbox += message
        self.flush()

    def command(self, message: bytes, described: Callable[[bytes], str]) -> None:
        """Send a message that changes the state of the switch.

        If the switch refuses the message, a warning shows the text `described(message)`. It says
        what the message does, such as "delete its meter 1".
        """
        self.send(self._sent.numbered(message, lambda: described(message)))

    def flush(self) -> None:
        """Send as much of the queue as the socket accepts.

        Errors are ignored here: `receive` detects a broken connection.
        """
        try:
            sent = self.socket.send(self._outbox)
            self._outbox = self._outbox[sent:]
        except OSError:
            pass

    def request(self, request: tuple[int, bytes], callback: Callback) -> None:
        """Send a statistics request; call `callback` with the body of the complete reply.

        `request` is the pair (kind, body). `callback` gets None if the switch refuses the request
        or the connection closes or has closed.
        """
        kind, body = request
        self._send_request(
            messages.MULTIPART_REQUEST, struct.pack("!HH4x", kind, 0) + body, callback
        )

    def barrier(self, done: Callback) -> None:
        """Call `done` when the switch has carried out all earlier messages.

        `done` gets empty bytes, or None as `request` says.
        """
        self._send_request(messages.BARRIER_REQUEST, b"", done)

    def close(self) -> None:
        """Close the connection; callbacks that still wait for a reply get None."""
        self.socket.close()
        waiting, self._waiting = self._waiting, {}
        for callback, _ in waiting.values():
            callback(None)

    def receive(self) -> bool:
        """Read and handle the messages that have arrived.

        Return False if the connection is closed, if the switch does not speak OpenFlow 1.3, or if a
        message is malformed.
        """
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._inbox += data
        try:
            return bool(data) and all(self._take(*each) for each in self._messages())
        except struct.error as error:
            self._listener.warn(f"read a message of {self.name or self.dpid}: it is wrong: {error}")
            return False

    def _send_request(self, kind: int, body: bytes, callback: Callback) -> None:
        if self.fileno() < 0:  # closed
            callback(None)
            return
        xid = self._sent.number("answer a request for its state or counters")
        self._waiting[xid] = (callback, [])
        self.send(messages.message(kind, body, xid))

    def _messages(self) -> Iterator[tuple[int, int, int, bytes]]:
        while len(self._inbox) >= 8:
            version, kind, length, xid = struct.unpack_from("!BBHL", self._inbox)
            if length < 8:
                raise struct.error(f"a message of {length} bytes")
            if len(self._inbox) < length:
                return
            body, self._inbox = self._inbox[8:length], self._inbox[length:]
            yield version, kind, xid, body

    def _take(self, version: int, kind: int, xid: int, body: bytes) -> bool:
        if kind == messages.HELLO:
            return self._agree(version)
        if kind == messages.ECHO_REQUEST:
            self.send(messages.message(messages.ECHO_REPLY, body, xid))
        elif kind == messages.FEATURES_REPLY:
            (self.dpid,) = struct.unpack_from("!Q", body)
            self._listener.connected(self)
        elif kind == messages.ERROR:
            self._refused(xid, body)
        elif kind == messages.BARRIER_REPLY:
            self._finish(xid, b"")
        elif kind == messages.MULTIPART_REPLY:
            self._part(xid, body)
        return True

    def _agree(self, version: int) -> bool:
        if version < messages.VERSION:
            self._listener.warn(
                f"speak OpenFlow 1.3 on port {self._listener.port}: "
                f"a bridge offers version {version} at most. "
                "Try: ovs-vsctl set bridge NAME protocols=OpenFlow10,OpenFlow13"
            )
            return False
        self.send(messages.message(messages.FEATURES_REQUEST) + messages.disable_async())
        return True

    def _refused(self, xid: int, body: bytes) -> None:
        error, code = struct.unpack_from("!HH", body)
        name = self.name or str(self.dpid)
        self._listener.warn(self._sent.refusal(name, xid, error, code))
        if xid in self._waiting:
            self._waiting.pop(xid)[0](None)

    def _part(self, xid: int, body: bytes) -> None:
        if xid not in self._waiting:
            return
        self._waiting[xid][1].append(body[8:])
        (flags,) = struct.unpack_from("!H", body, 2)
        if not flags & 1:  # no more parts
            self._finish(xid, b"".join(self._waiting[xid][1]))

    def _finish(self, xid: int, body: bytes) -> None:
        if xid in self._waiting:
            self._waiting.pop(xid)[0](body)


class Listener(Task):  # type: ignore[misc]
    """Accepts the OpenFlow 1.3 connections of switches and serves them in POX's loop.

    `up(channel)` is called when a switch has sent its datapath id, and `down(channel)` when the
    connection of this switch has ended. `warn(text)` is called with warnings for the user.
    """

    def __init__(
        self,
        address: str,
        port: int,
        up: Callable[[Channel], None],
        down: Callable[[Channel], None],
        warn: Callable[[str], None],
    ) -> None:
        Task.__init__(self)
        self.port, self.warn = port, warn
        self._up, self._down = up, down
        self._socket = socket.create_server((address, port))
        self._socket.setblocking(False)
        self._channels: list[Channel] = []

    def connected(self, channel: Channel) -> None:
        """Call `up` for a switch that has sent its datapath id; close older connections to it."""
        for other in [
            each for each in self._channels if each.dpid == channel.dpid and each is not channel
        ]:
            self._drop(other)
        self._up(channel)

    def run(self) -> Generator[Any, Any, None]:
        from pox.core import core

        while core.running:
            writing = [each for each in self._channels if each.has_unsent]
            reading = [self._socket, *self._channels]
            readable, writable, _ = yield Select(reading, writing, [], SELECT_TIMEOUT_S)
            for channel in writable:
                channel.flush()
            for each in readable:
                self._read(each)

    def _read(self, each: Any) -> None:
        if each is self._socket:
            self._accept()
        elif each in self._channels and not each.receive():
            self._drop(each)

    def _accept(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except OSError:
            return
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._channels.append(Channel(connection, self))

    def _drop(self, channel: Channel) -> None:
        self._channels.remove(channel)
        channel.close()
        if channel.dpid is not None:
            self._down(channel)
