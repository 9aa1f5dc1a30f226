"""The rates that one connection could get on its paths (S-MPTCP, Algorithm 2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.strategies.expected_throughput.allocation import largest_rates, room_left

uses = st.dictionaries(st.integers(0, 5), st.sampled_from([1.0, 1.0, 2.5]), min_size=1, max_size=4)
rooms = st.lists(st.one_of(st.floats(0, 10), st.floats(-5, 0)), min_size=6, max_size=6).map(
    lambda each: dict(enumerate(each))
)


def over(*arcs: int) -> dict[int, float]:
    return dict.fromkeys(arcs, 1.0)


@pytest.mark.parametrize(
    ("paths", "room", "rates"),
    [
        ([over(0, 2), over(1, 2)], (10, 10, 10), (0, 10)),  # both vectors are the specification's
        ([over(0, 1)], (4, 5), (4,)),
        ([over(0), over(1)], (9, 9), (9, 9)),
        ([over(0, 1)], (-3, 5), (0,)),
        ([over(0, 3), over(1, 3), over(2, 3)], (4, 4, 4, 9), (1, 4, 4)),
        ([{0: 1.0, 1: 4.0}], (10, 10), (2.5,)),
    ],
)
def test_vectors(paths, room, rates):
    assert largest_rates(paths, dict(enumerate(room))) == pytest.approx(rates)


@given(st.lists(uses, min_size=1, max_size=4), rooms)
def test_no_arc_is_overloaded_and_every_separate_path_is_full(paths, room):
    rates = largest_rates(paths, room)
    left = room_left({arc: max(0.0, each) for arc, each in room.items()}, paths, rates)
    assert min(rates) >= 0
    assert min(left.values()) >= -1e-6
    alone = [
        path
        for n, path in enumerate(paths)
        if not any(set(path) & set(other) for m, other in enumerate(paths) if m != n)
    ]
    assert all(min(left[arc] for arc in path) <= 1e-6 for path in alone)


@given(uses, rooms)
def test_a_single_subflow_takes_what_its_narrowest_arc_has(path, room):
    assert largest_rates([path], room) == pytest.approx(
        (min(max(0.0, room[arc]) / part for arc, part in path.items()),)
    )
