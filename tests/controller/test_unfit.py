"""A strategy says why it can have no effect in a network."""

from __future__ import annotations

import pytest

from controller.strategies import STRATEGIES
from controller.topology import ApEntry, Topology
from lab.topologies import pooling
from lab.topologies.topology import as_json, wire

WIRED = Topology.model_validate(as_json(made := pooling.build(pooling.Params()), wire(made)))
CHOOSING = ["disjoint", "loss_aware", "optimum", "subflow_selection"]


def with_aps(**measured: bool) -> Topology:
    """The wired network, where these switches are access points."""
    aps = {
        name: ApEntry(kind="wifi", capacity_mbps=20, is_measured=each)
        for name, each in measured.items()
    }
    return WIRED.model_copy(update={"aps": aps})


def why(name: str, network: Topology) -> str | None:
    return STRATEGIES[name].unfit(network)


@pytest.mark.parametrize("name", CHOOSING)
def test_who_chooses_among_subflows_needs_a_user_with_several(name):
    assert why(name, WIRED) is None
    lonely = WIRED.model_copy(update={"multipath": ()})
    assert "no user has two" in why(name, lonely)


def test_limits_need_access_points_whose_occupancy_is_measured():
    name = "meter_throttling"
    assert "this network has none" in why(name, WIRED)
    assert why(name, with_aps(a1=True, a2=True)) is None
    assert why(name, with_aps(a1=True, a2=False)).endswith("nothing measures that of a2")
    assert why(name, with_aps(a1=False, a2=False)).endswith("nothing measures that of a1, a2")


@pytest.mark.parametrize("name", ["none", "expected_throughput"])
def test_the_others_fit_every_network(name):
    assert why(name, WIRED.model_copy(update={"multipath": ()})) is None
