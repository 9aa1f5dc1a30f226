"""Describe one end of a UDP flow, with the fields that samples and reports read of a TCP socket."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from controller import paths
from lab.engines.mininet.kernel.pacing import UNLIMITED
from lab.topologies.topology import Interface, Wiring

UDP = 17


@dataclass(frozen=True)
class DatagramEnd:
    """Describe one end of a UDP flow; each datagram counts as a segment.

    UDP has no window, measures no round trip, repeats nothing and has no congestion control.
    """

    bytes_received: int = 0
    data_segments_out: int = 0
    data_segments_in: int = 0
    in_flight: int = 0
    out_of_order: int = 0
    retransmitted: int = 0
    pacing_limit: int = UNLIMITED
    rtt_ms: float | None = None
    cwnd: int | None = None
    cc: str | None = None
    backup: bool = False


def ends(status: Mapping[str, Any]) -> tuple[DatagramEnd, DatagramEnd]:
    """Return the sender and the receiver of a UDP flow.

    `status` is that of the receiver, with the number of datagrams `sent`. Those that were sent
    after the last one that has arrived are in flight.
    """
    sent = max(status.get("sent", 0), status["next"])
    return (
        DatagramEnd(data_segments_out=sent, in_flight=sent - status["next"]),
        DatagramEnd(
            bytes_received=status["bytes"],
            data_segments_in=status["datagrams"],
            out_of_order=status["out_of_order"],
        ),
    )


def receivers(answers: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the status of every flow at the end that receives its data, by the flow's ID.

    `answers` are the answers of the traffic programs of all hosts to the command "status". The
    status of a UDP flow also tells how many datagrams the other end has `sent`.
    """
    found = [each for answer in answers for each in answer["flows"].items()]
    sent = {
        name: flow["datagrams"] for name, flow in found if flow["sends"] and "datagrams" in flow
    }
    return {
        name: flow | ({"sent": sent[name]} if name in sent else {})
        for name, flow in found
        if not flow["sends"]
    }


def path(
    wiring: Wiring, server: Interface, user: Interface, ports: tuple[int, int] | None = None
) -> tuple[str, ...]:
    """Return the switches that a flow from a server to a user passes while all links are up.

    `ports` are the TCP ports of the server and the user; without them, the flow is UDP. The
    controller makes the same choice (controller/pox_ext/router.py).
    """
    neighbours: dict[str, set[str]] = {switch: set() for switch in wiring.dpid}
    for trunk in wiring.trunks:
        neighbours[trunk.a].add(trunk.b)
        neighbours[trunk.b].add(trunk.a)
    candidates = paths.between(neighbours, server.switch, user.switch)
    protocol = UDP if ports is None else paths.TCP
    flow = paths.Flow(server.address, user.address, protocol, *(ports or ()))
    return tuple(paths.choose(candidates, flow))
