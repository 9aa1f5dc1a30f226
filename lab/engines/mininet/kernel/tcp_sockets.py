"""Read the TCP sockets of a network namespace over netlink (sock_diag(7)).

Struct layouts: linux/inet_diag.h, linux/tcp.h, linux/mptcp.h.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from lab.engines.mininet.kernel.netlink import (
    DUMP,
    NETLINK_SOCK_DIAG,
    REQUEST,
    attributes,
    open_socket,
    request,
)

SOCK_DIAG_BY_FAMILY = 20
# attribute numbers; bit (number - 1) of a request asks for one. The kernel always sends ULP_INFO
DIAG_INFO, DIAG_CONG, DIAG_ULP_INFO = 2, 4, 19
ULP_MPTCP = 3  # nested in ULP_INFO, next to the protocol's name
TOKEN_LOCAL, SUBFLOW_FLAGS, ID_REMOTE = 2, 8, 9
BACKUP_REMOTE, BACKUP_LOCAL = 1 << 4, 1 << 5  # MPTCP_SUBFLOW_FLAG_BKUP_REM, _LOC
ESTABLISHED = 1 << 1


@dataclass(frozen=True)
class TcpSocket:
    """An established TCP socket of this host. It may be a subflow of an MPTCP connection.

    - `source`, `destination`: address and port of the local end and of the remote end
    - `cc`: name of the congestion control
    - `cwnd`: in segments
    - `data_segments_out`: sent, including retransmissions
    - `data_segments_in`: arrived, including duplicates
    - `in_flight`: data segments in flight, as the kernel estimates (tcp_packets_in_flight)
    - `retransmitted`, `out_of_order`: number of segments
    - `pacing_limit`: SO_MAX_PACING_RATE [bytes of payload/s]
    - `token`: token that this host has chosen for the MPTCP connection; None for plain TCP
    - `backup`: True if either end has marked the subflow as backup
    - `remote_id`: MPTCP address ID of the remote end; 0 for the first subflow
    """

    source: tuple[str, int]
    destination: tuple[str, int]
    cc: str
    rtt_ms: float
    cwnd: int
    bytes_acked: int
    bytes_received: int
    data_segments_out: int
    data_segments_in: int
    in_flight: int
    retransmitted: int
    out_of_order: int
    pacing_limit: int
    token: int | None
    backup: bool
    remote_id: int = 0


class Diagnosis:
    """Reads the TCP sockets of the network namespace in which this object is created."""

    def __init__(self) -> None:
        self._socket = open_socket(NETLINK_SOCK_DIAG)

    def sockets(self) -> list[TcpSocket]:
        wanted = sum(1 << (number - 1) for number in (DIAG_INFO, DIAG_CONG))
        body = struct.pack("=BBBxI", socket.AF_INET, socket.IPPROTO_TCP, wanted, ESTABLISHED).ljust(
            56, b"\0"
        )
        return [
            tcp_socket(payload)
            for _kind, payload in request(self._socket, SOCK_DIAG_BY_FAMILY, REQUEST | DUMP, body)
        ]

    def close(self) -> None:
        self._socket.close()


def tcp_socket(payload: bytes) -> TcpSocket:
    """Decode one answer of the kernel: a struct inet_diag_msg, followed by netlink attributes."""
    source_port, destination_port = struct.unpack_from("!HH", payload, 4)
    source, destination = (socket.inet_ntoa(payload[at : at + 4]) for at in (8, 24))
    found = dict(attributes(payload[72:]))
    info = found.get(DIAG_INFO, b"").ljust(248, b"\0")
    rtt_us, cwnd = struct.unpack_from("=I", info, 68)[0], struct.unpack_from("=I", info, 80)[0]
    unacked, sacked, lost, resent = struct.unpack_from("=IIII", info, 24)
    pacing_limit, bytes_acked, bytes_received = struct.unpack_from("=QQQ", info, 112)
    data_segments_in, data_segments_out = struct.unpack_from("=II", info, 152)
    token, backup, remote_id = _subflow(found.get(DIAG_ULP_INFO, b""))
    return TcpSocket(
        source=(source, source_port),
        destination=(destination, destination_port),
        cc=found.get(DIAG_CONG, b"").rstrip(b"\0").decode(),
        rtt_ms=rtt_us / 1000,
        cwnd=cwnd,
        bytes_acked=bytes_acked,
        bytes_received=bytes_received,
        data_segments_out=data_segments_out,
        data_segments_in=data_segments_in,
        in_flight=max(0, unacked - sacked - lost + resent),
        retransmitted=struct.unpack_from("=I", info, 100)[0],
        out_of_order=struct.unpack_from("=I", info, 224)[0],
        pacing_limit=pacing_limit,
        token=token,
        backup=backup,
        remote_id=remote_id,
    )


def _subflow(ulp_info: bytes) -> tuple[int | None, bool, int]:
    nested = dict(attributes(ulp_info)).get(ULP_MPTCP)
    if nested is None:
        return None, False, 0
    subflow = dict(attributes(nested))
    token = struct.unpack("=I", subflow[TOKEN_LOCAL])[0] if TOKEN_LOCAL in subflow else None
    flags = struct.unpack("=I", subflow[SUBFLOW_FLAGS])[0] if SUBFLOW_FLAGS in subflow else 0
    return token, bool(flags & (BACKUP_REMOTE | BACKUP_LOCAL)), subflow.get(ID_REMOTE, b"\0")[0]
