"""The switch algorithm of MPTCP-LA, section 3.3, on vectors and on random losses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.command import SetBackup
from controller.control import Control
from controller.observation import AccessPoint, Observation, Subflow
from controller.strategies.loss_aware import LossAware

SECOND = 1_000_000_000
MBPS = 1_000_000
WIFI, LTE = AccessPoint("wifi1", "wifi", 50 * MBPS), AccessPoint("lte1", "lte", 50 * MBPS)


class Paths:
    """Subflows of one connection whose counters a test moves; hosts confirm what is asked, unless they are deaf."""

    def __init__(self, *aps: str, **params: object) -> None:
        self.strategy = LossAware(LossAware.Params(**params))
        self.t_s = 0.0
        self.deaf = False
        self.subflows = {
            n: Subflow(
                "c",
                n,
                "ue1",
                ap,
                "10.0.0.1:5001",
                f"10.{n}.0.1:4000",
                sent_packets=0,
                lost_packets=0,
                device_loss=0.0,
            )
            for n, ap in enumerate(aps, 1)
        }

    def send(self, n: int, packets: int, lost: int = 0, again: int = 0) -> None:
        old = self.subflows[n]
        self.subflows[n] = replace(
            old,
            sent_packets=old.sent_packets + packets,
            lost_packets=old.lost_packets + lost,
            retransmitted_packets=(old.retransmitted_packets or 0) + again,
        )

    def reports(self, n: int, loss: float | None) -> None:
        self.subflows[n] = replace(self.subflows[n], device_loss=loss)

    def look(self) -> dict[int, bool]:
        """What is asked now, by the subflow's number; half a second passes."""
        return {
            each.command.subflow[1]: each.command.backup
            for each in self.decisions()
            if each.command
        }

    def decisions(self):
        self.t_s += 0.5
        seen = Observation(
            round(self.t_s * SECOND), (WIFI, LTE), subflows=tuple(self.subflows.values())
        )
        decisions = self.strategy.decide(seen)
        for each in decisions:
            if each.command and not self.deaf:
                n = each.command.subflow[1]
                self.subflows[n] = replace(self.subflows[n], backup=each.command.backup)
        return decisions

    def normal(self) -> list[int]:
        return [n for n, each in self.subflows.items() if not each.backup]


def lossy(*aps: str, **params: object) -> Paths:
    """Paths that have been looked at once, so that a window is open."""
    paths = Paths(*(aps or ("wifi1", "lte1")), **params)
    assert paths.look() == {}
    return paths


@pytest.mark.parametrize(
    ("ap", "loss", "leaves"),
    [
        ("wifi1", 0.0001, True),  # >= , not >
        ("wifi1", 0.00009, False),
        ("lte1", 0.01, True),
        ("lte1", 0.0099, False),
        ("p1", 0.0001, True),  # at no access point: wired
        ("p1", 0.00009, False),
    ],
)
def test_the_threshold_is_that_of_the_interface(ap, loss, leaves):
    paths = lossy(ap, "lte1" if ap != "lte1" else "wifi1")
    paths.reports(1, loss)
    paths.send(1, 1000)
    assert paths.look() == ({1: True} if leaves else {})


@pytest.mark.parametrize(("source", "counter"), [("network", "lost"), ("tcp", "again")])
def test_lost_is_what_the_source_says(source, counter):
    paths = lossy("lte1", "wifi1", loss_source=source)
    paths.reports(1, 0.5)  # not asked
    paths.send(1, 1000, **{counter: 9})
    assert paths.look() == {}
    paths.send(1, 1000, **{counter: 10})
    assert paths.look() == {1: True}


def test_a_window_ends_after_so_many_packets_and_the_next_begins_empty():
    paths = lossy("lte1", "wifi1", loss_source="network", window_packets=1000)
    paths.send(1, 600, lost=9)
    assert paths.look() == {}
    paths.send(1, 600)  # 9 of 1200
    assert paths.look() == {}
    paths.send(1, 999, lost=9)
    assert paths.look() == {}
    paths.send(1, 1, lost=1)
    assert paths.look() == {1: True}


def test_what_a_window_may_lose_can_be_lost_before_it_is_full():
    paths = lossy("lte1", "wifi1", loss_source="network", window_packets=1000)
    paths.send(1, 150, lost=10)
    assert paths.look() == {1: True}


def test_only_the_larger_loss_goes_and_one_always_stays():
    paths = lossy("wifi1", "wifi1", "wifi1", loss_source="network")
    for n, lost in ((1, 20), (2, 30), (3, 10)):
        paths.send(n, 1000, lost=lost)
        paths.reports(n, 0.02)
    assert paths.look() == {2: True}
    paths.send(1, 1000, lost=20)
    paths.send(3, 1000, lost=30)
    assert paths.look() == {3: True}
    paths.send(1, 1000, lost=900)
    (kept,) = (each for each in paths.decisions() if each.about == "c/1")
    assert kept.command is None
    assert "last normal subflow" in kept.reason


def test_it_returns_when_the_interface_reports_less_than_the_threshold():
    paths = lossy()
    paths.reports(1, 0.05)
    paths.send(1, 1000)
    assert paths.look() == {1: True}
    for at_gamma in (0.0001, 1 - (1 - 0.0001)):  # < , not <=, and not by rounding either
        paths.reports(1, at_gamma)
        assert paths.look() == {}
    paths.reports(1, None)
    assert paths.look() == {}
    paths.reports(1, 0.00009)
    assert paths.look() == {1: False}


def test_after_its_return_it_is_counted_anew():
    paths = lossy(loss_source="network", window_packets=1000)
    paths.send(1, 1000, lost=50)
    assert paths.look() == {1: True}
    paths.send(1, 20, lost=20)  # packets in flight
    assert paths.look() == {1: False}
    paths.send(1, 20, lost=20)
    assert paths.look() == {}


def test_a_shortest_stay_holds_both_ways():
    paths = lossy(stay_s=2.0)
    paths.reports(1, 0.05)
    paths.send(1, 1000)
    assert paths.look() == {}
    for _ in range(3):
        paths.send(1, 1000)
        last = paths.look()
    assert last == {1: True}
    paths.reports(1, 0)
    assert [paths.look() for _ in range(4)] == [{}, {}, {}, {1: False}]


def test_what_hosts_do_not_confirm_is_asked_again_and_counts_as_backup():
    paths = lossy("wifi1", "wifi1")
    paths.deaf = True
    paths.reports(1, 0.05)
    paths.reports(2, 0.05)
    paths.send(1, 1000)
    assert paths.look() == {1: True}
    paths.send(2, 1000)
    assert paths.look() == {1: True}  # and not 2
    paths.reports(1, 0)
    paths.deaf = False
    assert paths.look() == {1: True}
    assert paths.look() == {1: False}


def test_a_lone_subflow_and_one_that_nobody_counts_are_left_alone():
    alone = lossy("wifi1")
    alone.reports(1, 0.5)
    alone.send(1, 5000)
    assert alone.look() == {}
    uncounted = Paths("wifi1", "lte1")
    uncounted.subflows = {
        n: replace(each, sent_packets=None, device_loss=0.5)
        for n, each in uncounted.subflows.items()
    }
    assert [uncounted.look() for _ in range(3)] == [{}, {}, {}]


def test_counters_that_begin_again_begin_a_window():
    paths = lossy("lte1", "wifi1", loss_source="network")
    paths.send(1, 500, lost=9)
    assert paths.look() == {}
    paths.subflows[1] = replace(paths.subflows[1], sent_packets=10, lost_packets=5)
    assert paths.look() == {}
    paths.send(1, 400, lost=0)
    assert paths.look() == {}


def test_a_controller_that_starts_again_goes_on_from_what_hosts_say():
    paths = lossy()
    paths.subflows[1] = replace(paths.subflows[1], backup=True, device_loss=0.05)
    paths.strategy = LossAware(LossAware.Params())
    assert paths.look() == {}
    paths.reports(1, 0)
    assert paths.look() == {1: False}


def test_withdrawing_makes_every_subflow_ordinary():
    paths = lossy()
    paths.reports(1, 0.05)
    paths.send(1, 1000)
    paths.look()
    seen = Observation(0, subflows=tuple(paths.subflows.values()))
    assert [each.command for each in paths.strategy.withdraw(seen)] == [SetBackup(("c", 1), False)]


def test_reasons_carry_the_numbers():
    paths = lossy(loss_source="network")
    paths.send(1, 1200, lost=60)
    (decision,) = paths.decisions()
    assert decision.reason == "loss 5.000% of 1200 packets >= 0.010%"
    (back,) = paths.decisions()
    assert back.reason == "its interface reports a loss of 0.000% < 0.010%"


steps = st.lists(
    st.tuples(
        st.lists(
            st.tuples(st.integers(0, 3000), st.floats(0, 1), st.one_of(st.none(), st.floats(0, 1))),
            min_size=4,
            max_size=4,
        ),
        st.booleans(),
    ),
    max_size=12,
)


@given(steps=steps, source=st.sampled_from(["device", "network", "tcp"]))
def test_never_is_no_subflow_normal(steps, source):
    control = Control("loss_aware", {"loss_source": source, "window_packets": 10})
    paths = Paths("wifi1", "lte1", "wifi1", "p1")
    for rows, deaf in steps:
        for n, (packets, loss, reported) in enumerate(rows, 1):
            paths.send(n, packets, round(packets * loss), round(packets * loss))
            paths.reports(n, reported)
        paths.t_s += 0.5
        step = control.step(
            Observation(
                round(paths.t_s * SECOND), (WIFI, LTE), subflows=tuple(paths.subflows.values())
            )
        )
        assert step.refused == ()
        for each in step.decisions:
            if each.command and not deaf:
                n = each.command.subflow[1]
                paths.subflows[n] = replace(paths.subflows[n], backup=each.command.backup)
                assert paths.normal()
