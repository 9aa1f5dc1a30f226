"""The summary of a finished run, and the repetition of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dashboard import runs
from dashboard.base.errors import Problem
from dashboard.runs import Launcher
from lab import noticed
from lab.errors import RequestError
from lab.results import compare, transfers
from lab.results.documents import tolerant_document
from lab.results.effects import number_text
from lab.results.explain import changes, present, stretches
from lab.results.explain.changes import headline
from lab.results.fairness import fairness, kinds_of_traffic
from lab.results.flips import has_effect
from lab.results.statistics import Estimate, estimate
from lab.results.store import Store, changed
from lab.run import captured
from lab.run.reading import changed_text
from lab.scenario import code_paths, loading, yaml_text
from lab.scenario.loading import Overrides

# Repetition


def start(
    launcher: Launcher, folder: Path, doc: dict[str, Any], changes: Sequence[dict[str, Any]]
) -> str:
    """Make the run in `folder` once more with the same seed. Return the id of the new run.

    `doc` is the JSON object that describes the run in lists. `changes` have the form of `flips` in
    result.json; they become events of the new scenario, at the same times. A simulation goes on at
    the speed of the run. Raise an error if the scenario cannot be read or the run cannot start.
    """
    path = folder / "scenario.yaml"
    try:
        raw = yaml_text.read(path)
    except RequestError as error:
        raise Problem(409, f"run '{folder.name}' once more: {error}") from error
    code_paths.refuse_code_paths(raw, f"run '{folder.name}' once more")
    for each in changes:
        code_paths.refuse_code_paths(
            {each["target"]: each["value"]}, f"run '{folder.name}' once more"
        )
    settings = (with_events(raw, changes),) if changes else ()
    scenario = loading.load(str(folder), Overrides(settings=settings))
    vm = (folder / "vm").exists()
    argv = ["run", str(folder), "--engine", doc["engine"], *(["--vm"] if vm else [])]
    argv += [word for each in settings for word in ("--set", each)]
    argv += speed_of(folder)
    runs.refuse_without_root(doc["engine"], vm, argv)
    return launcher.begin(scenario, argv)


def speed_of(folder: Path) -> list[str]:
    """Return the arguments of the lab that give a run the speed with which the run in `folder`
    began."""
    speed = (tolerant_document(folder / "manifest.json") or {}).get("speed")
    return [] if speed is None else ["--speed", "max" if speed == 0 else f"{speed:g}"]


def with_events(raw: dict[str, Any], flips: Sequence[dict[str, Any]]) -> str:
    """Return a setting `events=...`: the events of the scenario `raw`, followed by those changes in
    `flips` that took effect during a run."""
    added = [
        {"at_s": each["t"], "target": each["target"], "value": each.get("value")}
        for each in flips
        if has_effect(each)
    ]
    return f"events={json.dumps([*(raw.get('events') or []), *added])}"


Doc = dict[str, Any]  # JSON
BASELINE = "baseline"  # tag of the run with which others of its scenario are compared
MOST_REPEATS = 50
SAME = ("scenario", "strategy", "params", "cc", "engine", "rate_scale")
KB = 1000


def summary(store: Store, folder: Path) -> Doc:
    """Return the summary of a run as a JSON object.

    `captured` has what captures of the run show of each subflow (`lab.run.captured`).
    `completion` has points of the distribution of completion times by kind of traffic
    (`lab.results.transfers`). `verdict` is a text; it is empty if the run has no result. `means`
    has the mean values of the run, and `intervals` their 95 % intervals over runs that differ only
    in the seed. `others` are other runs of the same scenario. `baseline` is the run that the user
    has chosen for comparison.
    """
    result = tolerant_document(folder / "result.json") or {}
    if names := changed(folder, result):
        result = {}
    done = finished(folder, result)
    doc = store.get(folder.name)
    others = [
        each
        for each in store.all()
        if each["scenario"] == doc["scenario"] and each["id"] != doc["id"]
    ]
    found: Doc = {
        "verdict": f"{changed_text(names)}."
        if names
        else headline(stretches.rows(folder), changes.changes(folder))
        or verdict(result, done, kinds_of_traffic(folder)),
        "means": {},
        "repeats": 1,
        "intervals": {},
        "held_back_kb": held_back_kb(result),
        "finished": done,
        "completion": completion(folder, result),
        "captured": [
            asdict(each) | {"handshake_ms": each.handshake_ms} for each in captured.report(folder)
        ],
        "others": [
            {key: each[key] for key in ("id", "strategy", "seed", "throughput_mbps", "started")}
            for each in others[:MOST_REPEATS]
            if each["throughput_mbps"] is not None
        ],
        "baseline": baseline(doc, others),
        "is_baseline": BASELINE in doc["tags"],
    }
    if not result.get("users"):
        return found
    try:
        run = compare.read_run(folder)
    except (RequestError, KeyError, TypeError):
        return found
    same = repeats(store, doc, run, others)
    intervals = {
        metric: _interval(estimate([each for each in values if each is not None]))
        for metric in run.metrics
        if (values := [other.metrics.get(metric) for other in same])
    }
    return found | {"means": dict(run.metrics), "repeats": len(same), "intervals": intervals}


def verdict(
    result: Mapping[str, Any],
    done: Sequence[Doc] = (),
    kinds: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> str:
    """Return sentences about a result: what users notice, their throughput, and the use of
    additional paths.

    `done` are the users whose transfers are complete, `kinds` the kinds of traffic of each user.
    The text is empty if no throughput was measured.
    """
    users = {
        name: each["throughput_mbps"]
        for name, each in (result.get("users") or {}).items()
        if each.get("throughput_mbps") is not None
    }
    total = result.get("throughput_mbps")
    if not users or total is None:
        return ""
    who, paths = _who(users, total, result, kinds), _paths(result, total, done)
    return " ".join((*_noticed(result, done), who, paths)).strip()


def _noticed(result: Mapping[str, Any], done: Sequence[Doc]) -> Iterator[str]:
    """Yield sentences about what users notice: calls, videos, and how long they wait."""
    call, video, flows = (
        result.get(name) or {} for name in (noticed.CALL, noticed.VIDEO, noticed.FLOWS)
    )
    if call.get("mos") is not None:
        worst = number_text(call["mos_worst"])
        yield f"Calls had a MOS of {number_text(call['mos'])}, and {worst} in the worst 5 s."
    if video.get("bitrate_mbps") is not None:
        rate, still = number_text(video["bitrate_mbps"]), number_text(video["stall_s"])
        yield f"Videos came at {rate} Mb/s and stood still for {still} s on average."
    elif flows.get("fct_p50_s") is not None and not done:
        half, most = number_text(flows["fct_p50_s"]), number_text(flows["fct_p99_s"])
        yield f"Half of what users waited for took at most {half} s, 99 % at most {most} s."


def held_back_kb(result: Mapping[str, Any]) -> float | None:
    """Return the largest amount of out-of-order data, in kB, that waited at a receiver.

    Return None if it was not measured.
    """
    known = [
        each["receive_buffer_max_bytes"]
        for each in result.get("connections") or []
        if each.get("receive_buffer_max_bytes") is not None
    ]
    return max(known) / KB if known else None


def completion(folder: Path, result: Mapping[str, Any]) -> dict[str, list[tuple[float, float]]]:
    if "flows" not in result:
        return {}
    found = transfers.of_run(folder, result.get("connections") or [])
    kinds = dict.fromkeys(each.kind for each in found)
    return {
        kind: transfers.distribution([each for each in found if each.kind == kind])
        for kind in kinds
    }


def finished(folder: Path, result: Mapping[str, Any]) -> list[Doc]:
    """Return the users whose transfers are complete, each with the time in s when the last transfer
    ended."""
    try:
        return changes.finished(result, present.loaded(folder))
    except LookupError:
        return []


def baseline(doc: Doc, others: Sequence[Doc]) -> Doc | None:
    """Compare the throughput of a run with that of the baseline, in percent.

    The baseline is the run of the same scenario that the user has tagged "baseline". Return None if
    there is no such run. Also return None if the two runs have different rate scales, because
    queueing delays then differ too.
    """
    base = next((each for each in others if BASELINE in each["tags"]), None)
    if base is None or doc["rate_scale"] != base["rate_scale"]:
        return None
    mine, its = doc["throughput_mbps"], base["throughput_mbps"]
    change = 100 * (mine / its - 1) if mine is not None and its else None
    return {"id": base["id"], "strategy": base["strategy"], "change_percent": change}


def repeats(store: Store, doc: Doc, run: compare.Run, others: Sequence[Doc]) -> list[compare.Run]:
    """Return a run together with all complete runs that differ from it only in the seed.

    In the simulator, only one run for each seed is returned, because equal seeds give equal runs. A
    run that was changed while it went on has no repeats.
    """
    found = {run.seed if run.engine == "sim" else run.run_id: run}
    if doc["flips"]:
        return [run]
    for each in others:
        alike = all(each[key] == doc[key] for key in SAME) and not each["flips"]
        if not alike or each["status"] != "complete" or len(found) >= MOST_REPEATS:
            continue
        try:
            other = compare.read_run(store.folder(each["id"]))
        except (RequestError, KeyError, TypeError):
            continue
        if other.settings == run.settings and not other.overloaded:
            found.setdefault(other.seed if other.engine == "sim" else other.run_id, other)
    return list(found.values())


def _interval(found: Estimate) -> Doc | None:
    if found.low is None or found.high is None:
        return None
    return {"mean": found.mean, "low": found.low, "high": found.high, "n": found.n}


def _who(
    users: Mapping[str, float],
    total: float,
    result: Mapping[str, Any],
    kinds: Mapping[str, Sequence[str]],
) -> str:
    if len(users) == 1:
        (name,) = users
        return f"{name} got {number_text(total)} Mb/s on average."
    most, least = max(users, key=users.__getitem__), min(users, key=users.__getitem__)
    text = f"The {len(users)} users got {number_text(total)} Mb/s together on average"
    if users[most] - users[least] < 0.02 * users[most]:
        return f"{text}, each about {number_text(total / len(users))}."
    jain, about = fairness(result, kinds)
    index = "" if jain is None else f" (Jain's fairness index {jain:.2f}; 1 is equal shares)"
    return (
        f"{text}: {most} most, {number_text(users[most])}, and {least} least, "
        f"{number_text(users[least])}{index}. {about}"
    ).strip()


def _transfers(result: Mapping[str, Any], total: float, done: Sequence[Doc]) -> str:
    """Return a sentence about the completed transfer that ended last.

    If the transfers of all users are complete, the sentence also has the mean rate until this
    transfer ended.
    """
    users, last = result.get("users") or {}, done[-1]
    which = "The" if len(users) == 1 else "The last"
    text = f"{which} transfer, of {last['user']}, finished at {last['t']:.1f} s"
    if len(done) < len(users) or not result.get("duration_s"):
        return f"{text}."
    until_then = total * result["duration_s"] / last["t"]
    together = "" if len(users) == 1 else " together"
    return f"{text}; until then it was {number_text(until_then)} Mb/s{together}."


def _paths(result: Mapping[str, Any], total: float, done: Sequence[Doc]) -> str:
    """Return a sentence about additional paths.

    It is about completed transfers, the share of additional subflows (Tier 2), the subflows of the
    only multipath connection, or the number of additional paths. The first of these that applies is
    chosen.
    """
    if done:
        return _transfers(result, total, done)
    tier2 = (result.get("tiers") or {}).get("2")
    aps = {name: each.get("mac_occupancy_mean") for name, each in (result.get("aps") or {}).items()}
    if aps and None not in aps.values() and tier2 is not None:
        full = max(aps, key=aps.__getitem__)
        share = f", {100 * tier2 / total:.0f} % of it" if total else ""
        return (
            f"Tier 2 carried {number_text(tier2)} Mb/s{share}; {full} was the "
            f"fullest access point, with a mean occupancy of {aps[full]:.2f}."
        )
    several = [each for each in result.get("connections") or [] if len(each["subflows"]) > 1]
    if not several:
        return "No connection used more than one path."
    if len(several) == 1:
        parts = [number_text(each.get("throughput_mbps")) for each in several[0]["subflows"][:4]]
        more = f" and {n} more" if (n := len(several[0]["subflows"]) - 4) > 0 else ""
        held = held_back_kb(result)
        waited = "" if held is None else f"; at most {held:.0f} kB had to wait for earlier data"
        alone = len(result.get("users") or {}) == 1
        whose = "Its subflows" if alone else f"The subflows of {several[0]['user']}"
        return f"{whose} carried {', '.join(parts)}{more} Mb/s{waited}."
    extra = sum(len(each["subflows"]) - 1 for each in several)
    return f"{len(several)} connections used {extra} additional paths."
