"""The laws' C code, compiled for this machine, compared with the multipath-tcp.org kernel and with
exact fractions.

docs/ebpf.md states the bound: an increase is off by at most 1/500 of itself, or by 2^-36 packets.
"""

from __future__ import annotations

import random
from fractions import Fraction
from math import ceil

import pytest
from laws import MAX_PATHS, laws

__all__ = ["laws"]
RELATIVE, ABSOLUTE = Fraction(1, 500), Fraction(1, 1 << 36)

A = [(10, 0.1, 1e5), (10, 0.1, 1e5)]
B = [(20, 0.05, 2e5), (10, 0.1, 5e4)]
C = [(8, 0.02, 3e5), (40, 0.1, 1e5)]
D = [(10, 0.03, 1e5), (20, 0.06, 4e5), (30, 0.12, 1e5)]
E = [(10, 0.1, 0)]
VECTORS = [
    ("lia", A, (0.025, 0.025), (5, 5)),
    ("lia", B, (0.032, 0.032), (10, 5)),
    ("lia", C, (0.03125, 0.025), (4, 20)),
    ("lia", D, (0.0132231, 0.0132231, 0.0132231), (5, 10, 15)),
    ("lia", E, (0.1,), (5,)),
    ("olia", A, (0.025, 0.025), (5, 5)),
    ("olia", B, (0.032, 0.004), (10, 5)),
    ("olia", C, (0.09375, -0.00625), (4, 20)),
    ("olia", D, (0.0298898, 0.0149449, -0.0086318), (5, 10, 15)),
    ("olia", E, (0.1,), (5,)),
    ("balia", A, (0.025, 0.025), (5, 5)),
    ("balia", B, (0.032, 0.016), (10, 3)),
    ("balia", C, (0.03125, 0.00625), (4, 20)),
    ("balia", D, (0.0132231, 0.0066116, 0.0030854), (5, 10, 15)),
    ("balia", E, (0.1,), (5,)),
]


@pytest.mark.parametrize(("law", "paths", "increases", "after_loss"), VECTORS)
def test_the_vectors(laws, law, paths, increases, after_loss):
    for own, wanted in enumerate(increases):
        assert float(laws[law].increase(paths, own)) == pytest.approx(wanted, rel=5e-5)
    assert tuple(laws[law].after_loss(paths, own) for own in range(len(paths))) == after_loss


@pytest.mark.parametrize(
    ("law", "paths", "own", "acks"),
    [("lia", B, 0, 32), ("balia", B, 1, 63), ("olia", C, 0, 11), ("olia", C, 1, 160)],
)
def test_acknowledged_packets_per_step(laws, law, paths, own, acks):
    """As in the multipath-tcp.org kernel. Only its OLIA rounds to 1/1024 and gives 171 in the last
    case."""
    assert ceil(abs(1 / laws[law].increase(paths, own))) == acks


def exact_lia(paths, own):
    total = sum(w / rtt for w, rtt, _ in paths)
    return min(max(w / rtt**2 for w, rtt, _ in paths) / total**2, 1 / paths[own][0])


def exact_olia(paths, own):
    best = max(count / rtt**2 for _, rtt, count in paths)
    widest = max(w for w, _, _ in paths)
    m = {n for n, path in enumerate(paths) if path[0] == widest}
    c = {n for n, (_, rtt, count) in enumerate(paths) if count / rtt**2 == best} - m
    w, rtt, _ = paths[own]
    alpha = (
        Fraction(1, len(paths) * len(c))
        if own in c
        else -Fraction(1, len(paths) * len(m))
        if own in m and c
        else 0
    )
    return w / rtt**2 / sum(w / rtt for w, rtt, _ in paths) ** 2 + alpha / w


def exact_balia(paths, own):
    rates = [w / rtt for w, rtt, _ in paths]
    alpha = max(rates) / rates[own]
    return rates[own] / (paths[own][1] * sum(rates) ** 2) * (1 + alpha) / 2 * (4 + alpha) / 5


EXACT = {"lia": exact_lia, "olia": exact_olia, "balia": exact_balia}


def random_paths(rng):
    """Windows up to 200,000 packets, RTTs of 100 us to 4 s, some of them equal."""
    paths = []
    for _ in range(rng.randint(1, MAX_PATHS)):
        window = rng.choice([rng.randint(1, 20), rng.randint(1, 200_000), 10])
        rtt = Fraction(
            rng.choice([rng.randint(100, 4_000_000), rng.randint(5_000, 300_000), 50_000]),
            1_000_000,
        )
        paths.append(
            (Fraction(window), rtt, Fraction(rng.choice([0, 100_000, rng.randint(0, 2**32 - 1)])))
        )
    return paths


@pytest.mark.whole
@pytest.mark.parametrize("law", EXACT)
def test_the_error_bound(laws, law):
    rng = random.Random(law)
    for _ in range(3000):
        paths = random_paths(rng)
        wanted, got = EXACT[law](paths, 0), laws[law].increase(paths, 0)
        linked = (
            exact_olia([(w, rtt, 0) for w, rtt, _ in paths], 0) if law == "olia" else 0
        )  # alpha may cancel this part
        assert abs(got - wanted) <= RELATIVE * max(abs(wanted), linked) + ABSOLUTE, [
            tuple(map(float, path)) for path in paths
        ]


@pytest.mark.parametrize("law", EXACT)
def test_no_step_is_longer_than_reno_alone(laws, law):
    """LIA and BALIA never grow a window by more than 1/w; OLIA's alpha may double that."""
    rng = random.Random(law)
    for _ in range(1000):
        paths = random_paths(rng)
        assert (
            laws[law].increase(paths, 0)
            <= (2 if law == "olia" else 1) * (1 + RELATIVE) / paths[0][0] + ABSOLUTE
        )


def test_extremes_do_not_overflow(laws):
    widest = [((1 << 18) - 1, 4.194303, 2**32 - 1), ((1 << 18) - 1, 1e-6, 2**32 - 1)] * 8
    for law in laws.values():
        for own in range(2):
            assert 0 <= law.increase(widest, own) <= 1
            assert 1 <= law.after_loss(widest, own) < 1 << 18
    assert laws["balia"].after_loss([(1, 1.0, 0), (9, 0.01, 0)], 0) == 1
