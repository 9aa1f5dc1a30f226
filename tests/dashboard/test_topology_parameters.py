"""What the form of a scenario shows of its topology."""

from __future__ import annotations

from dashboard.scenario_pages import choices, topology_parameters
from lab.scenario import loading


def test_a_path_has_a_column_for_its_kind_of_queue_and_none_for_objects():
    (paths,) = topology_parameters(loading.load("two_paths"))
    names = [each["name"] for each in paths["fields"]]
    assert {"rate_mbps", "queue_packets", "queue.kind"} <= {*names}
    assert not {"queue", "up", "down", "queue.packets", "up.rate_mbps"} & {*names}
    (kind,) = (each for each in paths["fields"] if each["name"] == "queue.kind")
    assert kind["choices"] == ["fifo", "codel", "fq_codel", "red"]


def test_the_multipath_users_are_those_of_the_network():
    """By default, users with several addresses are."""
    rows = topology_parameters(loading.load("lia_against_tcp"))
    assert [each["value"] for each in rows if each["name"] == "multipath"] == [["mptcp"]]


def test_a_grid_can_vary_a_queue_and_one_direction(tmp_path):
    known = {each["key"]: each for each in choices("two_paths")["keys"]}
    assert known["topology.paths.1.queue.kind"]["choices"][1] == "codel"
    assert known["topology.paths.2.up.rate_mbps"]["value"] is None
    assert known["multipath.ecn"]["value"] is False
