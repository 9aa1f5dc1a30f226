"""Random numbers that are the same on every machine (L'Ecuyer, CACM 31(6), 1988, Fig. 3).

Two multiplicative generators are combined. Every subflow and every hop (one direction of a link or
radio channel) has its own stream of random numbers.
"""

from __future__ import annotations

import hashlib

from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Stream

M_1, A_1 = 2_147_483_563, 40_014
M_2, A_2 = 2_147_483_399, 40_692


@jit
def random_below(stream: Stream, below: int) -> int:
    """Return the next random integer from 0 to `below` - 1. `below` is at most 2^31."""
    first = stream.first * A_1 % M_1
    second = stream.second * A_2 % M_2
    stream.first = first
    stream.second = second
    return (first - second) % (M_1 - 1) * below // (M_1 - 1)


def new_stream(seed: int, name: str) -> tuple[int, int]:
    """Return the initial state of a random stream: two integers that depend only on `seed` and
    `name`."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return (
        1 + int.from_bytes(digest[:8], "big") % (M_1 - 1),
        1 + int.from_bytes(digest[8:16], "big") % (M_2 - 1),
    )
