"""Random streams: the same for the same seed and name, and uniform."""

import pytest

from lab.engines.sim import compiled
from lab.engines.sim.core import random_numbers
from lab.engines.sim.core.state import Stream


def numbers(seed, name, count=20_000, below=1000):
    first, second = random_numbers.new_stream(seed, name)
    make = compiled.records()
    stream = make.one(Stream, first=first, second=second)
    return [random_numbers.random_below(stream, below) for _ in range(count)]


def test_a_random_stream_depends_on_seed_and_name():
    assert numbers(1, "a", 50) == numbers(1, "a", 50)
    assert numbers(1, "a", 50) != numbers(2, "a", 50)
    assert numbers(1, "a", 50) != numbers(1, "b", 50)


def test_random_numbers_are_within_bounds_and_evenly_distributed():
    found = numbers(1, "link/path1/p1")
    assert min(found) == 0
    assert max(found) == 999
    assert sum(found) / len(found) == pytest.approx(499.5, rel=0.02)
