"""Hostile inputs from a random stream: changed bytes, and values of every kind and size."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import hypothesis
from hypothesis import strategies as st

NASTY = (
    *(
        b"[" * 2000,
        b'{"a":' * 2000,
        b"1" + b"0" * 400,
        b"1e400",
        b"NaN",
        b'"\\ud800"',
        b"\xe2\x80\xa8",
    ),
    *(b"\xff", b"\0", b"", b"-1", b"null", b"true", b'""', b"\r", b"\n", b"{}", b"[]", b"&a [*a]"),
    *(
        b"!!timestamp z",
        b"\xc2\x85",
        b"../",
        b"%00",
        b"\t",
        b"9" * 30,
        b"1e-300",
        b"<script>",
        b"\\u0000",
    ),
)
WORDS = (
    "up",
    "none",
    "reno",
    "link.path1.loss",
    "strategy",
    "strategy.cth",
    "cc",
    "wifi1",
    "ue1",
    "",
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.sampled_from(WORDS)
    | st.text(max_size=12)
)
VALUES = st.recursive(
    SCALARS,
    lambda inside: (
        st.lists(inside, max_size=4)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=8), inside, max_size=4)
    ),
    max_leaves=12,
)


def changed(rng: random.Random, data: bytes, corpus: Sequence[bytes] = ()) -> bytes:
    """`data` after one to six changes: bytes flipped, cut, doubled, moved or replaced."""
    made = bytearray(data)
    for _ in range(rng.randrange(1, 7)):
        at = rng.randrange(len(made) + 1)
        end = min(len(made), at + rng.choice((1, 1, 2, 4, 16, 64)))
        match rng.randrange(7):
            case 0:
                made[at:end] = rng.randbytes(end - at)
            case 1:
                del made[at:end]
            case 2:
                made[at:at] = made[at:end] * rng.choice((1, 2, 50))
            case 3:
                made[at:end] = rng.choice(NASTY)
            case 4 if at < len(made):
                made[at] ^= 1 << rng.randrange(8)
            case 5:
                made[at:] = b""
            case 6 if corpus:
                made[at:] = rng.choice(corpus)[at:]
    return bytes(made)


def examples(strategy: st.SearchStrategy[Any], rng: random.Random, count: int) -> list[Any]:
    """`count` examples of a hypothesis strategy, which depend only on the random stream."""
    found: list[Any] = []

    @hypothesis.seed(rng.getrandbits(64))
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.generate,),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def collect(example: Any) -> None:
        found.append(example)

    with suppress(hypothesis.errors.Unsatisfiable):  # this strategy has no example
        collect()
    return found
