"""When a subflow is told of: once its tier is known, when something of it changes, and at its end."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from controller.observation import Subflow
from controller.paths import TCP, Flow
from controller.pox_ext.observer import Observer
from controller.pox_ext.subflow_lifecycle import Lives

FLOW = Flow("10.0.0.1", "10.1.0.1", TCP, 5001, 40001)


class Watched:
    """The lives of one subflow of ue1; everything around it is a stub but what the observer knows of tiers."""

    def __init__(self, ap: str) -> None:
        self.lines: list[dict] = []
        self.tiers: dict[tuple[str, str], int] = {}
        self.ended = False
        self.backup = False
        self.ap = ap
        joined = SimpleNamespace(connection="c", number=2, flow=FLOW)
        tracker = SimpleNamespace(subflows=lambda: [joined], ended=lambda _: None)
        told = SimpleNamespace(is_over=lambda *_: self.ended, forget=lambda _: None)
        router = SimpleNamespace(forget=lambda _: None)
        hosts = SimpleNamespace(owner=lambda _: None)
        self.lives = Lives(tracker, told, self, router, hosts, self.lines.append, lambda: None, 1.0)
        self._plan = SimpleNamespace(aps={"wifi1": None})

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

    def look(self):
        self.lives.look(0.0)
        return [(line["tier"], line["backup"], line.get("ended", False)) for line in self.lines]


def test_a_subflow_at_an_access_point_waits_for_its_tier():
    watched = Watched("wifi1")
    assert watched.look() == []
    watched.tiers["ue1", "wifi1"] = 2
    assert watched.look() == [(2, False, False)]
    assert watched.look() == [(2, False, False)]
    watched.backup = True
    assert watched.look()[1:] == [(2, True, False)]
    watched.ended = True
    assert watched.look()[2:] == [(2, True, True)]


def test_where_there_is_no_access_point_there_are_no_tiers():
    assert Watched("p1").look() == [(1, False, False)]


@pytest.mark.parametrize(
    ("known", "said"), [({}, []), ({("ue1", "wifi1"): 1}, [(1, False, False), (1, False, True)])]
)
def test_who_was_never_told_of_does_not_end(known, said):
    watched = Watched("wifi1")
    watched.tiers |= known
    watched.look()
    watched.ended = True
    assert watched.look() == said
