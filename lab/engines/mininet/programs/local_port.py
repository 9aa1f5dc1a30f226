"""Give all subflows of a connection the same local port.

A hash of addresses and ports chooses among equally short paths. If the kernel drew the ports, the
paths would differ from run to run. The scenario draws them from its seed.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

IP_LOCAL_PORT_RANGE = 51  # linux/in.h; Linux applies it to subflows since version 6.8
OPENING_S = 3.0  # by then a new connection has its subflows


def bind(connection: socket.socket, address: str, port: int) -> None:
    """Bind a TCP or MPTCP socket to `address` and `port`; 0 means any free port.

    The further subflows get the same port if they open within `OPENING_S` seconds. Later ones get
    any port: the kernel reserves the port of a closed subflow for a minute. If the port is taken,
    or the kernel does not know the option, any free port is used.
    """
    try:
        _limit(connection, port)
        connection.bind((address, port))
    except OSError:
        _lift(connection)
        connection.bind((address, 0))
    else:
        later = threading.Timer(OPENING_S, _lift, (connection,))
        later.daemon = True
        later.start()


def _limit(connection: socket.socket, port: int) -> None:
    """Allow only `port` as the local port of the connection's subflows; 0 allows all."""
    allowed = struct.pack("=I", port << 16 | port)
    connection.setsockopt(socket.IPPROTO_IP, IP_LOCAL_PORT_RANGE, allowed)


def _lift(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        _limit(connection, 0)
