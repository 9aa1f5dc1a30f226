"""The transfers of a finished run, read from its folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.run.reading import Line
from lab.run.report import ConnectionReport
from lab.run.transfers import Transfer, transfers

MOST_POINTS = 200  # of a distribution


def of_run(folder: Path, connections: Sequence[Line]) -> list[Transfer]:
    """Return the transfers of a run. `connections` are those of its result.json.

    The list is empty if no connection was complete, or if the run's network cannot be read.
    """
    from lab.results.explain.present import loaded  # imported here: it loads networkx

    if all(each.get("completion_s") is None for each in connections):
        return []
    try:
        scenario = loaded(folder)
    except LookupError:
        return []
    reports = (
        ConnectionReport(each["id"], each["user"], completion_s=each.get("completion_s"))
        for each in connections
    )
    return transfers(scenario, reports)


def distribution(found: Sequence[Transfer]) -> list[tuple[float, float]]:
    """Return points (completion time in s, fraction of transfers that were complete by then), at
    most `MOST_POINTS`. Transfers that were never complete count, so the last fraction may be below
    1."""
    times = sorted(each.completion_s for each in found if each.completion_s is not None)
    step = max(1, -(-len(times) // MOST_POINTS))
    places = sorted({*range(0, len(times), step), len(times) - 1}) if times else []
    return [(times[n], (n + 1) / len(found)) for n in places]
