"""The controller repeats a command to a host until the host's report confirms it."""

from __future__ import annotations

from dataclasses import replace

from controller import host_messages
from controller.host_messages import NO_TOKEN, HostReport, SubflowChange, SubflowState
from controller.observation import Subflow
from controller.paths import Flow
from controller.pox_ext.host_agents import (
    MISSING_AFTER_REPORTS,
    MISSING_AFTER_S,
    REPEAT_AFTER_S,
    Confirmed,
    HostCommands,
    HostReports,
)
from controller.pox_ext.tracker import PLAIN

SERVER, USER = "10.0.0.1:5001", "10.1.0.3:40112"
FLOW = Flow("10.0.0.1", "10.1.0.3", 6, 5001, 40112)
HOSTS = {"10.0.0.1": "srv1", "10.1.0.3": "ue3", "10.2.0.3": "ue3"}
KEY = "secret"


def state(
    local: str,
    remote: str,
    backup: bool = False,
    expected_mbps: float | None = None,
    retransmitted: int = 0,
) -> SubflowState:
    return SubflowState("t", local, remote, backup, expected_mbps, retransmitted)


def report(host: str, *states: SubflowState, seq: int = 1, **loss: float) -> HostReport:
    return HostReport(seq, host, states, loss)


def test_the_report_of_the_other_end_confirms_a_backup():
    reports = HostReports()
    reports.add(report("ue3", state(USER, SERVER, backup=True)))
    reports.add(report("srv1", state(SERVER, USER)))
    assert reports.confirmed(FLOW).backup is False  # sent, but not received yet
    reports.add(report("srv1", state(SERVER, USER, backup=True), seq=2))
    assert reports.confirmed(FLOW).backup is True


def test_a_rate_is_confirmed_when_both_ends_report_it():
    reports = HostReports()
    reports.add(report("srv1", state(SERVER, USER, expected_mbps=4.5, retransmitted=3)))
    assert reports.confirmed(FLOW) == Confirmed(False, 4_500_000, 3)
    reports.add(report("ue3", state(USER, SERVER)))
    assert reports.confirmed(FLOW).expected_bps is None
    reports.add(report("ue3", state(USER, SERVER, expected_mbps=4.5, retransmitted=1), seq=2))
    assert reports.confirmed(FLOW) == Confirmed(False, 4_500_000, 4)


def test_a_report_with_an_old_number_is_ignored():
    reports = HostReports()
    assert reports.add(report("srv1", state(SERVER, USER, backup=True), seq=5))
    assert not reports.add(report("srv1", state(SERVER, USER), seq=5))
    assert reports.confirmed(FLOW).backup is True


def test_without_a_report_nothing_is_confirmed():
    assert HostReports().confirmed(FLOW) == Confirmed()
    assert HostReports().loss("10.1.0.3") is None
    assert not HostReports().is_over(FLOW, ["srv1"], 1e9)


def test_the_reported_loss_of_an_interface_is_returned():
    reports = HostReports()
    reports.add(HostReport(1, "ue3", (), {"10.1.0.3": 0.02}))
    assert reports.loss("10.1.0.3") == 0.02
    assert reports.loss("10.2.0.3") is None


def test_a_subflow_that_a_host_no_longer_reports_is_over():
    reports = HostReports()
    reports.add(report("srv1", state(SERVER, USER)))
    assert not reports.is_over(FLOW, ["srv1", "ue3"], 1.0)
    reports.add(report("srv1", seq=2))
    assert reports.is_over(FLOW, ["srv1", "ue3"], 1.1)


def test_a_new_subflow_has_time_to_appear_in_reports():
    reports = HostReports()
    reports.add(report("srv1"))
    assert not reports.is_over(FLOW, ["srv1"], 1.0)
    assert not reports.is_over(FLOW, ["srv1"], 1e9)  # a slow host gets more time
    for seq in range(MISSING_AFTER_REPORTS):
        reports.add(report("srv1", seq=2 + seq))
    assert not reports.is_over(FLOW, ["srv1"], 1.0 + MISSING_AFTER_S)
    assert reports.is_over(FLOW, ["srv1"], 1.1 + MISSING_AFTER_S)
    assert not reports.is_over(FLOW, ["srv2"], 1e9)  # neither end reports


def test_the_subflows_of_a_server_are_listed_with_their_tokens():
    reports = HostReports()
    reports.add(report("srv1", state(SERVER, USER)))
    assert list(reports.subflows_at("srv1")) == [("t", FLOW)]
    assert list(reports.subflows_at("srv2")) == []


class Hosts:
    """Records the commands sent to hosts; the host `away` cannot be reached."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, host_messages.HostCommand]] = []
        self.away = ""
        self.commands = HostCommands(KEY, self.send, HOSTS.get, lambda: 1000)

    def send(self, host: str, datagram: bytes) -> bool:
        self.sent.append((host, host_messages.read_command(datagram, KEY)))
        return host != self.away


FIRST = Subflow("c", 1, "ue3", "wifi1", SERVER, USER)
SECOND = Subflow("c", 2, "ue3", "lte1", SERVER, "10.2.0.3:40113")


def test_a_command_goes_to_both_hosts_until_it_is_confirmed():
    hosts = Hosts()
    hosts.commands.set_backup(FIRST.key, True)
    hosts.commands.refresh([FIRST, SECOND], 0.0)
    changes = (SubflowChange(SERVER, USER, backup=True),)
    assert [(host, command.subflows) for host, command in hosts.sent] == [
        ("srv1", changes),
        ("ue3", changes),
    ]
    assert [command.seq for _, command in hosts.sent] == [1000, 1001]
    hosts.commands.refresh([FIRST, SECOND], REPEAT_AFTER_S / 2)
    assert len(hosts.sent) == 2
    hosts.commands.refresh([FIRST, SECOND], REPEAT_AFTER_S)
    assert len(hosts.sent) == 4
    hosts.commands.refresh([replace(FIRST, backup=True), SECOND], 10 * REPEAT_AFTER_S)
    assert len(hosts.sent) == 4


def test_a_rate_that_a_host_has_lost_is_sent_once_more():
    hosts = Hosts()
    hosts.commands.expect(FIRST.key, 4_000_000)
    paced = replace(FIRST, expected_bps=4_000_100)
    hosts.commands.refresh([paced], 0.0)
    assert not hosts.sent
    hosts.commands.refresh([FIRST], 1.0)
    assert hosts.sent[0][1].subflows[0].expected_mbps == 4.0


def test_a_new_command_is_sent_at_once():
    hosts = Hosts()
    hosts.commands.expect(FIRST.key, 4_000_000)
    hosts.commands.refresh([FIRST], 0.0)
    hosts.commands.expect(FIRST.key, None)
    hosts.commands.refresh([replace(FIRST, expected_bps=4_000_000)], 0.1)
    assert hosts.sent[-1][1].subflows[0].expected_mbps == 0


def test_lower_rates_are_sent_before_higher_ones():
    other = replace(FIRST, connection="d")
    poor, rich = replace(FIRST, expected_bps=1_000_000), replace(SECOND, expected_bps=9_000_000)
    hosts = Hosts()
    hosts.commands.expect(poor.key, 2_000_000)
    hosts.commands.expect(rich.key, 8_000_000)
    hosts.commands.set_backup(other.key, True)
    hosts.commands.refresh([poor, rich, other], 0.0)
    at_server = [command.subflows for host, command in hosts.sent if host == "srv1"]
    assert at_server == [
        (SubflowChange(SERVER, "10.2.0.3:40113", None, 8.0),),
        (SubflowChange(SERVER, USER, True, None),),
        (SubflowChange(SERVER, USER, None, 2.0),),
    ]


def test_only_unconfirmed_changes_are_sent():
    hosts = Hosts()
    hosts.commands.set_backup(SECOND.key, True)
    hosts.commands.expect(SECOND.key, 3_000_000)
    hosts.commands.refresh([FIRST, replace(SECOND, backup=True)], 0.0)
    assert hosts.sent[0][1].subflows == (SubflowChange(SERVER, "10.2.0.3:40113", None, 3.0),)


def test_a_connection_without_mptcp_needs_the_agent_of_one_end():
    hosts = Hosts()
    hosts.away = "ue3"
    plain = replace(FIRST, connection=f"{PLAIN}12345678")
    hosts.commands.expect(plain.key, 4_000_000)
    assert hosts.commands.refresh([plain], 0.0) == []
    assert {host for host, _ in hosts.sent} == {"srv1", "ue3"}


def test_a_connection_without_mptcp_has_no_token_in_the_list_of_a_server():
    reports = HostReports()
    reports.add(report("srv1", replace(state(SERVER, USER), token=NO_TOKEN)))
    assert list(reports.subflows_at("srv1")) == [(None, FLOW)]


def test_a_host_without_agent_is_returned_and_an_ended_subflow_is_forgotten():
    hosts = Hosts()
    hosts.away = "ue3"
    hosts.commands.set_backup(FIRST.key, True)
    assert hosts.commands.refresh([FIRST], 0.0) == ["ue3"]
    hosts.commands.refresh([], 5.0)
    hosts.sent.clear()
    hosts.commands.refresh([FIRST], 10.0)
    assert not hosts.sent
