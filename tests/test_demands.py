"""How a user's demand is divided among its connections: one rule for both engines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.scenario.flows import Demands, Flow


def flow(number, user="ue1", rate_bps=None, protocol="tcp"):
    return Flow(f"{user}-{number}", user, "down", "reno", rate_bps, None, protocol)


@pytest.fixture
def demands():
    return Demands()


def test_without_a_demand_each_connection_has_its_own_rate(demands):
    assert demands.start(flow(1, rate_bps=5)) == {flow(1, rate_bps=5): 5}
    assert demands.start(flow(2)) == {flow(2): None}


def test_a_demand_is_divided_equally_and_anew_when_a_connection_opens_or_ends(demands):
    demands.start(flow(1))
    assert demands.set_demand("ue1", 12) == {flow(1): 12}
    assert demands.start(flow(2)) == {flow(1): 6, flow(2): 6}
    assert demands.start(flow(1, user="ue2")) == {flow(1, user="ue2"): None}
    assert demands.end(flow(1)) == {flow(2): 12}
    assert demands.end(flow(1)) == {}


def test_a_demand_before_the_first_connection_holds_for_it(demands):
    assert demands.set_demand("ue1", 12) == {}
    assert demands.start(flow(1, rate_bps=5)) == {flow(1, rate_bps=5): 12}


def test_a_silent_flow_asks_for_nothing_and_keeps_its_share(demands):
    demands.start(flow(1))
    demands.start(flow(2))
    demands.set_demand("ue1", 12)
    assert demands.set_silent(flow(1), True) == {flow(1): 0}
    assert demands.set_demand("ue1", 8) == {flow(1): 0, flow(2): 4}
    assert demands.set_silent(flow(1), False) == {flow(1): 4}


def test_without_a_limit_tcp_is_unlimited_and_udp_has_its_own_rate(demands):
    udp = flow(2, rate_bps=7, protocol="udp")
    demands.start(flow(1, rate_bps=5))
    demands.start(udp)
    assert demands.set_demand("ue1", None) == {flow(1, rate_bps=5): None, udp: 7}


@given(st.lists(st.tuples(st.sampled_from(["start", "end"]), st.integers(1, 6)), max_size=20))
def test_the_shares_never_add_up_to_more_than_the_demand(steps):
    demands, rates, opened = Demands(), {}, set()
    rates |= demands.set_demand("ue1", 6_000_000)
    for verb, number in steps:
        if (verb == "start") == (number in opened):
            continue
        rates |= demands.start(flow(number)) if verb == "start" else demands.end(flow(number))
        opened ^= {number}
        if opened:
            total = sum(rates[flow(each)] for each in opened)
            assert total == pytest.approx(6_000_000, abs=len(opened))
