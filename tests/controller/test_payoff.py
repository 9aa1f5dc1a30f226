"""Limits are tried, and stay only while they pay off."""

from functools import partial

import pytest

from controller.observation import Association, Observation, Subflow
from controller.strategies.payoff import (
    HOLD_S,
    WAIT_S,
    Payoff,
    could_pay_off,
    is_fairer,
    pays_off,
)

MBPS = 1_000_000


def is_protected(user):
    return user.startswith("single")


@pytest.mark.parametrize(
    ("single", "other", "third", "expected"),
    [
        (14, 6, 10, True),
        (13, 6, 10, False),  # less for all together
        (10, 10, 10, False),  # nobody gains
        (9, 14, 10, False),  # who is protected loses
        (11, 8, 12, False),  # the gain is somebody else's
        (20, 9.1, 9.1, True),
    ],
)
def test_what_is_taken_must_reach_who_is_protected(single, other, third, expected):
    without = {"single": 10.0, "other": 10.0, "third": 10.0}
    limited = {"single": single, "other": other, "third": third}
    assert pays_off(without, limited, is_protected) is expected


@pytest.mark.parametrize(
    ("poor", "middle", "rich", "expected"),
    [
        (4, 5, 9, True),
        (2, 5, 11, False),  # the poorest loses
        (3, 5, 8, False),  # less for all together
        (2, 7, 9, False),  # the poorest pays for the one in the middle
        (6, 3, 9, True),  # the one in the middle pays for the poorest
        (3, 5, 10, False),  # nothing changes
    ],
)
def test_poorer_users_must_gain_what_somebody_loses(poor, middle, rich, expected):
    before = {"poor": 3.0e6, "middle": 5.0e6, "rich": 10.0e6}
    after = {"poor": poor * 1e6, "middle": middle * 1e6, "rich": rich * 1e6}
    assert is_fairer(before, after) is expected


def test_a_change_must_be_worth_it():
    before, after = {"a": 10e6, "b": 10e6}, {"a": 10e6, "b": 10.4e6}
    assert is_fairer(before, after, worth=0.03)
    assert not is_fairer(before, after, worth=0.05)


class Cell:
    """Two users whose rates depend on whether there are limits."""

    def __init__(self, without, limited):
        self.payoff, self.now_s, self.limited = Payoff(), 0, False
        self.rates = {False: without, True: limited}

    def step(self, wanted=True, is_idle=False):
        self.now_s += 1
        subflows = tuple(
            Subflow(f"{user}-1", 1, user, "wifi1", "s:1", "d:1", rate_bps=round(mbps * MBPS))
            for user, mbps in self.rates[self.limited].items()
        )
        seen = Observation(self.now_s * 1_000_000_000, subflows=subflows)
        pays = partial(pays_off, is_protected=is_protected)
        self.limited = self.payoff.step(seen, wanted, pays, is_idle)
        return self.limited

    def steps(self, count):
        return [self.step() for _ in range(count)]


def test_limits_that_pay_off_stay_until_they_are_tried_anew():
    cell = Cell({"single": 4, "other": 8}, {"single": 8, "other": 5})
    begin = cell.steps(20).index(True)
    assert 4 <= begin <= 6  # seconds; what users get without limits is measured before
    assert cell.limited
    assert not all(cell.steps(round(HOLD_S)))
    assert all(cell.steps(8)[-2:])


def test_limits_that_cost_are_lifted_soon_and_tried_ever_less():
    cell = Cell({"single": 4, "other": 8}, {"single": 4, "other": 3})
    found = cell.steps(200)
    assert not found[-1]
    begins = [n for n in range(1, 200) if found[n] and not found[n - 1]]
    assert 2 <= len(begins) <= 4
    assert begins[1] - begins[0] >= WAIT_S
    assert begins[2] - begins[1] > begins[1] - begins[0]
    assert sum(found) <= 3 * len(begins)


def test_there_is_no_limit_without_a_reason():
    cell = Cell({"single": 4, "other": 8}, {"single": 9, "other": 5})
    cell.steps(15)
    assert cell.limited
    assert not cell.step(wanted=False)
    assert not any(cell.step(wanted=False) for _ in range(20))


def test_a_user_who_comes_during_a_trial_does_not_count():
    cell = Cell({"single": 4, "other": 8}, {"single": 4, "other": 8, "new": 20})
    cell.steps(12)
    assert not cell.limited


def test_a_trial_that_leaves_air_idle_ends_at_its_first_step():
    cell = Cell({"single": 4, "other": 8}, {"single": 4, "other": 3})
    while not cell.step():
        pass
    assert not cell.step(is_idle=True)
    assert "has cost" in cell.payoff.reason


def test_windows_may_grow_while_no_air_is_idle():
    cell = Cell({"single": 4, "other": 8}, {"single": 1, "other": 3})
    while not cell.step():
        pass
    assert cell.step()
    cell.rates[True] = {"single": 9, "other": 3.5}
    assert all(cell.steps(20))


def test_a_small_loss_ends_a_trial_when_it_has_cost_more_than_its_budget():
    """A budget of 2 % of five seconds covers one second with 9 % less, and not two."""
    cell = Cell({"single": 4, "other": 8}, {"single": 4, "other": 7})
    while not cell.step():
        pass
    assert cell.steps(4) == [True, True, True, False]


def test_a_trial_whose_reason_is_gone_has_failed():
    cell = Cell({"single": 4, "other": 8}, {"single": 4, "other": 8})
    while not cell.step():
        pass
    assert not cell.step(wanted=False)
    assert not any(cell.steps(round(WAIT_S) - 2))


@pytest.mark.parametrize(
    ("alone_mbps", "rates_mbps", "expected"),
    [
        ({"single": 40, "other": 20}, {"single": 20, "other": 10}, True),
        ({"single": 2, "other": 8}, {"single": 0.8, "other": 4}, False),  # a slow station gains
        ({"single": 40, "other": 20}, {"single": 0, "other": 20}, False),  # nobody would use it
        ({"single": 40}, {"single": 20, "other": 10}, False),  # a station that has left
    ],
)
def test_a_trial_needs_air_in_which_others_carry_as_much(alone_mbps, rates_mbps, expected):
    seen = Observation(
        1_000_000_000,
        associations=tuple(
            Association(user, "wifi1", mbps * MBPS) for user, mbps in alone_mbps.items()
        ),
        subflows=tuple(
            Subflow(f"{user}-1", 1, user, "wifi1", "s:1", "d:1", rate_bps=round(mbps * MBPS))
            for user, mbps in rates_mbps.items()
        ),
        tiers={("single", "wifi1"): 1, ("other", "wifi1"): 2},
    )
    assert could_pay_off("wifi1", [seen]) is expected


def test_a_trial_waits_until_what_its_users_would_lose_is_known():
    def seen(*users):
        return Observation(
            1_000_000_000,
            associations=tuple(
                Association(user, "wifi1", 20 * MBPS) for user in ("single", "other", "new")
            ),
            subflows=tuple(
                Subflow(f"{user}-1", 1, user, "wifi1", "s:1", "d:1", rate_bps=5 * MBPS)
                for user in users
            ),
            tiers={("other", "wifi1"): 2, ("new", "wifi1"): 2},
        )

    both, three = seen("single", "other"), seen("single", "other", "new")
    assert could_pay_off("wifi1", [both, both])
    assert not could_pay_off("wifi1", [both, three])
    assert could_pay_off("wifi1", [three, three])


def test_a_pause_lifts_limits_and_is_no_failure():
    cell = Cell({"single": 4, "other": 8}, {"single": 8, "other": 5})
    begin = cell.steps(20).index(True)
    cell.payoff.pause(Observation((cell.now_s + 1) * 1_000_000_000), "a rival is new")
    cell.limited = False
    cell.now_s += 1
    assert cell.steps(begin + 3)[-1]  # as soon as what users get without limits is known


SENT_IN_A_TRIAL = (  # Mb/s in each second of one in testbed_wifi_lte, with Linux's senders
    (22.4, 17.8, 20.3, 16.2),
    (26.8, 14.8, 22.7, 22.7),
    (15.0, 9.6, 14.3, 14.3),  # after losses, while queues empty and the air stays busy
    (20.1, 20.8, 23.6, 20.9),
)


@pytest.mark.parametrize(("queued", "kept"), [(True, True), (False, False)])
def test_senders_that_pause_while_full_queues_empty_end_no_trial(queued, kept):
    users = ("single", "ue2", "ue3", "single4")
    without = dict(zip(users, (15.9, 19.0, 22.9, 15.6), strict=True))
    trial = [dict(zip(users, each, strict=True)) for each in SENT_IN_A_TRIAL]
    if not queued:  # nothing was sent beyond the rates before
        trial[:2] = [without, without]
    cell = Cell(without, without)
    while not cell.step():
        pass
    for rates in (*trial, trial[-1], trial[-1]):
        cell.rates[True] = rates
        cell.step()
    assert cell.limited is kept
