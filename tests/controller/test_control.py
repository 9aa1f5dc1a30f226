"""Control steps, changes of the strategy, and refused commands."""

from dataclasses import replace

import pytest

from controller.command import Decision, Expect, Route, SetBackup, Throttle, Unthrottle, checked
from controller.control import Control
from controller.errors import CommandRefused, ParamsRefused, UnknownStrategy
from controller.observation import AccessPoint, Arc, Association, Observation, Subflow
from controller.strategies import STRATEGIES, make
from controller.strategies.base import Strategy

MBPS, SECOND = 1_000_000, 1_000_000_000
WIFI = AccessPoint("wifi1", "wifi", 10 * MBPS, mac_occupancy=1.0)
LTE = AccessPoint("lte1", "lte", 20 * MBPS, mac_occupancy=1.0)
NETWORK = Observation(
    0,
    (WIFI, LTE),
    (
        Association("ue1", "wifi1", 10 * MBPS, 1.0, ("10.1.0.1",)),
        Association("ue2", "wifi1", 5 * MBPS, 1.0, ("10.1.0.2",)),
        Association("ue2", "lte1", 20 * MBPS, 1.0, ("10.2.0.2",)),
    ),
    frozenset({"ue2"}),
)


def at(seconds: float, meter_bps: int | None = None) -> Observation:
    return replace(
        NETWORK,
        now_ns=round(seconds * SECOND),
        access_points=(replace(WIFI, meter_bps=meter_bps), LTE),
    )


def test_an_incomplete_strategy_cannot_be_instantiated():
    class Half(Strategy):
        name = "half"

    with pytest.raises(TypeError):
        Half(Half.Params())


def test_an_unknown_strategy_lists_the_known_ones():
    with pytest.raises(
        UnknownStrategy,
        match="'fixed' is unknown: choose from disjoint, expected_throughput",
    ):
        make("fixed", {})


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_parameter_has_a_unit_and_a_help_text(name):
    for key, field in STRATEGIES[name].Params.model_fields.items():
        assert field.description, key
        assert field.json_schema_extra["unit"], key
        assert not field.is_required(), key


def test_only_secondary_traffic_is_throttled():
    step = Control("meter_throttling").step(at(0))
    assert step.observation.tiers == {("ue1", "wifi1"): 1, ("ue2", "wifi1"): 2, ("ue2", "lte1"): 1}
    assert [each.command for each in step.decisions] == [
        Throttle("wifi1", frozenset({"10.1.0.2"}), MBPS // 10)
    ]


def test_tiers_are_known_without_a_strategy():
    step = Control("none").step(at(0))
    assert step.observation.tiers[("ue2", "wifi1")] == 2
    assert step.decisions == ()


def test_steps_are_due_every_interval_and_do_not_drift():
    control = Control("meter_throttling", {"interval_s": 2})
    assert control.due(0)
    control.step(at(0))
    assert not control.due(SECOND)
    assert control.due(2 * SECOND)
    control.step(at(2.3))
    assert control.due(4 * SECOND)
    control.step(at(11))
    assert not control.due(12 * SECOND)


def test_a_changed_parameter_takes_effect_at_the_next_step():
    control = Control("meter_throttling")
    control.step(at(0))
    assert control.step(at(2, meter_bps=MBPS // 10)).decisions[0].command.rate_bps == MBPS // 10
    control.change({"min_rate_mbps": 1})
    assert control.step(at(4, meter_bps=MBPS // 10)).decisions[0].command.rate_bps == MBPS


def test_several_changes_before_a_step_all_take_effect():
    control = Control("meter_throttling")
    control.change({"min_rate_mbps": 1})
    control.change({"cth": 0.3})
    assert (control.params.min_rate_mbps, control.params.cth) == (1, 0.3)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"ctth": 0.3}, r"'ctth' is unknown \(did you mean 'cth'\?\)"),
        ({"cth": 2}, "cth = 2: .*less than or equal to 1"),
        ({"cth": "high"}, "cth = 'high'"),
        ({"interval_s": 0}, "interval_s = 0"),
        ({"alpha": float("nan")}, "alpha = nan"),
    ],
)
def test_a_wrong_parameter_is_refused_and_changes_nothing(values, message):
    control = Control("meter_throttling")
    with pytest.raises(ParamsRefused, match=message):
        control.change(values)
    assert control.params == type(control.params)()


def test_a_replaced_strategy_withdraws_first():
    control = Control("meter_throttling")
    control.step(at(0))
    control.switch("none")
    step = control.step(at(2, meter_bps=MBPS))
    assert step.strategy == "none"
    assert [each.command for each in step.decisions] == [Unthrottle("wifi1")]
    control.switch("meter_throttling", {"min_rate_mbps": 0.5})
    assert control.step(at(4)).decisions[0].command.rate_bps == MBPS // 2


def test_a_new_strategy_sees_what_the_withdrawal_of_the_old_one_leaves(monkeypatch):
    """Path, backup flag and pacing rate of the withdrawal's commands, of these subflows only."""
    left = (Route(("c", 1), ("s1", "wifi1")), SetBackup(("c", 1), True), Expect(("c", 1), 9))
    seen = []

    class Leaves(Asks):
        name = "leaves"

        def withdraw(self, _seen):
            return [Decision("c/1", "left", each) for each in left]

    class Looks(Asks):
        name = "looks"

        def decide(self, observation):
            seen.append(observation)
            return []

    for each in (Leaves, Looks):
        monkeypatch.setitem(STRATEGIES, each.name, each)
    control = Control("leaves")
    control.switch("looks")
    step = control.step(ROUTED)
    first, second = seen[0].subflows
    assert (first.path, first.backup, first.expected_bps) == (("s1", "wifi1"), True, 9)
    assert second == ROUTED.subflows[1]
    assert [each.command for each in step.decisions][:2] == list(left[:2])


def test_a_meter_of_an_earlier_controller_is_removed():
    assert [each.command for each in Control("none").step(at(0, meter_bps=MBPS)).decisions] == [
        Unthrottle("wifi1")
    ]


def test_tiers_last_for_the_categorisation_interval_unless_an_association_is_new():
    control = Control("meter_throttling", {"categorisation_interval_s": 10})
    control.step(at(0))
    faster = tuple(
        replace(each, rate_bps=100 * MBPS) if each.ap == "wifi1" else each
        for each in NETWORK.associations
    )
    assert (
        control.step(replace(at(2), associations=faster)).observation.tiers[("ue2", "wifi1")] == 2
    )
    assert (
        control.step(replace(at(10), associations=faster)).observation.tiers[("ue2", "wifi1")] == 1
    )
    assert ("ue3", "wifi1") in control.step(
        replace(at(12), associations=(*faster, Association("ue3", "wifi1", MBPS)))
    ).observation.tiers


def test_a_user_keeps_its_tier_at_a_handover_until_the_next_division():
    """At wifi2 ue2 gets more than on LTE, but tiers are divided only every 10 s."""
    control = Control("meter_throttling", {"categorisation_interval_s": 10})
    control.step(at(0))
    elsewhere = (
        NETWORK.associations[0],
        Association("ue2", "wifi2", 50 * MBPS, 1.0, ("10.1.0.2",)),
        NETWORK.associations[2],
    )
    aps = (WIFI, replace(WIFI, id="wifi2"), LTE)
    assert control.step(
        replace(at(2), associations=elsewhere, access_points=aps)
    ).observation.tiers == {
        ("ue1", "wifi1"): 1,
        ("ue2", "wifi2"): 2,
        ("ue2", "lte1"): 1,
    }
    assert (
        control.step(replace(at(10), associations=elsewhere, access_points=aps)).observation.tiers[
            "ue2", "wifi2"
        ]
        == 1
    )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (Unthrottle("wifi9"), "'wifi9'.*choose from wifi1, lte1"),
        (Throttle("wifi1", frozenset({"10.1.0.2"}), 0), "lets nothing through"),
        (Throttle("wifi1", frozenset(), MBPS), "no address"),
        (
            Throttle("wifi1", frozenset({"10.1.0.1"}), MBPS),
            "10.1.0.1 belongs to no multipath user there, choose from 10.1.0.2",
        ),
        (Throttle("wifi1", frozenset({"10.2.0.2"}), MBPS), "10.2.0.2 belongs to no multipath user"),
    ],
)
def test_an_impossible_throttle_is_refused(command, message):
    with pytest.raises(CommandRefused, match=message):
        checked(command, NETWORK)


def subflow(number: int, destination: str, backup: bool = False) -> Subflow:
    return Subflow("c", number, "ue2", "", "10.0.0.1:5001", f"{destination}:40000", backup=backup)


def both_ways(*ends: tuple[str, str]) -> tuple[Arc, ...]:
    return tuple(Arc(f"{a}-{b}", *each, MBPS) for a, b in ends for each in ((a, b), (b, a)))


ROUTED = replace(
    NETWORK,
    subflows=(subflow(1, "10.1.0.2"), subflow(2, "10.16.0.2")),
    arcs=both_ways(
        ("10.0.0.1", "s1"),
        ("s1", "s2"),
        ("s1", "wifi1"),
        ("wifi1", "wifi1~air"),
        ("wifi1~air", "10.1.0.2"),
        ("s2", "10.16.0.2"),
    ),
)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (Expect(("c", 3), MBPS), "'c/3' is unknown, choose from c/1, c/2"),
        (Expect(("c", 1), 0), "ask for 1 or more"),
        (Route(("c", 1), ()), "at least one switch"),
        (Route(("c", 1), ("s1", "s2", "s1", "wifi1")), "none twice"),
        (Route(("c", 1), ("s2", "s1", "wifi1")), "no link leads from 10.0.0.1 to s2"),
        (Route(("c", 2), ("s1", "wifi1")), "no link leads from wifi1.* to 10.16.0.2"),
        (Route(("c", 2), ("s1", "s3", "s2")), "no link leads from s1 to s3"),
    ],
)
def test_an_impossible_command_to_a_subflow_is_refused(command, message):
    with pytest.raises(CommandRefused, match=message):
        checked(command, ROUTED)


@pytest.mark.parametrize(
    "command",
    [
        Route(("c", 1), ("s1", "wifi1")),
        Route(("c", 2), ("s1", "s2")),
        Expect(("c", 1), None),
        SetBackup(("c", 2), True),
    ],
)
def test_a_possible_command_to_a_subflow_is_accepted(command):
    assert checked(command, ROUTED) == command


class Asks(Strategy):
    name = "asks"
    wanted: tuple[SetBackup, ...] = ()

    def decide(self, seen):
        return [Decision("c/1", "wanted", each) for each in self.wanted]

    def withdraw(self, seen):
        return []


def test_the_last_normal_subflow_cannot_become_backup_within_one_step(monkeypatch):
    monkeypatch.setitem(STRATEGIES, "asks", Asks)
    monkeypatch.setattr(Asks, "wanted", (SetBackup(("c", 1), True), SetBackup(("c", 2), True)))
    step = Control("asks").step(ROUTED)
    assert [each.command for each in step.decisions] == [SetBackup(("c", 1), True)]
    assert "all other subflows of its connection are backup" in step.refused[0]


def test_a_swap_of_the_only_normal_subflow_is_carried_out_in_order(monkeypatch):
    monkeypatch.setitem(STRATEGIES, "asks", Asks)
    monkeypatch.setattr(Asks, "wanted", (SetBackup(("c", 2), False), SetBackup(("c", 1), True)))
    step = Control("asks").step(
        replace(ROUTED, subflows=(subflow(1, "10.1.0.2"), subflow(2, "10.16.0.2", backup=True)))
    )
    assert not step.refused
    assert [each.action for each in step.decisions] == ["normal", "backup"]


def test_a_new_subflow_wakes_only_a_strategy_that_reacts_to_it(monkeypatch):
    monkeypatch.setitem(STRATEGIES, "asks", Asks)
    control = Control("asks")
    control.step(ROUTED)
    control.wake()
    assert not control.due(1)
    monkeypatch.setattr(Asks, "wakes_on_subflows", True)
    control.wake()
    assert control.due(1)
