"""Compute the content of result.json from the samples and from the report of the engine.

Most of its numbers are declared in `lab.metrics`. Means cover the whole run. Each sample has the
weight of its interval, because samples of an emulation can be late. A number that was not measured
is null, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lab import metrics
from lab.frame import Frame
from lab.metrics import SECTIONS, Numbers, Owner, Samples
from lab.run.report import ConnectionReport, Report
from lab.summaries import intervals, mean
from lab.topologies.topology import Topology

# of manifest.json and result.json; 1 held wire rates, 2 was before handshakes were packets
SCHEMA = 3


@dataclass(frozen=True)
class Header:
    """The fields of result.json that need no measurement.

    `flips` lists the changes that were made by hand during the run, each as {"t", "target", "old",
    "value"}. `stack` names the implementation of Multipath TCP; it is None if the simulator's
    settings match no known implementation. `inputs` has the SHA-256 digest of each file of the user
    that the run has used, by file name. `time_dilation` is the factor by which the clocks of the VM
    ran slower than real time; None outside a VM.
    """

    run_id: str
    scenario: str
    strategy: str
    engine: str
    seed: int
    rate_scale: float
    status: str
    flips: tuple[Mapping[str, Any], ...] = ()
    stack: str | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    time_dilation: float | None = None


def document(
    header: Header, topology: Topology, frames: Sequence[Frame], report: Report | None
) -> dict[str, Any]:
    """Return the content of result.json.

    `report` is None if the engine returned none, for example after a crash.
    """
    known = report or Report()
    weights = [
        planned_s if frame.interval_s is None else frame.interval_s
        for frame, planned_s in zip(frames, intervals([each.t for each in frames]), strict=True)
    ]
    found = sections(Samples(frames, weights, topology), known.connections)
    return {
        "schema": SCHEMA,
        "run_id": header.run_id,
        "scenario": header.scenario,
        "strategy": header.strategy,
        "cc": known.cc,
        "engine": header.engine,
        "seed": header.seed,
        "duration_s": frames[-1].t if frames else 0.0,
        "rate_scale": header.rate_scale,
        **({"time_dilation": header.time_dilation} if header.time_dilation else {}),
        "flips": [dict(each) for each in header.flips],
        "stack": header.stack,
        "status": header.status,
        "overloaded": known.overload.overloaded,
        "overload": known.overload.to_json() if report else {},
        **{key: found.pop(key) for key in ("throughput_mbps", "tiers", "aps", "users")},
        "connections": known.connections_json(),
        **{key: found.pop(key) for key in ("fairness", "convergence_s")},
        "mptcp": asdict(known.mptcp),
        **found,
        "inputs": dict(header.inputs),
    }


def sections(samples: Samples, connections: Iterable[ConnectionReport] = ()) -> dict[str, Any]:
    """Return the sections of result.json that are computed from samples.

    `connections` are needed only for samples without subflows: a user's rate over each access point
    is then that of the engine's report.
    """
    topology, connections = samples.topology, list(connections)
    aps = _numbers(samples, "ap", topology.ids("wifi", "lte"))
    users = _numbers(samples, "user", topology.users)
    samples = replace(samples, aps=aps, users=users)
    run = _numbers(samples, "run", ("",))[""]
    return {
        "throughput_mbps": run["throughput_mbps"],
        "tiers": {n: run[f"tiers.{n}"] for n in ("1", "2")},
        "aps": {ap: {"kind": topology.cell(ap).kind, **each} for ap, each in aps.items()},
        "users": {
            user: _user(samples, user, numbers, connections) for user, numbers in users.items()
        },
        "fairness": {key: run[f"fairness.{key}"] for key in ("jain", "sd_mbps")},
        "convergence_s": run["convergence_s"],
        **_further_sections(samples, run),
    }


def _numbers(samples: Samples, of: Owner, owners: Iterable[str]) -> dict[str, Numbers]:
    declared = list(metrics.numbers(of))
    return {
        owner: {each.number: each.over(samples, owner) for each in declared} for owner in owners
    }


def _further_sections(samples: Samples, run: Numbers) -> dict[str, Any]:
    """Return the sections of result.json about links, subflows and the whole run.

    A section is left out if no metric has a number in it.
    """
    found: dict[str, Any] = {}
    of_links: tuple[Owner, ...] = ("link", "sf")
    for of in of_links:
        owners = dict.fromkeys(
            name for frame in samples.frames for name in metrics.owners_in(frame, of)
        )
        if any(numbers := _numbers(samples, of, owners).values()):
            found[SECTIONS[of]] = dict(zip(owners, numbers, strict=True))
    of_run = {key.removeprefix("run."): run[key] for key in run if key.startswith("run.")}
    return found | ({"run": of_run} if of_run else {})


def _user(
    samples: Samples, user: str, numbers: Numbers, connections: Iterable[ConnectionReport]
) -> dict[str, Any]:
    own = [each.number for each in metrics.own() if each.of == "user"]
    return {
        "kind": "multipath" if user in samples.topology.multipath else "single_path",
        **{key: value for key, value in numbers.items() if key not in own},
        "by_ap": _by_ap(samples, user, connections)
        or _by_ap_of(connections, user, samples.topology),
        **{key: numbers[key] for key in own},
    }


def _by_ap(
    samples: Samples, user: str, connections: Iterable[ConnectionReport]
) -> dict[str, float | None]:
    """Return a user's mean rate in Mb/s over each access point, from the subflows in the samples.

    The result is empty if no subflow has both this user and an access point. In a sample without a
    subflow, the rate of this subflow counts as 0.
    """
    frames, shares = samples.frames, dict[str, list[float]]()
    if not any(each.user == user and each.ap for frame in frames for each in frame.sf.values()):
        return {}
    first = _first_aps(samples.topology, user, connections)
    for n, frame in enumerate(frames):
        for name, subflow in frame.sf.items():
            ap = subflow.ap if subflow.user == user else first.get(name)
            if ap:
                series = shares.setdefault(ap, [0.0] * len(frames))
                series[n] += subflow.mbps or 0.0
    return {ap: _rounded(mean(series, samples.weights)) for ap, series in sorted(shares.items())}


def _first_aps(
    topology: Topology, user: str, connections: Iterable[ConnectionReport]
) -> dict[str, str]:
    """Return the access point of each subflow of a user at the start of the run.

    Samples of the simulator name access points only after somebody has moved. A user changes its
    access point only for another one of the same kind.
    """
    kinds = {cell.ap: cell.kind for cell in topology.cells}
    first = {
        cell.kind: cell.ap
        for cell in topology.cells
        if any(each.user == user for each in cell.stations)
    }
    mine = (each for each in connections if each.user == user)
    found = {}
    for subflow in (each for connection in mine for each in connection.subflows):
        kind = next((kinds[node] for node in subflow.path if node in kinds), None)
        if kind in first:
            found[subflow.id] = first[kind]
    return found


def _by_ap_of(
    connections: Iterable[ConnectionReport], user: str, topology: Topology
) -> dict[str, float | None]:
    """Return a user's rate in Mb/s over each access point, from the subflows in the engine's
    report.

    Each subflow counts for the first access point on its path.
    """
    aps = topology.ids("wifi", "lte")
    shares: dict[str, float] = {}
    mine = (each for each in connections if each.user == user)
    for subflow in (each for connection in mine for each in connection.subflows):
        ap = next((node for node in subflow.path if node in aps), None)
        if ap and subflow.throughput_mbps is not None:
            shares[ap] = shares.get(ap, 0.0) + subflow.throughput_mbps
    return {ap: _rounded(rate) for ap, rate in sorted(shares.items())}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
