"""The control law of MP-SDN, section V, on vectors."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.command import Throttle, Unthrottle
from controller.observation import AccessPoint, Association, Observation, Subflow
from controller.strategies import make
from controller.strategies.meter_throttling import changes

MBPS = 1_000_000
AP = AccessPoint("wifi1", "wifi", 20 * MBPS, mac_occupancy=0.5, tier2_bps=MBPS, meter_bps=MBPS)


def law(**params):
    return make("meter_throttling", params)


def next_mbps(strategy, **ap):
    return strategy.next_limit(replace(AP, **ap), 1.0)[0] / MBPS


def seen(ap: AccessPoint, tier: int = 2) -> Observation:
    return Observation(
        0,
        (ap,),
        (Association("ue1", ap.id, MBPS, 1.0, ("10.1.0.1",)),),
        frozenset({"ue1"}),
        tiers={("ue1", ap.id): tier},
    )


def test_the_published_trace():
    strategy = law(windup_guard=False)
    limits = [0.1]
    for occupancy in (0, 0, 0.3, 0.6, 0.9, 0.9, 0.9, 0.5, 0.5):
        limits.append(
            next_mbps(strategy, mac_occupancy=occupancy, meter_bps=round(limits[-1] * MBPS))
        )
    assert limits == pytest.approx(
        [0.1, 0.95, 9.025, 17.2979, 20.0, 10.0, 5.0, 2.5, 3.375, 4.5563], abs=1e-4
    )


@pytest.mark.parametrize(
    ("occupancy", "by", "to"),
    [
        (0.01, 9.4, 8.4),
        (0.05, 9, 8),
        (0.1, 4.75, 3.75),
        (0.3, 1.9167, 0.9167),
        (0.5, 1.35, 0.35),
        (0.84, 1.006, 0.1),
    ],
)
def test_both_readings_of_equation_4(occupancy, by, to):
    assert next_mbps(law(), mac_occupancy=occupancy) == pytest.approx(by, abs=1e-4)
    assert next_mbps(law(increase_form="to"), mac_occupancy=occupancy) == pytest.approx(
        to, abs=1e-4
    )


def test_congestion_halves_what_is_used_and_stops_at_the_floor():
    assert next_mbps(law(), mac_occupancy=0.85, tier2_bps=2 * MBPS) == 0.5
    assert next_mbps(law(), mac_occupancy=1, meter_bps=20 * MBPS, tier2_bps=MBPS) == 0.5
    assert (
        next_mbps(law(windup_guard=False), mac_occupancy=1, meter_bps=20 * MBPS, tier2_bps=MBPS)
        == 10
    )
    assert next_mbps(law(), mac_occupancy=1, meter_bps=MBPS // 10) == 0.1


def test_an_unused_limit_does_not_grow():
    assert next_mbps(law(), mac_occupancy=0.1, tier2_bps=MBPS // 2 - 1) == 1
    assert next_mbps(law(), mac_occupancy=0.1, tier2_bps=MBPS // 2) == 4.75
    assert next_mbps(law(), mac_occupancy=0.1, tier2_bps=None) == 4.75


def test_a_raised_floor_applies_at_the_next_step():
    at_floor = seen(replace(AP, mac_occupancy=1.0, meter_bps=MBPS // 10, tier2_bps=MBPS // 10))
    assert law().decide(at_floor)[0].command.rate_bps == MBPS // 10
    assert law(min_rate_mbps=1).decide(at_floor)[0].command.rate_bps == MBPS


def test_without_a_report_the_limit_is_kept_with_the_reason():
    (decision,) = law().decide(seen(replace(AP, mac_occupancy=None)))
    assert decision.command == Throttle("wifi1", frozenset({"10.1.0.1"}), MBPS)
    assert "no report" in decision.reason


def test_a_meter_starts_at_the_floor_and_ends_with_the_last_tier_2_association():
    (start,) = law().decide(seen(replace(AP, meter_bps=None)))
    assert start.command.rate_bps == MBPS // 10
    assert start.reason == "Tier 2 was not limited: limit set to the floor of 0.1 Mb/s"
    (end,) = law().decide(seen(AP, tier=1))
    assert end.command == Unthrottle("wifi1")
    assert law().decide(seen(replace(AP, meter_bps=None), tier=1)) == []


def test_reasons_carry_the_numbers():
    (decision,) = law().decide(seen(replace(AP, mac_occupancy=0.97, tier2_bps=2 * MBPS)))
    assert decision.reason == "MAC occupancy 0.97 >= 0.85: limit halved from 1 Mb/s to 0.5 Mb/s"
    (decision,) = law().decide(
        seen(replace(AP, mac_occupancy=0.97, meter_bps=MBPS // 10, tier2_bps=MBPS // 10))
    )
    assert decision.reason == "MAC occupancy 0.97 >= 0.85: limit stays at the floor of 0.1 Mb/s"


def test_withdrawing_lifts_every_limit():
    assert [each.command for each in law().withdraw(seen(AP))] == [Unthrottle("wifi1")]


SUBFLOWS = st.sets(st.tuples(st.sampled_from("cd"), st.integers(1, 2)), min_size=1)


@given(
    SUBFLOWS.flatmap(
        lambda all_: st.tuples(*[st.just(all_), *2 * [st.sets(st.sampled_from(sorted(all_)))]])
    )
)
def test_a_connection_with_a_subflow_in_use_has_one_after_each_change(drawn):
    every, before, after = drawn
    subflows = tuple(
        Subflow(name, n, "ue1", "wifi1", "a:1", f"b:{n}", 2, (), backup=(name, n) in before)
        for name, n in sorted(every)
    )
    backup = set(before)
    used = lambda: {name for name, _ in every - backup}  # noqa: E731
    kept = used() & {name for name, _ in every - after}
    for decision in changes(after, {}, Observation(0, subflows=subflows)):
        command = decision.command
        (backup.add if command.backup else backup.remove)(command.subflow)
        assert used() >= kept
    assert backup == after
