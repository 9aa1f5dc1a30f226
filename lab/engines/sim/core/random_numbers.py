"""Random numbers that are the same everywhere: two multiplicative generators combined (L'Ecuyer, CACM 31(6), 1988, Fig. 3).

Every link, cell side and subflow has a stream of its own, begun from the seed and its name.
"""

from __future__ import annotations

import hashlib

from lab.engines.sim.core.jit import Ints, jit

M_1, A_1 = 2_147_483_563, 40_014
M_2, A_2 = 2_147_483_399, 40_692


@jit
def random_below(table: Ints, place: int, below: int) -> int:
    """The next number from 0 to `below` - 1 (2^31 at most) of the stream kept in `table[place]` and the place after it."""
    first = table[place] * A_1 % M_1
    second = table[place + 1] * A_2 % M_2
    table[place], table[place + 1] = first, second
    return (first - second) % (M_1 - 1) * below // (M_1 - 1)


def new_stream(seed: int, name: str) -> tuple[int, int]:
    """The two numbers a stream starts from."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return (
        1 + int.from_bytes(digest[:8], "big") % (M_1 - 1),
        1 + int.from_bytes(digest[8:16], "big") % (M_2 - 1),
    )
