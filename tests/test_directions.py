"""The two directions of a link can have values of their own, in both engines."""

from __future__ import annotations

import json

import pytest
import yaml

from controller.topology import Topology as ControllerTopology
from lab.engines.mininet.export import script as export
from lab.engines.mininet.traffic.probes import expected_figures
from lab.engines.sim.network import Network
from lab.errors import RequestError
from lab.results.explain.scene import Scene
from lab.run import manifest
from lab.run.traces import TracedChanges
from lab.scenario import loading, targets
from lab.scenario.flows import Flow
from lab.scenario.targets import SetLinkDelay, SetLinkLoss, SetLinkRate
from lab.topologies.topology import AS_THE_LINK, as_json, down_directions, wire

FRAME_BITS = 1514 * 8
SECOND = 1_000_000_000


def loaded(tmp_path, topology, **keys):
    scenario = {"name": "one", "title": "One", "topology": topology, "traffic": [{"user": "ue1"}]}
    scenario |= keys
    (tmp_path / "one.yaml").write_text(yaml.safe_dump(scenario, sort_keys=False))
    return loading.load(str(tmp_path / "one.yaml"))


def path(**keys):
    return {"kind": "parallel_paths", "paths": [{"rate_mbps": 10, "delay_ms": 10, **keys}]}


def own(a, b, **keys):
    """ue1 - s1 - s2 - srv1, where the middle link has these keys."""
    middle = {"id": "middle", "a": a, "b": b, "rate_mbps": 10, "delay_ms": 10, **keys}
    links = [{"a": "s1", "b": "ue1"}, middle, {"a": "srv1", "b": "s2"}]
    hosts = {"users": [{"id": "ue1"}], "servers": ["srv1"], "switches": ["s1", "s2"]}
    return {"kind": "nodes_and_links", **hosts, "links": links}


NETWORKS = {
    "parallel_paths": path,
    "shared_bottleneck": lambda **keys: {
        "kind": "shared_bottleneck",
        "rate_mbps": 10,
        "delay_ms": 10,
        "users": [{"id": "ue1"}],
        **keys,
    },
    "towards the server": lambda **keys: own("s1", "s2", **keys),
    "towards the user": lambda **keys: own("s2", "s1", **keys),
}


def mbps(scenario, flip=None, seconds=6):
    """The rate of frames with data in the second half of a simulation."""
    ((user, direction),) = scenario.data_flows
    flow = Flow("flow", user, direction, "reno", None, None, warm=True)
    network = Network(scenario.network, scenario.multipath, [flow], seed=1)
    network.start(flow, "reno")
    if flip:
        network.set_link(flip)
    (connection,) = network.tables.subflows.values()
    s = connection[0].record
    network.run(seconds * SECOND // 2)
    before = s.segments_received
    network.run(seconds * SECOND)
    return (s.segments_received - before) * FRAME_BITS / (seconds / 2) / 1e6


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize(("direction", "expected"), [("down", 4), ("up", 1)])
def test_data_gets_the_rate_of_its_direction(tmp_path, kind, direction, expected):
    topology = NETWORKS[kind](down={"rate_mbps": 4}, up={"rate_mbps": 1})
    traffic = [{"user": "ue1", "direction": direction}]
    found = mbps(loaded(tmp_path, topology, traffic=traffic))
    assert found == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_direction_without_values_is_as_the_link(tmp_path, kind):
    plain = loaded(tmp_path, NETWORKS[kind]()).network
    other = loaded(tmp_path, NETWORKS[kind](up={"delay_ms": 30})).network
    (link,) = (
        each for each in other.links if AS_THE_LINK not in (each.ab, each.ba) or each.rate_bps
    )
    sides = {side: link.way(side) for side in ("ab", "ba")}
    assert sorted(each.delay_ns for each in sides.values()) == [10_000_000, 30_000_000]
    assert {each.rate_bps for each in sides.values()} == {10_000_000}
    assert plain.sha256() != other.sha256()


def test_a_loss_of_a_direction_acts_whether_it_carries_data_or_not(tmp_path):
    for direction, keys, expected in (
        ("down", {"up": {"loss": 0.1}, "loss": 0.02}, (20_000, 100_000)),
        ("up", {"up": {"loss": 0.1}, "loss": 0.02}, (0, 100_000)),
        ("down", {"down": {"loss": 0.3}, "loss_both": 0.05}, (300_000, 50_000)),
    ):
        traffic = [{"user": "ue1", "direction": direction}]
        network = loaded(tmp_path, path(**keys), traffic=traffic).network
        (link,) = (each for each in network.links if each.id == "path1")
        assert (link.loss_ppm, link.loss_back_ppm) == expected


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("way", ["up", "down"])
def test_a_flip_changes_the_rate_of_one_direction(tmp_path, kind, way):
    scenario = loaded(tmp_path, NETWORKS[kind](down={"rate_mbps": 4}), rate_scale=0.5)
    (link,) = (each for each in scenario.network.links if each.rate_bps)
    target = f"link.{link.id}.{way}.rate_mbps"
    assert targets.targets(scenario)[target].value == (4 if way == "down" else 10)
    value = targets.check_flip(scenario, target, 3)
    flip = targets.change(scenario, target, value)
    (side,) = flip.sides
    assert (flip.link, flip.rate_bps) == (link.id, 1_500_000)
    expected = 1.5 if way == "down" else 2
    assert mbps(scenario, flip) == pytest.approx(expected, rel=0.05)
    after = link.changed(flip.sides, rate_bps=flip.rate_bps)
    assert after.way(side).rate_bps == 1_500_000
    both = after.changed(frozenset(("ab", "ba")), rate_bps=7)
    assert both.way("ab").rate_bps == both.way("ba").rate_bps == 7


def test_a_trace_leaves_the_rate_of_a_direction_alone(tmp_path):
    (tmp_path / "a.csv").write_text("t_s,rate_mbps\n0,5\n1,2\n")
    (tmp_path / "n.yaml").write_text("")
    keys = {"rate_mbps": None, "trace": "a.csv", "up": {"rate_mbps": 1}}
    scenario = loaded(tmp_path, path(**keys))
    (changed,) = TracedChanges(scenario).take(1)
    assert changed == SetLinkRate("path1", 2_000_000, frozenset(("ab",)))
    names = {each for each in targets.targets(scenario) if each.endswith("rate_mbps")}
    assert names == {"link.path1.up.rate_mbps"}


def test_the_controller_and_the_expected_figures_know_both_directions(tmp_path):
    keys = {"down": {"rate_mbps": 4}, "up": {"rate_mbps": 1, "delay_ms": 30, "loss": 0.25}}
    scenario = loaded(tmp_path, path(**keys))
    wiring = wire(scenario.network)
    text = json.dumps(as_json(scenario.network, wiring))
    arcs = ControllerTopology.model_validate_json(text).arcs()
    found = {
        (a.tail, a.head): (a.capacity_bps, a.delay_s, a.loss) for a in arcs if a.link == "path1"
    }
    assert found == {("s1", "p1"): (4e6, 0.01, 0), ("p1", "s1"): (1e6, 0.03, 0.25)}
    (interface,) = wiring.of("ue1")
    figures = expected_figures(scenario.network, interface, 1.0, up=True)
    assert (figures.rate_mbps, figures.up_mbps) == (4, 1)
    assert figures.rtt_ms == pytest.approx(40, abs=2)


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        (path(up={"rate": 3}), "did you mean 'rate_mbps'"),
        (path(up={"rate_mbps": 0}), "up.rate_mbps"),
        (path(up={"loss": 3}), "up.loss"),
        (path(jitter_ms=8, down={"delay_ms": 4}), "jitter_ms 8 is above down.delay_ms"),
        (own("s1", "s2", rate_mbps=None, up={"rate_mbps": 3}), "write the link's own rate_mbps"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, topology, message):
    with pytest.raises(RequestError, match=message):
        loaded(tmp_path, topology)


def test_a_link_that_leads_to_users_both_ways_has_no_down(tmp_path):
    """Each user talks to the server at the other end."""
    hosts = {
        "users": [{"id": "ue1", "server": "srv1"}, {"id": "ue2", "server": "srv2"}],
        "servers": ["srv1", "srv2"],
        "switches": ["s1", "s2"],
    }
    links = [
        *({"a": "s1", "b": each} for each in ("ue1", "srv2")),
        *({"a": "s2", "b": each} for each in ("ue2", "srv1")),
        {"a": "s1", "b": "s2", "rate_mbps": 5, "down": {"rate_mbps": 2}},
    ]
    with pytest.raises(RequestError, match="which way is 'down'"):
        loaded(tmp_path, {"kind": "nodes_and_links", **hosts, "links": links})
    del links[-1]["down"]
    scenario = loaded(tmp_path, {"kind": "nodes_and_links", **hosts, "links": links})
    assert not [each for each in targets.targets(scenario) if each.endswith("down.rate_mbps")]


def test_explanations_compute_with_the_rate_of_the_data(tmp_path):
    keys = {"down": {"rate_mbps": 4}, "up": {"rate_mbps": 1}}
    flip = {"kind": "flip", "state": "applied", "ok": True, "value": 3}
    events = [
        flip | {"t": 5, "target": "link.path1.down.rate_mbps"},
        flip | {"t": 9, "target": "link.path1.rate_mbps", "value": 7},
    ]
    for direction, expected in (("down", [4, 3, 7]), ("up", [1, 1, 7])):
        traffic = [{"user": "ue1", "direction": direction}]
        scenario = loaded(tmp_path, path(**keys), traffic=traffic)
        scene = Scene(scenario, [], events)
        (link,) = (each for each in scenario.network.links if each.id == "path1")
        assert [scene.rate_mbps(link, t) for t in (4, 8, 12)] == expected


def test_a_manifest_names_what_a_direction_has_of_its_own(tmp_path):
    keys = {"down": {"rate_mbps": 4, "queue": {"kind": "red"}}, "queue": {"kind": "codel"}}
    found = manifest._links(loaded(tmp_path, path(**keys)))["path1"]
    assert (found["rate_mbps"], found["queue"]) == (10, "codel")
    assert found["ab"] == {"rate_mbps": 4, "queue": "red"}
    assert "ba" not in found


def test_a_script_for_mininet_refuses_directions(tmp_path):
    with pytest.raises(RequestError, match="the directions of a link differ"):
        export.script(loaded(tmp_path, path(up={"rate_mbps": 3})))


def with_traces(tmp_path, network, **keys):
    (tmp_path / "up.csv").write_text("t_s,rate_mbps\n0,1\n1,4\n2,4\n")
    text = "t_s,rate_mbps,delay_ms,loss\n0,8,10,0\n0.5,2,40,0.01\n1,2,40,0.01\n"
    (tmp_path / "down.csv").write_text(text)
    ways = {"up": {"trace": "up.csv"}, "down": {"trace": "down.csv"}}
    return loaded(tmp_path, network(**ways | keys))


def sides(scenario):
    """The shaped link, and its directions to the user and back."""
    (link,) = (each for each in scenario.network.links if each.rate_bps)
    ways = down_directions(scenario.network)[link.id]
    return link, ways, "ba" if ways == "ab" else "ab"


@pytest.mark.parametrize("kind", NETWORKS)
def test_each_direction_follows_its_own_trace(tmp_path, kind):
    scenario = with_traces(tmp_path, NETWORKS[kind])
    link, down, up = sides(scenario)
    assert [link.way(each).rate_bps for each in (down, up)] == [8_000_000, 1_000_000]
    assert [link.way(each).delay_ns for each in (down, up)] == [10_000_000] * 2
    changes = TracedChanges(scenario)
    made = [(at_s, each) for at_s in (0.5, 1) for each in changes.take(at_s)]
    only = {"down": frozenset((down,)), "up": frozenset((up,))}
    assert made == [
        (0.5, SetLinkRate(link.id, 2_000_000, only["down"])),
        (0.5, SetLinkDelay(link.id, 40_000_000, only["down"])),
        (0.5, SetLinkLoss(link.id, 10_000, only["down"])),
        (1, SetLinkRate(link.id, 4_000_000, only["up"])),
    ]
    names = {each.removeprefix(f"link.{link.id}.") for each in targets.targets(scenario)}
    assert not names & {"rate_mbps", "up.rate_mbps", "down.rate_mbps", "delay_ms", "loss"}


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_direction_without_a_trace_can_be_changed(tmp_path, kind):
    scenario = with_traces(tmp_path, NETWORKS[kind], down={})
    link, _, _ = sides(scenario)
    names = {each.removeprefix(f"link.{link.id}.") for each in targets.targets(scenario)}
    assert {"down.rate_mbps", "delay_ms", "loss"} <= names
    assert not {"rate_mbps", "up.rate_mbps"} & names


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_trace_of_a_direction_acts_in_it_alone(tmp_path, kind):
    network = NETWORKS[kind]
    scenario = with_traces(tmp_path, network)
    link, down, up = sides(scenario)
    simulated = Network(scenario.network, scenario.multipath, [], seed=1)
    changes = TracedChanges(scenario)
    for change in changes.take(0.5):
        simulated.set_link(change)
    hops = [simulated.tables.links[link.id, getattr(link, side[1])] for side in (down, up)]
    assert [(hop.rate_bps, hop.loss_ppm) for hop in hops] == [(2_000_000, 10_000), (1_000_000, 0)]


def test_two_traces_of_directions_are_the_rate_of_the_link(tmp_path):
    (tmp_path / "up.csv").write_text("t_s,rate_mbps\n0,1\n1,4\n2,4\n")
    both = {"up": {"trace": "up.csv"}, "down": {"rate_mbps": 6}, "rate_mbps": None}
    scenario = loaded(tmp_path, path(**both))
    link, down, up = sides(scenario)
    assert [link.way(each).rate_bps for each in (down, up)] == [6_000_000, 1_000_000]
    with pytest.raises(RequestError, match="rate_mbps is missing"):
        loaded(tmp_path, path(**both | {"down": {}}))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"up": {"trace": "all.csv", "rate_mbps": 5}}, "up: rate_mbps: all.csv has its own rate"),
        ({"up": {"trace": "none.csv"}}, "there is no file"),
        ({"jitter_ms": 9, "down": {"trace": "all.csv"}}, "jitter_ms 9 is above a delay of 5 ms"),
        ({"trace": "loss.csv", "down": {"trace": "all.csv"}}, "down.loss: the trace has its own"),
    ],
)
def test_traces_that_do_not_go_together_are_refused(tmp_path, keys, message):
    (tmp_path / "all.csv").write_text("t_s,rate_mbps,delay_ms,loss\n0,5,5,0\n")
    (tmp_path / "loss.csv").write_text("t_s,loss\n0,0.1\n")
    with pytest.raises(RequestError, match=message):
        loaded(tmp_path, path(**keys))
