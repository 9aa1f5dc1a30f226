"""A subflow is logged once its tier is known, when it changes, and when it ends."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from controller.host_messages import HostReport, SubflowState
from controller.observation import Subflow
from controller.paths import TCP, Flow, digest
from controller.pox_ext.frames import ACK, SYN, Ip
from controller.pox_ext.host_agents import HostReports, ends
from controller.pox_ext.observer import Observer
from controller.pox_ext.subflow_lifecycle import SubflowLifecycle
from controller.pox_ext.tracker import Fallback, Tracker

FLOW = Flow("10.0.0.1", "10.1.0.1", TCP, 5001, 40001)


class OneSubflow:
    """One subflow of ue1; all parts around it are stubs except `Observer.knows_tier`."""

    def __init__(self, ap: str) -> None:
        self.lines: list[dict] = []
        self.tiers: dict[tuple[str, str], int] = {}
        self.ended = False
        self.backup = False
        self.ap = ap
        joined = SimpleNamespace(connection="c", number=2, flow=FLOW)
        tracker = SimpleNamespace(subflows=lambda: [joined], remove=lambda _: None)
        host_reports = SimpleNamespace(is_over=lambda *_: self.ended, forget=lambda _: None)
        router = SimpleNamespace(forget=lambda _: None)
        hosts = SimpleNamespace(owner=lambda _: None)
        self.lifecycle = SubflowLifecycle(
            tracker, host_reports, self, router, hosts, self.lines.append, lambda: None, 1.0
        )
        self.network = SimpleNamespace(aps={"wifi1": None})

    def subflow(self, _joined):
        tier = self.tiers.get(("ue1", self.ap), 1)
        return Subflow(
            "c",
            2,
            "ue1",
            self.ap,
            "10.0.0.1:5001",
            "10.1.0.1:40001",
            tier,
            ("s1", self.ap),
            backup=self.backup,
        )

    knows_tier = Observer.knows_tier

    def logged(self):
        self.lifecycle.refresh(0.0)
        return [(line["tier"], line["backup"], line.get("ended", False)) for line in self.lines]


def test_a_subflow_at_an_access_point_is_logged_once_its_tier_is_known():
    subflow = OneSubflow("wifi1")
    assert subflow.logged() == []
    subflow.tiers["ue1", "wifi1"] = 2
    assert subflow.logged() == [(2, False, False)]
    assert subflow.logged() == [(2, False, False)]
    subflow.backup = True
    assert subflow.logged()[1:] == [(2, True, False)]
    subflow.ended = True
    assert subflow.logged()[2:] == [(2, True, True)]


def test_a_subflow_without_an_access_point_is_logged_at_once():
    assert OneSubflow("p1").logged() == [(1, False, False)]


@pytest.mark.parametrize(
    ("tiers", "lines"), [({}, []), ({("ue1", "wifi1"): 1}, [(1, False, False), (1, False, True)])]
)
def test_the_end_of_a_subflow_that_was_never_logged_is_not_logged(tiers, lines):
    subflow = OneSubflow("wifi1")
    subflow.tiers |= tiers
    subflow.logged()
    subflow.ended = True
    assert subflow.logged() == lines


DOWN = FLOW  # from the server to the phone
UP = DOWN.back()
SYN_OPTION, ANSWER = b"\x1e\x04\x01\x01", b"\x1e\x0c\x01\x01" + bytes(8)
OWNERS = {DOWN.source: "server", DOWN.destination: "ue1"}


class Handshakes:
    """The lifecycle with a real tracker and host reports. All hosts are known; no link is."""

    def __init__(self) -> None:
        self.lines, self.changes, self.forgotten, self.routed = [], 0, [], []
        self.pins, self.tracker, self.reports = {}, Tracker(), HostReports()
        hosts = SimpleNamespace(owner=OWNERS.get, place=OWNERS.get)
        router = SimpleNamespace(
            forget=self.forgotten.append,
            pin=self.pins.__setitem__,
            is_pinned=self.pins.__contains__,
            route=self.routed.append,
            routes={DOWN: "old", UP: "old"},
        )
        self.routes = router.routes
        self.lifecycle = SubflowLifecycle(
            self.tracker, self.reports, self, router, hosts, self.lines.append, self.change, 1.0
        )

    def change(self):
        self.changes += 1

    def subflow(self, joined):
        ends = (f"{at}:{port}" for at, port in (
            (joined.flow.destination, joined.flow.destination_port),
            (joined.flow.source, joined.flow.source_port),
        ))  # fmt: skip
        return Subflow(joined.connection, joined.number, "ue1", "", *ends)

    def knows_tier(self, _subflow):
        return True

    def is_user(self, host):
        return host == "ue1"

    def handshake(self, option=SYN_OPTION, answer=ANSWER):
        assert self.lifecycle.handle_syn(Ip(UP, SYN, option)) is None
        assert self.lines == []
        return self.lifecycle.handle_syn(Ip(DOWN, SYN | ACK, answer))

    def report(self, seq, host, flow=None):
        state = () if flow is None else (SubflowState("0", *ends(flow), False, None, 0),)
        self.lifecycle.handle_report(HostReport(seq, host, state))

    @property
    def ended(self):
        return [line.get("ended", False) for line in self.lines]


def test_a_handshake_is_logged_once_and_a_fallback_is_returned():
    seen = Handshakes()
    assert seen.handshake() is None
    assert (seen.ended, seen.changes) == ([False], 1)
    seen.lifecycle.handle_syn(Ip(DOWN, SYN | ACK, ANSWER))  # retransmitted
    assert (seen.ended, seen.changes) == ([False], 1)
    plain = Handshakes()
    assert isinstance(plain.handshake(answer=b""), Fallback)
    assert (plain.ended, plain.changes) == ([False], 1)


def test_subflows_that_a_new_report_of_a_server_lists_are_adopted_once():
    seen = Handshakes()
    seen.report(1, "ue1", UP)
    assert seen.changes == 0  # of a user
    seen.report(2, "server", DOWN)
    assert (seen.ended, seen.changes) == ([False], 1)
    seen.report(3, "server", DOWN)
    assert (seen.ended, seen.changes) == ([False], 1)
    seen.report(2, "server", replace(DOWN, destination_port=9))
    assert (seen.ended, seen.changes) == ([False], 1)  # an old report
    elsewhere = replace(DOWN, destination="10.9.0.9")  # no host of the network
    seen.report(4, "server", elsewhere)
    assert (seen.ended, seen.changes) == ([False], 1)


@pytest.mark.parametrize("flow", [UP, DOWN])
def test_a_removed_flow_entry_ends_its_subflow_unless_a_host_reports(flow):
    seen = Handshakes()
    seen.handshake()
    seen.lifecycle.handle_idle_entry(digest(flow) + 1)
    assert (seen.ended, seen.changes) == ([False], 1)
    seen.lifecycle.handle_idle_entry(digest(flow))
    assert (seen.ended, seen.changes, seen.forgotten) == ([False, True], 2, [UP])
    assert seen.lifecycle.refresh(0) == []
    reporting = Handshakes()
    reporting.handshake()
    reporting.report(1, "ue1", UP)
    reporting.lifecycle.handle_idle_entry(digest(flow))
    assert (reporting.ended, reporting.changes) == ([False], 1)


@pytest.mark.parametrize("pinned", [True, False])
def test_open_subflows_are_restored_with_their_paths_and_not_logged_again(pinned):
    seen = Handshakes()
    row = {
        "connection": "c",
        "number": 3,
        "opened": vars(UP),
        "backup": False,
        "pinned": pinned,
        "path": ["s1", "s2"],
    }
    seen.lifecycle.restore([row])
    assert seen.pins == ({DOWN: ("s1", "s2")} if pinned else {})
    assert (seen.routed, seen.routes) == ([UP, DOWN], {})
    ((joined, subflow, chosen),) = seen.lifecycle.documents()
    assert (joined.flow, joined.number, subflow.flow, chosen) == (UP, 3, DOWN, pinned)
    assert seen.lifecycle.refresh(0) == [subflow]
    assert seen.lines == []
    assert seen.lifecycle.flow(("c", 3)) == DOWN
    assert seen.lifecycle.flow(("c", 2)) is None
