"""Random waypoints: inside the area, within the speed limits, the same for the same seed."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.radio.mobility import Walker, distance_m, uniform


def walker(seed=1, user="ue1", pause_s=0.0, speeds=(1.0, 5.0)):
    return Walker(user, seed, (100.0, 100.0), 200.0, speeds, pause_s)


def places(one, until_s=200):
    return [one.at(t / 2) for t in range(2 * until_s)]


@given(st.integers(0, 2**32 - 1))
def test_users_stay_inside_the_area_and_within_the_speed_limits(seed):
    seen = places(walker(seed))
    assert all(0 <= x <= 200 and 0 <= y <= 200 for x, y in seen)
    assert all(distance_m(a, b) <= 5 / 2 + 1e-9 for a, b in pairwise(seen))
    assert seen[0] == (100, 100)


def test_equal_limits_give_one_constant_speed():
    seen = places(walker(speeds=(2.0, 2.0)))
    steps = [distance_m(a, b) for a, b in pairwise(seen)]
    assert sum(step == pytest.approx(1.0) for step in steps) > 0.9 * len(
        steps
    )  # the others turn a corner


def test_movement_depends_only_on_the_seed_and_the_name():
    assert places(walker()) == places(walker())
    assert places(walker()) != places(walker(seed=2))
    assert places(walker()) != places(walker(user="ue2"))


def test_fewer_samples_show_the_same_movement():
    often, seldom = walker(), walker()
    assert [often.at(t) for t in range(200)][::10] == [seldom.at(t) for t in range(0, 200, 10)]


def test_a_user_waits_for_the_pause():
    one = walker(pause_s=7.0)
    one.at(0.0)
    leg = one.leg
    assert leg.leaves_s - leg.arrives_s == pytest.approx(7.0)
    assert one.at(leg.arrives_s + 3) == one.at(leg.arrives_s + 6) == leg.target


def test_random_numbers_are_spread_evenly():
    drawn = [uniform(1, "ue", n) for n in range(2000)]
    assert all(0 <= each < 1 for each in drawn)
    assert sum(drawn) / len(drawn) == pytest.approx(0.5, abs=0.03)
