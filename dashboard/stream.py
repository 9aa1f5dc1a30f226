"""Server-sent events that bring new samples and events of runs in progress to browsers.

One thread follows each run folder, for all browsers together. A position in a run is samples *
EVENTS + events: the numbers of samples and events before it in one integer. Each message contains
its position as `id:`, so a browser can continue where it stopped, even after a restart of the
server.
"""

from __future__ import annotations

import heapq
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path

from flask import Response, current_app

from dashboard import events, state
from dashboard.base.errors import Problem
from dashboard.base.requests import event_stream, folder_of, has_disconnected, position
from dashboard.state import RunState
from lab.errors import LabError
from lab.run.reading import Follower, event, sample

EVENTS = 10_000_000
KEPT = 4000  # messages in memory; older ones are read from the files
POLL_S = 0.1
STATUS_EVERY = 5  # polls
HEARTBEAT_S = 15.0
STREAM_S = 600.0  # then the browser connects again
TAKEN = b"taken"  # the stream has got one of the slots
FRAMES_AT_ONCE = 2000
LINGER_S = 10.0  # how long a `Tail` goes on after its last use


@dataclass(frozen=True)
class Message:
    """One message for browsers.

    `kind` is "sample", "event" or "status". `seq` is the position in the run after this message.
    `body` is the content as JSON text.
    """

    kind: str
    seq: int
    body: str

    def sse(self) -> bytes:
        return f"id: {self.seq}\nevent: {self.kind}\ndata: {self.body}\n\n".encode()

    def is_after(self, samples: int, events: int) -> bool:
        """Return whether a browser that has received these numbers of samples and events needs this
        message."""
        return self.seq // EVENTS > samples if self.kind == "sample" else self.seq % EVENTS > events


class Tail(threading.Thread):
    """A thread that reads new lines of one run folder until no browser has used it for `LINGER_S`.

    The last `KEPT` messages are kept in memory.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(name=f"follow {folder.name}", daemon=True)
        self.folder = folder
        self.news = threading.Condition()
        self.watchers, self.ended, self.used = 0, False, time.monotonic()
        self.state: RunState | None = None
        self.count = 0  # of all messages so far, changes of state included
        self._samples = Follower(folder / "samples.jsonl", _sample_text)
        self._events = Follower(folder / "events.jsonl", _event_text)
        self._kept: deque[Message] = deque(maxlen=KEPT)
        self._read, self._dropped = [0, 0], [0, 0]  # samples, events

    def run(self) -> None:
        polls = 0
        while not self.ended:
            with suppress(LabError):  # the machine lacks descriptors now: try again
                self.poll(polls % STATUS_EVERY == 0)
            polls += 1
            time.sleep(POLL_S)
            with self.news:
                self.ended = not self.watchers and time.monotonic() - self.used > LINGER_S

    def since(self, seq: int) -> list[Message]:
        """Return the messages after the position `seq`, in order; at most `KEPT` of them.

        If some of them are no longer in memory, they are read from the files of the run.
        """
        samples, events_read = divmod(seq, EVENTS)
        with self.news:
            self.used = time.monotonic()
            if samples >= self._dropped[0] and events_read >= self._dropped[1]:
                return [each for each in self._kept if each.is_after(samples, events_read)]
        after = (each for each in read(self.folder) if each.is_after(samples, events_read))
        return list(islice(after, KEPT))

    def more_than(self, count: int) -> bool:
        """Wait until there have been more than `count` messages since the start of the thread.

        Return False if this does not happen within `HEARTBEAT_S`.
        """
        with self.news:
            return self.news.wait_for(lambda: self.count > count, HEARTBEAT_S)

    def poll(self, with_state: bool) -> None:
        """Read the new lines of the folder, and wake the threads that wait for messages.

        The state of the run is determined only if `with_state`, or if there are new events.
        """
        before = self._read[1]
        for kind, follower in (("sample", self._samples), ("event", self._events)):
            new = follower.each()
            while lines := list(islice(new, KEPT)):
                with self.news:
                    for line in lines:
                        self._keep(kind, line)
        now = state.of(self.folder) if with_state or self._read[1] > before else self.state
        with self.news:
            if now != self.state:
                self.state = now
                self.count += 1
            self.news.notify_all()

    def _keep(self, kind: str, line: str) -> None:
        self._read[kind == "event"] += 1
        if len(self._kept) == KEPT:
            self._dropped[self._kept[0].kind == "event"] += 1
        self._kept.append(_message(kind, line, *self._read))
        self.count += 1


class Streams:
    """All open streams of the server, at most `most`, and one `Tail` thread for each run folder in
    use."""

    def __init__(self, most: int) -> None:
        self._tails: dict[Path, Tail] = {}
        self._mutex = threading.Lock()
        self._slots = threading.BoundedSemaphore(most)

    def tail(self, folder: Path) -> Tail:
        """Return the thread that follows a run folder. Start it if there is none."""
        with self._mutex:
            self._tails = {path: tail for path, tail in self._tails.items() if not tail.ended}
            if folder not in self._tails:
                tail = Tail(folder)
                tail.poll(True)
                tail.start()
                self._tails[folder] = tail
            return self._tails[folder]

    def watch(self, folder: Path, seq: int, gone: Callable[[], bool]) -> Iterator[bytes] | None:
        """Return an iterator over the server-sent events of a run after the position `seq`.

        Return None if too many streams are open. The iterator ends when the run has ended, when
        `gone()` returns True, or after `STREAM_S`. `gone` says whether the browser has
        disconnected. The stream counts as open until the iterator ends, is closed or is
        garbage-collected, even if it was never used.
        """
        watched = self._watch(self.tail(folder), seq, gone)
        return watched if next(watched) == TAKEN else None

    def _watch(self, tail: Tail, seq: int, gone: Callable[[], bool]) -> Iterator[bytes]:
        if not self._slots.acquire(blocking=False):
            yield b""
            return
        ends = time.monotonic() + STREAM_S
        sent: RunState | None = None
        try:
            with tail.news:
                tail.watchers += 1
            yield TAKEN  # `watch` begins the iterator, because only then `finally` is sure to run
            yield b"retry: 2000\n\n"
            while time.monotonic() < ends and not gone():
                count, text, new = tail.count, b"", tail.since(seq)
                for message in new:
                    seq = message.seq
                    text += message.sse()
                if tail.state is not None and tail.state != sent:
                    sent = tail.state
                    text += Message("status", seq, json.dumps(sent.to_json())).sse()
                if text:
                    yield text
                if len(new) == KEPT:
                    continue  # there may be more
                if sent is not None and sent.over and not tail.since(seq):
                    return
                if not tail.more_than(count):
                    yield b": still here\n\n"
        finally:
            with tail.news:
                tail.watchers -= 1
                tail.used = time.monotonic()
            self._slots.release()


def streams() -> Streams:
    found: Streams = current_app.extensions["streams"]
    return found


def live(run_id: str) -> Response:
    """Return a response that stays open and sends the samples and events of a run as server-sent
    events."""
    messages = streams().watch(folder_of(run_id), position(), has_disconnected())
    if messages is None:
        raise Problem(
            503,
            f"follow run '{run_id}': too many browsers follow runs. Close one, or poll "
            f"/api/runs/{run_id}/frames?since=SEQ",
        )
    return event_stream(messages)


def frames(run_id: str) -> Response:
    """Return the samples and events of a run after the position ?since=SEQ, for programs that
    poll."""
    tail = streams().tail(folder_of(run_id))
    since = position()
    new = tail.since(since)
    sent = new[:FRAMES_AT_ONCE]
    seq = sent[-1].seq if sent else since
    messages = ",".join(
        f'{{"seq":{each.seq},"type":"{each.kind}","data":{each.body}}}' for each in sent
    )
    more = json.dumps(len(new) > len(sent))
    status = json.dumps(tail.state.to_json() if tail.state else {})
    text = f'{{"seq":{seq},"more":{more},"status":{status},"messages":[{messages}]}}'
    return Response(text, mimetype="application/json")


def read(folder: Path) -> Iterator[Message]:
    """Yield all samples and events of a run as messages, merged by time.

    Lines of the same file keep their order.
    """
    merged = heapq.merge(
        _timed("sample", folder / "samples.jsonl"),
        _timed("event", folder / "events.jsonl"),
        key=itemgetter(0),
    )
    read_so_far = [0, 0]
    for _, kind, line in merged:
        read_so_far[kind == "event"] += 1
        yield _message(kind, line, *read_so_far)


def _timed(kind: str, path: Path) -> Iterator[tuple[float, str, str]]:
    latest = 0.0
    parse = _sample_text if kind == "sample" else _event_text
    for line in Follower(path, parse).each():
        latest = max(latest, float(json.loads(line)["t"]))
        yield latest, kind, line


def _sample_text(line: bytes) -> str:
    sample(line)
    return line.decode().replace("\r", " ")  # a line of server-sent events also ends with \r


def _event_text(line: bytes) -> str:
    event(line)
    return line.decode()


def _message(kind: str, line: str, samples: int, events_read: int) -> Message:
    if kind == "event":
        line = json.dumps(asdict(events.describe(json.loads(line), events_read)))
    return Message(kind, samples * EVENTS + events_read, line)
