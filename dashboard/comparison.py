"""Comparison of runs: labels, refusals of runs that cannot be compared, and charts with common
axes.

A `doc` in this file is the JSON object that describes a run in lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dashboard import charts, events, group_charts
from dashboard.base.errors import Problem
from dashboard.view import with_rates
from lab.errors import RequestError
from lab.metrics import Metric
from lab.results import thinning
from lab.results.labels import held
from lab.results.labels import scale_label as scale_label
from lab.results.store import CHANGED, Store
from lab.run import reading
from lab.run.reading import declared_metrics, readable_events

MOST_COMPARED = 1000
MOST_LINES = 200  # of one quantity in a chart over time
KEYS_OF_LABELS = ("scenario", "engine", "seed", "cc", "duration_s")
MOST_BYTES = 2 * 2**30  # of the samples of all runs of a chart: minutes of reading
Doc = dict[str, Any]  # JSON


def compared(
    store: Store, ids: list[str], names: Mapping[str, str] = MappingProxyType({})
) -> list[Doc]:
    """Return the runs with these ids, each as a JSON object with a label, in which the strategy is
    replaced by the run's name in `names`.

    Raise a `Problem` if there are fewer than 2 or more than 1000 runs, if a run does not exist, or
    if the runs recorded their rates in different units.
    """
    if not 2 <= len(ids) <= MOST_COMPARED:
        raise Problem(
            422, f"compare {len(ids)} runs: choose 2 to {MOST_COMPARED}, such as ?runs=A,B"
        )
    store.refresh()
    known = {doc["id"]: doc for doc in store.all()}
    docs = []
    for run_id in dict.fromkeys(ids):
        try:
            store.folder(run_id)
            docs.append(with_rates(known.get(run_id) or store.get(run_id)))
        except RequestError as error:
            raise Problem(404, str(error)) from error
    _refuse_mixed_schemas(docs)
    return labelled(docs, names)


def mixed_scales(docs: Sequence[Doc]) -> tuple[float, ...]:
    """Return the rate scales of the runs. Return an empty tuple if all runs have the same scale.

    The rate scale is the factor by which a run multiplies all rates of its scenario.
    """
    found = sorted({doc["rate_scale"] for doc in docs if doc["rate_scale"] is not None})
    return tuple(found) if len(found) > 1 else ()


def warn_of_scales(docs: Sequence[Doc]) -> str:
    """Return a warning if the runs have different rate scales, otherwise "".

    The rate scale is the factor by which a run multiplies all rates of its scenario.
    """
    scales = mixed_scales(docs)
    if not scales:
        return ""
    return (
        f"These runs have different units on the wire: {_named(scales)}. Queueing delay grows as "
        "1/scale, so differences between them are not differences of strategies only."
    )


def refuse_mixed_scales(docs: Sequence[Doc], anyway: bool) -> None:
    """Raise a `Problem` with status 422 if the runs have different rate scales. Do nothing if
    `anyway`."""
    if not anyway and (text := warn_of_scales(docs)):
        cure = "Compare runs of one rate scale, or add &mixed_scales=1 to compare them anyway"
        raise Problem(422, f"compare: {text} {cure}")


def overlay(store: Store, docs: list[Doc], points: int) -> list[Doc]:
    """Return charts that compare runs. A line has at most `points` points.

    If some runs differ only in the seed, there is one line for each group of such runs. Otherwise
    there is one line for each run. If the runs have different rate scales, the title of the time
    axis says so. Raise a `Problem` if the runs have more than `MOST_BYTES` of samples.
    """
    size = sum(reading.size_of(store.folder(doc["id"]) / "samples.jsonl") for doc in docs)
    if size > MOST_BYTES:
        raise Problem(
            422,
            f"draw {len(docs)} runs: their samples have {size >> 20} MiB, and at most "
            f"{MOST_BYTES >> 20} MiB are drawn. Choose fewer runs",
        )
    own = [each for doc in docs for each in declared_metrics(store.folder(doc["id"]))]
    own = list({(each.of, each.name): each for each in own}.values())
    with thinning.turn(store.folder(doc["id"]) for doc in docs):
        drawn = _drawn(store, docs, points, own)
    if scales := mixed_scales(docs):
        for each in drawn:
            title = each["figure"]["layout"]["xaxis"]["title"]
            title["text"] += f" (not one unit on the wire: {_named(scales)})"
    return drawn


def _drawn(store: Store, docs: list[Doc], points: int, own: Sequence[Metric]) -> list[Doc]:
    several = group_charts.shown(store, docs)
    if (lines := len(several) or len(docs)) > MOST_LINES:
        raise Problem(
            422,
            f"draw {len(docs)} runs over time: that is {lines} lines, and at most {MOST_LINES} are "
            "drawn. Choose fewer runs in the list of runs",
        )
    if several:
        folders = [[store.folder(doc["id"]) for doc in group.docs] for group in several]
        groups = [
            (group.label, map(thinning.means, runs))
            for group, runs in zip(several, folders, strict=True)
        ]
        return group_charts.drawn(groups, _last(chain(*folders)), points, own)
    labels = [doc["label"] for doc in docs]
    sound = [store.folder(doc["id"]) for doc in docs if doc["status"] != CHANGED]
    return charts.overlay(labels, _last(sound), (_samples(store, doc) for doc in docs), points, own)


def _last(folders: Iterable[Path]) -> list[Doc]:
    """Return the last sample of each run that has one."""
    return [frame for folder in folders if (frame := reading.last_readable(folder))]


def marks(store: Store, docs: list[Doc]) -> list[Doc]:
    """Return the events that the charts of a comparison mark with a vertical line, as JSON rows.

    `run` in a row is the index of the run in `docs`. `number` counts the changes of the run from 1,
    as on the page of the run; it is None for other events. If runs are drawn as groups of repeats,
    nothing is marked.
    """
    found: list[Doc] = []
    if group_charts.shown(store, docs):
        return found
    for place, doc in enumerate(docs):
        if doc["status"] == CHANGED:
            continue
        happened = readable_events(store.folder(doc["id"]))
        rows = (events.describe(event, n) for n, event in enumerate(happened, 1))
        lines = [row for row in rows if row.mark == "line"]
        numbers = count(1)
        found += [
            asdict(row) | {"run": place, "number": next(numbers) if row.kind == "flip" else None}
            for row in lines
        ]
    return found


def _samples(store: Store, doc: Doc) -> list[Doc]:
    """Return the samples of a run; none if its files were edited after its end."""
    folder = store.folder(doc["id"])
    return [] if doc["status"] == CHANGED else thinning.extremes(folder).samples


def _refuse_mixed_schemas(docs: list[Doc]) -> None:
    """Raise a `Problem` with status 422 if an older version of the lab recorded some of the runs
    and not others, so that their numbers are not alike."""
    oldest = min(doc["run_schema"] for doc in docs)
    old = [doc["id"] for doc in docs if doc["run_schema"] == oldest]
    if len(old) < len(docs):
        raise Problem(
            422,
            f"compare: {', '.join(old)} has {held(oldest)}, recorded by an older version, and the "
            "other runs have not. Repeat the old run, or leave it out",
        )


def labelled(docs: list[Doc], names: Mapping[str, str] = MappingProxyType({})) -> list[Doc]:
    """Add a label to each run, and return the runs.

    The label is the run's name in `names` or its strategy, followed by everything else in which
    runs with this strategy differ.
    """
    mixed = mixed_scales(docs)
    found: dict[tuple[str, str], set[str]] = {}  # the values of a key in runs of a strategy
    for doc in docs:
        for key in KEYS_OF_LABELS:
            found.setdefault((doc["strategy"], key), set()).add(str(doc[key]))
    for doc in docs:
        differing = [key for key in KEYS_OF_LABELS if len(found[doc["strategy"], key]) > 1]
        words = [names.get(doc["id"], doc["strategy"]), *(_worded(doc, key) for key in differing)]
        if mixed:
            words.append(doc["rates"] or "rate scale 1")
        words += [f"({doc['changed']})"] if doc["changed"] else []
        doc["label"] = " ".join(words)
    labels = Counter(doc["label"] for doc in docs)
    for n, doc in enumerate(docs, 1):
        if labels[doc["label"]] > 1:
            doc["label"] += f" ({n})"
    return docs


def _worded(doc: Doc, key: str) -> str:
    return f"{doc[key] or 0:g} s" if key == "duration_s" else f"{key} {doc[key]}"


def _named(scales: Sequence[float]) -> str:
    return " and ".join(scale_label(each) or "rate scale 1" for each in scales)
