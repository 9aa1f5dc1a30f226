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
from typing import NamedTuple

NEVER_S = float("inf")
Asks = list["Ask"]


class ClientSpec(NamedTuple):
    """What a client does, as its entry in `traffic` says; see `lab.scenario.schema.Traffic`.

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


class Ask(NamedTuple):
    """A request over connection number `connection` of the client, from 0. `at_s` is when the user
    wanted it: this is before it was sent if it had to wait."""

    connection: int
    answer_bytes: int
    at_s: float


class Done(NamedTuple):
    """Something that a user waited for: it took from `at_s` to `end_s`, in s since the start of the
    run, and brought `size_bytes` on the wire."""

    at_s: float
    end_s: float
    size_bytes: int


class Client:
    """The base class of clients. `done` has what is complete, in the order of its end, until the
    engine takes it; `waiting` is what was begun and is not complete."""

    def __init__(self, spec: ClientSpec) -> None:
        self.spec, self.chance = spec, random.Random(spec.seed)  # noqa: S311 - no secret
        self.wake_s = NEVER_S
        self.waiting: list[tuple[float, int]] = []  # when each was begun, and its size
        self.done: list[Done] = []

    def begin(self, now_s: float) -> Asks:
        raise NotImplementedError

    def answered(self, now_s: float, ask: Ask) -> Asks:
        raise NotImplementedError

    def woke(self, now_s: float) -> Asks:
        """Act at `wake_s`. The engine has set `wake_s` to never before."""
        raise NotImplementedError

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


CLIENTS = {"rpc": RpcClient}


def make(spec: ClientSpec) -> Client:
    return CLIENTS[spec.kind](spec)
