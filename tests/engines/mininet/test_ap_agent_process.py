"""The process of the AP agent: its start, its reports to the runner, and its restart."""

import json
import socket
import subprocess
import sys

import pytest

from lab.engines.mininet import agents as module
from lab.engines.mininet.agents import ApAgentProcess
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.errors import LabError
from lab.radio import cell as radio_cell
from lab.topologies.topology import wire

AGENT = """
import json, socket, sys
configuration = json.load(open(sys.argv[1]))
key = configuration["key"]
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def report(ap, occupancy, stations={}, key=key):
    line = {"kind": "ap", "seq": 1, "ap": ap, "mac_occupancy": occupancy, "stations": stations}
    out.sendto(f"{key}\\n{json.dumps(line)}".encode(), ("127.0.0.1", configuration["ports"][1]))
for ap in configuration["aps"]:
    report(ap, 0)
for line in sys.stdin:  # each change of a rate is answered by two reports
    report("wifi1", 0.5)
    report("wifi1", json.loads(line)["rate_bps"] / 10)
    report("lte1", 1.0, {"ue3": {"mac_occupancy": 1.0}, "ue2": {"mac_occupancy": 0.0}})
"""


@pytest.fixture
def start(load_testbed, tmp_path, monkeypatch):
    """Start this Python text instead of the AP agent of testbed_wifi_lte."""
    spawn, made = shell.spawn, []

    def go(program):
        def in_place(argv, doing, **options):
            return spawn([sys.executable, "-c", program, argv[-1]], doing, **options)

        monkeypatch.setattr(shell, "spawn", in_place)
        topology = load_testbed().network
        made.append(
            ApAgentProcess(
                module.access_points(topology, wire(topology), {"ue2", *topology.relays}),
                Ledger(tmp_path / "ledger"),
                (tmp_path, tmp_path),
                "secret",
            )
        )
        return made[-1]

    yield go
    for each in made:
        each.close()


def reported(agent, tiers):
    """Change a rate, and return the occupancies in the reports that follow."""
    agent.occupancy(tiers)
    agent.set_station("wifi1", radio_cell.Station("ue1", 7))
    agent._reports.settimeout(5)
    agent._reports.recv(65536, socket.MSG_PEEK)
    agent._process.stdin.close()
    agent._process.wait(5)
    agent._reports.setblocking(False)
    return agent.occupancy(tiers)


def test_the_runner_receives_means_and_sends_rates(start):
    found = reported(start(AGENT), {})
    assert found == {"wifi1": pytest.approx(0.6), "lte1": 0.5}


def test_the_runner_ignores_reports_without_the_key(start):
    stranger = 'report("wifi1", 1.0, key="guessed"); report("wifi1", 1.0, key="")'
    program = AGENT.replace("for line", f"{stranger}\nfor line")
    assert reported(start(program), {})["wifi1"] == pytest.approx(0.6)


def test_only_the_owner_reads_the_configuration_with_the_key(start, tmp_path):
    start(AGENT)
    assert (tmp_path / "agents.json").stat().st_mode & 0o777 == 0o600


def test_in_an_lte_cell_only_tier_1_counts(start):
    agent = start(AGENT)
    tiers = {"ue2": {"lte1": 2}}
    assert reported(agent, tiers)["lte1"] == 1.0
    assert agent.occupancy(tiers)["lte1"] == 1.0  # without a new report the last one still counts


def test_the_configuration_names_devices_and_uploads(start, tmp_path):
    start(AGENT)
    aps = json.loads((tmp_path / "agents.json").read_text())["aps"]
    assert aps["wifi1"]["device"] == "wifi1-wlan1"
    assert {user: each["device"] for user, each in aps["lte1"]["stations"].items()} == {
        "ue2": "lte1-eth2",
        "ue3": "lte1-eth3",
        "ue4": "lte1-eth4",
    }
    uplinks = [each["uplink_device"] for each in aps["lte1"]["stations"].values()]
    assert uplinks == ["lte1-eth2u", "lte1-eth3u", "lte1-eth4u"]
    uploads = {user: each["uploads"] for user, each in aps["lte1"]["stations"].items()}
    assert uploads == {"ue2": True, "ue3": False, "ue4": False}
    assert [each["kind"] for each in Ledger(tmp_path / "ledger").entries()] == ["file", "process"]


def test_an_agent_that_fails_is_an_error_with_its_last_line(start):
    with pytest.raises(
        LabError, match=r"start the AP agent: no report of lte1, wifi1: no such device\. See"
    ):
        start("import sys; sys.exit('no such device')")


def test_an_agent_that_does_not_end_is_killed(start, monkeypatch):
    wait = subprocess.Popen.wait
    monkeypatch.setattr(
        subprocess.Popen, "wait", lambda self, timeout=None: wait(self, timeout and 0.2)
    )
    agent = start(AGENT + "import time; time.sleep(60)")
    agent.close()
    assert agent._process.returncode


@pytest.mark.whole
def test_waiting_for_the_first_report_has_a_timeout(start, monkeypatch):
    monkeypatch.setattr(module, "START_TIMEOUT_S", 0.2)
    with pytest.raises(LabError, match="its log is empty"):
        start("import time; time.sleep(3)")


def test_a_killed_agent_is_restarted_with_the_present_stations(start, tmp_path):
    agent = start(AGENT)
    assert not agent.restart_if_ended()
    agent.set_station("wifi1", radio_cell.Station("ue1", 7, rssi_dbm=-60.0))
    agent._process.kill()
    agent._process.wait()
    for _ in range(3):  # nobody reads these reports
        agent.set_station("lte1", radio_cell.Station("ue3", 8))
    assert agent.restart_if_ended()
    stations = json.loads((tmp_path / "agents.json").read_text())["aps"]
    assert stations["wifi1"]["stations"]["ue1"]["rate_bps"] == 7
    assert stations["wifi1"]["stations"]["ue1"]["rssi_dbm"] == -60.0
    assert stations["lte1"]["stations"]["ue3"]["rate_bps"] == 8
    assert reported(agent, {})["wifi1"] > 0
