"""What pages and API show of runs: put together from their folders."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from dashboard import events, figures, flips, state
from dashboard.errors import Problem
from dashboard.stream import EVENTS
from lab.errors import RequestError, unknown
from lab.results.store import Store
from lab.run.recorder import read_events, read_lines
from lab.scenario import catalogue, strategy_table
from lab.scenario import loading as scenario

MOST_COMPARED = 6
Doc = dict[str, Any]


def folder_of(store: Store, run_id: str) -> Path:
    """The folder of a run, or 404."""
    try:
        return store.folder(run_id)
    except RequestError as error:
        raise Problem(404, str(error)) from error


def run(store: Store, run_id: str) -> Doc:
    """One run: its document, state, what it asks, its targets and what to try."""
    folder = folder_of(store, run_id)
    store.refresh()
    try:
        doc = store.get(run_id)
    except RequestError as error:
        raise Problem(404, str(error)) from error
    doc["state"] = state.of(folder)
    doc["controls"] = controls(doc["engine"])
    doc |= {
        "title": doc["scenario"],
        "question": "",
        "expect": "",
        "paper": "",
        "targets": [],
        "to_try": [],
        "has_tiers": True,
    }
    try:
        asked = flips.loaded(folder)
    except LookupError:
        return doc
    prose = {key: getattr(asked, key) for key in ("title", "question", "expect", "paper")}
    over = doc["state"]["over"]
    prose["has_tiers"] = bool(flips.topology(folder).cells)
    return (
        doc
        | prose
        | {"targets": flips.rows(folder), "to_try": [] if over else flips.to_try(folder)}
    )


def controls(engine: str) -> list[str]:
    """What a run of this engine can be told."""
    paced = any(row["name"] == engine and not row["real_time"] for row in catalogue.engine_rows())
    return ["stop", *(["pause", "resume", "speed"] if paced else [])]


def charts(folder: Path, points: int) -> Doc:
    """The charts of a run and its event log so far, with the position from which to follow."""
    frames = _frames(folder)
    happened = _happened(folder)
    return {
        "figures": figures.figures(frames, about(folder, happened), points),
        "events": [events.describe(event, n) for n, event in enumerate(happened, 1)],
        "last": frames[-1] if frames else None,
        "seq": len(frames) * EVENTS + len(happened),
    }


def about(folder: Path, happened: list[Doc]) -> figures.About:
    """What the charts need beside the frames."""
    try:
        asked, topology = flips.loaded(folder), flips.topology(folder)
    except LookupError:
        return figures.About()
    aps = topology.ids("wifi", "lte")
    links = tuple(link.id for link in topology.links if link.rate_bps is not None)
    return figures.About(
        asked.duration_s, aps, topology.users, links, _thresholds(asked.strategy.params, happened)
    )


def compared(store: Store, ids: list[str]) -> list[Doc]:
    """The documents of runs to compare, in the order asked for."""
    if not 2 <= len(ids) <= MOST_COMPARED:
        raise Problem(
            422, f"compare {len(ids)} runs: choose 2 to {MOST_COMPARED}, such as ?runs=A,B"
        )
    store.refresh()
    docs = []
    for run_id in dict.fromkeys(ids):
        folder_of(store, run_id)
        docs.append(store.get(run_id))
    return _labelled(docs)


def overlay(store: Store, docs: list[Doc], points: int) -> list[Doc]:
    """Charts with one line per run."""
    return figures.overlay(
        [(doc["label"], _frames(store.folder(doc["id"]))) for doc in docs], points
    )


def marks(store: Store, docs: list[Doc]) -> list[Doc]:
    """What was changed in each run, numbered as on its own page; `run` is its place among those compared."""
    found = []
    for run, doc in enumerate(docs):
        rows = [
            events.describe(event, n)
            for n, event in enumerate(_happened(store.folder(doc["id"])), 1)
        ]
        lines = [row for row in rows if row["mark"] == "line"]
        found += [row | {"run": run, "number": number} for number, row in enumerate(lines, 1)]
    return found


GROUPS = {  # the first word of `paper`: what it is about
    "MP-SDN": (
        "WiFi and LTE at once",
        "Throttle additional subflows where the air is full: meter_throttling.",
    ),
    "S-MPTCP": (
        "Paths that collide",
        "Keep subflows apart, and tell hosts how much to send: expected_throughput.",
    ),
    "MPTCP-LA": (
        "Paths that lose packets",
        "Leave a path that loses packets, and come back: loss_aware.",
    ),
    "DTMC": ("Many uneven paths", "Forecast which paths are worth using: subflow_selection."),
    "RAT": (
        "Congestion control over the air",
        "Cubic, LIA, OLIA, BALIA and wVegas over WiFi and LTE.",
    ),
}
OTHERS = ("Everything else", "Networks of our own, and of yours: any file in scenarios/.")


def groups() -> list[Doc]:
    """The scenarios by what they are about, in the order of their papers' figures."""
    found: dict[tuple[str, str], list[Doc]] = {each: [] for each in (*GROUPS.values(), OTHERS)}
    for row in catalogue.scenario_rows():
        first, *_ = re.split(r"[\s,]", row.get("paper") or "")
        found[GROUPS.get(first, OTHERS)].append(row)
    return [
        {"title": title, "about": about, "scenarios": sorted(rows, key=_first_figure)}
        for (title, about), rows in found.items()
        if rows
    ]


def _first_figure(row: Doc) -> int:
    number = re.search(r"\d+", row.get("paper") or "")
    return int(number[0]) if number else 0


def choices(name: str) -> Doc:
    """What a run of this scenario may be started with; `unfit` says why a strategy has nothing to do there, or an engine cannot."""
    loaded = scenario.load(name)
    idle = strategy_table.unfit(scenario.build(loaded))
    return {
        "strategies": [
            row | {"unfit": idle[row["name"]] or ""} for row in catalogue.strategy_rows()
        ],
        "engines": [
            row | {"unfit": row["cannot_build"].get(loaded.topology.kind, "")}
            for row in catalogue.engine_rows()
        ],
        "cc": [row["name"] for row in catalogue.congestion_control_rows()],
    }


def choose(docs: list[Doc], asked: dict[str, str]) -> list[Doc]:
    """The runs that a query asks for: scenario, strategy, engine, status, tag, q (any text), limit."""
    known = ("scenario", "strategy", "engine", "status", "tag", "q", "limit")
    for key in asked.keys() - set(known):
        raise Problem(422, f"list runs: {unknown(key, known)}")
    for key in ("scenario", "strategy", "engine", "status"):
        docs = [doc for doc in docs if doc[key] == asked[key]] if key in asked else docs
    docs = [doc for doc in docs if asked["tag"] in doc["tags"]] if "tag" in asked else docs
    if words := asked.get("q", "").lower().split():
        docs = [doc for doc in docs if all(word in _text(doc) for word in words)]
    limit = asked.get("limit", "1000")
    if not limit.isdigit():
        raise Problem(422, f"list runs: limit {limit} is not a number")
    return docs[: int(limit)]


def _text(doc: Doc) -> str:
    keys = ("id", "scenario", "strategy", "engine", "status", "note")
    return " ".join([*(str(doc[key]) for key in keys), *doc["tags"]]).lower()


def _thresholds(params: Doc, happened: list[Doc]) -> tuple[tuple[float, float | None], ...]:
    """From when on which MAC occupancy counted as congested."""
    steps: list[tuple[float, float | None]] = [(0.0, params.get("cth"))]
    for event in happened:
        if (
            event.get("kind") == "flip"
            and event.get("ok")
            and event.get("target") == "strategy.cth"
        ):
            steps.append((event["t"], event["value"]))
        elif event.get("kind") == "flip" and event.get("ok") and event.get("target") == "strategy":
            steps.append((event["t"], event["value"].get("params", {}).get("cth")))
    return tuple(steps) if any(level is not None for _, level in steps) else ()


def _labelled(docs: list[Doc]) -> list[Doc]:
    """Each document with a short label of its own: the strategy, and what sets it apart from those with the same."""
    for n, doc in enumerate(docs, 1):
        alike = [each for each in docs if each["strategy"] == doc["strategy"]]
        apart = [
            key
            for key in ("scenario", "engine", "seed", "cc")
            if len({str(each[key]) for each in alike}) > 1
        ]
        label = " ".join([doc["strategy"], *(f"{key} {doc[key]}" for key in apart)])
        doc["label"] = label if len(alike) == 1 or apart else f"{label} ({n})"
    return docs


def _frames(folder: Path) -> list[Doc]:
    path = folder / "samples.jsonl"
    return list(read_lines(path)) if path.exists() else []


def _happened(folder: Path) -> list[Doc]:
    return read_events(folder) if (folder / "events.jsonl").exists() else []
