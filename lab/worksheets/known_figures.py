"""Check, without a run, that a check looks only at what runs of its scenario hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from lab.errors import RequestError, unknown
from lab.run.frame import ApSample, LinkSample, SubflowSample, UserSample
from lab.scenario import flows, targets
from lab.scenario.loading import scaled_traffic
from lab.scenario.schema import Scenario
from lab.worksheets import expressions as at
from lab.worksheets.expressions import Expression, Occurrence
from lab.worksheets.schema import Run

EVENTS = (
    *("flip", "handover", "completion", "control", "warning", "error"),
    *("decision", "observation", "subflow", "association", "reroute", "switch", "ready", "failed"),
)
RESULT = (
    *("throughput_mbps", "convergence_s", "duration_s", "tiers", "aps", "users", "fairness"),
    *("connections", "mptcp"),
)


def check_leaf(leaf: Expression, scenario: Scenario, run: Run) -> None:
    """Raise `RequestError` if runs of the scenario cannot hold what `leaf` looks at.

    `leaf` is a part of a check that looks at one run. Other parts are always valid.
    """
    match leaf:
        case at.Sampled():
            _check_sampled(leaf, scenario)
        case at.Measured(path):
            _check_result(path, scenario)
        case Occurrence(kind, where):
            _check_known(kind, kind, EVENTS)
            target = dict(where).get("target")
            if kind == "flip" and target is not None:
                planned = [each.target for each in scenario.events]
                _check_known(target, target, [*run.flips, *planned])
                _check_known(target, target, targets.targets(scenario))


def _check_sampled(leaf: at.Sampled, scenario: Scenario) -> None:
    if leaf.end_s > scenario.duration_s:
        raise RequestError(
            f"the time span {leaf.start_s:g}..{leaf.end_s:g} goes beyond the run, which ends at"
            f" {scenario.duration_s:g} s"
        )
    network = scenario.network
    kind, _, rest = leaf.path.partition(".")
    name, _, figure = rest.rpartition(".")
    samples = {
        "ap": (network.ids("wifi", "lte"), ApSample),
        "link": ([each.id for each in network.links], LinkSample),
        "user": (network.users, UserSample),
        "sf": (_connections(scenario), SubflowSample),
    }
    _check_known(leaf.path, kind, samples)
    names, sample = samples[kind]
    _check_known(leaf.path, name.partition("/")[0] if kind == "sf" else name, names)
    figures = [each.name for each in fields(sample)]
    _check_known(leaf.path, figure, [*figures, "mbps"] if kind == "link" else figures)


def _connections(scenario: Scenario) -> list[str]:
    """Return the ids of all connections of a scenario, such as `ue2-1`."""
    acts = flows.plan(scaled_traffic(scenario), scenario.seed, scenario.duration_s)
    return list(dict.fromkeys(act.flow.id for act in acts))


def _check_result(path: str, scenario: Scenario) -> None:
    first, _, rest = path.partition(".")
    _check_known(path, first, RESULT)
    name = rest.partition(".")[0]
    if first == "users":
        _check_known(path, name, scenario.network.users)
    if first == "aps":
        _check_known(path, name, scenario.network.ids("wifi", "lte"))


def _check_known(path: str, word: str, known: Iterable[str]) -> None:
    if word not in known:
        raise RequestError(f"'{path}': {unknown(word, known)}")
