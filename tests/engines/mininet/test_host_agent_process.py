"""The process of the host agent: its settings, its start and its restart."""

import json
import os
import sys
from pathlib import Path

import pytest

from lab.engines.mininet import agents as module
from lab.engines.mininet.agents import HostAgentProcess, ports_along, settings_of
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.programs.host_agent import HostSettings, Settings
from lab.scenario.schema import Multipath
from lab.topologies import collision, parallel_paths
from lab.topologies.topology import wire

KEY = "secret"
CONTROLLER = ("127.0.0.1", 6698)


# Settings


def settings(topology, interval_s=2, uploaders=()):
    network = type("Network", (), {"pid": staticmethod(lambda host: 7)})
    wiring = wire(topology)
    return settings_of(
        topology, wiring, network, Multipath(), KEY, uploaders=uploaders, interval_s=interval_s
    )


def test_the_ports_on_the_path_of_the_data(load_testbed):
    topology = parallel_paths.build(
        parallel_paths.Params(paths=({"rate_mbps": 10}, {"rate_mbps": 5}))
    )
    wiring = wire(topology)
    interface = wiring.at("ue1", "access2")
    assert ports_along(topology, wiring, interface, upload=False) == ["s1-eth3", "p2-eth1"]
    assert ports_along(topology, wiring, interface, upload=True) == ["p2-eth2"]


def test_multipath_users_and_servers_are_controlled(load_testbed):
    topology = load_testbed().network
    found = settings(topology)
    assert {host: each.endpoints for host, each in found.hosts.items()} == {
        "ue2": True,
        "ue3": True,
        "srv1": False,
    }
    assert found.hosts["ue2"].loss == {
        "10.1.0.2": ["s1-eth2", "wifi1-wlan1"],
        "10.2.0.2": ["s1-eth3", "lte1-eth2"],
    }


def test_a_user_that_sends_over_plain_tcp_is_controlled_too(load_testbed):
    found = settings(load_testbed().network, uploaders=("ue1", "ue3"))
    assert {host: each.endpoints for host, each in found.hosts.items()} == {
        "ue1": False,
        "ue2": True,
        "ue3": True,
        "srv1": False,
    }


@pytest.mark.parametrize(
    ("interval_s", "period_s"), [(0.5, 0.5), (2, 0.5), (3, 0.75), (4, 1.0), (30, 1.0)]
)
def test_hosts_report_four_times_per_control_interval_within_bounds(
    load_testbed, interval_s, period_s
):
    topology = load_testbed().network
    found = settings(topology, interval_s)
    assert found.period_s == period_s


def test_a_user_with_many_paths_opens_its_subflows_itself(load_testbed):
    topology = parallel_paths.build(parallel_paths.Params(paths=[{"rate_mbps": 1}] * 15))
    found = settings(topology)
    assert [len(found.hosts[host].opens) for host in ("ue1", "srv1")] == [15, 0]


def test_pacing_comes_behind_the_shape_of_an_interface(load_testbed):
    topology = parallel_paths.build(
        parallel_paths.Params(paths=({"rate_mbps": 10}, {"rate_mbps": 5}))
    )
    hosts = settings(topology).hosts
    assert [line.split(" handle")[0] for line in hosts["srv1"].paced] == [
        "qdisc replace dev srv1-eth1 root"
    ]
    within = collision.build(collision.Params())
    hosts = settings(within).hosts
    assert [line.split(" handle")[0] for line in hosts["ue1"].paced] == [
        f"qdisc replace dev ue1-eth{n} parent 30:1" for n in (1, 2)
    ]
    mobile = load_testbed().network
    hosts = settings(mobile).hosts
    assert [line.split(" handle")[0] for line in hosts["ue3"].paced] == [
        "qdisc replace dev ue3-lte0 root"
    ]


SCRIPT = """
import json, sys
print(json.dumps({"ready": True}), flush=True)
print(json.dumps({"at": 5.0, "argv": ["ip", "mptcp"]}), flush=True)
sys.stdin.read()
"""


SETTINGS = Settings(CONTROLLER, KEY, 0.5, Path("/none"), {"ue3": HostSettings(7, True, {})})


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Start this script instead of the host agent."""

    def start(script=SCRIPT):
        spawn = shell.spawn
        monkeypatch.setattr(
            shell,
            "spawn",
            lambda argv, doing, **options: spawn([sys.executable, "-c", script], doing, **options),
        )
        made.append(
            HostAgentProcess(
                tmp_path / "hosts.json",
                SETTINGS,
                Ledger(tmp_path / "ledger"),
                tmp_path / "hosts.log",
            )
        )
        return made[-1]

    made = []
    yield start
    for agent in made:
        agent.close()


def test_commands_of_the_agent_are_written_into_the_journals(started):
    agent, done = started(), []
    agent.wait()
    with shell.journal_to(lambda at, argv, _stdin: done.append((at, argv))):
        while not done:
            agent.write_journal()
    assert done == [(5.0, ["ip", "mptcp"])]
    assert not agent.restart_if_ended()


def test_only_this_user_can_read_the_configuration(started, tmp_path):
    started()
    assert os.stat(tmp_path / "hosts.json").st_mode & 0o777 == 0o600
    written = json.loads((tmp_path / "hosts.json").read_text())
    assert Settings.from_json(written) == SETTINGS
    assert [each["kind"] for each in Ledger(tmp_path / "ledger").entries()] == ["file", "process"]


def test_an_agent_that_ends_is_restarted(started):
    agent = started()
    agent.wait()
    agent._process.kill()
    agent._process.wait()
    agent.write_journal()
    assert agent.restart_if_ended()
    agent.wait()
    assert not agent.restart_if_ended()


def test_an_agent_that_does_not_start_is_an_error_with_its_last_line(started, monkeypatch):
    monkeypatch.setattr(module, "START_TIMEOUT_S", 5)
    agent = started("import sys; sys.exit('no namespace')")
    with pytest.raises(Exception, match="start the host agent: no namespace"):
        agent.wait()
