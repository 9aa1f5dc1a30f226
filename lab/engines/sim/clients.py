"""Let the clients of a simulation ask their servers (`lab.scenario.clients`), and measure how long
the answers take."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lab.engines.sim.core import state as at
from lab.engines.sim.network import Network
from lab.run.report import ExchangeReport
from lab.scenario.clients import NEVER_S, Ask, Asks, Client, Done, make
from lab.scenario.flows import Flow


@dataclass
class Running:
    """A client that has begun. `asked` are the requests that its server has not answered yet,
    `coming` the answers that have not arrived, each with the data sequence number of its end."""

    flow: Flow
    client: Client
    asked: deque[Ask] = field(default_factory=deque)
    coming: deque[tuple[int, Ask]] = field(default_factory=deque)
    heard: int = 0
    done: list[Done] = field(default_factory=list)


class Clients:
    """The clients that have begun. `on_done(flow, done)` is called for each exchange that is
    complete."""

    def __init__(self, network: Network, on_done: Callable[[Flow, Done], None]) -> None:
        self._network, self._on_done = network, on_done
        self._running: dict[str, Running] = {}
        network.on_halt = self._act

    def begin(self, flow: Flow) -> None:
        assert flow.client is not None
        each = self._running[flow.id] = Running(flow, make(flow.client))
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
            flow, waiting = each.flow, each.client.waiting
            found = [(e.at_s, round(e.end_s - e.at_s, 6), e.size_bytes) for e in each.done]
            for at_s, taken_s, size in [*found, *((at_s, None, size) for at_s, size in waiting)]:
                yield ExchangeReport(flow.id, flow.user, flow.kind, at_s, taken_s, size)

    @property
    def _now_s(self) -> float:
        return self._network.now_ns / at.NS_PER_S

    def _ask(self, each: Running, asks: Asks) -> None:
        for ask in asks:
            each.asked.append(ask)
            self._network.ask(each.flow)

    def _act(self, flow: Flow) -> int:
        """Let the server answer requests that it has heard, and the client take answers that have
        arrived. Return when the next client wakes."""
        each, network = self._running[flow.id], self._network
        while each.heard < network.heard(flow):
            each.heard += 1
            ask = each.asked.popleft()
            each.coming.append((network.answer(flow, ask.answer_bytes), ask))
        while each.coming and each.coming[0][0] <= network.arrived(flow):
            self._ask(each, each.client.answered(self._now_s, each.coming.popleft()[1]))
        network.wait_for(flow, each.coming[0][0] if each.coming else 0)
        for done in each.client.take_done():
            each.done.append(done)
            self._on_done(flow, done)
        return self.next_ns


def _ns(at_s: float) -> int:
    return at.FOREVER if at_s == NEVER_S else round(at_s * at.NS_PER_S)
