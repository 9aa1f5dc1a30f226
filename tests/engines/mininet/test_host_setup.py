"""The configuration of a host, as text and in the kernel."""

import subprocess
from pathlib import Path

import pytest
from machine import needs_root

from lab.engines.mininet.kernel import netlink
from lab.engines.mininet.machine import ledger, shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network import host_setup, network
from lab.errors import LabError
from lab.scenario.schema import Multipath
from lab.topologies import shared_bottleneck
from lab.topologies.topology import Interface, wire


@pytest.fixture
def wiring(load_testbed):
    return wire(load_testbed().network)


@pytest.fixture
def host():
    """PID of a process in a network namespace of its own, which has an interface `one`."""
    process = subprocess.Popen(
        [
            "unshare",
            "--net",
            "sh",
            "-c",
            "ip link add one type veth peer name two && echo && read _",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    process.stdout.readline()
    yield process.pid
    process.communicate()


@pytest.fixture
def commands():
    """Commands that the journal of the shell receives."""
    found = []

    def journal(_at, argv, _stdin):
        found.append(" ".join(argv))

    with shell.journal_to(journal):
        yield found


def same(argv):
    return argv


def test_every_interface_has_its_own_routing_table(wiring):
    lines = list(host_setup.addresses(wiring.of("ue3")))
    assert "addr add 10.2.0.3/32 dev ue3-lte0" in lines
    assert "rule add from 10.2.0.3 table 1" in lines
    assert "route replace 10.0.0.0/8 dev ue3-wlan0 table 2" in lines
    assert lines[-1] == "route replace 10.0.0.0/8 dev ue3-lte0 src 10.2.0.3"  # the primary one


def test_further_addresses_share_the_interface_and_its_table():
    users = (shared_bottleneck.User(id="mp", subflows=3), shared_bottleneck.User(id="sp"))
    wiring = wire(shared_bottleneck.build(shared_bottleneck.Params(rate_mbps=10, users=users)))
    lines = list(host_setup.addresses(wiring.of("mp")))
    for further in ("10.16.0.3", "10.16.0.5"):
        assert f"addr add {further}/32 dev mp-eth1" in lines
        assert f"rule add from {further} table 1" in lines
        assert any(
            line.startswith(f"neigh replace {further} ")
            for line in host_setup.neighbours("srv1", wiring)
        )


def test_a_radio_gets_its_mac_address_while_it_is_down(wiring):
    down, mac = host_setup.radio_mac(wiring.at("ue1", "wifi1"))
    assert down == "link set dev ue1-wlan0 down"
    assert mac == "link set dev ue1-wlan0 address 02:00:0a:01:00:01"


def test_a_host_answers_arp_only_for_its_own_addresses_and_enables_mptcp():
    settings = host_setup.settings(["ue3-lte0", "ue3-wlan0"])
    assert settings["net.mptcp.enabled"] == "1"
    assert settings.get("net.mptcp.close_timeout", "5") == "5"  # the setting exists since Linux 6.8
    assert settings.get("net.mptcp.blackhole_timeout", "0") == "0"  # since Linux 6.12
    assert settings["net.ipv4.conf.ue3-wlan0.rp_filter"] == "0"
    assert settings["net.ipv4.conf.all.arp_ignore"] == "1"
    assert settings["net.ipv4.tcp_rmem"].split()[2] == "16777216"


@pytest.mark.parametrize(("allowed", "chosen"), [("reno bbr cubic", "cubic"), ("reno bbr", "reno")])
def test_sockets_do_not_start_with_bbr_which_would_pace_them_for_ever(
    tmp_path, monkeypatch, allowed, chosen
):
    listed = tmp_path / "allowed"
    listed.write_text(allowed + "\n")
    monkeypatch.setattr(host_setup, "ALLOWED", listed)
    assert host_setup.unpaced_default() == {"net.ipv4.tcp_congestion_control": chosen}


@needs_root
def test_settings_are_written_inside_a_host_and_journalled(host, commands):
    setting = Path("/proc/sys/net/ipv4/conf/one/arp_announce")
    netlink.inside(
        host, lambda: host_setup.write_settings({"net.ipv4.conf.one.arp_announce": "2"}, same)
    )
    assert netlink.inside(host, setting.read_text) == "2\n"
    assert commands == ["sysctl -qw net.ipv4.conf.one.arp_announce=2"]
    assert not setting.exists()


@needs_root
def test_offloads_are_off(host, commands):
    netlink.inside(host, lambda: host_setup.without_offloads(["one"], same))
    assert commands == ["ethtool -K one tso off gso off gro off"]
    shown = subprocess.run(
        ["nsenter", f"--net=/proc/{host}/ns/net", "ethtool", "-k", "one"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for feature in (
        "tx-tcp-segmentation",
        "generic-segmentation-offload",
        "generic-receive-offload",
    ):
        assert f"{feature}: off" in shown


@needs_root
def test_a_missing_interface_is_an_error(host):
    with pytest.raises(OSError, match="No such device"):
        netlink.inside(host, lambda: host_setup.without_offloads(["three"], same))


@needs_root
def test_every_address_becomes_an_endpoint(host, commands):
    interface = Interface("ue1", "one", "10.16.0.1", "", "s1", "", "access1", ("10.16.0.2",))
    try:
        netlink.inside(
            host,
            lambda: host_setup.endpoints((interface,), {interface: "subflow"}, Multipath(), same),
        )
    except LabError as problem:
        pytest.skip(f"needs a kernel with Multipath TCP: {problem}")
    assert commands[-1] == "ip mptcp endpoint add 10.16.0.2 id 2 dev one subflow"

    def ip_mptcp(*words):
        argv = ["nsenter", f"--net=/proc/{host}/ns/net", "ip", "mptcp", *words]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    assert [line.split()[0] for line in ip_mptcp("endpoint", "show").splitlines()] == [
        "10.16.0.1",
        "10.16.0.2",
    ]
    assert "subflow dev one" in ip_mptcp("endpoint", "show")
    assert "subflows 8" in ip_mptcp("limits", "show")


def test_a_sysctl_for_all_hosts_is_set_and_the_clean_up_sets_it_back(tmp_path, monkeypatch):
    monkeypatch.setattr(host_setup, "SYSCTL", tmp_path)
    monkeypatch.setattr(ledger, "SYSCTL", tmp_path)
    setting, made = tmp_path / "net" / "one", Ledger(tmp_path / "ledger")
    host_setup.set_until_clean_up("net.one", "5", made)  # this kernel does not have it
    assert not setting.exists()
    setting.parent.mkdir()
    setting.write_text("7\n")
    host_setup.set_until_clean_up("net.one", "5", made)
    assert setting.read_text() == "5"
    assert made.undo_all() == []
    assert setting.read_text() == "7"


@needs_root
def test_a_host_has_a_table_of_sockets_of_its_own(tmp_path):
    """Else each listing of a host's sockets would walk through those of the whole machine."""
    entries = "/proc/sys/net/ipv4/tcp_ehash_entries"
    if not (host_setup.SYSCTL / "net/ipv4/tcp_child_ehash_entries").exists():
        pytest.skip("not before Linux 6.1")
    ledger = Ledger(tmp_path / "ledger")
    host_setup.set_until_clean_up(network.SOCKET_TABLE, network.SOCKET_TABLE_ENTRIES, ledger)
    try:
        read = shell.run(["unshare", "--net", "cat", entries], "read the size of the table")
        assert read.strip() == network.SOCKET_TABLE_ENTRIES
    finally:
        assert ledger.undo_all() == []
