"""People read and write scenario units; the network carries every rate multiplied by rate_scale."""

from __future__ import annotations

import pytest

from controller import decision_log as lines
from controller.agent_messages import LinkState
from controller.command import Decision, Expect, effective_floor_bps, raised_to_floor
from controller.control import Control
from controller.errors import ParamsRefused
from controller.observation import AccessPoint, Association, Observation, Subflow
from controller.paths import Flow
from controller.pox_ext.counters import Counters
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.observer import Arcs, Stations
from controller.pox_ext.router import Router
from controller.pox_ext.tracker import Joined
from controller.strategies.meter_throttling import MeterThrottlingParams
from controller.topology import Topology
from controller.units import rate_text, scenario_mbps, wire_bps

HERE = Observation(
    0,
    access_points=(
        AccessPoint("wifi1", "wifi", 1_000_000),
        AccessPoint("lte1", "lte", 2_000_000),
    ),
    associations=(
        Association("ue1", "wifi1", 1_000_000, addresses=("10.0.0.1",)),
        Association("ue1", "lte1", 2_000_000, addresses=("10.0.0.2",)),
    ),
    multipath=frozenset({"ue1"}),
    subflows=(Subflow("c", 1, "ue1", "wifi1", "10.9.9.1:80", "10.0.0.1:5000"),),
)


@pytest.mark.parametrize(("scale", "wire"), [(1, 400_000), (0.25, 100_000), (2, 800_000)])
def test_a_rate_is_multiplied_on_entry_and_divided_on_exit(scale, wire):
    assert wire_bps(0.4, scale) == wire
    assert scenario_mbps(wire, scale) == 0.4
    assert rate_text(wire, scale) == "0.4 Mb/s"


def test_a_rate_of_the_scenario_is_no_finer_than_one_bit_a_second():
    assert scenario_mbps(10, 0.7) == 0.000014
    assert scenario_mbps(1, 1) == 0.000001


def test_without_a_scale_all_rates_are_those_of_the_scenario():
    assert Observation(0).rate_scale == 1
    assert Control("none").rate_scale == 1
    assert Topology(switches={}).rate_scale == 1


def test_only_fields_in_mbps_are_rates():
    params = MeterThrottlingParams(min_rate_mbps=2).scaled(0.25)
    assert (params.rate_bps("min_rate_mbps"), params.min_rate_mbps) == (500_000, 2)
    with pytest.raises(KeyError):
        params.rate_bps("cth")


@pytest.mark.parametrize(
    ("scale", "min_rate_mbps", "wire"),
    [(1, 0.1, 100_000), (1, 0.02, 50_000), (0.25, 0.1, 50_000), (0.25, 1, 250_000)],
)
def test_a_meter_starts_at_the_effective_floor(scale, min_rate_mbps, wire):
    """max(min_rate_mbps, 0.05 / rate_scale) in scenario units."""
    control = Control("meter_throttling", {"min_rate_mbps": min_rate_mbps}, scale)
    step = control.step(HERE)
    assert step.decisions[0].command.rate_bps == wire
    assert step.observation.rate_scale == scale
    line = lines.decision_line(step.strategy, step.decisions[0], scale)
    assert line["meter_mbps"] == max(min_rate_mbps, 0.05 / scale)


def test_changed_parameters_and_another_strategy_are_scaled_too():
    control = Control("none", {}, 0.5)
    control.switch("meter_throttling", {"min_rate_mbps": 1})
    assert control.params.rate_bps("min_rate_mbps") == 500_000
    control.change({"min_rate_mbps": 2})
    assert control.params.rate_bps("min_rate_mbps") == 1_000_000
    with pytest.raises(ParamsRefused):
        control.change({"min_rate_mbps": "much"})


def test_the_floor_applies_to_pacing_rates_too():
    asked = Decision("c/1", "a small share", Expect(("c", 1), 20_000))
    raised = raised_to_floor(asked, 0.1)
    assert raised.command.rate_bps == effective_floor_bps() == 50_000
    assert raised.reason == "a small share; raised to the floor of 0.5 Mb/s"
    lifted = Decision("c/1", "no limit", Expect(("c", 1), None))
    assert raised_to_floor(lifted, 0.1) is lifted


def test_lines_are_in_scenario_units():
    subflow = Subflow("c", 1, "ue1", "wifi1", "a:1", "b:2", expected_bps=100_000)
    assert lines.subflow_line(subflow, 0.1)["expected_mbps"] == 1


def test_a_link_changes_on_the_wire_and_is_written_in_scenario_units():
    network = Topology.model_validate(
        {
            "switches": {"s1": {"dpid": 1}, "s2": {"dpid": 2}},
            "trunks": [{"link": "core", "a": "s1", "a_port": "1", "b": "s2", "b_port": "1"}],
            "rate_scale": 0.1,
        }
    )
    router = Router(network, Hosts(network))
    arcs = Arcs(network, router, Counters(lambda _switch: {}), Stations())
    arcs.change_link(LinkState(link="core", rate_mbps=2))
    assert [arc.capacity_bps for arc in arcs.observed()] == [2_000_000, 2_000_000]
    document = arcs.documents()[0]
    assert document == {"link": "core", "rate_mbps": 20}
    assert LinkState.model_validate(document).scaled(0.1).rate_mbps == 2


def test_documents_of_the_statistics_file_are_in_scenario_units():
    counters = Counters(lambda _switch: {}, 0.1)
    subflow = Subflow("c", 1, "ue1", "wifi1", "a:1", "b:2", rate_bps=50_000, expected_bps=100_000)
    joined = Joined("c", 1, Flow("a", "b", 6, 1, 2), False)
    document = counters.documents([(joined, subflow, False)])["subflows"][0]
    unscaled = Counters(lambda _switch: {}).documents([(joined, subflow, False)])["subflows"][0]
    assert (unscaled["mbps"], unscaled["rate_bps"]) == (0.05, 50_000)
    assert (document["mbps"], document["rate_bps"]) == (0.5, 500_000)
    assert document["expected_bps"] == 1_000_000
