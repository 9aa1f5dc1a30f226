"""Where users are and how they move is drawn from the seed by name: the same in every engine, and nobody's draw moves another's. Pure."""

from __future__ import annotations

import hashlib


def uniform(seed: int, *names: object) -> float:
    """A number from 0 to 1 (1 excluded) that depends on the seed and these names only."""
    digest = hashlib.sha256("/".join(map(str, (seed, *names))).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
