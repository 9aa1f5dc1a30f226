"""What hosts say and what they are asked for, until they confirm it."""

from __future__ import annotations

from dataclasses import replace

from controller import host_messages
from controller.host_messages import HostReport, SubflowOrder, SubflowState
from controller.observation import Subflow
from controller.paths import Flow
from controller.pox_ext.host_commands import AGAIN_S, Orders
from controller.pox_ext.host_reports import PATIENCE_REPORTS, PATIENCE_S, Confirmed, Told

SERVER, USER = "10.0.0.1:5001", "10.1.0.3:40112"
FLOW = Flow("10.0.0.1", "10.1.0.3", 6, 5001, 40112)
HOSTS = {"10.0.0.1": "srv1", "10.1.0.3": "ue3", "10.2.0.3": "ue3"}
KEY = "secret"


def state(
    local: str,
    remote: str,
    backup: bool = False,
    expected_mbps: float | None = None,
    again: int = 0,
) -> SubflowState:
    return SubflowState("t", local, remote, backup, expected_mbps, again)


def report(host: str, *states: SubflowState, seq: int = 1, **loss: float) -> HostReport:
    return HostReport(seq, host, states, loss)


def test_the_other_end_confirms_a_backup():
    told = Told()
    told.take(report("ue3", state(USER, SERVER, backup=True)))
    told.take(report("srv1", state(SERVER, USER)))
    assert told.subflow(FLOW).backup is False  # sent, and not heard yet
    told.take(report("srv1", state(SERVER, USER, backup=True), seq=2))
    assert told.subflow(FLOW).backup is True


def test_a_rate_is_in_force_when_both_ends_hold_it():
    told = Told()
    told.take(report("srv1", state(SERVER, USER, expected_mbps=4.5, again=3)))
    assert told.subflow(FLOW) == Confirmed(False, 4_500_000, 3)
    told.take(report("ue3", state(USER, SERVER)))
    assert told.subflow(FLOW).expected_bps is None
    told.take(report("ue3", state(USER, SERVER, expected_mbps=4.5, again=1), seq=2))
    assert told.subflow(FLOW) == Confirmed(False, 4_500_000, 4)


def test_an_old_report_is_none():
    told = Told()
    assert told.take(report("srv1", state(SERVER, USER, backup=True), seq=5))
    assert not told.take(report("srv1", state(SERVER, USER), seq=5))
    assert told.subflow(FLOW).backup is True


def test_nobody_who_reports_nothing_confirmed():
    assert Told().subflow(FLOW) == Confirmed()
    assert Told().loss("10.1.0.3") is None
    assert not Told().is_over(FLOW, ["srv1"], 1e9)


def test_the_loss_of_an_interface_is_passed_on():
    told = Told()
    told.take(HostReport(1, "ue3", (), {"10.1.0.3": 0.02}))
    assert told.loss("10.1.0.3") == 0.02
    assert told.loss("10.2.0.3") is None


def test_a_subflow_is_over_when_its_hosts_have_it_no_more():
    told = Told()
    told.take(report("srv1", state(SERVER, USER)))
    assert not told.is_over(FLOW, ["srv1", "ue3"], 1.0)
    told.take(report("srv1", seq=2))
    assert told.is_over(FLOW, ["srv1", "ue3"], 1.1)


def test_a_new_subflow_is_given_time_to_appear():
    told = Told()
    told.take(report("srv1"))
    assert not told.is_over(FLOW, ["srv1"], 1.0)
    assert not told.is_over(FLOW, ["srv1"], 1e9)  # who is slow to report is given more
    for seq in range(PATIENCE_REPORTS):
        told.take(report("srv1", seq=2 + seq))
    assert not told.is_over(FLOW, ["srv1"], 1.0 + PATIENCE_S)
    assert told.is_over(FLOW, ["srv1"], 1.1 + PATIENCE_S)
    assert not told.is_over(FLOW, ["srv2"], 1e9)  # neither end reports


def test_what_a_server_has_can_be_taken_over():
    told = Told()
    told.take(report("srv1", state(SERVER, USER)))
    assert list(told.found_at("srv1")) == [("t", FLOW)]
    assert list(told.found_at("srv2")) == []


class Post:
    """Takes orders to hosts; one who is `away` cannot be reached."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, host_messages.Order]] = []
        self.away = ""
        self.orders = Orders(KEY, self.send, HOSTS.get, lambda: 1000)

    def send(self, host: str, datagram: bytes) -> bool:
        self.sent.append((host, host_messages.order(datagram, KEY)))
        return host != self.away


FIRST = Subflow("c", 1, "ue3", "wifi1", SERVER, USER)
SECOND = Subflow("c", 2, "ue3", "lte1", SERVER, "10.2.0.3:40113")


def test_both_hosts_are_told_until_it_is_confirmed():
    post = Post()
    post.orders.set_backup(FIRST.key, True)
    post.orders.refresh([FIRST, SECOND], 0.0)
    wanted = (SubflowOrder(SERVER, USER, backup=True),)
    assert [(host, order.subflows) for host, order in post.sent] == [
        ("srv1", wanted),
        ("ue3", wanted),
    ]
    assert [order.seq for _, order in post.sent] == [1000, 1001]
    post.orders.refresh([FIRST, SECOND], AGAIN_S / 2)
    assert len(post.sent) == 2
    post.orders.refresh([FIRST, SECOND], AGAIN_S)
    assert len(post.sent) == 4
    post.orders.refresh([replace(FIRST, backup=True), SECOND], 10 * AGAIN_S)
    assert len(post.sent) == 4


def test_what_a_host_has_lost_is_asked_for_again():
    post = Post()
    post.orders.expect(FIRST.key, 4_000_000)
    held = replace(FIRST, expected_bps=4_000_100)
    post.orders.refresh([held], 0.0)
    assert not post.sent
    post.orders.refresh([FIRST], 1.0)
    assert post.sent[0][1].subflows[0].expected_mbps == 4.0


def test_a_new_wish_does_not_wait():
    post = Post()
    post.orders.expect(FIRST.key, 4_000_000)
    post.orders.refresh([FIRST], 0.0)
    post.orders.expect(FIRST.key, None)
    post.orders.refresh([replace(FIRST, expected_bps=4_000_000)], 0.1)
    assert post.sent[-1][1].subflows[0].expected_mbps == 0


def test_only_what_is_not_confirmed_is_asked_for():
    post = Post()
    post.orders.set_backup(SECOND.key, True)
    post.orders.expect(SECOND.key, 3_000_000)
    post.orders.refresh([FIRST, replace(SECOND, backup=True)], 0.0)
    assert post.sent[0][1].subflows == (SubflowOrder(SERVER, "10.2.0.3:40113", None, 3.0),)


def test_a_host_without_an_agent_is_named_and_a_subflow_that_is_over_is_forgotten():
    post = Post()
    post.away = "ue3"
    post.orders.set_backup(FIRST.key, True)
    assert post.orders.refresh([FIRST], 0.0) == ["ue3"]
    post.orders.refresh([], 5.0)
    post.sent.clear()
    post.orders.refresh([FIRST], 10.0)
    assert not post.sent
