"""Derive random numbers for the places and the movement of users from a seed and names.

The numbers are the same in every engine. A number depends only on the seed and its own names, so it
stays the same when other names are added.
"""

from __future__ import annotations

import hashlib


def uniform(seed: int, *names: object) -> float:
    """Return a random number, 0 <= number < 1, that depends only on the seed and these names."""
    digest = hashlib.sha256("/".join(map(str, (seed, *names))).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
