"""What hosts and ports are told, without a network."""

from pathlib import Path

import pytest

from lab.engines.mininet import shell
from lab.engines.mininet.ledger import Ledger
from lab.engines.mininet.network import Network, _addresses, _standing_in, _sysctls
from lab.errors import LabError
from lab.scenario import build
from lab.topology import wire


class Node:
    def __init__(self, pid):
        self.pid = pid
        self.ended = False

    def terminate(self):
        self.ended = True


class Net(dict):
    """In Mininet's place: nodes by name."""


@pytest.fixture
def network(load, tmp_path):
    topology = build(load())
    made = Network(topology, wire(topology), Ledger(tmp_path / "ledger"), tmp_path)
    made._net = Net({node.id: Node(1000 + n) for n, node in enumerate(topology.nodes)})
    return made


def test_every_interface_has_a_table_of_its_own(network):
    lines = list(_addresses("ue3", network.wiring.of("ue3")))
    assert "addr add 10.2.0.3/32 dev ue3-lte0" in lines
    assert "rule add from 10.2.0.3 table 1" in lines
    assert "route replace 10.0.0.0/8 dev ue3-wlan0 src 10.1.0.3 table 2" in lines
    assert lines[-1] == "route replace 10.0.0.0/8 dev ue3-lte0 src 10.2.0.3"  # its home


def test_a_host_answers_only_for_its_own_addresses_and_speaks_multipath():
    settings = dict(line.split("=") for line in _sysctls(["ue3-lte0", "ue3-wlan0"]))
    assert settings["net.mptcp.enabled"] == "1"
    assert settings["net.ipv4.conf.ue3-wlan0.rp_filter"] == "0"
    assert settings["net.ipv4.conf.all.arp_ignore"] == "1"
    assert settings["net.ipv4.tcp_rmem"].split()[2] == "16777216"


def test_commands_enter_hosts_and_stay_outside_switches(network):
    assert network.inside("ue1", ["ip", "addr"]) == ["mnexec", "-a", "1000", "ip", "addr"]
    assert network.inside("wifi1", ["ip", "addr"]) == ["ip", "addr"]


def test_the_ports_that_are_wires(network):
    ports = list(network.ports())
    assert ports[:4] == ["s1-eth2", "wifi1-eth1", "s1-eth3", "lte1-eth1"]
    assert not any("wlan" in port for port in ports)
    assert len(ports) == 4 + 1 + 3  # the server's, and three LTE users'


def test_what_will_exist_is_written_down_bridges_last(network):
    for node in network._net.values():
        node.pid = 1
    network._record()
    entries = network.ledger.entries()
    kinds = [each["kind"] for each in entries]
    assert kinds[0] == "radios"
    assert {"program": "hostapd", "kind": "daemon", "word": entries[1]["word"]} == entries[1]
    assert entries[0]["prefix"].rstrip("p").lstrip("mn0") == entries[1]["word"].rstrip("_").lstrip("mn0")
    assert [each["name"] for each in entries[-3:]] == ["wifi1", "lte1", "s1"]
    assert "interface" not in kinds[kinds.index("bridge") :]
    assert not any("wlan" in each.get("name", "") for each in entries)


def test_both_channels_of_every_bridge_lead_to_pox(network, monkeypatch):
    ran = []
    monkeypatch.setattr(shell, "run", lambda argv, doing: ran.append(argv) or "u1\nu2\n")
    network.connect_controller()
    assert " ".join(ran[0]).startswith(
        "ovs-vsctl set-controller wifi1 tcp:127.0.0.1:6633 tcp:127.0.0.1:6653 -- set-controller lte1"
    )
    assert ran[-1].count("inactivity_probe=60000") == 2


def test_stopping_ends_every_node_also_of_a_network_that_never_was(network, tmp_path):
    nodes = list(network._net.values())
    network.stop()
    assert all(node.ended for node in nodes)
    network._net = None
    network.stop()


def test_mininet_writes_where_it_is_told_to(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    with _standing_in(tmp_path):
        assert Path.cwd() == tmp_path
    assert Path.cwd() == Path("/")


def test_a_failure_goes_back_too(tmp_path, monkeypatch):
    def fail():
        with _standing_in(tmp_path):
            raise LabError("x")

    monkeypatch.chdir("/")
    with pytest.raises(LabError):
        fail()
    assert Path.cwd() == Path("/")
