"""Clients that ask their server for data and react to its answers.

A client is a small state machine without sockets and clocks. Both engines run it: the simulator
between two events, the emulation in a program inside the user's host. The engine calls

    begin(now_s)             once, when the traffic starts
    answered(now_s, ask)     when the last byte of the answer to `ask` has been read
    woke(now_s)              at `wake_s`, which each call may set

and each call returns the requests that the client sends now. Requests of one connection are
answered in their order. The random numbers follow from the seed of the run, so both engines draw
the same ones. This module imports little, because the programs in the hosts start slowly.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

from lab.scenario import flow_sizes
from lab.scenario.flow_sizes import Points

NEVER_S = float("inf")
MOMENT_S = 1e-6
REQUEST_PACKET_BYTES = 1400  # of a request, that one packet carries
Asks = list["Ask"]


class ClientSpec(NamedTuple):
    """What a client does, as its entry in `traffic` says; see `lab.scenario.traffic.Traffic`.

    `seed` is the seed of its random numbers. `end_s` is when it stops asking, in s since the start
    of the run; None: never. Sizes are those on the wire.
    """

    kind: str
    seed: str
    end_s: float | None
    request_bytes: int
    answer_bytes: int
    think_s: float | None
    requests_per_s: float | None
    connections: int = 1
    objects: int = 0  # of a page
    sizes_kb: Points = ()  # of objects, as in `flow_sizes`
    bytes_per_kb: float = 1000.0  # on the wire
    bitrates_mbps: tuple[float, ...] = ()  # of a video, ascending
    chunk_s: float = 0.0
    buffer_s: float = 0.0
    adapts_by: str = ""  # rate or buffer

    @property
    def request_packets(self) -> int:
        return -(-self.request_bytes // REQUEST_PACKET_BYTES)


class Ask(NamedTuple):
    """A request over connection number `connection` of the client, from 0. `at_s` is when the user
    wanted it: this is before it was sent if it had to wait."""

    connection: int
    answer_bytes: int
    at_s: float


class Done(NamedTuple):
    """Something that a user waited for, an answer or a page: it took from `at_s` to `end_s`, in s
    since the start of the run, and brought `size_bytes` on the wire."""

    at_s: float
    end_s: float
    size_bytes: int


class Quality(NamedTuple):
    """What the viewer of a video saw until some time of the run.

    `bitrate_mbps` is the mean of the chunks that have arrived, in the units of the scenario file;
    None without one. `startup_s` is the time until the video began to play, `stall_s` how long it
    stood still after that, in `stalls` pauses. `switches` counts changes of the bitrate.
    """

    bitrate_mbps: float | None
    startup_s: float
    stalls: int
    stall_s: float
    switches: int


class Client(ABC):
    """The base class of clients. `done` has what is complete, in the order of its end, until the
    engine takes it; `waiting` is what was begun and is not complete."""

    def __init__(self, spec: ClientSpec) -> None:
        self.spec, self.chance = spec, random.Random(spec.seed)  # noqa: S311 - no secret
        self.wake_s = NEVER_S
        self.waiting: list[tuple[float, int]] = []  # when each was begun, and its size
        self.done: list[Done] = []

    @abstractmethod
    def begin(self, now_s: float) -> Asks: ...

    @abstractmethod
    def answered(self, now_s: float, ask: Ask) -> Asks: ...

    @abstractmethod
    def woke(self, now_s: float) -> Asks:
        """Act at `wake_s`. The engine has set `wake_s` to never before."""

    def quality(self, now_s: float) -> Quality | None:
        """Return what the viewer of a video saw until now; None for other clients."""
        return None

    def take_done(self) -> list[Done]:
        found, self.done = self.done, []
        return found

    def is_over(self, now_s: float) -> bool:
        return self.spec.end_s is not None and now_s >= self.spec.end_s


class RpcClient(Client):
    """Remote procedure calls over one connection: requests of one size, answers of another.

    With `requests_per_s`, requests come at the times of a Poisson process, and wait for earlier
    answers if need be. Otherwise each follows the answer before it after a pause: exponentially
    distributed with the mean `think_s`.
    """

    def begin(self, now_s: float) -> Asks:
        if self.spec.requests_per_s:
            self._sleep_until_the_next(now_s)
            return []
        return self._ask(now_s)

    def answered(self, now_s: float, ask: Ask) -> Asks:
        self.waiting.pop(0)
        self.done.append(Done(ask.at_s, now_s, ask.answer_bytes))
        if self.spec.requests_per_s:
            return []
        if not self.spec.think_s:
            return self._ask(now_s)
        self.wake_s = now_s + self.chance.expovariate(1 / self.spec.think_s)
        return []

    def woke(self, now_s: float) -> Asks:
        if self.spec.requests_per_s:
            self._sleep_until_the_next(now_s)
        return self._ask(now_s)

    def _sleep_until_the_next(self, now_s: float) -> None:
        assert self.spec.requests_per_s
        self.wake_s = now_s + self.chance.expovariate(self.spec.requests_per_s)

    def _ask(self, now_s: float) -> Asks:
        if self.is_over(now_s):
            self.wake_s = NEVER_S
            return []
        self.waiting.append((now_s, self.spec.answer_bytes))
        return [Ask(0, self.spec.answer_bytes, now_s)]


class WebClient(Client):
    """Pages of several objects over some connections, as browsers load them.

    The first object, which names the others, comes over the first connection. Then each connection
    asks for the next object when its last one has arrived. The next page follows after a pause:
    exponentially distributed with the mean `think_s`.
    """

    def begin(self, now_s: float) -> Asks:
        return self._load(now_s)

    def woke(self, now_s: float) -> Asks:
        return self._load(now_s)

    def answered(self, now_s: float, ask: Ask) -> Asks:
        self._missing -= 1
        if not self._missing:
            ((began_s, size_bytes),) = self.waiting
            self.waiting = []
            self.done.append(Done(began_s, now_s, size_bytes))
            self.wake_s = now_s + self.chance.expovariate(1 / (self.spec.think_s or MOMENT_S))
            return []
        is_first = self._missing == self.spec.objects - 1
        several = range(self.spec.connections) if is_first else (ask.connection,)
        return self._next_objects(now_s, several)

    def _load(self, now_s: float) -> Asks:
        if self.is_over(now_s):
            return []
        self._left = [self._draw_bytes() for _ in range(self.spec.objects)]
        self._missing = self.spec.objects
        self.waiting = [(now_s, sum(self._left))]
        return self._next_objects(now_s, (0,))

    def _draw_bytes(self) -> int:
        size_kb = flow_sizes.draw_kb(self.spec.sizes_kb, self.chance)
        return max(1, round(size_kb * self.spec.bytes_per_kb))

    def _next_objects(self, now_s: float, connections: Iterable[int]) -> Asks:
        return [Ask(n, self._left.pop(0), now_s) for n in connections if self._left]


SAFE_PART, MEAN_OF = 0.8, 5  # of the measured rate; chunks of which it is the mean
RESERVOIR, FULL = 90 / 240, 0.9  # parts of the buffer; BBA-0's buffer of 240 s


class VideoClient(Client):
    """A video in chunks of `chunk_s`, each in one of several bitrates (DASH).

    It plays as soon as a chunk is there, and stands still while the buffer is empty. The next chunk
    is asked for when it has room in the buffer of `buffer_s`. Its bitrate is chosen by

    - rate: the largest one within 0.8 times the harmonic mean rate of the last five chunks
    - buffer: BBA-0 (T.-Y. Huang et al., A Buffer-Based Approach to Rate Adaptation, SIGCOMM 2014,
      algorithm 1). The rate map is a line from the lowest bitrate, at 90/240 of the buffer, to the
      highest, at 90 %; in a buffer of few chunks, where two more have room
    """

    def __init__(self, spec: ClientSpec) -> None:
        super().__init__(spec)
        self._level_s, self._at_s, self._began_s = 0.0, 0.0, 0.0
        self._started_s: float | None = None  # when it began to play
        self._chosen: list[int] = []  # bitrates of the chunks that were asked for, by number
        self._arrived = self._stalls = 0
        self._stall_s, self._is_stalled = 0.0, False
        self._rates: list[float] = []

    def begin(self, now_s: float) -> Asks:
        self._began_s = self._at_s = now_s
        return self._ask(now_s)

    def woke(self, now_s: float) -> Asks:
        return self._ask(now_s)

    def answered(self, now_s: float, ask: Ask) -> Asks:
        self._play_until(now_s)
        self.waiting = []
        self.done.append(Done(ask.at_s, now_s, ask.answer_bytes))
        self._rates.append(ask.answer_bytes / max(MOMENT_S, now_s - ask.at_s))
        self._arrived += 1
        self._level_s += self.spec.chunk_s
        self._is_stalled = False
        if self._started_s is None:
            self._started_s = now_s
        too_much_s = self._level_s + self.spec.chunk_s - self.spec.buffer_s
        if too_much_s > 0:
            self.wake_s = now_s + too_much_s
            return []
        return self._ask(now_s)

    def quality(self, now_s: float) -> Quality:
        self._play_until(now_s)
        chosen = [self.spec.bitrates_mbps[n] for n in self._chosen[: self._arrived]]
        began_s = now_s if self._started_s is None else self._started_s
        return Quality(
            round(sum(chosen) / len(chosen), 6) if chosen else None,
            round(began_s - self._began_s, 6),
            self._stalls,
            round(self._stall_s, 6),
            sum(a != b for a, b in pairwise(chosen)),
        )

    def _play_until(self, now_s: float) -> None:
        passed_s, self._at_s = max(0.0, now_s - self._at_s), max(now_s, self._at_s)
        if self._started_s is None:
            return
        missing_s = max(0.0, passed_s - self._level_s)
        self._level_s = max(0.0, self._level_s - passed_s)
        if missing_s > MOMENT_S:
            self._stalls += not self._is_stalled
            self._is_stalled = True
            self._stall_s += missing_s

    def _ask(self, now_s: float) -> Asks:
        self._play_until(now_s)
        if self.is_over(now_s):
            return []
        self._chosen.append(self._next_bitrate())
        chunk_kb = self.spec.bitrates_mbps[self._chosen[-1]] * self.spec.chunk_s * 1000 / 8
        size_bytes = max(1, round(chunk_kb * self.spec.bytes_per_kb))
        self.waiting = [(now_s, size_bytes)]
        return [Ask(0, size_bytes, now_s)]

    def _next_bitrate(self) -> int:
        if not self._chosen:
            return 0
        return self._by_buffer() if self.spec.adapts_by == "buffer" else self._by_rate()

    def _by_rate(self) -> int:
        recent = self._rates[-MEAN_OF:]
        mean = len(recent) / sum(1 / rate for rate in recent)  # bytes on the wire per s
        mbps = SAFE_PART * mean * 8 / 1000 / self.spec.bytes_per_kb
        return max((n for n, each in enumerate(self.spec.bitrates_mbps) if each <= mbps), default=0)

    def _by_buffer(self) -> int:
        rates, last = self.spec.bitrates_mbps, self._chosen[-1]
        size_s = self.spec.buffer_s
        reservoir_s, full_s = RESERVOIR * size_s, min(FULL * size_s, size_s - 2 * self.spec.chunk_s)
        if self._level_s <= reservoir_s:
            return 0
        if self._level_s >= full_s:
            return len(rates) - 1
        part = (self._level_s - reservoir_s) / (full_s - reservoir_s)
        mapped = rates[0] + part * (rates[-1] - rates[0])
        if mapped >= rates[min(last + 1, len(rates) - 1)]:
            return max(n for n, each in enumerate(rates) if each < mapped)
        if mapped <= rates[max(last - 1, 0)]:
            return min(n for n, each in enumerate(rates) if each > mapped)
        return last


CLIENTS: dict[str, Callable[[ClientSpec], Client]] = {
    "rpc": RpcClient,
    "web": WebClient,
    "video": VideoClient,
}


def make(spec: ClientSpec) -> Client:
    return CLIENTS[spec.kind](spec)
