"""Live runs: one reader per run folder, shared by all who watch; every line is encoded once.

A position in a run counts the samples and the events that were seen: SEQ = samples * EVENTS + events. It needs no memory of
who saw what, and holds after a restart. Server-sent events carry it as `id:`, so that a browser resumes where it was.
"""

from __future__ import annotations

import heapq
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from dashboard import events, state
from lab.run.recorder import Follower

EVENTS = 10_000_000
KEPT = 4000  # messages in memory; who is further behind is served from the files
LOOK_S = 0.1
STATUS_EVERY = 5  # looks
HEARTBEAT_S = 15.0
LIFE_S = 600.0  # then the browser comes again
LINGER_S = 10.0  # a reader goes on for so long after the last who watched


@dataclass(frozen=True)
class Message:
    """One line for those who watch; `body` is its JSON text."""

    kind: str
    seq: int
    body: str

    def sse(self) -> bytes:
        return f"id: {self.seq}\nevent: {self.kind}\ndata: {self.body}\n\n".encode()

    def after(self, samples: int, events: int) -> bool:
        """Whether someone who has seen so much has not seen this."""
        return self.seq // EVENTS > samples if self.kind == "sample" else self.seq % EVENTS > events


class Tail(threading.Thread):
    """Follows one run folder until nobody watches it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(name=f"follow {folder.name}", daemon=True)
        self.folder = folder
        self.news = threading.Condition()
        self.watchers, self.ended, self.used = 0, False, time.monotonic()
        self.status: dict[str, Any] = {}
        self.count = 0  # messages there have been, status included
        self._samples, self._events = (
            Follower(folder / "samples.jsonl", str),
            Follower(folder / "events.jsonl", str),
        )
        self._kept: deque[Message] = deque(maxlen=KEPT)
        self._seen, self._dropped = [0, 0], [0, 0]  # samples, events

    def run(self) -> None:
        look = 0
        while not self.ended:
            self.look(look % STATUS_EVERY == 0)
            look += 1
            time.sleep(LOOK_S)
            with self.news:
                self.ended = not self.watchers and time.monotonic() - self.used > LINGER_S

    def since(self, seq: int) -> list[Message]:
        """What someone who is at `seq` has not seen, in order; from the files if that is no longer in memory."""
        samples, seen_events = divmod(seq, EVENTS)
        with self.news:
            self.used = time.monotonic()
            if samples >= self._dropped[0] and seen_events >= self._dropped[1]:
                return [message for message in self._kept if message.after(samples, seen_events)]
        return [message for message in read(self.folder) if message.after(samples, seen_events)]

    def more_than(self, count: int) -> bool:
        """Wait until there have been more than `count` messages; False if that takes longer than a heartbeat."""
        with self.news:
            return self.news.wait_for(lambda: self.count > count, HEARTBEAT_S)

    def look(self, with_status: bool) -> None:
        samples, found = self._samples.new(), self._events.new()
        status = state.of(self.folder) if with_status or found else self.status
        with self.news:
            for kind, lines in (("sample", samples), ("event", found)):
                for line in lines:
                    self._keep(kind, line)
            if status != self.status:
                self.status = status
                self.count += 1
            self.news.notify_all()

    def _keep(self, kind: str, line: str) -> None:
        self._seen[kind == "event"] += 1
        if len(self._kept) == KEPT:
            self._dropped[self._kept[0].kind == "event"] += 1
        self._kept.append(_message(kind, line, *self._seen))
        self.count += 1


class Streams:
    """The readers of all runs that are watched, and how many may watch."""

    def __init__(self, most: int) -> None:
        self._tails: dict[Path, Tail] = {}
        self._mutex = threading.Lock()
        self._slots = threading.BoundedSemaphore(most)

    def tail(self, folder: Path) -> Tail:
        """The reader of a run, started if there is none."""
        with self._mutex:
            self._tails = {path: tail for path, tail in self._tails.items() if not tail.ended}
            if folder not in self._tails:
                self._tails[folder] = Tail(folder)
                self._tails[folder].look(True)
                self._tails[folder].start()
            return self._tails[folder]

    def watch(self, folder: Path, seq: int, gone: Callable[[], bool]) -> Iterator[bytes] | None:
        """Server-sent events from `seq` on, or None if too many watch."""
        if not self._slots.acquire(blocking=False):
            return None
        return self._watch(self.tail(folder), seq, gone)

    def _watch(self, tail: Tail, seq: int, gone: Callable[[], bool]) -> Iterator[bytes]:
        ends = time.monotonic() + LIFE_S
        said: dict[str, Any] = {}
        try:
            with tail.news:
                tail.watchers += 1
            yield b"retry: 2000\n\n"
            while time.monotonic() < ends and not gone():
                count, told = tail.count, b""
                for message in tail.since(seq):
                    seq = message.seq
                    told += message.sse()
                if tail.status != said:
                    said = tail.status
                    told += Message("status", seq, json.dumps(said)).sse()
                if told:
                    yield told
                if said.get("over") and not tail.since(seq):
                    return
                if not tail.more_than(count):
                    yield b": still here\n\n"
        finally:
            with tail.news:
                tail.watchers -= 1
                tail.used = time.monotonic()
            self._slots.release()


def read(folder: Path) -> list[Message]:
    """All samples and events of a run as messages, merged by their times; each file keeps its order."""
    merged = heapq.merge(
        _timed("sample", folder / "samples.jsonl"),
        _timed("event", folder / "events.jsonl"),
        key=itemgetter(0),
    )
    seen, messages = [0, 0], []
    for _, kind, line in merged:
        seen[kind == "event"] += 1
        messages.append(_message(kind, line, *seen))
    return messages


def _timed(kind: str, path: Path) -> Iterator[tuple[float, str, str]]:
    latest = 0.0
    for line in Follower(path, str).new():
        latest = max(latest, float(json.loads(line).get("t") or 0))
        yield latest, kind, line


def _message(kind: str, line: str, samples: int, seen_events: int) -> Message:
    body = line if kind == "sample" else json.dumps(events.describe(json.loads(line), seen_events))
    return Message(kind, samples * EVENTS + seen_events, body)
