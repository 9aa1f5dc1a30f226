"""Start POX, the SDN controller of a run, and exchange messages with it.

Messages to POX are numbered files in its inbox folder. POX writes its answers, measurements and
decisions to decisions.jsonl.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from controller.bounded_json import parse_object
from controller.units import mbps_from_bps
from lab import extensions
from lab.engines.mininet.machine import open_vswitch, shell, warm
from lab.engines.mininet.machine.ledger import Ledger
from lab.errors import LabError
from lab.run.reading import Follower

PROJECT = Path(__file__).resolve().parents[3]
READY_TIMEOUT_S = 90
PATIENCE_S = 180  # how long POX waits for the switches, which are built after its start
SETTLED_WITHIN_S = 10.0
HELD_WITHIN_S = 5.0  # how long the runner waits until POX holds its control steps
POLL_S = 0.1
# actions of decisions that a switch or a host has yet to carry out
SUBFLOW_ACTIONS = {"route", "expect", "backup", "normal"}
AP_AGENT_PORT, HOST_AGENT_PORT = 6699, 6698  # where POX receives their reports


@dataclass(frozen=True)
class RunningStrategy:
    """A control strategy of POX and its parameters, in the units of the scenario file."""

    name: str
    params: Mapping[str, Any]

    def to_json(self, folder: Path) -> dict[str, Any]:
        """Return the content of a `strategy` message to POX (docs/formats.md)."""
        return {"name": self.name, "params": dict(self.params), **self.copied(folder)}

    def copied(self, folder: Path) -> dict[str, str]:
        """Copy the user's file that defines the strategy into `folder`; return both paths.

        The paths have the keys "file" (the user's file) and "source" (the copy). The copy has the
        content that the file had when the strategy was registered. For a built-in strategy,
        nothing is copied, and the result is empty.
        """
        defined_in = extensions.strategy_file(self.name)
        if defined_in is None:
            return {}
        copy = folder / defined_in.path.name
        copy.write_bytes(defined_in.source)
        return {"file": str(defined_in.path), "source": str(copy)}


@dataclass(frozen=True)
class Line:
    """A line that POX has written to decisions.jsonl at the time `at` [s since 1970].

    `kind` says what the line reports. The kinds to which the engine reacts have a subclass.
    """

    at: float
    kind: str
    fields: dict[str, Any]


class Ready(Line):
    """Reports that all switches are connected and have their flow tables."""


class Decided(Line):
    @property
    def changes_a_subflow(self) -> bool:
        return self.fields.get("action") in SUBFLOW_ACTIONS

    @property
    def meter(self) -> tuple[str, float] | None:
        """An access point and its new limit for secondary subflows (Tier 2) [Mb/s].

        None if no limit has changed. The limit is not yet multiplied by `rate_scale`.
        """
        fields = self.fields
        return (fields["ap"], fields["meter_mbps"]) if "meter_mbps" in fields else None


class Observed(Line):
    """The measurements on which POX bases the decisions of one control step."""

    @property
    def tiers(self) -> dict[str, dict[str, int]] | None:
        found: dict[str, dict[str, int]] | None = self.fields.get("tiers")
        return found

    @property
    def meters_mbps(self) -> dict[str, float | None]:
        return {ap: row.get("meter_mbps") for ap, row in self.fields.get("aps", {}).items()}


class SubflowSeen(Line):
    """Reports that a subflow was established, has changed or has ended."""

    @property
    def destination(self) -> tuple[str, int]:
        address, port = self.fields["destination"].rsplit(":", 1)
        return address, int(port)


class Answered(Line):
    """Reports that POX has carried out or refused a message from the engine."""

    @property
    def seq(self) -> int:
        return int(self.fields.get("seq", 0))

    @property
    def refused(self) -> str:
        """The reason why POX has refused the message; "" if POX has carried it out."""
        return str(self.fields["why"]) if self.fields.get("state") == "refused" else ""


CLASSES: dict[str, type[Line]] = {
    "ready": Ready,
    "decision": Decided,
    "observation": Observed,
    "subflow": SubflowSeen,
    "flip": Answered,
    "steps": Answered,
}


def read_line(text: bytes) -> Line:
    """Parse a line of decisions.jsonl. Raises `ValueError` if the line is damaged."""
    fields = parse_object(text)
    try:
        at, kind = float(fields.pop("at")), str(fields.pop("kind"))
    except (KeyError, TypeError) as error:
        raise ValueError(f"a line of POX without time or kind: {error}") from error
    return CLASSES.get(kind, Line)(at, kind, fields)


class ControllerClient:
    """Starts, restarts and stops POX as a process, sends it messages, and reads what it reports.

    The files of POX are in `folder`. `strategy` is the latest strategy that POX has confirmed. POX
    begins with this strategy after a restart.
    """

    def __init__(
        self,
        folder: Path,
        upstream: Path,
        ledger: Ledger,
        strategy: RunningStrategy,
        key_file: Path,
    ) -> None:
        """Store the arguments. POX is not started yet.

        `upstream` is the folder of POX's sources. `key_file` contains the key that authenticates
        messages between POX and the agents.
        """
        self.folder, self.ledger, self.strategy = folder.absolute(), ledger, strategy
        self.restarts = 0
        self._upstream, self._key_file = upstream, key_file
        self._process: warm.Process | None = None
        self._sent = 0
        self._unanswered: dict[int, RunningStrategy | Mapping[str, Any]] = {}
        self._follower = Follower(self.folder / "decisions.jsonl", read_line)
        self._heard: list[Line] = []  # and not taken yet

    def start(self, description: Mapping[str, Any]) -> None:
        """Start POX without waiting for it.

        `description` is the result of `topology.as_json`. POX reads it from the file topology.json.
        """
        (self.folder / "inbox").mkdir(parents=True, exist_ok=True)
        (self.folder / "topology.json").write_text(json.dumps(description, indent=1))
        self._launch()

    def _launch(self) -> None:
        environment = os.environ | {
            "PYTHONPATH": f"{PROJECT}:{PROJECT / 'controller'}",
            "PYTHONUNBUFFERED": "1",
        }
        self._process = warm.start(
            self._argv(),
            "start POX",
            cwd=self._upstream,
            env=environment,
            log=self.folder / "log.txt",
        )
        self.ledger.record("process", pid=self._process.pid)

    def _argv(self) -> list[str]:
        argv = [
            sys.executable,
            "pox.py",
            "--unthreaded-sh",  # switching threads is most of POX's cost under software emulation
            "openflow.of_01",
            "--port=6633",
            "--address=127.0.0.1",
            "pox_ext",
            f"--strategy={self.strategy.name}",
            f"--params={json.dumps(dict(self.strategy.params))}",
            f"--topology={self.folder / 'topology.json'}",
            f"--run={self.folder}",
            f"--agents_port={AP_AGENT_PORT}",
            f"--hosts_port={HOST_AGENT_PORT}",
            f"--key_file={self._key_file}",
            f"--patience_s={PATIENCE_S}",
        ]
        own = self.strategy.copied(self.folder)
        return argv + [f"--strategy_{key}={value}" for key, value in own.items()]

    def wait_ready(self) -> None:
        """Wait until all switches are connected to POX and have their flow tables.

        Raises `LabError` if POX or Open vSwitch ends, or if the switches are not ready within
        `READY_TIMEOUT_S` seconds.
        """
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not any(isinstance(line, Ready) for line in self.hear()):
            if not self.is_alive():
                raise LabError(
                    f"start POX: it ended with status {self._status()}: {self._end_of_log()}"
                )
            if open_vswitch.daemon_ended():
                raise LabError(f"start POX: {open_vswitch.ENDED}")
            if time.monotonic() > deadline:
                raise LabError(
                    f"start POX: the switches did not connect in {READY_TIMEOUT_S} s: "
                    f"{self._end_of_log()}"
                )
            time.sleep(POLL_S)

    @contextmanager
    def steps_held(self) -> Iterator[None]:
        """Make POX take no control decisions during a `with` block.

        The block begins when POX has confirmed the pause, at the latest after `HELD_WITHIN_S`
        seconds.
        """
        self.hear()
        seq = self._send("steps", {"held": True})
        deadline = time.monotonic() + HELD_WITHIN_S
        while time.monotonic() < deadline and not _answers(self.hear(), seq):
            time.sleep(0.05)
        try:
            yield
        finally:
            self._send("steps", {"held": False})

    def wait_settled(self) -> None:
        """Wait until a control step of POX changes no subflow. Wait at most 10 s.

        POX measures and decides once per control step. Traffic that starts too early would use
        paths and pacing rates that the strategy has not chosen for it.
        """
        deadline = time.monotonic() + SETTLED_WITHIN_S
        self.hear()  # skip the steps during which subflows were missing
        while time.monotonic() < deadline and not _settled(self.hear()):
            time.sleep(0.2)

    def hear(self) -> list[Line]:
        """Return the lines that POX has written since the last call of `hear`.

        `take` returns the same lines once more.
        """
        lines: list[Line] = self._follower.new()
        for line in lines:
            if isinstance(line, Answered):
                self._settle(line)
        self._heard += lines
        return lines

    def take(self) -> list[Line]:
        """Return all lines of POX since the last call of `take`.

        They include the lines that `hear` has returned in the meantime.
        """
        self.hear()
        taken, self._heard = self._heard, []
        return taken

    def _settle(self, answer: Answered) -> None:
        change = self._unanswered.pop(answer.seq, None)
        if change is None or answer.refused:
            return
        if not isinstance(change, RunningStrategy):
            change = replace(self.strategy, params={**self.strategy.params, **change})
        self.strategy = change

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def restart_if_ended(self) -> bool:
        """Restart POX if it has ended. Return True if it was restarted.

        The switches forward packets even without POX. The restarted POX replaces their flow tables.
        """
        if self.is_alive():
            return False
        self.hear()
        self.restarts += 1
        self._launch()
        return True

    def set_strategy(self, strategy: RunningStrategy) -> int:
        """Replace POX's strategy; return the message's number, which POX repeats in its answer."""
        seq = self._send("strategy", strategy.to_json(self.folder))
        self._unanswered[seq] = strategy
        return seq

    def set_params(self, params: Mapping[str, Any]) -> int:
        """Ask POX to change parameters of its strategy; return the number of the message.

        `params` are in the units of the scenario file.
        """
        seq = self._send("params", params)
        self._unanswered[seq] = params
        return seq

    def set_link(self, link: str, state: Mapping[str, Any]) -> int:
        """Notify POX that a link has changed; return the number of the message.

        `state` has the new values of the changed fields. Rates are those of the emulated link, that
        is, the scenario's rates multiplied by `rate_scale`.
        """
        return self._send("link", {"link": link, **state})

    def set_tier1_demand(self, ap: str, rate_bps: int | None) -> int:
        """Ask POX to limit the primary subflows (Tier 1) of an access point to a total rate.

        None removes the limit. Returns the number of the message.
        """
        mbps = None if rate_bps is None else mbps_from_bps(rate_bps)
        return self._send("tier1", {"ap": ap, "mbps": mbps})

    def _send(self, kind: str, value: Mapping[str, Any]) -> int:
        """Write a message into POX's inbox folder, and return the number of the message.

        The file gets its final name when it is complete, so POX never reads half a message.
        """
        self._sent += 1
        target = self.folder / "inbox" / f"{self._sent:06d}.json"
        draft = target.with_suffix(".part")
        draft.write_text(json.dumps({"seq": self._sent, "kind": kind, "value": dict(value)}))
        draft.rename(target)
        return self._sent

    def stop(self) -> None:
        """End POX with SIGTERM. Kill it if it does not end within 3 s."""
        if self._process is not None and self.is_alive():
            self._process.terminate()
            shell.wait_or_kill(self._process)

    def _status(self) -> int | None:
        return self._process.returncode if self._process else None

    def _end_of_log(self) -> str:
        lines = (self.folder / "log.txt").read_text(errors="replace").strip().splitlines()
        return " / ".join(lines[-3:])


def _answers(lines: Iterable[Line], seq: int) -> bool:
    return any(isinstance(line, Answered) and line.seq == seq for line in lines)


def _settled(lines: Iterable[Line]) -> bool:
    """Return whether `lines` report a control step of POX, and no change of a subflow."""
    found = list(lines)
    changes = any(
        isinstance(line, SubflowSeen) or (isinstance(line, Decided) and line.changes_a_subflow)
        for line in found
    )
    return not changes and any(isinstance(line, Observed) for line in found)
