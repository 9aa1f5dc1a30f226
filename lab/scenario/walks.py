"""Walks that were recorded, or made by another tool: where users are, and when.

`mobility: {kind: trace, walks: FILE}` names a CSV file with the columns `t_s`, `user`, `x_m` and
`y_m`, one row for each place. Between two places a user walks straight and evenly; after the last
one it stays. The places take the name's place, so a run and its digest have them.
"""

from __future__ import annotations

import csv
from pathlib import PurePath
from typing import Any

from lab.errors import RequestError, show, unknown
from lab.radio.mobility import Replay
from lab.scenario.files import Files
from lab.scenario.movement import placeable, places_of, with_place
from lab.scenario.schema import Mobility
from lab.topologies.topology import Topology

COLUMNS = ["t_s", "user", "x_m", "y_m"]
MOST_POINTS = 20_000  # of a file


def with_walk_files(raw: dict[str, Any], source: str, files: Files | None) -> dict[str, Any]:
    """Return the content of a scenario file with points, if `mobility` names a CSV file.

    Raise `RequestError`, which begins with `source`, if such a file cannot be read.
    """
    mobility = raw.get("mobility")
    if not isinstance(mobility, dict) or not isinstance(name := mobility.get("walks"), str):
        return raw
    doing = f"{source}: mobility: walks"
    if PurePath(name).suffix != ".csv":
        raise RequestError(f"{doing}: {show(name)} is no CSV file")
    if files is None:
        raise RequestError(f"{doing}: a path is accepted only in a scenario file")
    try:
        path, content = files.read(name)
        return raw | {"mobility": mobility | {"walks": _points(content.decode("utf-8-sig"))}}
    except RequestError as error:
        raise RequestError(f"{doing}: {error}") from error
    except ValueError as error:
        raise RequestError(f"{doing}: {path}: {error}") from error


def _points(text: str) -> dict[str, list[list[float]]]:
    rows = [row for row in csv.reader(text.splitlines()) if row]
    if not rows or [each.strip() for each in rows[0]] != COLUMNS:
        raise ValueError(f"begin with the header {','.join(COLUMNS)}, then a row for each place")
    if len(rows) - 1 > MOST_POINTS:
        raise ValueError(f"it has {len(rows) - 1:,} places, and {MOST_POINTS:,} is the most")
    found: dict[str, list[list[float]]] = {}
    for number, row in enumerate(rows[1:], 2):
        try:
            t_s, user, x_m, y_m = (each.strip() for each in row)
            found.setdefault(user, []).append([float(t_s), float(x_m), float(y_m)])
        except ValueError as error:
            raise ValueError(f"row {number}: {','.join(row)} is no time, user and place") from error
    return found


def begun(network: Topology, mobility: Mobility | None) -> Topology:
    """Return a network whose users are where their recorded walks begin.

    Raise `RequestError` if users cannot walk in this network, or a point is outside of its area.
    """
    if mobility is None:
        return network
    if not places_of(network).keys() >= {*network.users}:
        raise RequestError(
            f"mobility: topology '{network.name}' gives nobody a position. Leave out mobility"
        )
    for user, points in mobility.walks.items():
        known = placeable(network)
        if user not in known:
            raise RequestError(f"mobility: walks: user {unknown(user, sorted(known))}")
        for t_s, *place in points:
            if max(place) > network.area_m:
                raise RequestError(
                    f"mobility: walks: {user} is at {place[0]:g}, {place[1]:g} m at {t_s:g} s, "
                    f"outside of the area of {network.area_m:g} m"
                )
        network = with_place(network, user, Replay(user, points).at(0))
    return network
