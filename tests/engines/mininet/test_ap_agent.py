"""The agent of the access points: what it sees and shares out, and how the runner hears of it."""

import json
import socket
import subprocess
import sys

import pytest

from lab.engines.mininet import ap_agent_process as module
from lab.engines.mininet.ap_agent_process import Agents
from lab.engines.mininet.kernel.netlink import Queue
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.programs import ap_agent
from lab.engines.mininet.programs.ap_agent import FQ, PFIFO, LteAgent, WifiAgent, mean
from lab.errors import LabError
from lab.topologies.topology import wire

STATIONS = {
    "ue3": {"rate_bps": 8_000_000, "weight": 1.0, "device": "p3"},
    "ue4": {"rate_bps": 8_000_000, "weight": 1.0, "device": "p4"},
}


class Scheduler:
    """Devices p1, p2, ... with the indices 1, 2, ...; remembers the rates it was given."""

    def __init__(self):
        self.rates = {}

    def index(self, device):
        return int(device[1:])

    def set_rate(self, index, rate_bps, burst):
        self.rates[index] = rate_bps


def queue(waiting, sent_bytes=0):
    return Queue(waiting, 0, sent_bytes, 0)


def test_a_radio_is_as_full_as_its_ring():
    agent = WifiAgent({"device": "p1", "stations": {"ue1": {"rate_bps": 10_500_000}}}, Scheduler())
    report = agent.look({(1, FQ): queue(8)}, 0.1)
    assert (report["backlog_packets"], report["mac_occupancy"]) == (8, 0.5)
    assert report["stations"] == {"ue1": {"rate_mbps": 10.5, "associated": True}}
    assert agent.look({(1, FQ): queue(100)}, 0.1)["mac_occupancy"] == 1.0


def test_backlogged_users_of_an_lte_cell_halve_it():
    scheduler = Scheduler()
    report = LteAgent({"stations": STATIONS}, scheduler).look(
        {(3, PFIFO): queue(20), (4, PFIFO): queue(4)}, 0.1
    )
    assert scheduler.rates == {3: 4_000_000, 4: 4_000_000}
    assert [each["mac_occupancy"] for each in report["stations"].values()] == [1.0, 0.25]
    assert (report["backlog_packets"], report["mac_occupancy"]) == (24, 0.625)


def test_what_one_does_not_use_is_the_others():
    scheduler = Scheduler()
    agent = LteAgent({"stations": STATIONS}, scheduler)
    agent.look({(3, PFIFO): queue(20), (4, PFIFO): queue(0)}, 0.1)
    assert scheduler.rates == {
        3: 8_000_000,
        4: 4_000_000,
    }  # ue4 sent nothing, and may start with its share
    agent.look({(3, PFIFO): queue(20, 80_000), (4, PFIFO): queue(0, 20_000)}, 0.1)
    assert scheduler.rates[3] == 6_400_000  # ue4 sent 1.6 Mb/s, a fifth of the cell


def test_a_rate_that_hardly_changed_is_not_set_again():
    scheduler = Scheduler()
    agent = LteAgent({"stations": STATIONS}, scheduler)
    queues = {(3, PFIFO): queue(20), (4, PFIFO): queue(20)}
    agent.look(queues, 0.1)
    scheduler.rates.clear()
    agent.look(queues, 0.1)
    assert scheduler.rates == {}


def test_a_report_is_the_mean_of_its_looks():
    def look(occupancy):
        return {
            "backlog_packets": 3,
            "mac_occupancy": occupancy,
            "stations": {"ue3": {"mac_occupancy": occupancy}, "ue1": {}},
        }

    report = mean([look(0.5), look(1.0)])
    assert (report["mac_occupancy"], report["stations"]["ue3"]["mac_occupancy"]) == (0.75, 0.75)
    assert report["stations"]["ue1"] == {}


def test_a_change_of_rate_is_taken_from_standard_input(monkeypatch):
    read, write = socket.socketpair()
    with read, write, read.makefile("r") as lines:
        monkeypatch.setattr(ap_agent.sys, "stdin", lines)
        aps = {"wifi1": {"stations": {"ue1": {"rate_bps": 1}}}}
        assert ap_agent._take_changes(aps, 0.01)
        assert aps["wifi1"]["stations"]["ue1"]["rate_bps"] == 1
        write.sendall(b'{"ap": "wifi1", "user": "ue1", "rate_bps": 7}\n')
        assert ap_agent._take_changes(aps, 1)
        assert aps["wifi1"]["stations"]["ue1"]["rate_bps"] == 7
        write.shutdown(socket.SHUT_WR)
        assert not ap_agent._take_changes(aps, 1)


AGENT = """
import json, socket, sys
configuration = json.load(open(sys.argv[1]))
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def report(ap, occupancy, stations={}):
    line = {"ap": ap, "mac_occupancy": occupancy, "stations": stations}
    out.sendto(json.dumps(line).encode(), ("127.0.0.1", configuration["ports"][1]))
for ap in configuration["aps"]:
    report(ap, 0)
for line in sys.stdin:  # each change of a rate is answered by two reports
    report("wifi1", 0.5)
    report("wifi1", json.loads(line)["rate_bps"] / 10)
    report("lte1", 1.0, {"ue3": {"mac_occupancy": 1.0}, "ue2": {"mac_occupancy": 0.0}})
"""


@pytest.fixture
def start(load, tmp_path, monkeypatch):
    """Agents of testbed_wifi_lte with this Python text in the agent's place."""
    spawn, made = shell.spawn, []

    def go(program):
        def in_place(argv, doing, **options):
            return spawn([sys.executable, "-c", program, argv[-1]], doing, **options)

        monkeypatch.setattr(shell, "spawn", in_place)
        topology = load().network
        made.append(
            Agents(
                topology,
                wire(topology),
                Ledger(tmp_path / "ledger"),
                tmp_path,
                tmp_path / "agents.log",
            )
        )
        return made[-1]

    yield go
    for each in made:
        each.close()


def hear(agents, tiers):
    """What the reports that a change of rate brings come down to."""
    agents.occupancy(tiers)
    agents.set_rate("wifi1", "ue1", 7)
    agents._reports.settimeout(5)
    agents._reports.recv(65536, socket.MSG_PEEK)
    agents._process.stdin.close()
    agents._process.wait(5)
    agents._reports.setblocking(False)
    return agents.occupancy(tiers)


def test_the_runner_hears_means_and_tells_rates(start):
    heard = hear(start(AGENT), {})
    assert heard == {"wifi1": pytest.approx(0.6), "lte1": 0.5}


def test_of_an_lte_cell_only_tier_1_counts(start):
    agents = start(AGENT)
    tiers = {"ue2": {"lte1": 2}}
    assert hear(agents, tiers)["lte1"] == 1.0
    assert agents.occupancy(tiers)["lte1"] == 1.0  # no news: the last one holds


def test_the_agent_is_told_what_to_look_at(start, tmp_path):
    start(AGENT)
    aps = json.loads((tmp_path / "agents.json").read_text())["aps"]
    assert aps["wifi1"]["device"] == "wifi1-wlan1"
    assert {user: each["device"] for user, each in aps["lte1"]["stations"].items()} == {
        "ue2": "lte1-eth2",
        "ue3": "lte1-eth3",
        "ue4": "lte1-eth4",
    }
    assert [each["kind"] for each in Ledger(tmp_path / "ledger").entries()] == ["file", "process"]


def test_an_agent_that_fails_is_an_error_with_what_it_said(start):
    with pytest.raises(
        LabError, match=r"start the agent of lte1, wifi1: no report: no such device\. See"
    ):
        start("import sys; sys.exit('no such device')")


def test_one_that_does_not_end_is_killed(start, monkeypatch):
    wait = subprocess.Popen.wait
    monkeypatch.setattr(
        subprocess.Popen, "wait", lambda self, timeout=None: wait(self, timeout and 0.2)
    )
    agents = start(AGENT + "import time; time.sleep(60)")
    agents.close()
    assert agents._process.returncode


@pytest.mark.whole
def test_patience_has_an_end(start, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT_S", 0.2)
    with pytest.raises(LabError, match="it said nothing"):
        start("import time; time.sleep(3)")
