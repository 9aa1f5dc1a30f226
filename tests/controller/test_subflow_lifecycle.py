"""A subflow is logged once its tier is known, when it changes, and when it ends."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from controller.observation import Subflow
from controller.paths import TCP, Flow
from controller.pox_ext.observer import Observer
from controller.pox_ext.subflow_lifecycle import SubflowLifecycle

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
