"""The host agent: its reports, and the commands it obeys."""

import socket
from pathlib import Path

import pytest

from controller.errors import MessageRefused
from controller.host_messages import NO_TOKEN, HostCommand, SubflowChange, encode
from lab.engines.mininet.kernel import netlink, subflow_rates, tcp_sockets
from lab.engines.mininet.kernel.subflow_rates import payload_rate
from lab.engines.mininet.kernel.tcp_sockets import TcpSocket
from lab.engines.mininet.machine import shell
from lab.engines.mininet.programs import host_agent
from lab.engines.mininet.programs.host_agent import (
    ControlledHost,
    HostAgent,
    HostSettings,
    Settings,
)
from lab.errors import LabError

LOCAL, REMOTE = ("10.1.0.3", 40112), ("10.0.0.1", 5001)
KEY = "secret"
CONTROLLER = ("127.0.0.1", 6698)


def tcp(source=LOCAL, destination=REMOTE, token=0x9AD01F22, **fields):
    plain = {
        "cc": "reno",
        "rtt_ms": 1.0,
        "cwnd": 10,
        "bytes_acked": 0,
        "bytes_received": 0,
        "data_segments_out": 0,
        "data_segments_in": 0,
    }
    plain |= {
        "retransmitted": 3,
        "in_flight": 0,
        "out_of_order": 0,
        "pacing_limit": 2**64 - 1,
        "backup": False,
    }
    return TcpSocket(source=source, destination=destination, token=token, **plain | fields)


class Diagnosis:
    def __init__(self):
        self.found = [tcp(), tcp(("10.1.0.3", 22), ("10.9.9.9", 1), token=None)]

    def sockets(self):
        return self.found


class Manager:
    def __init__(self):
        self.requests = []

    def set_backup(self, address, backup):
        self.requests.append((address, backup))

    def set_subflow_backup(self, token, address, remote, backup):
        self.requests.append((token, address, remote, backup))

    def listen(self):
        return None


class Pacing(subflow_rates.Pacing):
    def __init__(self, _pins=None):
        self.held = []

    def set_rate(self, pid, local, remote, rate_bps):
        self.held.append((local, remote, rate_bps))


@pytest.fixture
def host(monkeypatch):
    monkeypatch.setattr(netlink, "inside", lambda pid, make: make())
    monkeypatch.setattr(tcp_sockets, "Diagnosis", Diagnosis)
    monkeypatch.setattr(host_agent, "PathManager", Manager)
    return ControlledHost(
        "ue3", HostSettings(7, True, {"10.1.0.3": ["s1-eth2", "p1-eth1"]}), Pacing()
    )


def command(seq, **change):
    return HostCommand(
        seq, "ue3", "t", (SubflowChange("10.0.0.1:5001", "10.1.0.3:40112", **change),)
    )


def test_a_host_reports_its_connections_and_the_loss_on_their_paths(host):
    host._diagnosis.found[0] = tcp(backup=True, pacing_limit=payload_rate(4_000_000))
    report = host.report(1, {"s1-eth2": 0.1, "p1-eth1": 0.5})
    plain, state = report.subflows
    assert plain.token == NO_TOKEN
    assert (state.token, state.local, state.remote, state.backup) == (
        "9ad01f22",
        "10.1.0.3:40112",
        "10.0.0.1:5001",
        True,
    )
    assert state.expected_mbps == pytest.approx(4, rel=1e-4)
    assert state.retransmitted_packets == 3
    assert report.loss["10.1.0.3"] == pytest.approx(0.55)


def test_a_server_reports_subflows_in_the_order_in_which_they_joined(host):
    ends = [("10.1.0.3", 40001), ("10.2.0.3", 40002), ("10.1.0.3", 40003)]
    third, first, second = (
        tcp(REMOTE, end, token=7, remote_id=number)
        for end, number in zip(ends, (2, 0, 1), strict=True)
    )
    host._diagnosis.found = [third, second, first]
    assert [state.remote for state in host.report(1, {}).subflows] == [
        "10.2.0.3:40002",
        "10.1.0.3:40003",
        "10.1.0.3:40001",
    ]


def test_a_command_may_name_a_subflow_in_either_direction(host):
    host.obey(command(1, backup=True))
    host.obey(command(2, expected_mbps=4.0))
    host._diagnosis.found[0] = tcp(pacing_limit=payload_rate(4_000_000))
    host.obey(command(3, expected_mbps=4.0))  # it has this value already
    host.obey(command(4, expected_mbps=0))
    assert host._manager.requests == [("10.1.0.3", True)]
    assert host._limits.held == [(LOCAL, REMOTE, 4_000_000), (LOCAL, REMOTE, None)]


def test_a_repeated_command_notifies_the_other_end_once_more(host):
    host.obey(command(1, backup=True))
    host.obey(command(2, backup=True))
    assert host._manager.requests == [("10.1.0.3", True), ("10.1.0.3", False), ("10.1.0.3", True)]


def test_an_old_command_is_refused_and_an_unknown_subflow_changes_nothing(host):
    host.obey(command(5, backup=True))
    with pytest.raises(MessageRefused, match="command 5 has come before"):
        host.obey(command(5, backup=False))
    host.obey(
        HostCommand(
            6,
            "ue3",
            "t",
            (
                SubflowChange("10.0.0.1:5001", "10.1.0.3:9", True, 1.0),
                SubflowChange("x", "y:z", True),
            ),
        )
    )
    assert host._manager.requests == [("10.1.0.3", True)]


def test_a_host_is_prepared_for_pacing_once_and_only_when_a_rate_is_set(host, monkeypatch):
    ran = []
    monkeypatch.setattr(shell, "run", lambda argv, doing, stdin=None: ran.append((argv, stdin)))
    host._to_prepare = ["qdisc replace dev ue3-eth1 root handle 40: fq"]
    host.obey(command(1, backup=True))
    assert ran == []
    host.obey(command(2, expected_mbps=4.0))
    host.obey(command(3, expected_mbps=3.0))
    assert ran == [
        (
            ["mnexec", "-a", "7", "tc", "-batch", "-"],
            "qdisc replace dev ue3-eth1 root handle 40: fq\n",
        )
    ]


def test_a_refused_change_of_one_subflow_does_not_stop_the_others(host):
    other = ("10.2.0.3", 40113)
    host._diagnosis.found = [tcp(), tcp(other)]
    refuse, kept = host._manager.set_backup, host._manager

    def set_backup(address, backup):
        if address == LOCAL[0]:
            raise LabError("netlink request 30: Invalid argument")
        refuse(address, backup)

    kept.set_backup = set_backup
    both = tuple(
        SubflowChange("10.0.0.1:5001", f"{end[0]}:{end[1]}", True) for end in (LOCAL, other)
    )
    with pytest.raises(LabError, match="netlink request 30"):
        host.obey(HostCommand(1, "ue3", "t", both))
    assert kept.requests == [("10.2.0.3", True)]


def test_a_server_has_no_endpoint_to_change(host):
    host._manager = None
    host.obey(command(1, backup=True, expected_mbps=2.0))
    assert host._limits.held == [(LOCAL, REMOTE, 2_000_000)]


def test_a_path_manager_in_user_space_changes_one_subflow_alone(host):
    host = ControlledHost("ue3", HostSettings(7, True, {}, opens=["10.2.0.3"]), Pacing())
    host.obey(command(1, backup=True))
    host.obey(command(2, backup=True))
    assert host._manager.requests == [(0x9AD01F22, "10.1.0.3", REMOTE, True)] * 2
    server = ControlledHost("srv1", HostSettings(8, False, {}, opens=[]), Pacing())
    server.obey(command(1, backup=True))
    assert server._manager.requests == []


@pytest.fixture
def agent(host, monkeypatch):
    monkeypatch.setattr(host_agent, "Pacing", Pacing)
    hosts = {"ue3": HostSettings(7, True, {})}
    made = HostAgent(Settings(CONTROLLER, KEY, 0.5, Path("/none"), hosts))
    yield made
    made.socket.close()
    made._scheduler.close()


def test_only_the_registered_controller_with_the_key_is_obeyed(agent):
    whole = encode(command(1, backup=True), KEY)
    for sender in (("127.0.0.1", 6699), ("10.0.0.1", 6698)):
        with pytest.raises(MessageRefused, match="not the registered controller"):
            agent.read(whole, sender)
    with pytest.raises(MessageRefused, match="not this run's"):
        agent.read(encode(command(1, backup=True), "guessed"), CONTROLLER)
    with pytest.raises(MessageRefused, match="choose from ue3"):
        agent.read(encode(HostCommand(1, "ue9", "t", ()), KEY), CONTROLLER)
    assert agent.period_s == host_agent.FULL_REPORT_S
    agent.obey(agent.read(whole, CONTROLLER))
    assert agent.period_s == 0.5
    assert agent._hosts["ue3"]._manager.requests == [("10.1.0.3", True)]


def test_of_commands_that_wait_the_last_of_each_connection_is_carried_out(agent):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as controller:
        controller.bind(("127.0.0.1", 0))
        agent._controller = controller.getsockname()
        for datagram in (
            encode(command(1, expected_mbps=9.0), KEY),
            encode(command(3, expected_mbps=4.0), KEY),
            encode(command(2, expected_mbps=1.0), KEY),
            b"{}",
            encode(
                HostCommand(
                    4,
                    "ue3",
                    "another",
                    (SubflowChange("10.0.0.1:5001", "10.1.0.3:40112", backup=True),),
                ),
                KEY,
            ),
        ):
            controller.sendto(datagram, agent.socket.getsockname())
        agent.obey_waiting()
    host = agent._hosts["ue3"]
    assert host._limits.held == [(LOCAL, REMOTE, 4_000_000)]
    assert host._manager.requests == [("10.1.0.3", True)]


def test_a_host_reports_every_change_and_every_two_seconds(agent, monkeypatch):
    now, said = 100.0, []
    monkeypatch.setattr(host_agent.time, "monotonic", lambda: now)
    agent.socket.close()
    agent.socket = type(
        "Socket",
        (),
        {"sendto": lambda self, data, to: said.append(now), "close": lambda self: None},
    )()
    for now in (100.0, 100.5, 101.0, 101.5, 102.0, 102.5):
        if now == 101.0:
            agent._hosts["ue3"]._diagnosis.found = [tcp(backup=True)]
        agent.report()
    assert said == [100.0, 101.0]
    now = 103.0
    agent.report()
    assert said[2:] == [103.0]
