"""Simulate a network with a strategy and with plain Multipath TCP, and say whether it does harm.

All runs of a network have one seed. Those that are compared also begin at the same times (a pair).
Harm counts if it shows at each of `STARTS`: the network as it is, and twice with flows that begin
some milliseconds later. The control compares the plain runs of different starts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lab.engines import registry
from lab.errors import LabError, RequestError
from lab.harm.networks import Document, with_shifted_starts
from lab.harm.rule import Figures, Harm, Rates, figures, harm
from lab.run import runner
from lab.run.engine import Options
from lab.run.outcome import EXIT_INTERRUPTED
from lab.run.reading import read_document, read_events, read_frames
from lab.run.recorder import Recorder
from lab.scenario.loading import Overrides, from_data
from lab.scenario.schema import Scenario, why_unfit

ENGINE = "sim"
PLAIN = "none"
STARTS = (0, 1, 2)


class RunFailed(LabError):
    """A simulation ended with an error."""


class Network:
    """A scenario document, and the runs of it that were made."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._plain: dict[int, Rates] = {}
        self._reasons: Mapping[str, str | None] | None = None

    def fits(self, strategy: str) -> bool:
        """Return whether the strategy could act here. Raise `RequestError` for a wrong document."""
        if self._reasons is None:
            self._reasons = why_unfit(self._scenario(PLAIN, 0).network)
        return not self._reasons[strategy]

    def harm_of(self, strategy: str) -> Harm | None:
        """Return the harm that a strategy does here; its figures are those of the first start.

        Raise `RunFailed` if plain Multipath TCP cannot be simulated.
        """
        found = None
        for start in STARTS:
            plain = self._plain_run(start)
            try:
                ours = figures(plain, self._run(strategy, start), strategy)
            except RunFailed as failed:
                return Harm(None, None, str(failed))
            if harm(ours, ()) is None:  # most networks end here, with two runs
                return None
            here = harm(ours, self._control(start, strategy))
            if here is None:
                return None
            found = found or here
        return found

    def _control(self, start: int, strategy: str) -> list[Figures]:
        """Compare plain runs whose flows begin at other times: two for the first start, then
        all."""
        pairs = ((0, 1), (1, 2), (2, 0)) if start else ((0, 1),)
        return [figures(self._plain_run(a), self._plain_run(b), strategy) for a, b in pairs]

    def _plain_run(self, start: int) -> Rates:
        if start not in self._plain:
            self._plain[start] = self._run(PLAIN, start)
        return self._plain[start]

    def _scenario(self, strategy: str, start: int) -> Scenario:
        document: dict[str, Any] = with_shifted_starts(self.document, start, self.document["seed"])
        return from_data(document, document["name"], Overrides(strategy=strategy))

    def _run(self, strategy: str, start: int) -> Rates:
        return rates_of(self._scenario(strategy, start))


def rates_of(scenario: Scenario) -> Rates:
    """Simulate a scenario, and return the rates of its users. Nothing of the run is kept.

    Raise `RunFailed` if the simulation fails, and KeyboardInterrupt after Ctrl-C.
    """
    engine = registry.create(ENGINE, Options(0.0))
    engine.ready(scenario)
    with tempfile.TemporaryDirectory(prefix="lab-harm-") as place:
        folder = Path(place) / scenario.name
        folder.mkdir(mode=0o700)
        outcome = runner.run(scenario, engine, Recorder(folder, scenario, ENGINE))
        if outcome.exit_code == EXIT_INTERRUPTED:
            raise KeyboardInterrupt
        if outcome.exit_code:
            raise RunFailed(outcome.error.partition(". Details: ")[0])
        frames, events = read_frames(folder), read_events(folder)
        result = read_document(folder, "result.json")
    users = {
        name: np.array([each.user[name].mbps if name in each.user else 0.0 for each in frames])
        for name in dict.fromkeys(flow.user for flow in scenario.traffic)
    }
    always = {flow.user for flow in scenario.traffic if flow.kind == "bulk"}
    multipath = frozenset(scenario.network.multipath)
    return Rates(
        users,
        scenario.sample_interval_s,
        multipath,
        frozenset(users) - always,
        _times_s(events),
        _mos(result),
    )


def _times_s(events: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return the completion times of workloads, answers, pages and chunks, by user."""
    found: dict[str, list[float]] = {}
    for each in events:
        if each["kind"] == "completion" and "traffic" in each:
            found.setdefault(each["user"], []).append(each["completion_s"])
    return found


def _mos(result: Mapping[str, Any]) -> dict[str, float]:
    """Return the mean opinion score of the calls of each user."""
    found: dict[str, list[float]] = {}
    for each in result.get("call", {}).get("calls", ()):
        found.setdefault(each["user"], []).append(each["mos"])
    return {user: sum(each) / len(each) for user, each in found.items()}


def harm_or_none(document: Document, strategy: str) -> Harm | None:
    """Return the harm of a strategy in a network that may make no sense: None then."""
    network = Network(document)
    try:
        return network.harm_of(strategy) if network.fits(strategy) else None
    except (RequestError, RunFailed):
        return None
