"""Random numbers: the same for the same seed and name, evenly spread, of any size."""

import pytest

from lab.engines.sim.compiled import ints
from lab.engines.sim.core import random_numbers


def numbers(seed, name, count=20_000, below=1000):
    table = ints([*random_numbers.new_stream(seed, name)])
    return [random_numbers.random_below(table, 0, below) for _ in range(count)]


def test_a_stream_is_named_by_seed_and_name():
    assert numbers(1, "a", 50) == numbers(1, "a", 50)
    assert numbers(1, "a", 50) != numbers(2, "a", 50)
    assert numbers(1, "a", 50) != numbers(1, "b", 50)


def test_numbers_are_within_bounds_and_even():
    drawn = numbers(1, "link/path1/p1")
    assert min(drawn) == 0
    assert max(drawn) == 999
    assert sum(drawn) / len(drawn) == pytest.approx(499.5, rel=0.02)
