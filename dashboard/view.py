"""The JSON objects about runs that pages and the API show, collected from run folders.

A `doc` in this file is the JSON object that describes a run in lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dashboard import charts as charting
from dashboard import events, flips, state, traced_rates
from dashboard.base.errors import Problem, whole_number
from dashboard.stream import EVENTS
from lab import extensions
from lab.errors import RequestError, show, unknown
from lab.metrics import TIER_1, TIER_2
from lab.results import flips as changes
from lab.results import labels, thinning
from lab.results.documents import tolerant_document
from lab.results.explain import changes as explained
from lab.results.explain import present
from lab.results.store import Store
from lab.run import felt
from lab.run.reading import declared_metrics
from lab.scenario import catalogue, schema
from lab.scenario.schema import Scenario

FILTERS = ("scenario", "strategy", "engine", "status")
MOST_NAMED = 4  # values of a setting that the head of the page names
FLOOR = "min_rate_mbps"  # parameter of strategies that limit rates
CTH = "strategy.cth"  # from this MAC occupancy on an access point is congested
Doc = dict[str, Any]  # JSON: a run in lists, or what a page gets


def run(store: Store, folder: Path) -> Doc:
    """Return everything that the page of a run shows, as a JSON object.

    It has the fields of a run in lists, and the state, the texts of the scenario, the values that
    can be changed (`targets`), and changes to try. Raise a `Problem` with status 404 if there is no
    such run.
    """
    store.refresh()
    try:
        doc = with_rates(store.get(folder.name))
    except RequestError as error:
        raise Problem(404, str(error)) from error
    now = state.of(folder)
    doc |= {
        "state": now.to_json(),
        "controls": controls(doc["engine"]),
        "topology_sha256": (tolerant_document(folder / "manifest.json") or {}).get(
            "topology_sha256"
        ),
        "rate_note": labels.note(doc["rate_scale"], doc["run_schema"]),
        "clocks_note": labels.clocks_note(doc["time_dilation"]),
        "title": doc["scenario"],
        "strategy_words": doc["strategy"],
        "cc_words": doc["cc"] or "…",
        "strategies": [],
        "ccs": [],
        "shares_path": False,
        "has_orders": True,
        "has_floor": False,
        "sample_interval_s": 0.5,
        "users": 0,
        "question": "",
        "expect": "",
        "paper": "",
        "targets": [],
        "is_changed": False,
        "to_try": [],
        "has_tiers": True,
        "tiers": (TIER_1, TIER_2),
        "relayed": False,
        "multipath": [],
        "noticing": {},
        "transfers": {"users": {}, "all": False},
    }
    try:
        scenario = present.loaded(folder)
    except LookupError:
        return doc
    return doc | _about_scenario(folder, scenario, now.over)


def _about_scenario(folder: Path, scenario: Scenario, over: bool) -> Doc:
    """Return the part of `run` that follows from the scenario. `over` means that the run has
    ended."""
    happened = thinning.events(folder)
    network = present.network(folder)
    return {
        **settings_over_time(scenario, happened),
        "shares_path": shares_path(happened),
        "has_orders": not over or has_orders(happened) or not shares_path(happened),
        "has_floor": has_floor(scenario),
        "sample_interval_s": scenario.sample_interval_s,
        "users": len(network.users),
        "title": scenario.title,
        "question": scenario.question,
        "expect": scenario.expect,
        "paper": scenario.paper,
        "has_tiers": bool(network.cells),
        "relayed": bool(network.relays),
        "multipath": list(network.multipath),
        "noticing": noticing(scenario),
        "transfers": explained.expected(scenario),
        "targets": flips.rows(folder),
        "is_changed": bool(flips.undoing(folder)),
        "to_try": explained.suggestions(folder),
    }


def with_rates(doc: Doc) -> Doc:
    """Add two texts to the JSON object that describes a run in lists.

    `rates` says by which factor the run multiplied all rates of its scenario, and by which factor
    the clocks of its VM were slower; it is empty if both are 1. `changed` names the changes that
    were made while the run went on; it is empty if there are none.
    """
    scale = labels.scale_label(doc["rate_scale"], doc["run_schema"])
    clocks = labels.clocks_label(doc["time_dilation"])
    return doc | {
        "rates": ", ".join(filter(None, (scale, clocks))),
        "changed": changes.label(doc["flips"]),
    }


def settings_over_time(scenario: Scenario, happened: list[Doc]) -> Doc:
    """Return in words which strategies and congestion controls a run has had, and from when on.

    The lists `strategies` and `ccs` have the name and a line of help for each strategy and each
    congestion control. `ccs` also has the congestion controls of single users. A strategy or
    congestion control that this lab does not have is left out of the lists.
    """
    used = over_time(scenario.strategy.name, "strategy", happened)
    ccs = over_time(scenario.multipath.cc, "cc", happened)
    known = extensions.congestion_controls()
    own = [each.cc for each in scenario.traffic if each.cc]
    return {
        "strategy_words": in_words(used),
        "cc_words": in_words(ccs),
        "ccs": [
            {"name": name, "help": known[name]}
            for name in dict.fromkeys([*(name for _, name in ccs), *own])
            if name in known
        ],
        "strategies": [
            {"name": name, "help": schema.strategy_help(name)}
            for name in dict.fromkeys(name for _, name in used)
            if name in schema.strategies()
        ],
    }


def has_orders(happened: list[Doc]) -> bool:
    """Return whether the strategy has decided anything in a run."""
    return any(event.get("kind") == "decision" for event in happened)


def has_floor(scenario: Scenario) -> bool:
    """Return whether a strategy that a scenario is about limits rates down to a floor."""
    known = [each for each in flips.meant_strategies(scenario) if each in schema.strategies()]
    return any(each["name"] == FLOOR for name in known for each in schema.described_strategy(name))


def shares_path(happened: list[Doc]) -> bool:
    """Return whether two subflows of the same connection began on the same path through the
    network."""
    paths: dict[tuple[str, str], tuple[str, ...]] = {}
    for event in happened:
        if event.get("kind") == "subflow" and event.get("path"):
            name = (str(event.get("connection")), str(event.get("subflow")))
            paths.setdefault(name, tuple(event["path"]))
    begun = [(connection, path) for (connection, _), path in paths.items()]
    return len(set(begun)) < len(begun)


def over_time(first: str, target: str, happened: list[Doc]) -> list[tuple[float, str]]:
    """Return the values of a setting during a run as pairs (t in s, name).

    `target` is the name of the setting, such as "strategy". The list begins with `first` at 0 s.
    """
    found = [(0.0, first)]
    for event in happened:
        if changes.is_accepted(event) and event.get("target") == target:
            name = changes.value_name(event.get("value"))
            if name != found[-1][1]:
                found.append((event["t"], name))
    return found


def in_words(values: list[tuple[float, str]]) -> str:
    """Return the values from `over_time` as text, such as `none, from 20.0 s meter_throttling`."""
    named = [name if not t else f"from {t:.1f} s {name}" for t, name in values]
    if len(named) > MOST_NAMED:
        named = [*named[: MOST_NAMED - 1], "…", named[-1]]
    return ", ".join(named)


def controls(engine: str) -> list[str]:
    """Return the controls that runs of this engine support.

    This is "stop", and for a simulator also "pause", "resume" and "speed".
    """
    simulated = any(
        row["name"] == engine and not row["real_time"] for row in catalogue.engine_rows()
    )
    return ["stop", *(["pause", "resume", "speed"] if simulated else [])]


@thinning.in_turn
def charts(folder: Path, points: int) -> Doc:
    """Return the charts, the event log and the last sample of a run, as a JSON object.

    A line in a chart has at most `points` points. `seq` in the result is a position in the run
    (`dashboard.stream`). A browser that requests the server-sent events after `seq` gets every
    later sample and event exactly once.
    """
    found, happened = thinning.extremes(folder), thinning.events(folder)
    frames, facts = found.samples, about(folder, happened)
    if frames and (folder / "result.json").exists():
        facts = replace(facts, duration_s=frames[-1]["t"])  # the charts end where the run ended
    facts = replace(facts, traced=_traced(folder, facts.duration_s))
    return {
        "figures": charting.figures(frames, facts, points),
        "events": [asdict(row) for row in _log(happened)],
        "last": frames[-1] if frames else None,
        "seq": found.count * EVENTS + len(happened),
    }


def _traced(folder: Path, duration_s: float) -> tuple[traced_rates.TracedRate, ...]:
    try:
        return traced_rates.of_run(present.loaded(folder), duration_s)
    except LookupError:
        return ()


def _log(happened: list[Doc]) -> Iterator[events.LogRow]:
    """Yield the rows of the event log; one row counts successive events that are left out."""
    was: Doc = {}
    for n, event in enumerate(happened, 1):
        if event.get("kind") != thinning.LEFT_OUT:
            yield events.describe(event, n)
        elif event is not was:
            text = f"{event['count']} decisions and observations are left out here. Exports of "
            note = {"t": event["t"], "kind": "note", "text": text + "the run have them."}
            yield events.describe(note, n)
        was = event


def about(folder: Path, happened: list[Doc]) -> charting.About:
    """Return the facts about a run that its charts need in addition to its samples.

    `happened` are the events of the run. If the scenario cannot be read yet, return default values.
    """
    try:
        scenario, network = present.loaded(folder), present.network(folder)
    except LookupError:
        return charting.About()
    shaped = [link for link in network.links if link.rate_bps is not None]
    return charting.About(
        duration_s=scenario.duration_s,
        aps=network.ids("wifi", "lte"),
        users=network.users,
        multipath=network.multipath,
        links=tuple(link.id for link in shaped),
        ends={link.id: (link.a, link.b) for link in shaped},
        threshold=_thresholds(scenario.strategy.params.get("cth"), happened),
        own=declared_metrics(folder),
        noticing=noticing(scenario),
    )


def noticing(scenario: Scenario) -> dict[str, tuple[str, ...]]:
    """Return the users whose samples have each of the fields that say what they notice."""
    everybody = scenario.network.users
    found: dict[str, set[str]] = {}
    for each in scenario.traffic:
        if each.kind in felt.NOTICED_IN:
            users = everybody if each.user == "all" else (each.user,)
            found.setdefault(felt.NOTICED_IN[each.kind], set()).update(users)
    return {name: tuple(each for each in everybody if each in who) for name, who in found.items()}


def choose(docs: list[Doc], query: dict[str, str]) -> list[Doc]:
    """Return the runs that match a query. Each run is the JSON object that describes it in lists.

    The query may have the fields in `FILTERS`, `tag`, `q` (words that must all occur in the texts
    of the run) and `limit` (the largest number of runs). Raise a `Problem` for any other field.
    """
    known = (*FILTERS, "tag", "q", "limit")
    for key in query.keys() - set(known):
        raise Problem(422, f"list runs: {unknown(key, known)}")
    for key in FILTERS:
        docs = [doc for doc in docs if doc[key] == query[key]] if key in query else docs
    docs = [doc for doc in docs if query["tag"] in doc["tags"]] if "tag" in query else docs
    if words := query.get("q", "").lower().split():
        docs = [doc for doc in docs if all(word in _text(doc) for word in words)]
    limit = whole_number(query.get("limit", "1000"))
    if limit is None:
        raise Problem(422, f"list runs: limit {show(query['limit'])} is not a number")
    return docs[:limit]


def _text(doc: Doc) -> str:
    keys = ("id", *FILTERS, "note")
    return " ".join([*(str(doc[key]) for key in keys), *doc["tags"]]).lower()


def _thresholds(first: float | None, happened: list[Doc]) -> tuple[tuple[float, float | None], ...]:
    """Return the MAC occupancy from which an access point counted as congested, as pairs (t in s,
    value).

    The value is None while there was no such threshold. The result is empty if there never was one.
    `first` is the threshold at the start, and `happened` are the events of the run.
    """
    steps: list[tuple[float, float | None]] = [(0.0, first)]
    for event in happened:
        if not changes.is_accepted(event):
            continue
        if event.get("target") == CTH:
            steps.append((event["t"], event.get("value")))
        elif event.get("target") == "strategy":
            steps.append((event["t"], _cth(event.get("value"))))
    known = [(t, each if isinstance(each, int | float) else None) for t, each in steps]
    return tuple(known) if any(level is not None for _, level in known) else ()


def _cth(strategy: Any) -> Any:
    """Return the congestion threshold (`cth`) of `strategy`, the new value after a change of
    strategy.

    Return None if the new strategy has no such parameter.
    """
    params = strategy.get("params") if isinstance(strategy, dict) else None
    return params.get("cth") if isinstance(params, dict) else None
