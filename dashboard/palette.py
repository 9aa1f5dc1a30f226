"""The colours of charts and drawings.

On one page, a colour always means the same user, subflow, access point or link.
`dashboard/static/network.css` has the colours for the light and the dark theme.
"""

from __future__ import annotations

from collections.abc import Iterable

from lab.results.colours import OKABE_ITO
from lab.results.labels import natural

VARIED = (
    "#004A78",
    "#8A3B00",
    "#00573F",
    "#9B4F7D",
    "#777777",
    "#9C6B00",
    "#3D6D8F",
    "#5B5400",
)
PLACES = (
    *("#6A3D9A", "#7A4A1E", "#007C89", "#B0003A", "#4A6178", "#5B7F00", "#A0229B", "#A8895A"),
    *("#3F2370", "#B0703A", "#00525B", "#D6336C", "#27343F", "#3A5200", "#C457BE", "#6B5531"),
)
USERS = (*OKABE_ITO, *VARIED)
COLOURS = (*USERS, *PLACES)  # the palette
DASHES = ("solid", "dash", "dashdot", "longdash", "longdashdot")  # of the subflows of a connection


def user_colours(users: Iterable[str]) -> dict[str, int]:
    """Return the palette index of each user. It is the same in all charts and drawings."""
    return {user: n % len(USERS) for n, user in enumerate(sorted(users, key=natural))}


def place_colours(places: Iterable[str]) -> dict[str, int]:
    """Return the palette index of each access point or link, in the given order."""
    return {place: len(USERS) + n % len(PLACES) for n, place in enumerate(places)}


def subflow_colour(user: int, number: int, only_user: bool) -> int:
    """Return the palette index of a subflow.

    If the network has only one user, each subflow has its own colour. Otherwise a subflow has the
    colour of its user. `user` is the palette index of the user. `number` counts the subflows of a
    connection from 1.
    """
    return (number - 1) % len(USERS) if only_user else user


def subflow_style(number: int, tier: int | None) -> int:
    """Return the style of a subflow's line, from 1 to 5; 1 is solid.

    `tier` is what the controller calls the subflow now; Tier 1 is solid. It is None in a network
    without access points. There the first subflow is solid; `number` counts the subflows of a
    connection from 1. `dashboard/static/subflow_style.js` does the same.
    """
    if tier == 1:
        return 1
    return min(len(DASHES), max(1 if tier is None else 2, number))


def subflow_dash(style: int) -> str:
    return DASHES[style - 1]
