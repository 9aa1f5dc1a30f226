"""Define the colours of charts and drawings, and the order of names for people."""

from __future__ import annotations

import re
from collections.abc import Iterable

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#F0E442")


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key with which `ue2` comes before `ue10`."""
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]


def user_colours(users: Iterable[str]) -> dict[str, int]:
    """Return the palette index of each user, which is the same in all charts and drawings."""
    return {user: n for n, user in enumerate(sorted(users, key=natural))}


def subflow_colour(user: int, number: int, only_user: bool) -> int:
    """Return the palette index of a subflow: that of its user, or its own if there is one user.

    `user` is the palette index of the user, and `number` the number of the subflow from 1.
    """
    return number - 1 if only_user else user
