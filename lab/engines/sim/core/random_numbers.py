"""Generate random numbers that are the same everywhere (L'Ecuyer, CACM 31(6), 1988, Fig. 3).

Two multiplicative generators are combined. Every link, side of a cell and subflow has a random
stream of its own, whose state is kept in two adjacent places of the table.
"""

from __future__ import annotations

import hashlib

from lab.engines.sim.core.jit import Ints, jit

M_1, A_1 = 2_147_483_563, 40_014
M_2, A_2 = 2_147_483_399, 40_692


@jit
def random_below(table: Ints, place: int, below: int) -> int:
    """Return the next number from 0 to `below` - 1 (2^31 at most) of the random stream kept at
    `place`."""
    first = table[place] * A_1 % M_1
    second = table[place + 1] * A_2 % M_2
    table[place] = first
    table[place + 1] = second
    return (first - second) % (M_1 - 1) * below // (M_1 - 1)


def new_stream(seed: int, name: str) -> tuple[int, int]:
    """Return the first state of the random stream with this name."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return (
        1 + int.from_bytes(digest[:8], "big") % (M_1 - 1),
        1 + int.from_bytes(digest[8:16], "big") % (M_2 - 1),
    )
