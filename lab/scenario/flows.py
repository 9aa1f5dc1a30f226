"""Turn the traffic of a scenario into connections, and into a time line of their starts, stops and
changes of rate."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from controller.units import bps_from_mbps
from lab.scenario import flow_sizes
from lab.scenario.clients import CLIENTS, REQUEST_PACKET_BYTES, ClientSpec, Done
from lab.scenario.schema import Scenario
from lab.scenario.traffic import SELF_PACED, Traffic

PAUSED_BPS = 0
KB = 1000
REQUEST_PACKET_KB = REQUEST_PACKET_BYTES / KB
FIRST_PORT, PORTS = 32_768, 28_232  # local ports as Linux chooses them
CALL_HEADER_BYTES = 16  # of a datagram: its number, and when it was sent


class CallSpec(NamedTuple):
    """What each direction of a call sends: a datagram with `packet_bytes` of payload on the wire
    every `packet_s`. Its receiver keeps the quickest ones for `playout_ms`."""

    packet_bytes: int
    packet_s: float
    playout_ms: float


@dataclass(frozen=True, slots=True)
class Flow:
    """One connection. The ID `ue2-1` is the first connection of user ue2.

    `rate_bps` is the rate at which the application writes; None means as fast as the connection
    allows. `volume_bytes` is the size of the file to transfer; None means that the connection has
    no end of its own. `port` is the user's TCP or UDP port. All subflows use this port, because
    they have different addresses.
    """

    id: str
    user: str
    direction: str
    cc: str
    rate_bps: int | None
    volume_bytes: int | None
    protocol: str = "tcp"  # or udp, which sends at its rate without feedback
    port: int = FIRST_PORT
    warm: bool = False  # it is open, with all subflows, before it starts
    kind: str = "bulk"  # of its entry in `traffic`
    client: ClientSpec | None = None  # asks for the data; None: it comes unasked
    place: int = 0  # among the connections of its client, from 0
    call: CallSpec | None = None  # sends datagrams at its own times
    interface: str = ""  # of the user, without its name, over which a call goes; "": the first


def of_traffic(flow: Flow) -> dict[str, str]:
    """Return the field of a completion event that tells other transfers from files."""
    return {"traffic": flow.kind} if flow.kind in SELF_PACED else {}


def exchange_fields(flow: Flow, done: Done, rate_scale: float) -> dict[str, str | float]:
    """Return the fields of the event of a request that was answered."""
    return {
        "user": flow.user,
        "connection": flow.id,
        "completion_s": round(done.end_s - done.at_s, 6),
        **of_traffic(flow),
        "mb": round(done.size_bytes / rate_scale / 1e6, 6),
    }


@dataclass(frozen=True, slots=True)
class Act:
    """One entry of the time line: what a connection does at `at_s`, in s since the start of the
    run.

    `verb` is "start", "stop" or "rate". `rate_bps` is the new rate if `verb` is "rate", else None.
    """

    at_s: float
    verb: str
    flow: Flow
    rate_bps: int | None = None


def late_flows(scenario: Scenario) -> list[str]:
    """Return, in words, the flows that start when the run is over."""
    return [
        f"the {each.kind} flow of {each.user} at {each.start_s:g} s"
        for each in scenario.traffic
        if each.start_s >= scenario.duration_s
    ]


def scaled_traffic(scenario: Scenario) -> tuple[Traffic, ...]:
    """Return the entries of `traffic` with rates, volumes and sizes multiplied by `rate_scale`.

    Volumes and sizes are scaled so that completion times do not depend on `rate_scale`. Entries
    without a congestion control get the congestion control of the scenario.
    """
    return tuple(
        flow.model_copy(
            update={
                "rate_mbps": _scaled(flow.rate_mbps, scenario.rate_scale),
                "volume_mb": _scaled(flow.volume_mb, scenario.rate_scale),
                "request_kb": _scaled_request(flow.request_kb, scenario.rate_scale),
                "size_scale": flow.size_scale * scenario.rate_scale,
                "cc": flow.cc or scenario.multipath.cc,
            }
        )
        for flow in scenario.traffic
    )


def _scaled_request(size_kb: float, rate_scale: float) -> float:
    """A request that is one packet stays as it is: it takes no time of a link worth mentioning."""
    return max(min(size_kb, REQUEST_PACKET_KB), size_kb * rate_scale)


def _scaled(figure: float | None, rate_scale: float) -> float | None:
    return None if figure is None else figure * rate_scale


def schedule(traffic: Iterable[Traffic], seed: int, duration_s: float) -> list[Act]:
    """Return the time line of a run, ordered by time.

    Rates and volumes in `traffic` must be those on the wire (`scaled_traffic`). `seed` determines
    the ports of the users, and with the ports the paths that hash-based routing chooses. It also
    determines how long on-off traffic sends and pauses, and when the flows of a workload begin and
    how large they are.
    """
    acts: list[Act] = []
    count: dict[str, int] = {}
    taken: dict[str, set[int]] = {}
    workloads: Counter[str] = Counter()
    for each in traffic:
        if each.kind == "workload":
            workloads[each.user] += 1
            chance = _chance_of_workload(each, seed, workloads[each.user])
            acts += _workload(each, chance, seed, duration_s, count, taken)
            continue
        if each.kind == "call":
            acts += _calls(each, seed, count, taken)
            continue
        of_client = each.connections if each.kind == "web" else 1
        for place in (n for _ in range(each.parallel) for n in range(of_client)):
            number, name, port = _next(each.user, seed, count, taken)
            rate = (
                bps_from_mbps(each.rate_mbps / each.parallel)
                if each.rate_mbps is not None
                else None
            )
            volume = (
                round(each.volume_mb * 1e6 / each.parallel) if each.volume_mb is not None else None
            )
            protocol = "udp" if each.kind == "udp" else "tcp"
            client = _client(each, f"{seed}/{each.user}-{number - place}/{each.kind}")
            flow = Flow(
                name,
                each.user,
                each.direction,
                each.cc or "reno",
                rate,
                volume,
                protocol,
                port,
                each.warm or client is not None,
                each.kind,
                client,
                place,
            )
            acts.append(Act(each.start_s, "start", flow))
            if each.stop_s is not None and client is None:
                acts.append(Act(each.stop_s, "stop", flow))
            if each.kind == "on_off":
                acts += _on_off(each, flow, random.Random(f"{seed}/{flow.id}"), duration_s)  # noqa: S311 - no secret
    return sorted(acts, key=lambda act: (act.at_s, act.flow.id))


def _client(each: Traffic, seed: str) -> ClientSpec | None:
    if each.kind not in CLIENTS:
        return None
    is_video = each.kind == "video"
    return ClientSpec(
        each.kind,
        seed,
        each.stop_s,
        max(1, round(each.request_kb * KB)),
        max(1, round((each.answer_kb or 0) * each.size_scale * KB)),
        None if each.requests_per_s else each.think_s,
        each.requests_per_s,
        each.connections if each.kind == "web" else 1,
        each.objects,
        flow_sizes.points(each.sizes) if each.sizes else (),
        each.size_scale * KB,
        *((each.bitrates_mbps, each.chunk_s, each.buffer_s, each.adapts_by) if is_video else ()),
    )


def _next(
    user: str, seed: int, count: dict[str, int], taken: dict[str, set[int]]
) -> tuple[int, str, int]:
    """Return the number, the ID and the port of the next connection of a user."""
    number = count[user] = count.get(user, 0) + 1
    name = f"{user}-{number}"
    return number, name, _port(seed, name, taken.setdefault(user, set()))


def _port(seed: int, name: str, taken: set[int]) -> int:
    """Choose a port that is not in `taken`, and add it there."""
    first = random.Random(f"{seed}/{name}/port").randrange(PORTS)  # noqa: S311 - no secret
    ports = (FIRST_PORT + (first + n) % PORTS for n in range(PORTS))
    found = next(port for port in ports if port not in taken)
    taken.add(found)
    return found


def expected_flows(each: Traffic, duration_s: float) -> float:
    """Return how many flows a workload has on average until the end of the run."""
    span_s = min(duration_s, each.stop_s or duration_s) - each.start_s
    return max(0.0, span_s) / _mean_gap_s(each)


def _mean_gap_s(each: Traffic) -> float:
    assert each.sizes is not None
    assert each.rate_mbps is not None
    mean_kb = flow_sizes.mean_kb(each.sizes) * each.size_scale
    return mean_kb * KB * 8 / bps_from_mbps(each.rate_mbps)


def _chance_of_workload(each: Traffic, seed: int, number: int) -> random.Random:
    """Return the random numbers of workload `number` of a user. All users of an incast share
    them."""
    own = "" if each.pattern == "incast" else f"/{each.user}"
    return random.Random(f"{seed}{own}/workload/{number}")  # noqa: S311 - no secret


def _workload(
    each: Traffic,
    chance: random.Random,
    seed: int,
    duration_s: float,
    count: dict[str, int],
    taken: dict[str, set[int]],
) -> Iterator[Act]:
    """Yield the starts of the flows of a workload. In `count` and `taken` are the number of
    connections and the ports of each user so far."""
    assert each.sizes is not None
    gap_s, now_s = _mean_gap_s(each), each.start_s
    end_s = min(duration_s, each.stop_s or duration_s)
    while (now_s := now_s + chance.expovariate(1 / gap_s)) < end_s:
        size_kb = flow_sizes.draw_kb(each.sizes, chance) * each.size_scale
        _, name, port = _next(each.user, seed, count, taken)
        volume = max(1, round(size_kb * KB))
        cc = each.cc or "reno"
        flow = Flow(name, each.user, each.direction, cc, None, volume, port=port, kind="workload")
        yield Act(now_s, "start", flow)


def _calls(
    each: Traffic, seed: int, count: dict[str, int], taken: dict[str, set[int]]
) -> Iterator[Act]:
    """Yield the starts and stops of both directions of the calls of one entry. In `count` and
    `taken` are the number of connections and the ports of each user so far."""
    size_bytes = max(CALL_HEADER_BYTES, round(each.packet_bytes * each.size_scale))
    call = CallSpec(size_bytes, each.packet_ms / 1000, each.playout_ms)
    rate_bps = round(size_bytes * 8 / call.packet_s)
    for direction in each.directions * each.parallel:
        _, name, port = _next(each.user, seed, count, taken)
        flow = Flow(
            name,
            each.user,
            direction,
            each.cc or "reno",
            rate_bps,
            None,
            "udp",
            port,
            kind="call",
            call=call,
            interface=each.interface,
        )
        yield Act(each.start_s, "start", flow)
        if each.stop_s is not None:
            yield Act(each.stop_s, "stop", flow)


def _on_off(each: Traffic, flow: Flow, chance: random.Random, duration_s: float) -> Iterator[Act]:
    """Yield the changes of rate of on-off traffic until it stops or the run ends.

    It begins with sending; then pauses and periods of sending alternate. Their lengths are
    exponentially distributed with the means `each.off_s` and `each.on_s`.
    """
    now, end, on = each.start_s, min(duration_s, each.stop_s or duration_s), True
    while True:
        now += chance.expovariate(1 / (each.on_s if on else each.off_s))
        if now >= end:
            return
        on = not on
        yield Act(now, "rate", flow, flow.rate_bps if on else PAUSED_BPS)


# Rates at which the connections of a user write data (both engines use `Demands`)
#
# 1) As long as a user's demand is not changed during the run, each connection has the rate of its
#    entry in the scenario's `traffic`.
# 2) A changed demand is the total rate of all open connections of the user, also of those that
#    open later. It is divided equally among them.
# 3) A connection is open from its start until it is stopped or its file is complete. Each time a
#    connection opens or ends, the demand is divided anew.
# 4) Demand None means no limit: TCP sends as much as it can; UDP sends at its rate in `traffic`.
# 5) While an on-off flow is silent, its rate is 0, and its share of the demand goes to no other
#    connection.
# 6) A demand does not concern the flows of a workload, those whose clients ask for data, nor calls.


Rates = dict[Flow, int | None]


class Demands:
    """The open connections of all users, and the users' demands.

    A demand is the total rate at which a user's applications write to all connections. Each method
    that changes something returns the new rates by connection, in bit/s; None means no limit.
    """

    def __init__(self) -> None:
        self._open: dict[str, list[Flow]] = {}
        self._demand_bps: dict[str, int | None] = {}
        self._silent: set[Flow] = set()

    def start(self, flow: Flow) -> Rates:
        """Mark a connection as open.

        Return its rate, and the rates of the user's other connections if they change.
        """
        if flow.kind in SELF_PACED:
            return {flow: flow.rate_bps}
        self._open.setdefault(flow.user, []).append(flow)
        return {flow: self.rate_bps(flow)} | self._divided(flow.user)

    def end(self, flow: Flow) -> Rates:
        """Mark a connection as closed, because it was stopped or its file is complete.

        Return the new rates of the user's other connections, or {} if they do not change.
        """
        if flow not in self._open.get(flow.user, []):
            return {}
        self._open[flow.user].remove(flow)
        return self._divided(flow.user)

    def set_silent(self, flow: Flow, silent: bool) -> Rates:
        """Begin or end a pause of on-off traffic. Return the new rate of the connection."""
        (self._silent.add if silent else self._silent.discard)(flow)
        return {flow: self.rate_bps(flow)}

    def set_demand(self, user: str, rate_bps: int | None) -> Rates:
        """Set the total rate of a user's connections, in bit/s; None means no limit.

        Return the new rate of each open connection.
        """
        self._demand_bps[user] = rate_bps
        return self._divided(user)

    def rate_bps(self, flow: Flow) -> int | None:
        """Return the present rate of a connection in bit/s; None means no limit."""
        if flow in self._silent:
            return PAUSED_BPS
        if flow.user not in self._demand_bps:
            return flow.rate_bps
        demand_bps = self._demand_bps[flow.user]
        if demand_bps is None:
            return flow.rate_bps if flow.protocol == "udp" else None
        return round(demand_bps / max(1, len(self._open.get(flow.user, []))))

    def _divided(self, user: str) -> Rates:
        """Return the new rates of a user's open connections.

        Return {} if the user's demand was never changed, because the rates are then those of the
        scenario.
        """
        if user not in self._demand_bps:
            return {}
        return {flow: self.rate_bps(flow) for flow in self._open.get(user, [])}
