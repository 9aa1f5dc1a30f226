"""What the form of a scenario shows of its topology."""

from __future__ import annotations

from dashboard.scenario_pages import choices, endpoint_rows, topology_parameters
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


def test_interfaces_have_choices_of_what_they_are_for(tmp_path):
    topology = {
        "kind": "nodes_and_links",
        "users": [{"id": "ue1"}],
        "servers": [{"id": "srv1"}],
        "switches": ["s1", "s2"],
        "links": [
            *({"a": each, "b": "ue1", "rate_mbps": 5} for each in ("s1", "s2")),
            *({"a": "srv1", "b": each, "rate_mbps": 5} for each in ("s1", "s2")),
            {"a": "s1", "b": "s2"},
        ],
    }
    ends = [
        {"host": "ue1", "interface": "eth2", "flags": ["fullmesh", "backup"]},
        {"host": "srv1", "interface": "eth2", "flags": ["backup", "signal"]},
    ]
    data = {"name": "own", "title": "Own", "topology": topology, "traffic": [{"user": "ue1"}]}
    scenario = loading.from_data(data | {"multipath": {"endpoints": ends}}, "own.yaml")
    first, second, server = endpoint_rows(scenario)
    assert (first["flags"], second["flags"]) == ("subflow", "backup fullmesh")
    assert (server["host"], server["flags"]) == ("srv1", "signal backup")
    assert "" not in first["choices"]
    assert "" in second["choices"]
    for row in (first, second, server):
        for flags in row["choices"]:
            one = {"host": row["host"], "interface": row["interface"], "flags": flags.split()}
            if flags != row["usual"]:  # the form leaves these out
                loading.from_data(data | {"multipath": {"endpoints": [one]}}, "own.yaml")


def test_a_single_address_of_a_server_has_no_mesh_and_limits_have_bounds():
    about = choices("testbed_wifi_lte")
    assert all("fullmesh" not in str(each["choices"]) for each in about["endpoints"])
    limits = [(each["name"], each["value"], each["maximum"]) for each in about["limits"]]
    assert limits == [("subflows", None, 8), ("add_addr_accepted", 8, 8)]
