"""The drawn network: every topology has a layout, every subflow a path, and the SVG is complete."""

from __future__ import annotations

import itertools
import json
import random
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dashboard import charts
from dashboard.base.errors import Problem
from dashboard.events import subjects
from dashboard.network.drawing import activity, drawing, to_json
from dashboard.network.layout import MAP_HEIGHT, STRIPS, arrange
from dashboard.network.svg import lanes, polylines, svg, width_of
from lab.scenario import loading, targets
from lab.scenario.loading import Overrides
from lab.topologies.topology import Link, Node, Topology

NAMESPACE = "{http://www.w3.org/2000/svg}"


def network(name, *settings):
    return loading.load(name, Overrides(settings=settings)).network


def subflow(connection, number, user, path):
    return {
        "kind": "subflow",
        "connection": connection,
        "subflow": number,
        "user": user,
        "path": path,
    }


@pytest.mark.parametrize("width", [346, 720, 1240])
@pytest.mark.parametrize("name", loading.names())
def test_every_node_has_a_place_of_its_own_and_the_drawing_fills_its_box(name, width):
    """A map is nearly square, so it is only as wide as its greatest height allows."""
    topology = network(name)
    layout = arrange(topology, width)
    assert layout == arrange(topology, width)
    places = layout.places.values()
    assert all(0 <= x <= layout.width and 0 <= y <= layout.height for x, y in places)
    assert len(set(places)) == len(topology.nodes) == len(layout.places)
    widest = min(width, MAP_HEIGHT + STRIPS[False]) if layout.area else width
    assert 0.97 * widest <= layout.width <= max(1.01 * widest, 1.01 * len(topology.nodes) * 22)
    columns, rows = ([place[axis] for place in places] for axis in (0, 1))
    assert max(columns) - min(columns) >= 0.7 * layout.width
    assert max(rows) - min(rows) >= 0.55 * layout.height


@pytest.mark.parametrize("k", [2, 4, 6])
def test_a_fat_tree_has_its_layers(k):
    topology = network("fat_tree", f"topology.k={k}", "traffic=[{user: all, kind: bulk}]")
    places = arrange(topology).places
    columns = sorted({x for x, _ in places.values()})
    assert len(columns) == 7
    of = {name: columns.index(places[name][0]) for name in places}
    assert [of[name] for name in ("srv1", "e1x1", "a1x1", "c1", f"a{k}x1", f"e{k}x1", "ue1")] == [
        *range(7)
    ]


def test_links_of_a_fat_tree_are_read_out_with_core_and_pod():
    text = svg(drawing(network("fat_tree")))
    assert 'aria-label="link c4-a1x2 core 4 to pod 1: ' in text
    assert 'aria-label="link a2x1-e2x2 within pod 2: ' in text
    assert 'aria-label="link server1 from e1x1 to srv1: ' in text


def test_positions_of_the_topology_are_kept():
    topology = network("thirty_users")
    layout = arrange(topology)
    wifi1, lte1 = layout.places["wifi1"], layout.places["lte1"]
    assert wifi1[0] == lte1[0]  # both at x = 100 m
    assert wifi1[1] - lte1[1] == pytest.approx(50 * layout.area[2] / 200)


def test_a_crossing_is_avoided():
    ends = (("s1", "b"), ("s1", "a"), ("a", "ue2"), ("b", "ue1"))
    nodes = (Node("ue1", "user", "b-ue1"), Node("ue2", "user", "a-ue2"), Node("a", "switch"))
    nodes += (Node("b", "switch"), Node("s1", "switch"), Node("srv1", "server"))
    links = tuple(Link(f"{a}-{b}", a, b) for a, b in (*ends, ("s1", "srv1")))
    places = arrange(Topology("t", nodes, links)).places
    assert (places["a"][1] < places["b"][1]) == (places["ue2"][1] < places["ue1"][1])


def heights_of(widths, ribbon):
    """Where the lanes of subflows that share a link are, and how wide all of them are."""
    paths = {name: ("b", "a") if n % 2 else ("a", "b") for n, name in enumerate(widths)}
    places = {"a": (0.0, 0.0), "b": (100.0, 0.0)}
    where = lanes(paths, widths, ribbon)
    heights = [points[0][1] for points in polylines(paths, places, where).values()]
    return heights, where.widths["a", "b"]


@pytest.mark.parametrize("seed", range(8))
def test_lanes_share_a_link_and_do_not_cover_each_other(seed):
    rng = random.Random(seed)
    widths = {str(n): rng.uniform(1, 8) for n in range(rng.randint(1, 12))}
    heights, total = heights_of(widths, 1000)
    edges = [
        (at - width / 2, at + width / 2) for at, width in zip(heights, widths.values(), strict=True)
    ]
    assert all(below[1] < above[0] for below, above in itertools.pairwise(edges))
    assert edges[-1][1] - edges[0][0] == pytest.approx(total, abs=0.2)
    narrow, total = heights_of(widths, 19)
    assert total <= 19.01
    assert len(set(narrow)) == len(widths)


def test_a_subflow_is_wider_the_more_it_carries():
    rates = [0, 0.1, 1, 5, 20, 46]
    widths = [width_of(mbps, 46) for mbps in rates]
    assert widths == sorted(set(widths))
    assert widths[1] - widths[0] > 0.2  # a tenth of a megabit can be told from nothing
    assert width_of(1000, 46) == widths[-1]


@pytest.mark.parametrize(("width", "height"), [(560, 250), (420, 330), (340, 400), (900, 420)])
@pytest.mark.parametrize("name", loading.names())
def test_a_drawing_fits_into_a_box_of_any_shape(name, width, height):
    """Networks with many nodes may be larger: they are scaled down to the box."""
    topology = network(name)
    layout = arrange(topology, width, height)
    assert layout == arrange(topology, width, height)
    places = layout.places.values()
    assert all(0 <= x <= layout.width and 0 <= y <= layout.height for x, y in places)
    assert len(set(places)) == len(topology.nodes)
    if len(topology.nodes) <= 12:
        assert layout.height <= height + 1
        assert layout.width <= width + 1
    if not layout.area:
        assert layout.is_upright == (width < height)


FRAME = {
    "t": 4.0,
    "link": {"path1": {"mbps": 4.75, "loss": 0.01}},
    "sf": {
        "ue1-1/1": {"mbps": 4.0, "backup": False},
        "ue1-1/2": {"mbps": 0.0, "backup": True},
    },
}


@pytest.mark.parametrize("connection", ["ue1-1", "3f2a91c0"])
def test_a_subflow_follows_the_path_that_the_controller_reports(connection):
    topology = network("two_paths")
    events = [
        subflow(connection, 1, "ue1", ["s1", "p2"]),
        subflow(connection, 2, "ue1", ["s1", "p1"]),
    ]
    events.append({"kind": "flip", "ok": True, "target": "link.path2.up", "value": False})
    now = activity(drawing(topology), topology, FRAME, events)
    assert [each.path for each in now.subflows] == [
        ("srv1", "s1", "p2", "ue1"),
        ("srv1", "s1", "p1", "ue1"),
    ]
    assert now.down == {"path2"}
    events.append({"kind": "flip", "ok": True, "target": "link.path2.up", "value": True})
    assert activity(drawing(topology), topology, FRAME, events).down == frozenset()


def test_a_subflow_without_a_report_takes_the_shortest_path_over_its_interface():
    topology = network("testbed_wifi_lte")
    frame = {
        "sf": {"ue3-1/2": {"mbps": 1.0, "user": "ue3", "ap": "wifi1"}, "ue3-1/1": {"mbps": 1.0}}
    }
    now = activity(drawing(topology), topology, frame, [])
    assert [each.path[2] for each in now.subflows] == ["wifi1", "lte1"]
    moved = [subflow("ue3-1", 2, "ue3", ["s1", "lte1"])]
    now = activity(drawing(topology), topology, frame, moved)
    assert now.subflows[0].path[2] == "wifi1"  # the sample is newer than the report


def test_an_emulated_run_is_drawn_with_its_places_and_associations():
    """The file has the last sample of an emulated run, and the events before it."""
    recorded = json.loads(Path(__file__).with_name("emulated_moving_users.json").read_text())
    frame, topology = recorded["frame"], network("moving_users")
    drawn = drawing(topology)
    now = activity(drawn, topology, frame, recorded["events"])
    assert {each.id for each in now.subflows} == set(frame["sf"])
    for each in now.subflows:
        sample = frame["sf"][each.id]
        assert (each.path[-2], each.path[-1]) == (sample["ap"], sample["user"])
    moved = [each for each in recorded["events"] if each["kind"] == "handover"]
    last = {each["user"]: each["to"] for each in moved}
    homes = {node.id: node.home for node in topology.nodes}
    assert any(homes[user] != ap for user, ap in last.items())
    left, top, side, side_m = drawn.layout.area
    for user, (x, y) in now.moved.items():
        x_m, y_m = (frame["user"][user][key] for key in ("x_m", "y_m"))
        assert (x, y) == pytest.approx(
            (left + x_m * side / side_m, top + y_m * side / side_m), abs=0.06
        )
    assert len(now.moved) == 30
    text = svg(drawn, now)
    assert text.count("<polyline") == len(frame["sf"])
    assert "nan" not in text.lower()


def test_the_file_is_complete_and_needs_nothing_else():
    topology = network("two_paths")
    drawn = drawing(topology)
    events = [{"kind": "flip", "ok": True, "target": "link.path2.up", "value": False}]
    text = svg(drawn, activity(drawn, topology, FRAME, events), "a <b> run")
    root = ElementTree.fromstring(text)
    assert root.find(f"{NAMESPACE}title").text == "a <b> run"
    assert re.findall(r"(?:href|src|@import|url\()", text) == []
    parts = {each.get("data-id"): each for each in root.iter() if each.get("data-id")}
    assert {"srv1", "s1", "p1", "p2", "ue1", "path1", "path2", "ue1-1/1"} <= set(parts)
    assert "down" in parts["path2"].get("class").split()
    assert "backup" in parts["ue1-1/2"].get("class").split()
    assert "% lost" in parts["path1"].get("aria-label")
    width = {name: float(parts[name][0].get("stroke-width")) for name in ("path1", "path2")}
    assert width["path1"] > width["path2"]  # as wide as what flows
    assert "labelled" in root.get("class").split()  # a file has its figures


def test_links_have_the_names_and_colours_of_the_charts():
    topology = network("collision_between")
    drawn = drawing(topology)
    about = charts.About(links=tuple(link.id for link in topology.links if link.rate_bps))
    of_charts = {line.name: line.colour for line in charts.of_run([], about)[0].lines}
    assert {line.id: line.colour for line in drawn.lines if line.colour >= 0} == of_charts
    assert all(line.named for line in drawn.lines)
    root = ElementTree.fromstring(svg(drawn))
    named = [each for each in root.iter(f"{NAMESPACE}text") if each.get("data-link")]
    assert {"".join(each.itertext()).lstrip("■ ") for each in named} == {
        link.id for link in topology.links
    }
    crowded = drawing(network("fat_tree"))
    assert not any(line.named for line in crowded.lines)


def test_access_points_have_the_colour_of_the_charts():
    topology = network("testbed_wifi_lte")
    of_nodes = {spot.id: spot.colour for spot in drawing(topology).spots}
    about = charts.About(aps=topology.ids("wifi", "lte"), users=topology.users)
    for chart in charts.of_run([], about):
        for line in chart.lines:
            assert line.colour == of_nodes[line.key[1]]


def test_a_full_link_that_several_connections_cross_says_so():
    topology = network("collision_between")
    drawn = drawing(topology)
    rows = [
        subflow(f"ue{n}-1", 1, f"ue{n}", [f"e{n}", "a1", "c1", "b1"]) | {"t": 1} for n in (1, 2)
    ]
    links = {"up1": {"mbps": 9.9}, "down1": {"mbps": 5.0}, "in11": {"mbps": 9.9}}
    frame = {"t": 2.0, "link": links, "sf": {f"ue{n}-1/1": {"mbps": 4.0} for n in (1, 2)}}
    text = svg(drawn, activity(drawn, topology, frame, rows))
    assert ">up1: 2 share it<" in text
    assert ">down1<" in text  # not full
    assert ">in11<" in text  # one connection


def test_the_first_subflow_is_solid_and_a_backup_is_dotted():
    topology = network("two_paths")
    drawn = drawing(topology)
    text = svg(drawn, activity(drawn, topology, FRAME, []))
    parts = {each.get("data-id"): each for each in ElementTree.fromstring(text).iter()}
    assert parts["ue1-1/1"].get("class").split()[-1] == "d1"
    assert {"d2", "backup"} <= set(parts["ue1-1/2"].get("class").split())
    assert ".d1{" not in text


def test_a_crowded_map_has_the_numbers_of_users_inside_them():
    topology = network("thirty_users")
    narrow, wide = drawing(topology, width=340), drawing(topology, width=860)
    users = [spot for spot in narrow.spots if spot.kind == "user"]
    assert {spot.side for spot in users} == {"inside"}
    assert "A number is a user: 1 is ue1" in svg(narrow)
    assert ">30</text>" in svg(narrow)
    assert "inside" not in {spot.side for spot in wide.spots}
    assert "A number is a user" not in svg(wide)


def test_users_with_odd_names_cannot_add_markup():
    nodes = (Node("<img src=x>", "user", "l"), Node("s1", "switch"), Node("srv1", "server"))
    topology = Topology("t", nodes, (Link("l", "s1", nodes[0].id), Link("server", "s1", "srv1")))
    ElementTree.fromstring(svg(drawing(topology)))
    assert "<img" not in svg(drawing(topology))


def test_a_network_that_cannot_be_read_is_refused():
    with pytest.raises(Problem, match="nodes"):
        drawing(network("fat_tree", "topology.k=10", "traffic=[{user: all, kind: bulk}]"))


def test_the_model_for_the_browser_has_a_path_to_every_switch():
    topology = network("campus")
    found = to_json(drawing(topology), topology)
    assert set(topology.switches) <= set(found["reach"]["srv1"])
    assert found["doors"]["e1x2-ue5"] == "e1x2"
    assert {each["id"]: each["colour"] for each in found["nodes"]}["ue6"] == 5


def test_the_subjects_of_an_event_are_found():
    flip = {"kind": "flip", "ok": True, "target": "cell.wifi1.ue3.rate_mbps", "value": 3}
    assert subjects(flip) == ("wifi1", "ue3")
    assert subjects({"kind": "decision", "subflow": "ue2-1/2"}) == ("ue2-1/2", "ue2")
    assert subjects(subflow("ue1-1", 2, "ue1", ["s1"])) == ("ue1", "ue1-1", "ue1-1/2")


def test_the_network_of_a_scenario_is_drawn_with_changed_parameters(client):
    answer = client.get('/api/scenarios/thirty_users/network?set={"topology.users": 5}').json
    assert "ue5" in answer["svg"]
    assert "ue6" not in answer["svg"]
    assert len(answer["drawing"]["nodes"]) == 11
    assert client.get("/api/scenarios/nope/network").status_code == 404
    assert client.get("/api/scenarios/fat_tree/network?set=[1]").status_code == 422
    assert client.get('/api/scenarios/fat_tree/network?set={"topology.k": 3}').status_code == 422
    assert client.get("/api/scenarios/fat_tree/network?width=wide").status_code == 422
    assert client.get("/api/scenarios/fat_tree/network?height=high").status_code == 422
    assert client.get("/api/scenarios/fat_tree/network?width=1100").json["drawing"]["width"] == 1100
    low = client.get("/api/scenarios/two_paths/network?width=560&height=240").json["drawing"]
    assert low["height"] <= 240
    refused = client.get('/api/scenarios/fat_tree/network?set={"topology.file": "/x.py"}')
    assert refused.status_code == 422


def test_the_drawing_of_a_run_is_a_file_at_any_time(client):
    answer = client.get("/api/runs/metered/network.svg?t=5")
    assert answer.mimetype == "image/svg+xml"
    assert "at 5 s" in answer.text
    assert client.get("/api/runs/metered/network.svg?t=x").status_code == 422
    assert client.get("/api/runs/metered/network").json["drawing"]["home_of"]["ue1"] == "wifi1"


def test_every_interface_that_can_be_switched_is_at_a_line():
    links = [{"a": switch, "b": "ue1", "rate_mbps": 5} for switch in ("s1", "s2")]
    links += [{"a": "srv1", "b": switch} for switch in ("s1", "s2")]
    topology = {
        "kind": "nodes_and_links",
        "users": [{"id": "ue1"}],
        "servers": [{"id": "srv1"}],
        "switches": ["s1", "s2"],
        "links": [*links, {"a": "s1", "b": "s2", "rate_mbps": 5}],
    }
    data = {"name": "both", "title": "T", "topology": topology, "traffic": [{"user": "ue1"}]}
    scenario = loading.from_data(data, "both.yaml")
    lines = drawing(scenario.network).lines
    known = {each for each in targets.targets(scenario) if each.startswith("iface.")}
    assert known == {"iface.ue1.eth1.up", "iface.ue1.eth2.up", "iface.srv1.eth2.up"}
    assert known <= {each.interface for each in lines}


@pytest.mark.parametrize("height", [None, 300.0])
@pytest.mark.parametrize("letters", [3, 6, 9])
def test_the_longest_name_of_a_user_is_inside_the_drawing(letters, height):
    users = [{"id": "u" * letters, "near": "wifi", "wifi_mbps": 10}]
    document = {"name": "names", "title": "Names", "traffic": [{"user": "all"}]}
    document["topology"] = {"kind": "wifi_lte", "users": users}
    topology = loading.from_data(document, "test").network
    layout = arrange(topology, 800.0, height)
    x, _ = layout.places["u" * letters]
    assert layout.width - x - layout.radius >= 6.5 * letters
