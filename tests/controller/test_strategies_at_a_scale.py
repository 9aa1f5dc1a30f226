"""Strategies on a scaled network: commands are scaled like the rates, reasons stay in scenario
units."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hosts_that_confirm import Confirming
from hypothesis import assume, given
from hypothesis import strategies as st

from controller.command import Decision, Expect, Throttle, effective_floor_bps
from controller.observation import AccessPoint, Arc, Association, Observation, Subflow
from controller.strategies import make
from controller.strategies.subflow_selection.forecast import Model, estimate
from controller.strategies.subflow_selection.selecting import arcs_along, quality
from controller.units import mbps_from_bps
from lab.topologies import collision, fat_tree, pooling

SCALE = 0.1
MBPS = 1_000_000


def scaled(decision: Decision) -> Decision:
    """Rate as on the scaled wire, rounded to 1 kb/s."""
    command = decision.command
    if isinstance(command, Throttle | Expect) and command.rate_bps is not None:
        command = replace(command, rate_bps=round(command.rate_bps * SCALE, -3))
    return replace(decision, command=command)


def rounded(decision: Decision) -> Decision:
    command = decision.command
    if isinstance(command, Throttle | Expect) and command.rate_bps is not None:
        command = replace(command, rate_bps=round(command.rate_bps, -3))
    return replace(decision, command=command)


# MP-SDN

APS = st.builds(
    AccessPoint,
    st.just("wifi1"),
    st.just("wifi"),
    st.just(40 * MBPS),
    st.one_of(st.none(), st.floats(0, 1)),
    st.one_of(st.none(), st.integers(0, 4000).map(lambda n: n * 10_000)),
    st.one_of(st.none(), st.integers(100, 4000).map(lambda n: n * 10_000)),
)
WIDE = {"min_rate_mbps": 1.0}  # 0.1 Mb/s on the scaled wire, above the floor of 0.05 Mb/s


def at_access_point(ap: AccessPoint, scale: float) -> Observation:
    """Observation of one user whose only association is Tier 2."""
    return Observation(
        0,
        (scaled_ap(ap, scale),),
        (Association("ue1", "wifi1", round(10 * MBPS * scale), addresses=("10.1.0.1",)),),
        frozenset({"ue1"}),
        tiers={("ue1", "wifi1"): 2},
        rate_scale=scale,
    )


def scaled_ap(ap: AccessPoint, scale: float) -> AccessPoint:
    def wire(rate_bps: int | None) -> int | None:
        return None if rate_bps is None else round(rate_bps * scale)

    return replace(
        ap,
        capacity_bps=round(ap.capacity_bps * scale),
        tier2_bps=wire(ap.tier2_bps),
        meter_bps=wire(ap.meter_bps),
    )


@given(APS, st.sampled_from(["by", "to"]))
def test_meter_throttling_gives_the_same_reasons_and_scaled_limits(ap, form):
    params = {**WIDE, "increase_form": form}
    (whole,) = make("meter_throttling", params).decide(at_access_point(ap, 1))
    (part,) = make("meter_throttling", params, SCALE).decide(at_access_point(ap, SCALE))
    assert part.command.rate_bps == pytest.approx(whole.command.rate_bps * SCALE, abs=2)
    # Limits are whole numbers of bit/s, so the third digit in a text may be rounded the other way.
    assume(abs(part.command.rate_bps - whole.command.rate_bps * SCALE) < 0.01)
    assert part.reason == whole.reason


def test_the_floor_on_the_wire_binds_on_a_scaled_network():
    full = AccessPoint("wifi1", "wifi", 40 * MBPS, 1.0, 0, 10 * MBPS)
    (whole,) = make("meter_throttling", {}).decide(at_access_point(full, 1))
    (part,) = make("meter_throttling", {}, SCALE).decide(at_access_point(full, SCALE))
    assert (whole.command.rate_bps, part.command.rate_bps) == (100_000, effective_floor_bps())
    assert "to 0.1 Mb/s (the floor)" in whole.reason
    assert "to 0.5 Mb/s (the floor)" in part.reason


# Strategies that steer subflows

NETWORKS = {
    "pooling": (pooling, {}),
    "collision_within": (collision, {"among": "subflows"}),
    "collision_between": (collision, {"among": "connections"}),
    "fat_tree": (fat_tree, {}),
}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("name", ["expected_throughput", "disjoint"])
def test_the_same_paths_and_reasons_on_a_scaled_network(name, network):
    family, params = NETWORKS[network]
    made = [
        Confirming(
            family.build(family.Params(**params), scale), make(name, {}, scale), rate_scale=scale
        )
        for scale in (1, SCALE)
    ]
    users = made[0].topology.users
    for act in (
        lambda each: each.open(users[0], ports=41_000),
        lambda each: each.open(*users, ports=42_000),
        lambda each: each.close(users[0]),
        lambda each: each.step(),
    ):
        whole, part = (act(each) for each in made)
        assert [rounded(each) for each in part] == [scaled(each) for each in whole]


def test_a_pacing_rate_below_the_floor_is_raised_and_quoted():
    """Two connections of 0.4 Mb/s each share a link of 0.8 Mb/s: 0.04 Mb/s on the wire."""
    topology = collision.build(collision.Params(among="connections", rate_mbps=0.4), SCALE)
    network = Confirming(topology, make("expected_throughput", {}, SCALE), rate_scale=SCALE)
    paced = [each for each in network.open("ue1") if isinstance(each.command, Expect)]
    assert [each.command.rate_bps for each in paced] == [effective_floor_bps()] * 2
    assert all("0.5 Mb/s on this subflow" in each.reason for each in paced)
    assert network.step() == []


@pytest.mark.parametrize("scale", [1, 0.25, SCALE])
def test_a_forecast_computes_on_the_wire_and_is_quoted_in_scenario_units(scale):
    arcs = tuple(
        arc
        for n in (1, 2)
        for arc in (
            Arc(f"path{n}", "s1", f"p{n}", round(8 * n * MBPS * scale), delay_s=0.02, loss=0.01),
            Arc(f"access{n}", f"p{n}", f"10.{n}.0.1", round(1000 * MBPS * scale)),
        )
    )
    arcs = (Arc("server", "10.0.0.1", "s1", round(1000 * MBPS * scale)), *arcs)
    subflows = tuple(
        Subflow("c", n, "ue1", "", "10.0.0.1:1", f"10.{n}.0.1:2", path=("s1", f"p{n}"))
        for n in (1, 2)
    )
    strategy = make("subflow_selection", {"largest_window": 64}, scale)
    decision = strategy.decide(Observation(0, subflows=subflows, arcs=arcs, rate_scale=scale))[0]
    by_ends = {(arc.tail, arc.head): arc for arc in arcs}
    chosen = [each for each in subflows if each.key in decision.forecast.active]
    paths = [arcs_along(each, by_ends) for each in chosen]
    wire = estimate(
        tuple(quality(path, min(arc.capacity_bps for arc in path), 0.1) for path in paths),
        Model("paper", 64, 1.0),
    )
    assert decision.forecast.throughput_bps == round(wire.throughput_bps)
    quoted = mbps_from_bps(wire.throughput_bps) / scale
    assert f"subflows: {quoted:.3g} Mb/s, " in decision.reason
