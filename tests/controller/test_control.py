"""One step of control, flips, and what is refused."""

from dataclasses import replace

import pytest

from controller.command import Throttle, Unthrottle, checked
from controller.control import Control
from controller.errors import CommandRefused, ParamsRefused, UnknownStrategy
from controller.observation import AccessPoint, Association, Observation
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
    return replace(NETWORK, now_ns=round(seconds * SECOND), access_points=(replace(WIFI, meter_bps=meter_bps), LTE))


def test_half_a_strategy_cannot_be_made():
    class Half(Strategy):
        name = "half"

    with pytest.raises(TypeError):
        Half(Half.Params())


def test_an_unknown_strategy_lists_the_known_ones():
    with pytest.raises(UnknownStrategy, match="'fixed' is unknown: choose from meter_throttling, none"):
        make("fixed", {})


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_parameter_introduces_itself(name):
    for key, field in STRATEGIES[name].Params.model_fields.items():
        assert field.description, key
        assert field.json_schema_extra["unit"], key
        assert not field.is_required(), key


def test_only_secondary_traffic_is_throttled():
    step = Control("meter_throttling").step(at(0))
    assert step.seen.tiers == {("ue1", "wifi1"): 1, ("ue2", "wifi1"): 2, ("ue2", "lte1"): 1}
    assert [each.command for each in step.decisions] == [Throttle("wifi1", frozenset({"10.1.0.2"}), MBPS // 10)]


def test_tiers_are_known_without_a_strategy():
    step = Control("none").step(at(0))
    assert step.seen.tiers[("ue2", "wifi1")] == 2
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


def test_a_changed_parameter_holds_from_the_next_step_on():
    control = Control("meter_throttling")
    control.step(at(0))
    assert control.step(at(2, meter_bps=MBPS // 10)).decisions[0].command.rate_bps == MBPS // 10
    control.change({"min_rate_mbps": 1})
    assert control.step(at(4, meter_bps=MBPS // 10)).decisions[0].command.rate_bps == MBPS


def test_changes_add_up_until_the_step():
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


def test_flipping_the_strategy_withdraws_first():
    control = Control("meter_throttling")
    control.step(at(0))
    control.switch("none")
    step = control.step(at(2, meter_bps=MBPS))
    assert step.strategy == "none"
    assert [each.command for each in step.decisions] == [Unthrottle("wifi1")]
    control.switch("meter_throttling", {"min_rate_mbps": 0.5})
    assert control.step(at(4)).decisions[0].command.rate_bps == MBPS // 2


def test_a_limit_left_behind_by_another_controller_is_lifted():
    assert [each.command for each in Control("none").step(at(0, meter_bps=MBPS)).decisions] == [Unthrottle("wifi1")]


def test_tiers_hold_for_the_categorisation_interval_unless_somebody_comes():
    control = Control("meter_throttling", {"categorisation_interval_s": 10})
    control.step(at(0))
    faster = tuple(replace(each, rate_bps=100 * MBPS) if each.ap == "wifi1" else each for each in NETWORK.associations)
    assert control.step(replace(at(2), associations=faster)).seen.tiers[("ue2", "wifi1")] == 2
    assert control.step(replace(at(10), associations=faster)).seen.tiers[("ue2", "wifi1")] == 1
    assert ("ue3", "wifi1") in control.step(
        replace(at(12), associations=(*faster, Association("ue3", "wifi1", MBPS)))
    ).seen.tiers


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (Unthrottle("wifi9"), "'wifi9'.*choose from wifi1, lte1"),
        (Throttle("wifi1", frozenset({"10.1.0.2"}), 0), "lets nothing through"),
        (Throttle("wifi1", frozenset(), MBPS), "no address"),
        (Throttle("wifi1", frozenset({"10.1.0.1"}), MBPS), "10.1.0.1 belongs to no multipath user there, choose from 10.1.0.2"),
        (Throttle("wifi1", frozenset({"10.2.0.2"}), MBPS), "10.2.0.2 belongs to no multipath user"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused(command, message):
    with pytest.raises(CommandRefused, match=message):
        checked(command, NETWORK)
