"""Describe the two ends of a UDP flow by those fields of a TCP socket that samples need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from controller import paths
from lab.engines.mininet.kernel.subflow_rates import UNLIMITED
from lab.topologies.topology import Interface, Wiring

UDP = 17


@dataclass(frozen=True)
class DatagramEnd:
    """Describe one end of a UDP flow like a TCP socket; each datagram counts as a segment.

    The fields that UDP does not have are None or keep their defaults: UDP has no congestion window,
    measures no round-trip time, retransmits nothing and has no congestion control.
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
    """Return the sending and the receiving end of a UDP flow, in this order.

    `status` is the flow's status at the receiver, from `receivers`. Datagrams that were sent after
    the latest one that has arrived count as in flight.
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
    """Return the status of every flow at its receiver, by the flow's ID.

    `answers` are the answers of the traffic programs of all hosts to the command "status". The
    status of a UDP flow gets an additional key `sent`: the number of datagrams sent by the other
    end.
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
    """Return the switches that a flow from `server` to `user` passes while all links are up.

    `ports` are the TCP ports of the server and of the user; None stands for a UDP flow. The
    controller chooses the path by the same rule (controller/pox_ext/router.py).
    """
    neighbours: dict[str, set[str]] = {switch: set() for switch in wiring.dpid}
    for trunk in wiring.trunks:
        neighbours[trunk.a].add(trunk.b)
        neighbours[trunk.b].add(trunk.a)
    candidates = paths.between(neighbours, server.switch, user.switch)
    protocol = UDP if ports is None else paths.TCP
    flow = paths.Flow(server.address, user.address, protocol, *(ports or ()))
    return tuple(paths.choose(candidates, flow))
