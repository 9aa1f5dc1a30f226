"""Networks of other programs that nobody wrote for this lab: usual shapes, Mininet's own examples,
and random ones, each from a Mininet topology, a drawing of MiniEdit and GraphML."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from users_files import _only_built_in, lab, refused

from lab.errors import RequestError
from lab.scenario.network_files import KEYS
from lab.topologies import graphml, miniedit, mininet_stand_in, mininet_topo, nodes_and_links
from lab.topologies.found import Found, Roles, as_params
from lab.topologies.topology import wire

__all__ = ["_only_built_in"]
MININET = mininet_topo.upstream()
needs_mininet = pytest.mark.skipif(
    not (MININET / "mininet" / "topo.py").is_file(), reason="./run_lab.sh setup-emulation"
)

SHAPES = '''"""sudo mn --custom shapes.py --topo diamond --link tc"""

from mininet.log import info
from mininet.topo import LinearTopo, SingleSwitchTopo, Topo
from mininet.topolib import TorusTopo, TreeTopo


class Diamond( Topo ):
    "Two hosts with two links each, and two paths between them."
    def build( self, short=4, long=6 ):
        info( '*** a diamond\\n' )
        s1, s2, s3, s4 = [ self.addSwitch( 's%d' % n ) for n in range( 1, 5 ) ]
        for host, first, second in ( 'h1', s1, s2 ), ( 'h2', s3, s4 ):
            self.addHost( host )
            self.addLink( host, first )
            self.addLink( host, second )
        self.addLink( s1, s3, bw=short, delay='4ms', max_queue_size=40 )
        self.addLink( s2, s4, bw=long, delay='9ms', max_queue_size=60 )


topos = { 'single': SingleSwitchTopo, 'linear': LinearTopo, 'tree': TreeTopo, 'diamond': Diamond,
          'torus': TorusTopo }
'''
USUAL: dict[str, tuple[dict[str, int], str, str, float]] = {  # arguments, user, server, Mb/s
    "single": ({"k": 5}, "h2", "h5", 6),
    "linear": ({"k": 4, "n": 2}, "h1s1", "h2s4", 6),
    "tree": ({"depth": 3, "fanout": 2}, "h1", "h8", 6),
    "diamond": ({"long": 5}, "h1", "h2", 4 + 5),
    "torus": ({"x": 3, "y": 4}, "h1x1", "h2x3", 6),
}


@pytest.fixture(params=["mininet", "stand-in"])
def mininet(request, monkeypatch, tmp_path):
    """Mininet's own modules if they are on this machine, and the stand-in."""
    if request.param == "stand-in":
        monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(tmp_path / "cache"))
    elif not (MININET / "mininet" / "topo.py").is_file():
        pytest.skip("Mininet's sources are missing: ./run_lab.sh setup-emulation")


def scenario(folder: Path, text: str, **keys: Any) -> Path:
    (folder / "net.py").write_text(text)
    topology = {
        "mininet": "net.py",
        "users": ["h1"],
        "servers": ["h2"],
        "rate_mbps": 6,
        "queue_packets": 50,
    } | keys
    path = folder / "mine.yaml"
    of_user = [{"user": topology["users"][0]}]
    content = {"name": "mine", "title": "T", "topology": topology, "duration_s": 6}
    path.write_text(yaml.safe_dump(content | {"traffic": of_user}))
    return path


def read(text: str, topo: str | None = None, **params: Any) -> Found:
    return mininet_topo.read(Path("/net.py"), text.encode(), topo, params, 1000)


# Usual shapes


@pytest.mark.parametrize("topo", USUAL)
def test_a_run_on_each_usual_shape_carries_what_its_links_carry(topo, mininet, tmp_path):
    params, user, server, mbps = USUAL[topo]
    path = scenario(tmp_path, SHAPES, topo=topo, params=params, users=[user], servers=[server])
    done = lab("run", path, "--out", tmp_path / "run", "--quiet")
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert 0.75 * mbps < result["throughput_mbps"] < mbps


# The stand-in


@needs_mininet
@pytest.mark.parametrize(
    ("module", "topo", "params"),
    [
        ("topo", "SingleSwitchTopo", {"k": 12}),
        ("topo", "SingleSwitchReversedTopo", {"k": 12}),
        ("topo", "MinimalTopo", {}),
        ("topo", "LinearTopo", {"k": 11, "n": 3}),
        ("topolib", "TreeTopo", {"depth": 2, "fanout": 4}),
        ("topolib", "TorusTopo", {"x": 4, "y": 3, "n": 2}),
    ],
)
def test_mininets_ready_topologies_are_the_same_without_mininet(
    module, topo, params, monkeypatch, tmp_path
):
    text = f"from mininet.{module} import {topo}\ntopos = {{'it': {topo}}}\n"
    own = read(text, **params)
    monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(tmp_path / "cache"))
    assert read(text, **params) == own.noted(mininet_topo.STAND_IN)


ASKING = """from mininet.topo import Topo
class Asking(Topo):
    def build(self):
        for n in 10, 9, 1:
            self.addHost(f"h{n}", ip=f"10.0.0.{n}")
        s1, s2 = self.addSwitch("s1"), self.addSwitch("s2")
        for host in self.hosts():
            self.addLink(host, s1)
        keys = [self.addLink(s1, s2, bw=bw) for bw in (5, 4)]
        self.addLink(s1, s2, 7, 8, key=9, bw=3)
        self.setNodeInfo("h1", {**self.nodeInfo("h1"), "cpu": 1})
        self.setlinkInfo(s1, s2, {**self.linkInfo(s2, s1), "delay": "3ms"})
        SAID.append((keys, self.port(s1, s2), self.port("h9", s1), self.linkInfo(s1, s2, 9),
                     self.nodes(), self.nodes(sort=False), self.hosts(), self.switches(),
                     self.links(sort=True, withKeys=True), self.addPort(s1, s2)))
"""


@needs_mininet
def test_what_a_topology_asks_of_itself_has_the_same_answer_without_mininet(monkeypatch, tmp_path):
    answers = []
    for cache in (None, tmp_path / "cache"):
        if cache:
            monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(cache))
        said: list[Any] = []
        monkeypatch.setattr("builtins.SAID", said, raising=False)
        found = read(ASKING)
        answers.append((said, found.links, found.notes[0]))
    own, other = answers
    assert [*map(list, own[0][0][4:6])] == [*map(list, other[0][0][4:6])]
    assert str(own[0]).replace("dict_keys(", "").replace("'])", "']") == str(other[0])
    assert own[1:] == other[1:]


@needs_mininet
def test_the_stand_in_has_every_public_name_of_mininets_topologies():
    with mininet_topo._mininet() as real:
        import mininet.topolib as lib

        wanted = {each for each in dir(real) if not each.startswith("_")}
        ready = {
            (each.__module__, name)
            for module in (lib, __import__("mininet.topo").topo)
            for name, each in vars(module).items()
            if isinstance(each, type) and issubclass(each, real)
        }
    assert wanted - {*dir(mininet_stand_in.Topo)} == {"convertTo"}  # into a graph of networkx
    for module, name in ready:
        assert name in mininet_stand_in.PROVIDED[module]


# What a file cannot do


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("from mininet.net import Mininet\nMininet().start()\n", "line 2: RuntimeError: Mininet"),
        (
            "from mininet.node import RemoteController\nRemoteController('c0', ip='10.0.0.1')\n",
            "line 2: RuntimeError: RemoteController",
        ),
        (
            "from mininet.node import Host\nfrom mininet.topo import Topo\nclass A(Topo):\n"
            "  def build(self): Host('h1')\n",
            "line 4: RuntimeError: Host",
        ),
    ],
)
def test_no_part_of_a_network_is_started(text, wrong, mininet, monkeypatch, tmp_path):
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
    said = refused("check", scenario(tmp_path, text))
    assert f"{wrong} would start a part of a network now" in said
    assert "put what starts it below 'if __name__ == \"__main__\":'" in said


def test_loggers_made_later_are_not_mininets(mininet, tmp_path):
    def made() -> tuple[type, object]:
        return logging.getLoggerClass(), logging.Logger.manager.loggerDict.get("mininet")

    before = made()
    for _ in range(2):
        assert lab("check", scenario(tmp_path, SHAPES, topo="diamond")).exit_code == 0
    assert made() == before


@pytest.mark.parametrize(
    ("topo", "params", "wrong"),
    [
        ("torus", {"x": 3}, "'torus': missing a required argument: 'y'. Its arguments are x, y, n"),
        ("diamond", {"bw": 3}, "got an unexpected keyword argument 'bw'. Its arguments are short,"),
        ("diamond", {"short": "4m"}, "link s1-s3: bw='4m' is not a number"),
    ],
)
def test_wrong_arguments_are_named_with_the_right_ones(topo, params, wrong, mininet, tmp_path):
    said = refused("check", scenario(tmp_path, SHAPES, topo=topo, params=params))
    assert wrong in said


def test_options_for_all_links_are_arguments_of_every_topology(mininet):
    found = read(SHAPES, "single", lopts={"bw": 3}, k=2)
    assert [each.shape["rate_mbps"] for each in found.links] == [3, 3]


ROUTED = """from mininet.topo import Topo
class Routed(Topo):
    def build(self):
        for name in "h1", "h2", "r0", "idle":
            self.addHost(name)
        for host in "h1", "h2", "idle":
            self.addLink(self.addSwitch(f"s{host}"), host)
            self.addLink(f"s{host}", "r0")
"""


def test_a_host_on_the_only_path_is_named(mininet, tmp_path):
    said = refused("check", scenario(tmp_path, ROUTED))
    assert (
        "topology.users: 'h1' reaches its server 'h2' only over r0, and here a host forwards "
        "nothing. Make r0 a switch, or choose other hosts"
    ) in said
    made = ROUTED.replace(', "r0", ', ", ").replace(
        "for host", "self.addSwitch('r0')\n        for host"
    )
    assert lab("check", scenario(tmp_path, made)).exit_code == 0


# Mininet's own examples

EXAMPLES = {  # of Mininet 2.3: topology, arguments, users, servers
    "custom/topo-2sw-2host.py": ("mytopo", {}, ["h1"], ["h2"]),
    "examples/controlnet.py": ("ControlNetwork", {"n": 2}, ["c0"], ["c1"]),
    "examples/linearbandwidth.py": ("LinearTestTopo", {"N": 5}, ["h1"], ["h5"]),
    "examples/multilink.py": ("simpleMultiLinkTopo", {"n": 3}, ["h1"], ["h2"]),
    "examples/simpleperf.py": ("SingleSwitchTopo", {"n": 4, "lossy": False}, ["h1"], ["h4"]),
    "examples/vlanhost.py": ("VLANStarTopo", {}, ["h1"], ["h2-101"]),
}


@needs_mininet
@pytest.mark.parametrize("name", EXAMPLES)
def test_mininets_examples_with_a_topology_run(name, mininet, tmp_path):
    topo, params, users, servers = EXAMPLES[name]
    keys = {"topo": topo, "params": params, "users": users, "servers": servers}
    path = scenario(tmp_path, (MININET / name).read_text(), **keys)
    done = lab("run", path, "--duration", "1", "--out", tmp_path / "run", "--quiet")
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "run" / "result.json").read_text())["throughput_mbps"] > 1


@needs_mininet
@pytest.mark.parametrize("name", sorted(each.name for each in MININET.glob("examples/*.py")))
def test_every_other_example_is_refused_in_one_line_and_starts_nothing(name, monkeypatch, tmp_path):
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
    text = (MININET / "examples" / name).read_text()
    topo = EXAMPLES.get(f"examples/{name}", (None,))[0]
    done = lab("check", scenario(tmp_path, text, topo=topo, users=["none"]))
    assert done.exit_code == 2, done.output
    assert done.output.startswith("error: mine.yaml: topology")
    assert "Traceback" not in done.output


# Random networks, in three files each

# Mininet sorts by numbers in names, and int() reads no other digits than Nd
NAMES = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "No")), min_size=1, max_size=12
).filter(lambda text: text.strip() == text and not text.isspace())


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, Any]:
    """Options of a link as Mininet has them, as numbers and texts."""
    options: dict[str, Any] = {}
    if draw(st.booleans()):
        options["bw"] = draw(st.integers(1, 1000) | st.floats(0.01, 1000))
    if draw(st.booleans()):
        ms = draw(st.integers(0, 5000))
        options["delay"] = draw(
            st.sampled_from([f"{ms}ms", f"{ms / 1000}s", ms * 1000, f"{ms}000us", f" {ms} msecs"])
        )
        if draw(st.booleans()):
            options["jitter"] = f"{draw(st.integers(0, ms))}ms"
    if draw(st.booleans()):
        options["loss"] = draw(st.integers(0, 100) | st.floats(0.01, 100))
    if draw(st.booleans()):
        options["max_queue_size"] = draw(st.integers(1, 100_000))
    return options


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[str], list[str], list[tuple[str, str, dict[str, Any]]]]:
    """Hosts, switches and links: connected, with loops and several links between two nodes."""
    names = draw(st.lists(NAMES, min_size=3, max_size=9, unique=True))
    hosts, switches = names[:2], names[2:]
    ends = [(a, draw(st.sampled_from(switches[:n]))) for n, a in enumerate(switches) if n]
    ends += [(host, draw(st.sampled_from(switches))) for host in hosts]
    more = st.tuples(st.sampled_from(names), st.sampled_from(switches)).filter(
        lambda x: x[0] != x[1]
    )
    ends += draw(st.lists(more, max_size=5))
    return hosts, switches, [(a, b, draw(shapes())) for a, b in draw(st.permutations(ends))]


def as_topo(hosts: list[str], switches: list[str], links: list[Any]) -> str:
    lines = ["from mininet.topo import Topo", "class Any(Topo):", "  def build(self):"]
    lines += [f"    self.addHost({each!r})" for each in hosts]
    lines += [f"    self.addSwitch({each!r})" for each in switches]
    lines += [f"    self.addLink({a!r}, {b!r}, **{options!r})" for a, b, options in links]
    return "\n".join(lines)


def as_drawing(hosts: list[str], switches: list[str], links: list[Any]) -> bytes:
    def nodes(names: list[str], **more: Any) -> list[dict[str, Any]]:
        return [
            {"number": str(n), "x": "1.0", "y": "2.0", "opts": {"hostname": name, **more}}
            for n, name in enumerate(names, 1)
        ]

    return json.dumps(
        {
            "hosts": nodes(hosts, sched="host"),
            "switches": nodes(switches, switchType="legacySwitch"),
            "links": [{"src": a, "dest": b, "opts": options} for a, b, options in links],
        }
    ).encode()


def as_graphml(switches: list[str], links: list[Any], kind: Any) -> bytes:
    """The switches and what is between them, with the lab's keys."""
    graph = kind()
    graph.add_nodes_from((n, {"label": name}) for n, name in enumerate(switches))
    for a, b, keys in links:
        ends, numbers = (
            (switches.index(a), switches.index(b)),
            {k: float(v) for k, v in keys.items()},
        )
        graph.add_edge(*ends, **numbers)
        if graph.is_directed():
            graph.add_edge(*reversed(ends), **numbers)
    file = io.BytesIO()
    nx.write_graphml(graph, file, named_key_ids=True)
    return file.getvalue()


def network(found: Found, hosts: list[str]) -> nodes_and_links.Params:
    roles = Roles((hosts[0],), (hosts[1],))
    return nodes_and_links.Params.model_validate(as_params(found, roles))


def wires(params: nodes_and_links.Params) -> list[Any]:
    """The links without their direction and order."""
    rows = [each.model_dump() for each in params.links]
    return sorted(str({each.pop("a"), each.pop("b")} and each) for each in rows)


@settings(max_examples=25)
@given(networks())
def test_a_random_network_is_the_same_from_a_topo_class_and_from_a_drawing(drawn):
    hosts, switches, links = drawn
    code = network(read(as_topo(*drawn)), hosts)
    drawing = network(miniedit.read("net.mn", as_drawing(*drawn), 1000), hosts)
    assert wires(code) == wires(drawing)
    assert {each.id for each in code.users} | {*code.servers, *code.switches} == {
        each.id for each in drawing.users
    } | {*drawing.servers, *drawing.switches}
    assert len(code.links) == len(links)
    for (_, _, options), found in zip(links, drawing.links, strict=True):
        assert found.rate_mbps == options.get("bw")
        assert found.loss_both == pytest.approx(options.get("loss", 0) / 100)
        assert found.queue_packets == options.get("max_queue_size", 1000)
    if all(each.rate_mbps for each in code.links):
        _check_built(code, len(hosts) + len(switches))


def _check_built(params: nodes_and_links.Params, nodes: int) -> None:
    """Every link is there, each between two switches, and all ends have different ports."""
    topology = nodes_and_links.build(params)
    assert len(topology.nodes) >= nodes
    shaped = [each for each in topology.links if each.rate_bps]
    assert len(shaped) == len(params.links)
    assert [each for each in topology.sampled_links if each.rate_bps] == shaped
    wiring = wire(topology)
    ports = [end for each in wiring.trunks for end in (each.a_port, each.b_port)]
    assert len(ports) == len({*ports})


@settings(max_examples=25)
@given(networks(), st.sampled_from([nx.MultiGraph, nx.MultiDiGraph]))
def test_a_random_network_is_the_same_from_graphml(drawn, kind):
    _hosts, switches, _ = drawn
    found = miniedit.read("net.mn", as_drawing(*drawn), 1000)
    between = [
        (each.a, each.b, {"rate_mbps": 1000, "delay_ms": 0, **each.shape})
        for each in found.links
        if each.a in switches
    ]
    text = as_graphml(switches, between, kind)
    if not between:
        with pytest.raises(RequestError, match="it has no links"):
            graphml.read("net.graphml", text, graphml.Defaults())
        return
    read_back = graphml.read("net.graphml", text, graphml.Defaults())
    assert read_back.switches == tuple(switches)
    both = (
        sorted(
            str((sorted((a, b)), {key: float(x) for key, x in sorted(shape.items())}))
            for a, b, shape in each
        )
        for each in (between, [(x.a, x.b, x.shape) for x in read_back.links])
    )
    assert next(both) == next(both)


def test_a_way_back_with_other_attributes_is_a_link_of_its_own():
    links = [("s1", "s2", {"rate_mbps": 5}), ("s2", "s3", {"rate_mbps": 5})]
    text = as_graphml(["s1", "s2", "s3"], links, nx.MultiDiGraph).decode()
    found = graphml.read("net.graphml", text.encode(), graphml.Defaults())
    assert len(found.links) == 2
    assert "pairs of directed links that are one link each: 2" in found.notes
    other = text.replace(">5.0</data>", ">7.0</data>", 1)
    assert len(graphml.read("net.graphml", other.encode(), graphml.Defaults()).links) == 3


def test_a_key_without_a_type_is_no_warning(recwarn):
    text = as_graphml(["s1", "s2"], [("s1", "s2", {"rate_mbps": 5})], nx.MultiGraph).decode()
    other = re.sub(r'(attr.name="rate_mbps") attr.type="double"', r"\1", text)
    assert other != text
    found = graphml.read("net.graphml", other.encode(), graphml.Defaults())
    assert found.links[0].shape["rate_mbps"] == 5
    assert not recwarn.list


def test_attributes_of_graphml_that_the_lab_does_not_use_are_named():
    text = as_graphml(["s1", "s2"], [("s1", "s2", {"capacity": 5, "weight": 1})], nx.MultiGraph)
    found = graphml.read("net.graphml", text, graphml.Defaults())
    assert "attributes of links left out: capacity, weight" in found.notes


# What people are shown


@pytest.mark.parametrize("key", KEYS)
def test_the_list_of_topologies_has_each_kind_of_file_with_its_keys(key):
    row = next(
        each
        for each in json.loads(lab("list", "topologies", "--json").output)
        if each["kind"] == key
    )
    assert f"topology: {{{key}: FILE, ...}}" in row["help"]
    shown = [each["name"] for each in json.loads(lab("list", "params", key, "--json").output)]
    assert shown == row["params"] == [*KEYS[key].model_fields]


def test_links_without_rate_or_delay_are_counted(mininet, tmp_path):
    path = scenario(tmp_path, SHAPES, topo="diamond")
    said = lab("check", path).output
    assert "network: 4 of 6 links: rate 6 Mb/s (rate_mbps)" in said
    assert "network: 4 of 6 links: no delay" in said
    said = lab("check", path, "--set", "topology.rate_mbps=null").output
    assert "network: 4 of 6 links: no limit of the rate" in said


def test_options_of_nodes_in_a_drawing_are_named():
    host = {"hostname": "h1", "nodeNum": 1, "sched": "host", "ip": "10.9.9.9", "startCommand": "x"}
    switch = {"hostname": "s1", "nodeNum": 1, "switchType": "default", "controllers": ["c0"]}
    switch |= {"netflow": "0", "sflow": "0", "dpid": "", "externalInterfaces": ["eth1"]}
    drawing = {
        "hosts": [{"number": "1", "opts": host}],
        "switches": [{"number": "1", "opts": switch}],
        "links": [],
    }
    found = miniedit.read("net.mn", json.dumps(drawing).encode(), 1000)
    assert found.notes == ("options of nodes left out: externalInterfaces, ip, startCommand",)
