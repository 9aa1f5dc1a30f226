"""Networks that other programs have described: Mininet's Topo classes, MiniEdit, GraphML."""

from __future__ import annotations

import json
import math
import random
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from users_files import _only_built_in, lab, refused

from lab.batch.repeat import repeat
from lab.scenario import loading
from lab.scenario.loading import Overrides, experiment
from lab.scenario.network_files import KEYS
from lab.topologies import mininet_topo, nodes_and_links
from lab.topologies.found import ids
from lab.topologies.topology import Link, Topology

__all__ = ["_only_built_in"]

TOPOS = '''"""Networks in the style of Mininet's examples: sudo mn --custom nets.py --topo chain,k=3"""

from mininet.cli import CLI
from mininet.link import TCLink
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import CPULimitedHost, OVSController
from mininet.topo import LinearTopo, Topo
from mininet.topolib import TreeTopo
from mininet.util import dumpNodeConnections, irange


class Chain( Topo ):
    "k switches in a row, with a host at each."
    def build( self, k=2, **opts ):
        last = None
        for i in irange( 1, k ):
            host, switch = self.addHost( 'h%s' % i, cpu=.5 / k ), self.addSwitch( 's%s' % i )
            self.addLink( host, switch, bw=10, delay='5ms', loss=1, max_queue_size=200, use_htb=True )
            if last:
                self.addLink( switch, last, bw=5, delay='10ms', jitter='2ms', max_queue_size=50 )
            last = switch


class TwoPaths( Topo ):
    def __init__( self, slow=2.5 ):
        Topo.__init__( self )
        h1, h2, s1, s2 = self.addHost( 'h1' ), self.addHost( 'h2' ), self.addSwitch( 's1' ), self.addSwitch( 's2' )
        for host in h1, h2:
            self.addLink( host, s1, bw=10, delay='1ms', max_queue_size=60 )
            self.addLink( host, s2, bw=slow, delay='20ms', max_queue_size=60 )


class Tree( Topo ):
    def build( self, depth=2, fanout=2 ):
        self.hosts_made = self.switches_made = 0
        self.grow( depth, fanout )

    def grow( self, depth, fanout ):
        if depth == 0:
            self.hosts_made += 1
            return self.addHost( 'h%d' % self.hosts_made )
        self.switches_made += 1
        node = self.addSwitch( 's%d' % self.switches_made )
        for _ in range( fanout ):
            self.addLink( node, self.grow( depth - 1, fanout ), bw=8 * depth )
        return node


class DataCentre( Topo ):
    "Two core switches, racks with a switch each, hosts in the racks."
    def __init__( self, racks=2, per_rack=2, **opts ):
        super( DataCentre, self ).__init__( **opts )
        cores = [ self.addSwitch( 'core_%d' % n ) for n in ( 1, 2 ) ]
        for r in range( racks ):
            rack = self.addSwitch( 'rack-switch-%d' % r, dpid='%x' % ( r + 16 ) )
            for core in cores:
                self.addLink( rack, core, bw=20, delay=100 )
            for h in range( per_rack ):
                self.addLink( self.addHost( 'rack%dhost%d' % ( r, h ) ), rack, bw=10 )


topos = { 'chain': Chain, 'two': ( lambda slow=2.5: TwoPaths( slow ) ), 'tree': Tree, 'dc': DataCentre,
          'linear': LinearTopo, 'tree_of_mininet': TreeTopo }

if __name__ == '__main__':
    setLogLevel( 'info' )
    net = Mininet( topo=Chain( k=4 ), host=CPULimitedHost, link=TCLink, controller=OVSController )
    net.start(); dumpNodeConnections( net.hosts ); CLI( net ); net.stop()
'''
CASES = {
    "chain": ({"k": 4}, ["h1"], ["h4"]),
    "two": ({"slow": 5}, ["h1"], ["h2"]),
    "tree": ({"fanout": 3}, ["h1", "h2"], ["h9"]),
    "dc": ({"racks": 3}, ["rack0host0"], ["rack2host1"]),
    "linear": ({"k": 3, "n": 2}, ["h1s1", "h2s1"], ["h1s3", "h2s3"], 8),
    "tree_of_mininet": ({"depth": 2}, ["h1"], ["h4"], 8),
}


@pytest.fixture(params=["mininet", "stand-in"])
def mininet(request, monkeypatch, tmp_path):
    """Mininet's own module if it is on this machine, and the stand-in."""
    if request.param == "stand-in":
        monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(tmp_path / "cache"))
    elif not (mininet_topo.upstream() / "mininet" / "topo.py").is_file():
        pytest.skip("Mininet's sources are missing: ./run_lab.sh setup-emulation")
    return request.param


def scenario(folder: Path, topology: dict, user: str = "h1", name: str = "mine") -> Path:
    path = folder / f"{name}.yaml"
    content = {"name": name, "title": "T", "topology": topology, "duration_s": 2}
    path.write_text(yaml.safe_dump(content | {"traffic": [{"user": user}]}))
    return path


def loaded(path: Path, *settings: str) -> loading.Scenario:
    return loading.load(str(path), Overrides(settings=settings), may_run_code=True)


def of_topo(folder: Path, topo: str, text: str = TOPOS) -> Path:
    (folder / "nets-of-mine.py").write_text(text)
    params, users, servers, *rate = CASES[topo]
    keys = {"topo": topo, "params": params, "users": users, "servers": servers}
    keys |= {"rate_mbps": rate[0]} if rate else {}
    return scenario(folder, {"mininet": "nets-of-mine.py", **keys}, ids(users)[users[0]])


def link(network: Topology, id: str) -> Link:
    return next(each for each in network.links if each.id == id)


# Mininet


@pytest.mark.parametrize("topo", CASES)
def test_a_topo_class_runs_and_a_run_needs_neither_mininet_nor_the_file(topo, mininet, tmp_path):
    path = of_topo(tmp_path, topo)
    out = tmp_path / "run"
    done = lab("run", path, "--out", out, "--quiet")
    assert done.exit_code == 0, done.output
    result = json.loads((out / "result.json").read_text())
    assert result["throughput_mbps"] > 1
    assert list(result["inputs"]) == ["nets-of-mine.py"]
    assert (out / "inputs" / "nets-of-mine.py").read_text() == TOPOS
    (tmp_path / "nets-of-mine.py").unlink()
    path.unlink()
    assert repeat(out) == ()
    moved = out.rename(tmp_path / "elsewhere")
    of_run = loading.load(str(moved))
    manifest = json.loads((moved / "manifest.json").read_text())
    assert experiment(of_run, "sim") == manifest["experiment"]


@pytest.mark.parametrize("topo", CASES)
def test_mininet_and_the_stand_in_describe_the_same_network(topo, monkeypatch, tmp_path):
    if not (mininet_topo.upstream() / "mininet" / "topo.py").is_file():
        pytest.skip("Mininet's sources are missing: ./run_lab.sh setup-emulation")
    path = of_topo(tmp_path, topo)
    own = loaded(path)
    monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(tmp_path / "cache"))
    other = loaded(path)
    assert own.network == other.network
    assert experiment(own, "sim") == experiment(other, "sim")
    said = [each for each in other.topology.params.notes if "stand-in" in each]
    assert said
    assert not [each for each in own.topology.params.notes if "stand-in" in each]


def test_the_options_of_a_link_are_its_rate_delay_loss_and_queue(mininet, tmp_path):
    network = loaded(of_topo(tmp_path, "chain")).network
    between = link(network, "s2-s1")
    assert (between.rate_bps, between.delay_ns, between.jitter_ns) == (5e6, 10e6, 2e6)
    assert (between.loss_ppm, between.queue_packets) == (0, 50)
    at_host = link(network, "h1-s1")
    assert (at_host.rate_bps, at_host.loss_ppm, at_host.loss_back_ppm) == (10e6, 10_000, 10_000)
    assert at_host in network.sampled_links  # between two switches: its queue can fill
    assert link(loaded(of_topo(tmp_path, "dc")).network, "rackswitc-core1").delay_ns == 100_000
    tree = loaded(of_topo(tmp_path, "tree")).network
    assert {each.queue_packets for each in tree.links if each.rate_bps} == {1000}


def test_a_user_with_several_links_is_multipath_and_uses_all(mininet, tmp_path):
    path = of_topo(tmp_path, "two")
    network = loaded(path).network
    assert network.multipath == ("h1",)
    assert loaded(path, "topology.multipath=[]").network.multipath == ()
    out = tmp_path / "run"
    assert lab("run", path, "--out", out, "--duration", "8", "--quiet").exit_code == 0
    found = json.loads((out / "result.json").read_text())["throughput_mbps"]
    assert 11 < found < 14.1  # of 10 + 5 Mb/s
    ends = {node.id: node.home for node in network.nodes if node.kind == "user"}
    assert [each.b for each in network.links if each.id == ends["h1"]] == ["h1"]


@pytest.mark.parametrize("seed", range(6))
def test_every_node_and_link_of_a_random_network_is_there(seed, mininet, tmp_path):
    draw = random.Random(seed)
    switches = [f"s{n}" for n in range(draw.randint(1, 7))]
    edges = [(a, draw.choice(switches[:n])) for n, a in enumerate(switches) if n]
    edges += [
        tuple(draw.sample(switches, 2)) for _ in range(draw.randint(0, 4)) if len(switches) > 1
    ]
    edges += [("h1", draw.choice(switches)) for _ in range(draw.randint(1, 3))]
    edges += [("h2", draw.choice(switches)) for _ in range(draw.randint(1, 2))]
    lines = ["from mininet.topo import Topo", "class Any(Topo):", "  def build(self):"]
    lines += [f"    self.addHost('{each}')" for each in ("h1", "h2")]
    lines += [f"    self.addSwitch('{each}')" for each in switches]
    shapes = [(draw.randint(1, 50), draw.randint(0, 30)) for _ in edges]
    for (a, b), (bw, ms) in zip(edges, shapes, strict=True):
        lines.append(f"    self.addLink('{a}', '{b}', bw={bw}, delay='{ms}ms')")
    (tmp_path / "any.py").write_text("\n".join(lines))
    path = scenario(tmp_path, {"mininet": "any.py", "users": ["h1"], "servers": ["h2"]})
    network = loaded(path).network
    assert {*switches, "h1", "h2"} <= {node.id for node in network.nodes}
    rates = sorted((each.rate_bps, each.delay_ns) for each in network.links if each.rate_bps)
    assert rates == sorted((bw * 1e6, ms * 1e6) for bw, ms in shapes)
    assert len({each.id for each in network.links}) == len(network.links)
    pairs = [frozenset((each.a, each.b)) for each in network.sampled_links]
    assert len(set(pairs)) == len(pairs)  # a switch has one port towards each neighbour
    done = lab("run", path, "--duration", "1", "--out", tmp_path / "run", "--quiet")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("bw=5,", "bw='5m',", "link s2-s1: bw='5m' is not a number: write bw=5, a number in Mb/s"),
        ("loss=1", "loss=101", "loss=101 is out of range: 0 to 100 percent"),
        ("delay='10ms'", "delay='10 parsec'", "delay='10 parsec' is no time: write for example"),
        ("max_queue_size=50", "max_queue_size=0", "max_queue_size=0 is out of range"),
        ("bw=5,", "params1={ 'bw': 1 }, params2={ 'bw': 2 },", "params1 and params2 differ"),
        ("last = None", "last = nobody", "nets-of-mine.py, line 16: NameError: name 'nobody'"),
        ("last = None", "raise SystemExit( 3 )", "line 16: SystemExit: 3"),
        (
            "topos = {",
            "topos = {'chain': 1} ; other = {",
            "TypeError: 'int' object is not callable",
        ),
        ("class Tree(", "class Tree", "SyntaxError"),
    ],
)
def test_what_is_wrong_in_the_file_is_one_line(old, new, wrong, mininet, tmp_path):
    assert old in TOPOS
    said = refused("check", of_topo(tmp_path, "chain", TOPOS.replace(old, new)))
    assert wrong in said
    assert said.startswith("error: mine.yaml: topology")
    assert "Traceback" not in said


def test_missing_keys_are_asked_for_with_what_the_file_has(mininet, tmp_path):
    path = of_topo(tmp_path, "two")

    def without(*settings):
        return refused("check", path, *[word for each in settings for word in ("--set", each)])

    hosts = "Its hosts are h1 (at s1 and s2), h2 (at s1 and s2)"
    asked = "which hosts of nets-of-mine.py are users and which are servers?"
    assert asked in without("topology.users=[]")
    assert hosts in without("topology.users=[]")
    assert "'users: [h1], servers: [h2]'" in without("topology.servers=[]")
    assert "topology.topo: is missing: choose from chain, two," in without("topology.topo=null")
    assert "--set topology.topo=tow: 'tow' is unknown (did you mean 'two'?)" in without(
        "topology.topo=tow"
    )
    assert "users=[s1]: host 's1' is unknown: choose from h1, h2" in without("topology.users=[s1]")
    assert "'h1' is a user, too" in without("topology.servers=[h1]")
    assert "unknown key 'hosts'" in without("topology.hosts=[h1]")
    assert "write only one of kind, file, mininet" in without("topology.kind=pooling")
    assert "unexpected keyword argument 'k'" in without("topology.params={k: 2}")


def test_a_path_without_any_limit_is_refused(mininet, tmp_path):
    path = of_topo(tmp_path, "linear")
    said = refused("check", path, "--set", "topology.rate_mbps=null")
    assert "no link between 'h1s1' and 'h1s3' over 's1' has a rate" in said
    assert "'topology.rate_mbps' is the rate of links without bw" in said
    assert "network: 8 of 8 links: rate 8 Mb/s (rate_mbps)" in lab("check", path).output


def test_a_file_without_a_topo_says_what_to_write(mininet, tmp_path):
    path = of_topo(tmp_path, "two", "from mininet.net import Mininet\nnet = None\n")
    assert "it has no topology: no dictionary 'topos' and no class derived from Topo" in refused(
        "check", path
    )


def test_what_the_lab_leaves_out_is_said(mininet, tmp_path):
    text = TOPOS.replace("max_queue_size=50", "enable_red=True")
    done = lab("check", of_topo(tmp_path, "chain", text))
    assert "network: options of links left out: enable_red" in done.output
    assert "network: options of nodes left out: cpu" in done.output
    assert "network: left out, neither users nor servers: h2, h3" in done.output


def test_what_the_file_reads_is_part_of_the_experiment_and_of_the_run(mininet, tmp_path):
    text = TOPOS.replace(
        "topos = {",
        "import csv, os\nwith open( os.path.join( os.path.dirname( __file__ ), 'racks.csv' ) ) as f:\n"
        "    RACKS = int( f.read() )\ntopos = { 'more': ( lambda: DataCentre( RACKS ) ),",
    )
    path = of_topo(tmp_path, "dc", text)
    (tmp_path / "racks.csv").write_text("2")
    first = loaded(
        path, "topology.topo=more", "topology.params={}", "topology.servers=[rack1host1]"
    )
    out = tmp_path / "run"
    args = ("--set", "topology.topo=more", "--set", "topology.params={}")
    args += ("--set", "topology.servers=[rack1host1]", "--out", out, "--quiet")
    assert lab("run", path, *args).exit_code == 0
    assert {*json.loads((out / "result.json").read_text())["inputs"]} == {
        "nets-of-mine.py", "racks.csv",
    }  # fmt: skip
    assert (out / "inputs" / "racks.csv").read_text() == "2"
    assert repeat(out) == ()
    (tmp_path / "racks.csv").write_text("3")
    again = loaded(
        path, "topology.topo=more", "topology.params={}", "topology.servers=[rack1host1]"
    )
    assert experiment(first, "sim") != experiment(again, "sim")


def test_nothing_of_mininet_stays_in_this_process(mininet, tmp_path):
    def modules() -> dict[str, ModuleType]:
        return {k: each for k, each in sys.modules.items() if k.partition(".")[0] == "mininet"}

    path, before = of_topo(tmp_path, "two"), (list(sys.path), modules())
    threads = [threading.Thread(target=loaded, args=(path,)) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (sys.path, modules()) == before
    assert not [each for each in sys.meta_path if type(each).__module__.startswith("lab.")]


# MiniEdit


def drawn(hosts, switches, links, kind="default") -> str:
    """A file as MiniEdit's method saveTopology writes it."""
    place = {"x": "120.0", "y": "80.0"}
    content = {
        "version": "2",
        "application": {"ipBase": "10.0.0.0/8", "openFlowVersions": {"ovsOf10": "1"}},
        "controllers": [{**place, "opts": {"hostname": "c0", "controllerType": "ref"}}],
        "hosts": [
            {"number": str(n), **place, "opts": {"hostname": name, "nodeNum": n, "sched": "host"}}
            for n, name in enumerate(hosts, 1)
        ],
        "switches": [
            {
                "number": str(n),
                **place,
                "opts": {
                    "hostname": name, "nodeNum": n, "switchType": kind, "controllers": ["c0"],
                },
            }
            for n, name in enumerate(switches, 1)
        ],
        "links": [{"src": a, "dest": b, "opts": opts} for a, b, opts in links],
    }  # fmt: skip
    return json.dumps(content, sort_keys=True, indent=4, separators=(",", ": "))


DRAWN = (
    ["h1", "h2"],
    ["s1", "s2"],
    [
        ("h1", "s1", {"bw": 10, "delay": "5ms", "max_queue_size": 80}),
        ("h1", "s2", {"bw": 4, "loss": 2, "delay": "3ms", "jitter": "1ms", "speedup": 3}),
        ("s1", "h2", {}),
        ("s2", "h2", {}),
    ],
)


def test_a_drawing_of_miniedit_runs(tmp_path):
    (tmp_path / "net.mn").write_text(drawn(*DRAWN))
    path = scenario(tmp_path, {"miniedit": "net.mn", "users": ["h1"], "servers": ["h2"]})
    network = loaded(path).network
    slow = link(network, "h1-s2")
    assert (slow.rate_bps, slow.loss_ppm, slow.jitter_ns, slow.queue_packets) == (
        4e6,
        2e4,
        1e6,
        1000,
    )
    assert link(network, "h1-s1").queue_packets == 80
    done = lab("run", path, "--out", tmp_path / "run", "--quiet")
    assert done.exit_code == 0, done.output
    assert repeat(tmp_path / "run") == ()
    said = lab("check", path).output
    assert "options of links left out: speedup" in said
    assert "the lab's controller takes their place" in said


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("{}", "it is no file of MiniEdit: hosts: field required"),
        ("no JSON", "it is no JSON"),
        ("[" * 10_000, "64"),
        (
            drawn(["h1", "h2"], ["s1"], [("h1", "s9", {})]),
            "link h1-s9 ends at 's9', which is neither",
        ),
        (drawn(["h1", "h2"], ["s1"], [("h1", "s1", {"bw": -1})]), "bw=-1 is out of range"),
        (
            drawn(["h1", "h2"], ["r1"], [], "legacyRouter"),
            "a router cannot be part of the lab's network",
        ),
        (drawn(["h1"] * 999, ["s1"] * 9, []), "it has 1008 nodes and 0 links; at most 1000"),
    ],
)
def test_a_wrong_drawing_is_one_line(content, wrong, tmp_path):
    (tmp_path / "net.mn").write_text(content)
    path = scenario(tmp_path, {"miniedit": "net.mn", "users": ["h1"], "servers": ["h2"]})
    said = refused("check", path)
    assert wrong in said
    assert said.startswith("error: mine.yaml: topology: ")


# GraphML

FIELDS = {"node": ("label", "Latitude", "Longitude"), "edge": (
    "LinkSpeed", "LinkSpeedUnits", "LinkSpeedRaw", "LinkLabel", "rate_mbps", "delay_ms"
)}  # fmt: skip
TEXTS = ("label", "LinkSpeedUnits", "LinkLabel", "LinkSpeed")


def zoo(nodes: dict, edges: list, head: str = "") -> str:
    """A file in the form of the Topology Zoo."""
    keys = [
        f'<key attr.name="{name}" attr.type="{"string" if name in TEXTS else "double"}" '
        f'for="{kind}" id="{kind}{name}"/>'
        for kind, names in FIELDS.items()
        for name in names
    ]

    def data(kind, values):
        return "".join(f'<data key="{kind}{key}">{value}</data>' for key, value in values.items())

    body = [f'<node id="{id}">{data("node", values)}</node>' for id, values in nodes.items()]
    body += [
        f'<edge source="{a}" target="{b}">{data("edge", values)}</edge>' for a, b, values in edges
    ]
    return (
        f'<?xml version="1.0" encoding="utf-8"?>{head}'
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        f'{"".join(keys)}<graph edgedefault="undirected">{"".join(body)}</graph></graphml>'
    )


PLACES = {
    "0": {"label": "New York", "Latitude": 40.71427, "Longitude": -74.00597},
    "1": {"label": "Chicago", "Latitude": 41.85003, "Longitude": -87.65005},
    "2": {"label": "Washington DC", "Latitude": 38.89511, "Longitude": -77.03637},
    "3": {"label": "Zürich"},
    "4": {"label": "Chicago"},
}
ZOO = [
    ("0", "1", {"LinkSpeedRaw": 2.5e7, "LinkSpeed": "25", "LinkSpeedUnits": "M"}),
    ("1", "2", {"LinkSpeed": "30", "LinkSpeedUnits": "M", "LinkLabel": "30 Mbps"}),
    ("0", "2", {}),
    ("0", "2", {"rate_mbps": 7, "delay_ms": 3.5}),
    ("2", "3", {"LinkSpeed": "0.035", "LinkSpeedUnits": "G"}),
    ("3", "4", {}),
    ("4", "4", {}),
]


def of_zoo(folder: Path, text: str, **keys: object) -> Path:
    (folder / "net.graphml").write_text(text, encoding="utf-8")
    chosen = {"users": ["New York"], "servers": ["Chicago 1"], "rate_mbps": 40} | keys
    return scenario(folder, {"graphml": "net.graphml", **chosen}, "ue1")


def test_capacity_and_distance_become_rate_and_delay(tmp_path):
    path = of_zoo(tmp_path, zoo(PLACES, ZOO))
    network = loaded(path).network
    far = link(network, "NewYork-Chicago1")
    assert far.rate_bps == 25e6
    a, b = ((PLACES[n]["Latitude"], PLACES[n]["Longitude"]) for n in "01")
    flat = [math.radians(a[n] - b[n]) for n in (0, 1)]  # as on a plane: 1 % off at this distance
    km = 6371 * math.hypot(flat[0], flat[1] * math.cos(math.radians((a[0] + b[0]) / 2)))
    assert far.delay_ns / 1e6 == pytest.approx(km / 200, rel=0.01)
    assert link(network, "Chicago1-Washingto").rate_bps == 30e6
    assert link(network, "NewYork-Washingto").rate_bps == 40e6
    second = link(network, "NewYork-Washingto-2")
    assert (second.rate_bps, second.delay_ns) == (7e6, 3_500_000)
    assert link(network, "Washingto-Zurich").rate_bps == 35e6
    assert link(network, "Zurich-Chicago4").delay_ns == 0
    notes = " | ".join(loaded(path).topology.params.notes)
    for said in (
        "1 of 6 links: rate from LinkSpeedRaw",
        "2 of 6 links: rate from LinkSpeed and LinkSpeedUnits",
        "2 of 6 links: rate 40 Mb/s (rate_mbps), because none is given",
        "3 of 6 links: delay from the distance at 200 km/ms (km_per_ms)",
        "2 of 6 links: delay 0, because a place is missing",
        "Washington DC is Washingto",
        "links from a node to itself left out: 1",
    ):
        assert said in notes


def test_a_network_of_the_zoo_runs_with_a_user_at_two_places(tmp_path):
    keys = {"users": [["New York", "Washington DC"], "Zürich"], "servers": ["Chicago 1"]}
    path = of_zoo(tmp_path, zoo(PLACES, ZOO), **keys)
    assert loaded(path).network.multipath == ("ue1",)
    assert loaded(path, "topology.subflows=2").network.multipath == ("ue1", "ue2")
    done = lab("run", path, "--out", tmp_path / "run", "--quiet")
    assert done.exit_code == 0, done.output
    (tmp_path / "net.graphml").unlink()
    assert repeat(tmp_path / "run") == ()
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["throughput_mbps"] > 25  # more than one of its paths, 25 and 30 Mb/s
    assert list(result["inputs"]) == ["net.graphml"]


BOMB = '<!DOCTYPE b [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (zoo(PLACES, ZOO, BOMB), "it declares a document type"),
        (zoo(PLACES, ZOO, '<!DOCTYPE b SYSTEM "file:///etc/passwd">'), "it declares a document type"),
        ("<a>" * 100 + "</a>" * 100, "more than 32 nested"),
        ("<g>" + "<n/>" * 200_001 + "</g>", "more than 32 nested or 200000 elements"),
        ("name: no XML", "it is no XML: syntax error: line 1"),
        ('<?xml version="1.0" encoding="klingon"?><graphml/>', "read net.graphml: "),
        ("<svg/>", "it is no GraphML"),
        (zoo(PLACES, []), "it has no links"),
        (zoo(PLACES, [("0", "1", {"LinkSpeedRaw": -5})]), "LinkSpeedRaw -5 is out of range"),
        (zoo(PLACES, [("0", "1", {"LinkSpeedRaw": "nan"})]), "LinkSpeedRaw nan is out of range"),
        (
            zoo(PLACES, [("0", "1", {"LinkSpeed": "5", "LinkSpeedUnits": "Z"})]),
            "link New York-Chicago 1: LinkSpeedUnits 'Z' is unknown: choose from",
        ),
        (zoo(PLACES, [("0", "1", {"LinkSpeed": "<1", "LinkSpeedUnits": "G"})]), "it is no XML"),
        (
            zoo(PLACES, [("0", "1", {"LinkSpeed": "fast", "LinkSpeedUnits": "G"})]),
            "LinkSpeed 'fast' is not a number",
        ),
        (
            zoo(PLACES, ZOO[3:]),
            "topology.users: no path leads from 'ue1' to its server 'srv1': the network has several "
            "parts, and that of 'ue1' is ue1, New York, Washington DC, Zürich, Chicago 4",
        ),
    ],
)  # fmt: skip
def test_a_wrong_graphml_file_is_one_line(text, wrong, tmp_path):
    said = refused("check", of_zoo(tmp_path, text))
    assert wrong in said
    assert said.startswith("error: mine.yaml: ")


def test_places_are_asked_for(tmp_path):
    path = of_zoo(tmp_path, zoo(PLACES, ZOO))
    said = refused("check", path, "--set", "topology.users=[]")
    assert "at which nodes of net.graphml are users and servers?" in said
    assert "Its nodes are New York, Chicago 1, Washington DC, Zürich, Chicago 4" in said
    said = refused("check", path, "--set", "topology.servers=[Chikago]")
    assert "--set topology.servers=[Chikago]: node 'Chikago' is unknown" in said


def test_files_for_data_are_read_anywhere_only_for_a_scenario_on_the_command_line(tmp_path):
    (tmp_path / "net.mn").write_text(drawn(*DRAWN))
    folder = tmp_path / "below"
    folder.mkdir()
    keys = {"miniedit": "../net.mn", "users": ["h1"], "servers": ["h2"]}
    path = scenario(folder, keys)
    assert lab("check", path).exit_code == 0
    with pytest.raises(loading.RequestError, match="outside of the scenario's folder"):
        loading.load(str(path))
    assert "there is no file" in refused("check", path, "--set", "topology.miniedit=none.mn")


@pytest.mark.parametrize("key", ["miniedit", "graphml"])
def test_a_file_that_cannot_be_read_or_is_too_large_is_refused(key, tmp_path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(64 * 2**20 + 1)
    said = {
        "/proc/self/mem": "read /proc/self/mem: Input/output error",  # also for root
        "large": f"read {tmp_path / 'large'}: it is larger than 64 MiB",
        "none": f"there is no file {tmp_path / 'none'}",
        "": "is not the path of a file",
    }
    for name, wrong in said.items():
        assert wrong in refused("check", scenario(tmp_path, {key: name}))


def test_names_that_fit_stay_and_all_are_different():
    names = [
        "s1",
        "core-1",
        "core_1",
        "core1",
        "Zürich",
        "東京",
        "9",
        "averylongname",
        "averylongnames",
    ]
    found = ids(names)
    assert found["s1"] == "s1"
    assert found["core1"] == "core1"
    assert len(set(found.values())) == len(names)
    assert all(each.isalnum() and each.isascii() and len(each) <= 9 for each in found.values())
    assert all(each[0].isalpha() for each in found.values())


def test_the_networks_of_mininet_itself(tmp_path):
    custom = mininet_topo.upstream() / "custom" / "topo-2sw-2host.py"
    if not custom.is_file():
        pytest.skip("Mininet's sources are missing: ./run_lab.sh setup-emulation")
    keys = {"mininet": str(custom), "users": ["h1"], "servers": ["h2"], "rate_mbps": 10}
    said = refused("check", scenario(tmp_path, keys))
    assert "--trust-extensions" in said  # it is not in the folder of the scenario
    path = scenario(tmp_path, keys | {"mininet": "none.py"})
    done = lab("check", path, "--set", f"topology.mininet={custom}")
    assert done.exit_code == 0, done.output


def test_formats_md_has_every_key():
    page = (Path(__file__).parents[1] / "docs" / "formats.md").read_text()
    section = page.partition("## Networks of other programs")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    described = {word for row in rows for word in row.split("`")[1::2]}
    assert described == {key for model in KEYS.values() for key in model.model_fields}
    links = section.partition("`links` (")[2].partition(")")[0]
    assert {*links.split("`")[1::2]} == {*nodes_and_links.Wire.model_fields}
