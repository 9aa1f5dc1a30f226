"""The transfers of a finished run, read from its folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.run.reading import Line, read_lines
from lab.run.report import ConnectionReport, ExchangeReport
from lab.run.transfers import Transfer, transfers
from lab.scenario import clients

MOST_POINTS = 200  # of a distribution


def of_run(folder: Path, connections: Sequence[Line]) -> list[Transfer]:
    """Return the transfers of a run. `connections` are those of its result.json; exchanges are read
    from its events, which have only those that were complete.

    The list is empty if the run's network cannot be read.
    """
    from lab.results.explain.present import loaded  # imported here: it loads networkx

    try:
        scenario = loaded(folder)
    except LookupError:
        return []
    reports = (
        ConnectionReport(each["id"], each["user"], completion_s=each.get("completion_s"))
        for each in connections
    )
    kinds = {flow.kind for flow in scenario.traffic}
    exchanges = _exchanges(folder, scenario.rate_scale) if kinds & set(clients.CLIENTS) else ()
    return transfers(scenario, reports, exchanges)


def _exchanges(folder: Path, rate_scale: float) -> Iterator[ExchangeReport]:
    events = folder / "events.jsonl"
    for each in read_lines(events) if events.exists() else ():
        if each.get("kind") == "completion" and "mb" in each:
            size_bytes = round(each["mb"] * 1e6 * rate_scale)
            at_s = max(0.0, each["t"] - each["completion_s"])
            yield ExchangeReport(
                each["connection"],
                each["user"],
                each["traffic"],
                at_s,
                each["completion_s"],
                size_bytes,
            )


def distribution(found: Sequence[Transfer]) -> list[tuple[float, float]]:
    """Return points (completion time in s, fraction of transfers that were complete by then), at
    most `MOST_POINTS`. Transfers that were never complete count, so the last fraction may be below
    1."""
    times = sorted(each.completion_s for each in found if each.completion_s is not None)
    step = max(1, -(-len(times) // MOST_POINTS))
    places = sorted({*range(0, len(times), step), len(times) - 1}) if times else []
    return [(times[n], (n + 1) / len(found)) for n in places]
