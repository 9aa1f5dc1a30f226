"""Networks of other people's scripts, described for POX: from plain objects in Mininet's shape."""

import random
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from controller import topology
from lab.engines.mininet.adopt.description import Options, Seen, describe
from lab.errors import RequestError


@dataclass(eq=False)
class Node:
    name: str
    dpid: str = ""
    failMode: str = "secure"
    wintfs: dict[int, Any] = field(default_factory=dict)


class UserSwitch:
    def __init__(self, name):
        self.name = name


@dataclass(eq=False)
class Intf:
    name: str
    node: Any
    params: dict[str, Any] = field(default_factory=dict)


class Net:
    """A network as Mininet has it, and the addresses that its kernel would show."""

    def __init__(self):
        self.hosts, self.switches, self.stations, self.aps, self.links = [], [], [], [], []
        self.seen, self._used = {}, {}

    def host(self, name):
        self.hosts.append(Node(name))
        return self.hosts[-1]

    def switch(self, name, dpid=""):
        number = "".join(filter(str.isdigit, name)) or "0"
        self.switches.append(Node(name, dpid or f"{int(number):016x}"))
        return self.switches[-1]

    def ap(self, name):
        number = int("".join(filter(str.isdigit, name)))
        self.aps.append(Node(name, f"10{number:014x}"))
        return self.aps[-1]

    def station(self, name, ap, address):
        node = Node(name)
        radio = ap and Intf(f"{ap.name}-wlan1", ap)
        node.wintfs[0] = SimpleNamespace(name=f"{name}-wlan0", associatedTo=radio)
        self.seen[f"{name}-wlan0"] = Seen((address,), "02:00:00:00:00:07")
        self.stations.append(node)
        return node

    def link(self, one, other, address="", **params):
        ends = []
        for node in (one, other):
            first = 0 if node in (*self.hosts, *self.stations) else 1
            number = self._used[node] = self._used.get(node, first - 1) + 1
            ends.append(Intf(f"{node.name}-eth{number}", node, params))
        for end in ends:
            if end.node in (*self.hosts, *self.stations):
                mac = f"02:00:00:00:00:{len(self.seen):02x}"
                self.seen[end.name] = Seen((address,) if address else (), mac)
        self.links.append(SimpleNamespace(intf1=ends[0], intf2=ends[1]))


def described(net, forwards=(), **options):
    found = describe(net, Options(**options), net.seen, forwards)
    topology.Topology.model_validate(found.to_json())
    return found


def two_paths():
    """h1 has two addresses, over s1 - s2 and s1 - s3, and h2 has one at s4."""
    net = Net()
    h1, h2 = net.host("h1"), net.host("h2")
    s1, s2, s3, s4 = (net.switch(f"s{n}") for n in range(1, 5))
    net.link(h1, s2, "10.0.0.1")
    net.link(h1, s3, "10.0.1.1")
    net.link(h2, s4, "10.0.0.2")
    net.link(s2, s1, bw=10, delay="5ms", loss=1)
    net.link(s3, s1, bw=5, delay="20ms")
    net.link(s1, s4)
    return net


def test_a_host_with_two_addresses_is_a_user_and_the_other_one_a_server():
    found = described(two_paths())
    assert (found.users, found.servers) == (("h1",), ("h2",))
    shown = found.to_json()
    assert shown["switches"]["s2"] == {"dpid": 2, "ports": {"s1": "s2-eth2"}}
    assert [each["address"] for each in shown["hosts"]["h1"]] == ["10.0.0.1", "10.0.1.1"]
    assert [each["port"] for each in shown["hosts"]["h1"]] == ["s2-eth1", "s3-eth1"]
    first = shown["trunks"][0]
    assert (first["rate_mbps"], first["delay_ms"], first["loss"]) == (10, 5, 0.01)
    assert shown["multipath"] == ["h1"]
    assert not found.notes


def test_the_loss_of_an_address_is_that_of_all_interfaces_that_send_its_data():
    net = two_paths()
    ports = described(net).of("h1")
    assert described(net).loss_devices(ports[0]) == ["h2-eth0", "s4-eth2", "s1-eth1", "s2-eth1"]
    up = described(net, data="up")
    assert up.loss_devices(ports[1]) == ["h1-eth1", "s3-eth2", "s1-eth3", "s4-eth1"]


def test_two_hosts_with_two_addresses_need_a_word_which_one_is_the_server():
    net = Net()
    h1, h2, s1, s2 = net.host("h1"), net.host("h2"), net.switch("s1"), net.switch("s2")
    for n, switch in enumerate((s1, s2)):
        net.link(h1, switch, f"10.0.{n}.1")
        net.link(h2, switch, f"10.0.{n}.2")
    with pytest.raises(RequestError, match="--server h2"):
        described(net)
    found = described(net, servers=["h2"])
    assert (found.users, found.servers) == (("h1",), ("h2",))
    assert found.loss_devices(found.of("h1")[1]) == ["h2-eth1", "s2-eth1"]


def test_access_points_have_the_dpids_of_mininet_wifi():
    net = Net()
    ap1, ap2, s1, h1 = net.ap("ap1"), net.ap("ap2"), net.switch("s1"), net.host("h1")
    net.station("sta1", ap2, "10.0.0.5")
    net.link(ap1, s1)
    net.link(ap2, s1)
    net.link(h1, s1, "10.0.0.1")
    found = described(net)
    assert found.dpids == {"s1": 1, "ap1": 0x1000000000000001, "ap2": 0x1000000000000002}
    shown = found.to_json({"ap2-wlan1": 11.0})
    assert shown["aps"]["ap2"] == {
        "kind": "wifi",
        "capacity_mbps": 11,
        "stations": {"sta1": {"rate_mbps": 11}},
        "port": "ap2-wlan1",
    }
    assert shown["aps"]["ap1"]["stations"] == {}


def test_of_several_links_between_two_switches_the_fastest_is_used():
    net = two_paths()
    s1, s2 = net.switches[:2]
    net.link(s1, s2, bw=30)
    found = described(net)
    assert len(found.trunks) == 3
    assert {each.a_port for each in found.trunks} >= {"s1-eth4"}
    assert "not s2-eth2 to s1-eth1" in found.notes[0]


def test_an_interface_without_an_address_is_named():
    net = two_paths()
    net.seen["h1-eth1"] = Seen()
    found = described(net, servers=["h2"])
    assert "h1-eth1 has no address" in found.notes[0]
    assert not found.users


def _two_hosts(net):
    net.link(net.hosts[0], net.hosts[1])


def _same_address(net):
    net.seen["h2-eth0"] = Seen(("10.0.0.1",))


def _same_dpid(net):
    net.switches[1].dpid = "1"


def _no_dpid(net):
    net.switches[1].dpid = "0"


def _other_switch(net):
    net.switches.append(UserSwitch("u1"))


def _lone_station(net):
    net.station("sta1", None, "10.0.0.9")


def _no_switch(net):
    net.switches = []


def _wrong_loss(net):
    net.links[3].intf1.params = {"loss": 150}


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_two_hosts, "joins two hosts, so h1 is a router"),
        (_same_address, "h1-eth0 and h2-eth0 both have the address 10.0.0.1"),
        (_same_dpid, "s1 and s2 have the same dpid 1"),
        (_no_dpid, "the dpid of s2 is '0'"),
        (_other_switch, "u1 is a UserSwitch"),
        (_lone_station, "sta1-wlan0 is associated with no access point"),
        (_no_switch, "the network has no switch yet"),
        (_wrong_loss, "loss=150 is out of range"),
    ],
)
def test_what_pox_cannot_control_is_refused_with_its_name(spoil, says):
    net = two_paths()
    spoil(net)
    with pytest.raises(RequestError, match=says):
        described(net)


def test_a_router_is_refused():
    with pytest.raises(RequestError, match="h2 is a router"):
        described(two_paths(), forwards=["h2"])


def test_an_unknown_server_lists_the_hosts():
    with pytest.raises(RequestError, match="no host is 'h9': choose from h1, h2"):
        described(two_paths(), servers=["h9"])


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_are_described_with_all_that_they_have(seed):
    chance, net = random.Random(seed), Net()
    count = chance.randint(1, 8)
    dpids = [chance.randrange(1, 2**64) for _ in range(count)]
    names = chance.sample(["s1", "left", "core-7", "Berlin", "x", "s2", "edge.1", "s10"], count)
    switches = [net.switch(name, f"{dpid:x}") for name, dpid in zip(names, dpids, strict=True)]
    pairs = set()
    for number, switch in enumerate(switches[1:], 1):  # a tree, and further links
        net.link(switch, switches[chance.randrange(number)])
        pairs.add(frozenset(end.node.name for end in vars(net.links[-1]).values()))
    for _ in range(chance.randint(0, 4) if count > 1 else 0):
        one, other = chance.sample(switches, 2)
        net.link(one, other, bw=chance.randint(1, 1000))
        pairs.add(frozenset((one.name, other.name)))
    number = 0
    for n in range(chance.randint(1, 4)):
        host = net.host(f"h{n}")
        for _ in range(chance.randint(1, 3)):
            number += 1
            net.link(host, chance.choice(switches), f"10.0.0.{number}")
    found = described(net, servers=["h0"])
    assert found.dpids == dict(zip(names, dpids, strict=True))
    assert {frozenset((each.a, each.b)) for each in found.trunks} == pairs
    trunk_links = sum(
        all(end.node in net.switches for end in vars(link).values()) for link in net.links
    )
    assert len(found.trunks) + len(found.notes) == trunk_links
    addresses = [a for each in found.ports for a in each.addresses]
    assert sorted(addresses) == sorted(f"10.0.0.{n + 1}" for n in range(number))
    for port in found.ports:
        devices = found.loss_devices(port)
        assert devices[0].startswith("h0-")
        assert devices[-1] == port.port
