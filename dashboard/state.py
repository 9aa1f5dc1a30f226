"""The state of a run (running, paused, ended and so on), determined from the files in its
folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.results.documents import tolerant_document
from lab.results.explain import present
from lab.results.labels import counted
from lab.results.labels import describe as describe_mptcp
from lab.results.store import CHANGED, changed
from lab.run import process, reading, stopping

STATE_WORDS = (b'"control"', b'"overloaded"', f'"{stopping.KILLED}"'.encode())
DECIDE_AFTER_S = 5  # by then, a connection has opened its second subflow
Doc = dict[str, Any]  # a JSON document of the run folder


@dataclass(frozen=True)
class Verdict:
    """Whether the connections of a run use Multipath TCP, as a word and as a sentence.

    `kind` is "yes", "no", "pending" (not known yet) or "none" (no user of the scenario uses it).
    """

    kind: str
    text: str


@dataclass(frozen=True)
class RunState:
    """The state of a run.

    `t` is the time in s that the run has reached. `over` is True if the run has ended. `speed` is
    simulated time over real time, "max", or None if the engine runs in real time. `overloaded` says
    why the machine cannot keep up with the run; it is empty if the machine can. `suspended` says
    that a signal has suspended the process of the run, and what to do; it is empty if none has.
    """

    status: str
    over: bool
    t: float
    paused: bool
    speed: float | str | None
    verdict: Verdict
    overloaded: str
    error: str
    suspended: str = ""

    def to_json(self) -> Doc:
        verdict = {"is": self.verdict.kind, "text": self.verdict.text}
        return asdict(self) | {"verdict": verdict}


@dataclass
class _Flags:
    """The state that follows from the event log of a run: pause, speed, overload, and how its
    process ended."""

    paused: bool = False
    speed: float | str | None = None
    overloaded: list[str] = field(default_factory=list)
    killed: str = ""


UNVERIFIED = Verdict("no", "Multipath TCP not verified: the run was changed after its end.")


def of(folder: Path) -> RunState:
    result, manifest = (
        tolerant_document(folder / "result.json"),
        tolerant_document(folder / "manifest.json"),
    )
    frame = reading.last_sample(folder)
    status = _status(folder, manifest, result)
    over = status not in ("starting", "running")
    flags = _flags(folder)
    done = result or {}
    if names := changed(folder, done):
        status = CHANGED
    reasons = [str(each) for each in (done.get("overload") or {}).get("reasons", [])]
    reasons = reasons or flags.overloaded
    return RunState(
        status=status,
        over=over,
        t=done.get("duration_s") or (frame or {}).get("t", 0),
        paused=flags.paused and not over,
        speed=flags.speed if flags.speed is not None else _first_speed(manifest),
        verdict=UNVERIFIED if names else verdict(result, frame, _multipath_users(folder), over),
        overloaded="; ".join(reasons) if done.get("overloaded") or reasons else "",
        error=reading.changed_text(names) if names else done.get("error") or flags.killed,
        suspended="" if over else stopping.suspended_text(manifest or {}),
    )


def verdict(
    result: Doc | None, frame: Doc | None, multipath_users: Sequence[str], over: bool
) -> Verdict:
    """Return whether the connections of a run use Multipath TCP.

    If the run has a `result`, the answer is in it. Otherwise the answer follows from the number of
    subflows of each connection in the latest sample, `frame`.
    """
    if not multipath_users:
        text = "This scenario has no multipath user: all connections are plain TCP."
        return Verdict("none", text)
    if result is not None:
        mptcp = result.get("mptcp") or {}
        if mptcp.get("verified"):
            return Verdict("yes", f"{describe_mptcp(mptcp)}.")
        return Verdict("no", f"{describe_mptcp(mptcp)}. Do not read the numbers as multipath.")
    if over:
        return Verdict("no", "Multipath TCP not verified: the run ended without a result.")
    subflows = _subflow_counts(frame)
    several = sum(count > 1 for count in subflows.values())
    if several:
        has = "has" if several == 1 else "have"
        text = f"So far {counted(several, 'connection')} {has} more than one subflow. "
        return Verdict("pending", text + "Multipath TCP is verified when the run ends.")
    if frame and frame.get("t", 0) > DECIDE_AFTER_S and subflows:
        text = "Not Multipath TCP so far: no connection has more than one subflow."
        return Verdict("no", text)
    return Verdict("pending", "Waiting for the first subflows.")


def _status(folder: Path, manifest: Doc | None, result: Doc | None) -> str:
    if result is not None:
        return str(result.get("status", "failed"))
    if manifest is None:
        return "starting"
    if process.alive(manifest, folder):
        return "running"
    result = tolerant_document(folder / "result.json")  # the run may have ended just now
    return str(result.get("status", "failed")) if result else "cut"


def _flags(folder: Path) -> _Flags:
    flags = _Flags()
    for event in _state_events(folder / "events.jsonl"):
        if event.get("kind") == "control" and event.get("ok"):
            match event.get("control"):
                case "pause":
                    flags.paused = True
                case "resume":
                    flags.paused = False
                case "speed":
                    flags.speed = event.get("value", flags.speed)
        if event.get("kind") == "warning" and event.get("overloaded"):
            flags.overloaded.append(str(event.get("text", "overloaded")))
        if event.get("kind") == "warning" and event.get(stopping.KILLED):
            flags.killed = str(event.get("text", ""))
    return flags


def _first_speed(manifest: Doc | None) -> float | str | None:
    """Return the speed at which a run began. Return None if the manifest does not have it."""
    speed = (manifest or {}).get("speed")
    return "max" if speed == 0 else speed


def _state_events(path: Path) -> Iterator[Doc]:
    """Yield the events that change the state. Other lines are not parsed, to save time."""
    with suppress(LabError):
        yield from reading.Follower(path, _state_event).each()


def _state_event(line: bytes) -> Doc:
    if not any(word in line for word in STATE_WORDS):
        raise ValueError("it does not change the state")
    return reading.event(line)


def _multipath_users(folder: Path) -> list[str]:
    try:
        return list(present.network(folder).multipath)
    except LookupError:
        return []


def _subflow_counts(frame: Doc | None) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in (frame or {}).get("sf", {}):
        connection = name.rpartition("/")[0]
        counts[connection] = counts.get(connection, 0) + 1
    return counts
