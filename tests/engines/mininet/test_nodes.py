"""Mininet-WiFi's nodes on this machine, without radios and without Open vSwitch."""

import subprocess
import sys
from pathlib import Path

import pytest
from built_network import built, needs_nodes

from lab.engines.mininet.machine import shell
from lab.run.manifest import ROOT

__all__ = ["built"]

pytestmark = needs_nodes
CONFIGURATION = "echo 'interface=wifi1-wlan1\nssid=lab-wifi1"


AGAIN = (
    "sys.modules['numpy'] = types.ModuleType('numpy'); del sys.modules[nodes]; "
    "importlib.import_module(nodes); "
)


@pytest.mark.parametrize("again", ["", AGAIN])
def test_numpy_is_real_after_the_import_of_mininet_wifi(again):
    """POX is a fork of a process that has imported it, and strategies there use numpy and scipy.
    Also in a VM that was restored with the empty modules of an older version."""
    code = (
        "import importlib, sys, types; nodes = 'lab.engines.mininet.network.nodes'; "
        "importlib.import_module(nodes); assert 'numpy' not in sys.modules; "
        f"{again}"
        "import controller.strategies.expected_throughput.max_min as used; import numpy; "
        "assert used.np is numpy; assert numpy.zeros(3).sum() == 0"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_hosts_have_their_addresses_routes_and_endpoints(built):
    assert "10.16.0.1/32" in built.run("ue1", ["ip", "-brief", "address"], "inspect")
    assert "10.0.0.0/8 dev ue1-eth2" in built.run(
        "ue1", ["ip", "route", "show", "table", "2"], "inspect"
    )
    assert "10.17.0.1" in built.run("ue1", ["ip", "mptcp", "endpoint"], "inspect")
    assert Path("/sys/class/net/p1-eth1").exists()


def test_one_command_makes_all_links_and_one_configures_each_host(built):
    assert sum(command.endswith("ip -batch -") for command in built.commands) == 3
    assert sum(command.startswith("ovs-vsctl") for command in built.commands) == 1


def test_a_built_network_is_an_ordinary_mininet_network(built):
    user = built.net.get("ue1")
    assert "10.16.0.1/32" in user.cmd("ip -brief address")
    assert user.cmd("echo $((6 * 7))").strip() == "42"
    assert user.pexec("sh", "-c", "echo out; echo err >&2; exit 3") == ("out\n", "err\n", 3)
    process = user.popen("ip -brief link", text=True)
    assert "ue1-eth2" in process.communicate()[0]
    assert user.IP() == "10.16.0.1"
    assert user.MAC("ue1-eth2") == "02:00:0a:11:00:01"
    assert repr(user) == f"<QuietHost ue1: ue1-eth1:10.16.0.1,ue1-eth2:10.17.0.1 pid={user.pid}> "
    assert user.defaultIntf().updateIP() == "10.16.0.1"
    assert {link.status() for link in built.net.links} == {"(OK OK)"}
    assert "p1-eth1" in built.net.get("p1").cmd("ip -brief link")


def test_a_shell_starts_at_the_first_command_and_ends_with_the_network(built):
    user = built.net.get("ue1")
    assert user.shell is None
    shell_pid = int(user.cmd("echo $$"))
    assert user.pid == built.pid("ue1") != shell_pid
    built.stop()
    assert not Path(f"/proc/{shell_pid}").exists()


def test_names_of_hosts_and_interfaces_are_known_inside_the_hosts_only(built):
    before = Path("/etc/hosts").read_text()
    user = built.net.get("ue1")
    assert user.cmd("getent ahostsv4 srv1").split()[0] == "10.0.0.1"
    assert user.cmd("getent ahostsv4 ue1-eth2").split()[0] == "10.17.0.1"
    assert "srv1" not in before
    assert Path("/etc/hosts").read_text() == before


def test_hosts_end_with_the_network(built):
    pid = built.pid("ue1")
    built.stop()
    assert not Path(f"/proc/{pid}").exists()


def test_hostapd_reads_the_configuration_of_mininet_wifi(tmp_path, monkeypatch):
    from lab.engines.mininet.network import nodes, wifi

    started = []
    monkeypatch.setattr(shell, "run", lambda argv, doing: started.append(argv))
    radio = type("Radio", (), {"name": "wifi1-wlan1", "node": type("Node", (), {"name": "wifi1"})})
    nodes._start_hostapd(tmp_path, CONFIGURATION, radio)
    ((program, background, option, pid, file),) = started
    assert (program, background, option) == ("hostapd", "-B", "-P")
    assert {"wifi1": Path(pid)} == wifi.hostapd_pid_files(tmp_path, ["wifi1"])
    assert Path(file).parent == tmp_path
    assert Path(file).read_text() == "interface=wifi1-wlan1\nssid=lab-wifi1"


def test_a_scenario_with_radios_names_every_station(load_testbed, tmp_path):
    from lab.engines.mininet.network import nodes

    topology = load_testbed().network
    network = nodes.empty(tmp_path)
    for user in topology.users[:2]:
        network.addStation(user, mac="02:00:00:00:00:01", ip="10.1.0.1/8", position="10,10,0")
    try:
        assert [node.name for node in network.stations] == ["ue1", "ue2"]
        network["ue1"].setPosition("5,5,0")
    finally:
        for node in network.values():
            node.terminate()
