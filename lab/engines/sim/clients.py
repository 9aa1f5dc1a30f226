"""Let the clients of a simulation ask their servers (`lab.scenario.clients`), and measure how long
the answers take."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lab.engines.sim.core import state as at
from lab.engines.sim.network import Network
from lab.run.report import ExchangeReport, VideoReport, exchange_reports
from lab.scenario.clients import NEVER_S, Ask, Asks, Client, Done, make
from lab.scenario.flows import Flow


@dataclass
class Running:
    """A client, and its connections so far. It begins when it has all of them."""

    client: Client
    connections: list[Asking] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)

    @property
    def flow(self) -> Flow:
        """Its first connection, which stands for the client in reports."""
        return self.connections[0].flow


@dataclass
class Asking:
    """A connection of a client. `asked` are the requests that its server has not answered yet,
    `coming` the answers that have not arrived, each with the data sequence number of its end."""

    flow: Flow
    of: Running
    asked: deque[Ask] = field(default_factory=deque)
    coming: deque[tuple[int, Ask]] = field(default_factory=deque)
    heard: int = 0


class Clients:
    """The clients that have begun. `on_done(flow, done)` is called for each exchange that is
    complete."""

    def __init__(self, network: Network, on_done: Callable[[Flow, Done], None]) -> None:
        self._network, self._on_done = network, on_done
        self._running: dict[str, Running] = {}  # by the seed of the client, which is its own
        self._asking: dict[str, Asking] = {}  # by the ID of the flow
        network.on_halt = self._act

    def begin(self, flow: Flow) -> None:
        """Give a connection that is open to its client. With its last one, the client begins."""
        assert flow.client is not None
        spec = flow.client
        each = self._running.setdefault(spec.seed, Running(make(spec)))
        asking = self._asking[flow.id] = Asking(flow, each)
        each.connections.append(asking)
        each.connections.sort(key=lambda one: one.flow.place)
        if len(each.connections) == spec.connections:
            self._ask(each, each.client.begin(self._now_s))

    @property
    def next_ns(self) -> int:
        """When the next client wakes; `at.FOREVER` if none will."""
        return _ns(min((each.client.wake_s for each in self._running.values()), default=NEVER_S))

    def wake(self) -> None:
        """Let each client act whose time has come."""
        for each in self._running.values():
            if _ns(each.client.wake_s) <= self._network.now_ns:
                each.client.wake_s = NEVER_S
                self._ask(each, each.client.woke(self._now_s))

    def reports(self) -> Iterator[ExchangeReport]:
        """Yield a report of each exchange, also of those that are not complete."""
        for each in self._running.values():
            yield from exchange_reports(each.flow, each.done, each.client.waiting)

    def videos(self) -> Iterator[VideoReport]:
        for each in self._running.values():
            if quality := each.client.quality(self._now_s):
                yield VideoReport(each.flow.id, each.flow.user, *quality)

    @property
    def _now_s(self) -> float:
        return self._network.now_ns / at.NS_PER_S

    def _ask(self, each: Running, asks: Asks) -> None:
        for ask in asks:
            asking = each.connections[ask.connection]
            asking.asked.append(ask)
            self._network.ask(asking.flow)

    def _act(self, flow: Flow) -> int:
        """Let the server answer requests that it has heard, and the client take answers that have
        arrived. Return when the next client wakes."""
        asking, network = self._asking[flow.id], self._network
        each, coming = asking.of, asking.coming
        while asking.heard < network.heard(flow):
            asking.heard += 1
            ask = asking.asked.popleft()
            coming.append((network.answer(flow, ask.answer_bytes), ask))
        while coming and coming[0][0] <= network.arrived(flow):
            self._ask(each, each.client.answered(self._now_s, coming.popleft()[1]))
        network.wait_for(flow, coming[0][0] if coming else 0)
        for done in each.client.take_done():
            each.done.append(done)
            self._on_done(each.flow, done)
        return self.next_ns


def _ns(at_s: float) -> int:
    return at.FOREVER if at_s == NEVER_S else round(at_s * at.NS_PER_S)
