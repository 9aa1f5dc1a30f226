"""Capacity that a connection does not use goes to others, and comes back when it is needed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hosts_that_confirm import Confirming
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.observation import Observation, Subflow
from controller.strategies.expected_throughput import ExpectedThroughput
from controller.strategies.expected_throughput.demand import Demands
from controller.strategies.expected_throughput.max_min import max_min_rates
from controller.strategies.forms import named_forms
from controller.units import NS_PER_S
from lab.topologies import pooling

IMPROVED = "expected_throughput/improved"
FORM = named_forms(ExpectedThroughput)[IMPROVED]


def subflow(connection, rate_bps, expected_bps=2_000_000, number=1):
    return Subflow(
        connection,
        number,
        connection,
        "",
        "10.0.0.1:5001",
        f"10.0.1.{number}:4000",
        expected_bps=expected_bps,
        rate_bps=rate_bps,
    )


def needs(*rounds, apart_s=1.0):
    """What connections need after observations that are `apart_s` apart."""
    return measured(*rounds, apart_s=apart_s).needs_bps


def measured(*rounds, apart_s=1.0):
    """The demands after observations that are `apart_s` apart. The clock does not begin at 0, and
    the first observation ends no window."""
    demands = Demands()
    for n, subflows in enumerate([rounds[0], *rounds]):
        demands.observe(
            Observation(round((900 + n * apart_s) * NS_PER_S), subflows=tuple(subflows))
        )
    return demands


@given(st.integers(0, 1_700_000))
def test_who_sends_less_than_its_rate_needs_little_more_than_it_sends(rate_bps):
    found = needs([subflow("idle", rate_bps), subflow("bulk", 1_990_000)])
    assert found.keys() == {"idle"}
    assert max(rate_bps, 50_000) <= found["idle"] <= max(1.35 * rate_bps, 56_000)


def test_all_subflows_of_a_connection_count_together():
    assert needs([subflow("a", 1_990_000), subflow("a", 1_900_000, number=2)]) == {}
    assert "a" in needs([subflow("a", 1_990_000), subflow("a", 0, number=2)])


def test_need_returns_with_the_first_window_in_which_the_rate_is_used():
    idle, busy = [subflow("a", 100_000)], [subflow("a", 1_950_000)]
    assert "a" in needs(idle)
    assert needs(idle, busy) == {}
    assert "a" in needs(idle, busy, idle)


def test_who_needs_less_in_three_windows_in_a_row_is_modest():
    low, high = [subflow("a", 900_000)], [subflow("a", 1_950_000)]
    assert measured(low, low).modest == set()
    assert measured(low, low, low).modest == {"a"}
    assert measured(low, low, high, low, low).modest == set()


@pytest.mark.parametrize("silent_bps", [0, 200_000])
def test_a_user_who_falls_silent_has_data_at_times_for_ten_seconds(silent_bps):
    busy, silent = [subflow("a", 1_500_000)], [subflow("a", silent_bps)]
    assert measured(*[busy] * 4).at_times == set()
    assert measured(*[busy] * 4, silent).at_times == {"a"}
    assert measured(*[busy] * 4, silent, *[busy] * 9).at_times == {"a"}
    assert measured(*[busy] * 4, silent, *[busy] * 10).at_times == set()


def test_a_user_of_new_connections_has_data_at_times():
    old = subflow("a", 1_990_000)
    fresh = replace(old, connection="b")  # of the same user
    assert measured(*[[old]] * 3).at_times == set()
    assert measured(*[[old]] * 3, [old, fresh]).at_times == {"a", "b"}
    assert measured(*[[old]] * 3, *[[old, fresh]] * 4).at_times == set()


def test_little_traffic_all_the_time_is_not_silence():
    assert measured(*[[subflow("a", 60_000)]] * 5).at_times == set()


class Rounding(Confirming):
    """Hosts that send what they may, 20 Mb/s on each subflow that is not paced, or `sent_bps` by
    user. They do not see a change of a rate by less than one byte a second. `alone_bps` has the
    rates on a subflow of users while nobody has a limit."""

    sent_bps: dict[str, int] = {}
    alone_bps: dict[str, int] = {}

    def observation(self):
        limited = any(each.expected_bps is not None for each in self.subflows.values())
        for key, each in self.subflows.items():
            free_bps = 6_000_000 if limited else self.alone_bps.get(each.user, 20_000_000)
            most = free_bps if each.expected_bps is None else each.expected_bps
            rate = min(most, self.sent_bps.get(each.user, most))
            self.subflows[key] = replace(each, rate_bps=rate)
        return super().observation()

    def _carry_out(self, decision):
        before = dict(self.subflows)
        super()._carry_out(decision)
        for key, each in self.subflows.items():
            old = before[key].expected_bps
            if None not in (old, each.expected_bps) and abs(each.expected_bps - old) < 8:
                self.subflows[key] = replace(each, expected_bps=old)


@given(st.lists(st.integers(3_000_000, 30_000_000), min_size=4, max_size=4), st.booleans())
@settings(max_examples=25, deadline=None)
def test_steady_needs_end_in_no_more_commands(middle_bps, one_more):
    """Links of any rate, ue2 and perhaps ue3 hardly send. After some steps all is settled, and ue1
    may send what ue2 leaves."""
    middle = [rate / 1e6 for rate in middle_bps]
    topology = pooling.build(pooling.Params(middle_mbps=middle, outer_mbps=40))
    network = Rounding(topology, FORM(FORM.Params()))
    network.sent_bps = {"ue2": 20_000} | ({"ue3": 30_000} if one_more else {})
    network.open("ue1", "ue2", "ue3")
    for _ in range(16):
        network.now_s += 1
        network.step()
    for _ in range(3):
        network.now_s += 1
        assert network.step() == []
    limits = [each.expected_bps for each in network.subflows.values() if each.user == "ue1"]
    if None not in limits:
        assert sum(limits) / 1e6 == pytest.approx(sum(middle[:2]), rel=0.03)


def beside(sent_bps, users=("ue1", "ue2", "ue3"), seconds=16):
    """A chain of three users on four links of 9 Mb/s, of whom some send `sent_bps`, after some
    steps. Without limits, ue2 in the middle gets less than the others."""
    network = Rounding(pooling.build(pooling.Params()), FORM(FORM.Params()))
    network.sent_bps = sent_bps
    network.alone_bps = {"ue1": 7_500_000, "ue2": 3_000_000, "ue3": 7_500_000}
    network.open(*users)
    for _ in range(seconds):
        network.now_s += 1
        network.step()
    return network


def limits(network, user):
    return [each.expected_bps for each in network.of(user)]


def test_rivals_with_data_all_the_time_are_limited():
    network = beside({})
    assert all(None not in limits(network, user) for user in ("ue1", "ue2", "ue3"))
    assert network.overload() <= 1.000001


def test_nobody_is_limited_while_a_rival_is_new():
    network = beside({}, seconds=2)
    assert {each.expected_bps for each in network.subflows.values()} == {None}


def test_who_needs_less_is_not_limited_and_others_are_for_a_trial():
    network, seen = beside({"ue2": 400_000}, seconds=0), []
    network.alone_bps = {"ue1": 9_000_000, "ue3": 9_000_000}
    for _ in range(16):
        network.now_s += 1
        network.step()
        assert limits(network, "ue2") == [None, None]
        seen.append(limits(network, "ue1") != [None, None])
    assert any(seen)
    assert not seen[-1]  # nobody gained


def test_all_limits_end_and_backups_with_them_when_a_rival_falls_silent():
    network = beside({})
    for key, each in network.subflows.items():
        if key == ("ue1-1", 2):
            network.subflows[key] = replace(each, backup=True, expected_bps=None)
    network.sent_bps = {"ue2": 0}
    for _ in range(2):
        network.now_s += 1
        network.step()
    assert {each.expected_bps for each in network.subflows.values()} == {None}
    assert not any(each.backup for each in network.subflows.values())
    network.sent_bps = {}
    for _ in range(20):
        network.now_s += 1
        network.step()
    assert all(None not in limits(network, user) for user in ("ue1", "ue2", "ue3"))


def test_what_was_not_measured_and_what_has_ended_is_not_limited():
    assert needs([subflow("a", None)]) == needs([subflow("a", 0, expected_bps=None)]) == {}
    assert needs([subflow("a", 0)], []) == {}
    assert needs([subflow("a", 0)], apart_s=0.4) == {}
    assert "a" in needs(*[[subflow("a", 0)]] * 3, apart_s=0.4)


def test_the_improved_form_measures_and_the_papers_does_not():
    forms = named_forms(ExpectedThroughput)
    defaults = {name: form.Params().demand for name, form in forms.items()}
    assert defaults == {
        "expected_throughput": "unlimited",
        IMPROVED: "measured",
    }


def test_a_private_arc_is_a_limit_of_a_connection_in_max_min_rates():
    paths = {"a": [{0: 1.0, 1: 1.0}], "b": [{0: 1.0}], "c": [{0: 1.0}]}
    rates = max_min_rates((12.0e6, 1.0e6), paths, dict.fromkeys(paths, (0.0,)))
    assert rates["a"][0] == pytest.approx(1.0e6, rel=1e-4)
    assert rates["b"][0] == pytest.approx(5.5e6, rel=1e-4)
    assert rates["c"][0] == pytest.approx(5.5e6, rel=1e-4)


def test_a_window_begins_anew_after_a_time_without_a_rate_or_without_the_connection():
    """Its two parts together would be longer than a window."""
    idle = [subflow("a", 0)]
    assert "a" in needs(idle, idle, idle, apart_s=0.4)
    assert needs(idle, [subflow("a", None)], idle, apart_s=0.4) == {}
    assert needs(idle, [], idle, apart_s=0.4) == {}


def test_a_connection_that_sends_nine_tenths_of_its_rate_needs_all_it_can_get():
    assert needs([subflow("a", 1_800_000)]) == {}
    assert "a" in needs([subflow("a", 1_799_000)])


def test_the_rates_of_a_window_count_by_how_long_they_lasted():
    """A tenth of the time at the full rate, and nothing else: far less than the mean of the two."""
    demands, times = Demands(), ((0.0, 0), (0.1, 2_000_000), (1.0, 0))
    for now_s, rate_bps in times:
        demands.observe(Observation(round(now_s * NS_PER_S), subflows=(subflow("a", rate_bps),)))
    assert 1.2 * 200_000 <= demands.needs_bps["a"] <= 1.33 * 200_000


def test_a_backup_subflow_adds_nothing_to_what_a_connection_may_send():
    backup = replace(subflow("a", 0, number=2), backup=True)
    assert needs([subflow("a", 1_900_000), backup]) == {}
