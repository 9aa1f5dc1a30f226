"""The commands for hosts, ports and bridges, without a network."""

from pathlib import Path

import pytest

from lab.engines.mininet.machine import open_vswitch, shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network.network import Network, _pair
from lab.scenario import loading
from lab.scenario.schema import Multipath
from lab.topologies.topology import wire


class Node:
    def __init__(self, pid):
        self.pid = pid
        self.ended = False

    def terminate(self):
        self.ended = True


class Net(dict):
    """In place of Mininet's network: nodes by name."""


@pytest.fixture
def network(load_testbed, tmp_path):
    topology = load_testbed().network
    made = Network(topology, wire(topology), Ledger(tmp_path / "ledger"), tmp_path, {}, Multipath())
    made._net = Net({node.id: Node(1000 + n) for n, node in enumerate(topology.nodes)})
    return made


def test_commands_enter_hosts_and_stay_outside_switches(network):
    assert network.inside("ue1", ["ip", "addr"]) == ["mnexec", "-a", "1000", "ip", "addr"]
    assert network.inside("wifi1", ["ip", "addr"]) == ["ip", "addr"]


def test_the_wired_ports(network):
    ports = list(network.ports())
    assert ports[:4] == ["s1-eth2", "wifi1-eth1", "s1-eth3", "lte1-eth1"]
    assert not any("wlan" in port for port in ports)
    assert len(ports) == 4 + 1 + 3  # trunks, the server's, and those of three LTE users


def test_what_will_be_made_is_recorded_bridges_last(network):
    for node in network._net.values():
        node.pid = 1
    network._record()
    entries = network.ledger.entries()
    kinds = [each["kind"] for each in entries]
    assert kinds[0] == "radios"
    sockets = Path("/var/run/hostapd")
    assert entries[1] == {"kind": "folder", "path": str(sockets), "only_if_empty": True}
    assert entries[2] == {"kind": "file", "path": str(sockets / "wifi1-wlan1")}
    daemon = entries[3]  # the daemon is killed before its files are removed
    assert (daemon["kind"], daemon["program"]) == ("daemon", "hostapd")
    assert entries[0]["prefix"].rstrip("p").lstrip("mn0") == daemon["word"].rstrip("_").lstrip(
        "mn0"
    )
    assert entries[-1]["names"] == ["wifi1", "lte1", "s1"]
    assert kinds.index("bridges") == len(kinds) - 1
    assert not any("wlan" in each.get("name", "") for each in entries)


def test_without_wifi_nothing_of_hostapd_is_recorded(tmp_path, monkeypatch):
    topology = loading.load("two_paths").network
    wired = Network(
        topology, wire(topology), Ledger(tmp_path / "ledger"), tmp_path, {}, Multipath()
    )
    monkeypatch.setattr(wired, "pid", lambda _host: 1)
    wired._record()
    assert "hostapd" not in str(wired.ledger.entries())


def ran(monkeypatch):
    """(command, input) of each command, which is not run."""
    found = []
    monkeypatch.setattr(
        shell, "run", lambda argv, doing, stdin="": found.append((" ".join(argv), stdin)) or ""
    )
    return found


def test_every_bridge_has_two_connections_to_pox_whose_timeouts_are_set_afterwards(
    network, monkeypatch
):
    commands = []

    def change(words, doing):
        commands.append(" ".join(words))
        return "\n".join(f"uuid{n}" for n in range(commands[0].count("create controller")))

    monkeypatch.setattr(open_vswitch, "change", change)
    network.connect_controller()
    made, timeouts = commands
    assert made.count('create controller target="tcp:127.0.0.1:6633"') == 3
    assert made.count('create controller target="tcp:127.0.0.1:6653"') == 3
    assert "set bridge wifi1 controller=@wifi1-6633,@wifi1-6653" in made
    assert [timeouts.count(f"set controller uuid{n} inactivity_probe=60000") for n in range(7)] == [
        1
    ] * 6 + [0]


def test_one_command_makes_all_bridges_with_their_ports(network, monkeypatch):
    commands = []
    monkeypatch.setattr(open_vswitch, "change", lambda words, _: commands.append(" ".join(words)))
    network._make_bridges()
    (command,) = commands
    assert command.count("add-br") == 3
    assert "set bridge s1 other_config:datapath-id=0000000000000003 fail_mode=secure" in command
    assert "add-port wifi1 wifi1-wlan1" in command
    assert command.count("add-port s1") == 3  # the server's and two trunks


def test_a_wired_host_gets_the_other_end_of_a_switch_port(network):
    interface = network.wiring.at("ue4", "lte1")
    assert (
        _pair(interface, 77) == f"link add {interface.port} type veth "
        "peer name ue4-lte0 address 02:00:0a:02:00:04 netns 77"
    )


def test_stop_ends_every_node_and_needs_no_network(network, tmp_path):
    nodes = list(network._net.values())
    network.stop()
    assert all(node.ended for node in nodes)
    network._net = None
    network.stop()
