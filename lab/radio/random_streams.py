"""Derive random numbers from the seed and names, for the places and the movement of users. Pure.

The numbers are the same in every engine, and the number for one name does not depend on the other
names in use.
"""

from __future__ import annotations

import hashlib


def uniform(seed: int, *names: object) -> float:
    """Return a number from 0 to 1 (1 excluded) that depends only on the seed and these names."""
    digest = hashlib.sha256("/".join(map(str, (seed, *names))).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
