"""Trials of sets of subflows, on connections whose goodput is known for every set."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from controller.observation import Subflow
from controller.strategies.trial import (
    Conditions,
    Goodput,
    PathState,
    TrialParams,
    Trials,
    packets_of,
    standard_errors,
)

SECOND = 1_000_000_000
Rates = Callable[[frozenset[int]], float]  # packets per second of a set of subflows


class Connection:
    """A connection that carries `rates(set)` with noise; hosts confirm a set after `late`
    seconds."""

    def __init__(self, rates: Rates, count: int = 3, noise: float = 0.1, late: int = 0) -> None:
        self.rates, self.noise, self.late, self.random = rates, noise, late, Random(1)
        self.trials, self.t_s, self.counted = Trials(TrialParams()), 0, True
        self.conditions = Conditions(())
        self.sent = dict.fromkeys(range(1, count + 1), 0)
        self.used = [frozenset(self.sent)]  # the set in use in each second
        self.opening: frozenset[int] = frozenset()
        self.reasons: list[str] = []
        self.measured: list[float | None] = []  # in each second

    @property
    def carried(self) -> int:
        return sum(self.sent.values())

    def subflows(self) -> tuple[Subflow, ...]:
        return tuple(
            Subflow("c", n, "ue1", "", "a:1", "b:2", backup=n not in self.used[-1],
                    sent_packets=sent if self.counted else None)
            for n, sent in self.sent.items()
        )  # fmt: skip

    def trials_s(self) -> list[tuple[int, int]]:
        """Begin and end of each trial."""
        times = [
            int(each.split(":")[0])
            for each in self.reasons
            if "trial of" in each or "ended" in each
        ]
        return list(zip(times[::2], times[1::2], strict=False))

    def run(self, seconds: int, *candidates: set[int]) -> Connection:
        commanded = [self.used[-1]] * (self.late + 1)
        for _ in range(seconds):
            self.t_s += 1
            use = self.used[-1]
            noise = max(0.0, self.random.gauss(1, self.noise))
            for n in use:
                self.sent[n] += round(self.rates(use) * noise / len(use))
            outcome = self.trials.step(
                self.t_s * SECOND, self.subflows(), self.conditions, [*map(frozenset, candidates)],
                lambda: self.opening,
            )  # fmt: skip
            self.reasons += [f"{self.t_s}: {outcome.reason}"] if outcome.reason else []
            self.measured.append(self.trials.measured())
            commanded.append(outcome.active)
            self.used.append(commanded[-1 - self.late])
        return self


def table(base: float, **others: float) -> Rates:
    """`base` for all subflows and unnamed sets; `_13` for the set of 1 and 3."""
    rates = {frozenset(map(int, name[1:])): rate for name, rate in others.items()}
    return lambda used: rates.get(used, base)


def opened_with(rates: Rates, *numbers: int) -> Connection:
    """Its first step will choose these subflows."""
    connection = Connection(rates)
    connection.opening = frozenset(numbers)
    return connection


def test_an_opening_set_that_carries_more_stays_after_a_trial_of_all_subflows():
    connection = opened_with(table(1000, _12=1400), 1, 2).run(30)
    assert connection.used[2] == connection.used[-1] == {1, 2}
    tried = [used for used in connection.used[2:] if used == {1, 2, 3}]
    assert 4 <= len(tried) <= 10


def test_an_opening_set_that_carries_less_is_left_when_all_subflows_are_measured():
    connection = opened_with(table(1000, _12=500), 1, 2).run(60)
    assert set(connection.used[25:]) == {frozenset({1, 2, 3})}
    assert connection.carried > 0.85 * 60_000


def test_all_subflows_are_used_without_a_candidate():
    assert set(Connection(table(1000)).run(60).used) == {frozenset({1, 2, 3})}


def test_a_set_that_carries_more_is_kept():
    connection = Connection(table(1000, _12=1400)).run(60, {1, 2})
    assert connection.used[-1] == {1, 2}
    assert connection.carried > 1.15 * 60_000


def test_a_set_that_carries_less_is_left_within_the_trial():
    connection = Connection(table(1000, _12=500)).run(60, {1, 2})
    tried = [used for used in connection.used if used == {1, 2}]
    assert 1 <= len(tried) <= 10
    assert connection.used[-1] == {1, 2, 3}
    assert connection.carried > 0.97 * 60_000


def test_a_failed_set_is_tried_less_and_less_often():
    connection = Connection(table(1000, _12=990), noise=0.02).run(400, {1, 2})
    starts = [int(each.split(":")[0]) for each in connection.reasons if "trial of" in each]
    pauses = [after - before for before, after in pairwise(starts)]
    assert len(pauses) >= 2
    assert all(b > 1.5 * a for a, b in pairwise(pauses))


def test_a_kept_set_that_gets_worse_is_given_up():
    rates = {"now": table(1000, _12=1400)}
    connection = Connection(lambda used: rates["now"](used)).run(40, {1, 2})
    assert connection.used[-1] == {1, 2}
    rates["now"] = table(1000, _12=500)
    assert connection.run(20).used[-1] == {1, 2, 3}


def test_all_subflows_are_tried_now_and_then_and_used_when_they_are_as_good():
    rates = {"now": table(1000, _12=1400)}
    connection = Connection(lambda used: rates["now"](used)).run(40, {1, 2})
    rates["now"] = table(2000, _12=1400)  # the smaller set could not notice this
    assert connection.run(60).used[-1] == {1, 2, 3}


def test_new_conditions_make_all_subflows_normal_until_they_are_measured():
    connection = Connection(table(1000, _12=1400)).run(40, {1, 2})
    connection.conditions = Conditions((), alone=False)
    connection.run(5, {1, 2})
    assert set(connection.used[-5:]) == {frozenset({1, 2, 3})}
    assert connection.run(25, {1, 2}).used[-1] == {1, 2}


def conditions(**values: float | None) -> Conditions:
    known = {"loss": 0.01, "rtt_s": 0.04, "capacity_bps": 2e7}
    return Conditions((PathState(**known), PathState(**known | values)))


@pytest.mark.parametrize("name", ["loss", "rtt_s", "capacity_bps"])
def test_conditions_are_new_when_a_value_doubles_halves_begins_or_ends(name):
    before, usual = conditions(), getattr(conditions().paths[1], name)
    for factor, alike in ((1.9, True), (0.55, True), (2, False), (0.5, False), (0, False)):
        after = conditions(**{name: usual * factor})
        assert after.are_like(before) == before.are_like(after) == alike
    assert not conditions(**{name: None}).are_like(before)
    assert conditions(**{name: None}).are_like(conditions(**{name: 0}))


def test_a_slow_change_is_a_change_in_the_end():
    connection = Connection(table(1000, _12=1400))
    connection.conditions = conditions()
    assert connection.run(40, {1, 2}).used[-1] == {1, 2}
    for rtt_s in (0.05, 0.06, 0.07):
        connection.conditions = conditions(rtt_s=rtt_s)
        assert connection.run(2).used[-1] == {1, 2}
    connection.conditions = conditions(rtt_s=0.08)
    assert connection.run(2).used[-1] == {1, 2, 3}


def test_a_larger_set_that_is_not_all_subflows_is_tried_and_kept():
    connection = Connection(table(1000, _12=1400, _123=2000), count=4)
    connection.opening = frozenset({1, 2})
    assert connection.run(40).used[-1] == {1, 2}
    assert connection.run(80, {1, 2, 3}).used[-1] == {1, 2, 3}


def test_nothing_is_tried_while_a_counter_is_missing():
    connection = Connection(table(1000, _12=1400))
    connection.counted = False
    assert set(connection.run(40, {1, 2}).used) == {frozenset({1, 2, 3})}


def test_seconds_before_the_hosts_confirm_a_set_do_not_count():
    connection = Connection(table(1000, _12=1400), late=3).run(48, {1, 2})
    assert connection.used[-1] == {1, 2}


def test_a_new_subflow_is_used_and_measured_with_the_others():
    connection = Connection(table(1000, _12=1400)).run(40, {1, 2})
    connection.sent[4] = 0
    connection.used.append(connection.used[-1])
    assert connection.run(3, {1, 2}).used[-1] == {1, 2, 3, 4}


def test_a_trial_waits_until_the_budget_covers_it():
    """A set without the subflows that carry two thirds costs more than a set without a third."""
    first = [
        int(next(each for each in Connection(table(1000, _1=500, _12=500)).run(200, tried).reasons
                 if "trial of" in each).split(":")[0])
        for tried in ({1, 2}, {1})
    ]  # fmt: skip
    assert first[1] > 1.5 * first[0] > 20


@given(
    st.lists(st.floats(0.05, 1.5), min_size=3, max_size=3), st.floats(0, 0.3), st.integers(0, 99)
)
def test_trials_cost_little_whatever_the_sets_carry(parts, noise, first):
    """Means of five seeds, as a single connection with much noise can be unlucky."""
    rates = dict(zip((frozenset({1}), frozenset({1, 2}), frozenset({2, 3})), parts, strict=True))
    carried = {"tried": 0, "plain": 0}
    for seed in range(first, first + 5):
        for name, candidates in (("tried", rates), ("plain", ())):
            connection = Connection(lambda used: 1000 * rates.get(used, 1.0), noise=noise)
            connection.random = Random(seed)
            carried[name] += connection.run(60, *map(set, candidates)).carried
    assert carried["tried"] >= 0.95 * carried["plain"]


def test_a_head_start_makes_the_first_trial_earlier():
    late, early = Connection(table(1000, _12=1400)), Connection(table(1000, _12=1400))
    early.trials = Trials(TrialParams(), head_start_s=30)
    assert early.run(40, {1, 2}).carried > 1.05 * late.run(40, {1, 2}).carried


def test_a_packet_that_was_sent_twice_counts_once():
    one = Subflow("c", 1, "ue1", "", "a:1", "b:2", sent_packets=100, lost_packets=7,
                  retransmitted_packets=9)  # fmt: skip
    two = Subflow("c", 2, "ue1", "", "a:1", "b:2", sent_packets=50, lost_packets=3)
    assert packets_of([one, two]) == {1: 91, 2: 47}
    assert packets_of([one, Subflow("c", 3, "ue1", "", "a:1", "b:2")]) is None


samples = st.lists(st.integers(0, 1000).map(float), min_size=4, max_size=20)


@given(samples, samples)
def test_standard_errors_are_those_of_a_t_test(one, other):
    assume(len({*one}) > 1 < len({*other}))  # of equal samples, scipy warns
    expected = stats.ttest_ind(one, other).statistic
    if abs(expected) < 100:
        assert standard_errors(Goodput(one), Goodput(other)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("more", "lasts_s", "kept"),
    [
        (160, 5, True),  # 2.75 standard errors with the first four samples, after one second
        (130, 6, True),  # 2.2 with four samples, enough with five
        (100, 10, True),  # 2.0 with six samples, until the time is over: then the means count
        (20, 10, False),  # 2 % more, not 3
        (-160, 5, False),
        (-130, 7, False),
        (-100, 10, False),
    ],
)
def test_a_trial_ends_as_soon_as_two_and_a_half_standard_errors_are_between_the_sets(
    more, lasts_s, kept
):
    connection = Connection(
        lambda used: (900, 1100)[connection.t_s % 2] + (more if used == {1, 2} else 0), noise=0
    )
    connection.trials = Trials(TrialParams(trial_budget=0.5))
    (began_s, ended_s), *_ = connection.run(40).run(30, {1, 2}).trials_s()
    assert began_s == 41
    assert ended_s - began_s == lasts_s
    assert (connection.used[ended_s] == {1, 2}) == kept


@pytest.mark.parametrize(("rate", "kept"), [(1029, False), (1031, True)])
def test_a_set_must_carry_three_percent_more_to_be_kept(rate, kept):
    connection = Connection(table(1000, _12=rate), noise=0).run(60, {1, 2})
    assert any("subflows 1, 2 in use" in each for each in connection.reasons) == kept


@pytest.mark.parametrize("late", [0, 2])
def test_the_first_second_of_a_set_does_not_count(late):
    """Windows grow again in it: the connection carries little whenever its set has changed."""
    connection = Connection(lambda used: 10 if [used] != connection.used[-2:-1] else carried(used),
                            noise=0, late=late)  # fmt: skip
    connection.trials = Trials(TrialParams(trial_budget=0.5))
    carried = table(1200, _12=1000, _13=1400)
    connection.run(200, {1, 2})
    assert len(connection.trials_s()) > 1
    assert set(connection.measured) == {None, 1200}
    connection.run(100, {1, 3})
    assert set(connection.measured[200:]) == {1200, 1400}


def test_a_failed_set_waits_twice_as_long_each_time_and_no_other_set_waits_for_it():
    connection = Connection(table(1000, _12=990, _13=995), noise=0)
    connection.trials = Trials(TrialParams(trial_budget=0.5), head_start_s=60)
    trials = connection.run(150, {1, 2}).trials_s()
    pauses = [began - ended for (_, ended), (began, _) in pairwise(trials)]
    assert pauses == [20, 40]
    connection.run(20, {1, 2}, {1, 3})
    assert any(150 < began_s < 155 for began_s, _ in connection.trials_s())


def test_a_set_that_failed_is_tried_again_when_the_others_have_come_to_carry_less():
    connection = Connection(table(1000, _12=900), noise=0)
    connection.trials = Trials(TrialParams(trial_budget=0.5), head_start_s=60)
    first, second = connection.run(70, {1, 2}).trials_s()
    assert second[0] - first[1] == 20
    connection.rates = table(800, _12=900)
    third = connection.run(60, {1, 2}).trials_s()[2]
    assert third[0] - second[1] < 40
    assert 3 <= third[0] - 70 <= 7  # when the mean of the latest six samples is below 900 / 1.03
    assert connection.used[-1] == {1, 2}


def trials_of_all(connection: Connection) -> list[int]:
    return [int(each.split(":")[0]) for each in connection.reasons if "1, 2, 3:" in each]


def test_a_set_that_won_is_compared_with_all_subflows_again_and_again():
    """A path that was left out may have recovered."""
    connection = Connection(table(1000, _12=1400), noise=0)
    connection.trials = Trials(TrialParams(trial_budget=0.5), head_start_s=60)
    of_all = trials_of_all(connection.run(250, {1, 2}))
    assert of_all[0] - connection.trials_s()[0][1] == 20
    assert len(of_all) > 7
    assert all(b - a <= 35 for a, b in pairwise(of_all))
    assert connection.used[-1] == {1, 2}


@pytest.mark.parametrize("rate", [200, 1000, 1300])
def test_comparisons_with_all_subflows_stay_within_the_budget(rate):
    connection = Connection(table(rate, _12=1400), noise=0.02)
    connection.opening = frozenset({1, 2})
    connection.run(1000)
    assert len(trials_of_all(connection)) >= 4
    assert connection.carried > 0.97 * 1400 * 1000


def test_all_subflows_are_compared_only_when_the_budget_covers_what_they_lost_before():
    """The first comparison shows that they carry 1200 packets/s less: 6000 in the first five
    seconds of the next one, 2 % of what is carried in 214 s."""
    connection = Connection(table(200, _12=1400), noise=0)
    connection.opening = frozenset({1, 2})
    first, second = trials_of_all(connection.run(600))[:2]
    assert second - first >= 6000 / (0.02 * 1400)
    assert connection.carried > 0.98 * 1400 * 600 - 6000


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (1400, "subflows 1, 2 in use: +40% against the other set"),
        (500, "subflows 1, 2, 3 in use: -50% against the other set"),
    ],
)
def test_the_reason_for_the_end_of_a_trial_compares_the_sets(rate, text):
    connection = Connection(table(1200, _12=1.2 * rate), noise=0)
    connection.trials = Trials(TrialParams(trial_budget=0.5))
    connection.run(60, {1, 2})
    first = next(each for each in connection.reasons if "trial ended" in each)
    assert first.endswith(f"trial ended, {text}")


def test_a_trial_that_costs_more_than_the_budget_ends_with_this_reason():
    connection = Connection(table(1000, _12=300)).run(60, {1, 2})
    assert any("in use: the trial costs too much" in each for each in connection.reasons)
