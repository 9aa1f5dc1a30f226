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
    """Subflows of one connection. A test sets their counters; hosts confirm commands."""

    def __init__(self, *aps: str, **params: object) -> None:
        self.strategy = LossAware(LossAware.Params(**params))
        self.t_s = 0.0
        self.confirms_nothing = False
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

    def send(self, n: int, packets: int, lost: int = 0, retransmitted: int = 0) -> None:
        old = self.subflows[n]
        self.subflows[n] = replace(
            old,
            sent_packets=old.sent_packets + packets,
            lost_packets=old.lost_packets + lost,
            retransmitted_packets=(old.retransmitted_packets or 0) + retransmitted,
        )

    def reports(self, n: int, loss: float | None) -> None:
        self.subflows[n] = replace(self.subflows[n], device_loss=loss)

    def step(self) -> dict[int, bool]:
        """Make a step of 0.5 s. For each subflow that gets a command: whether it becomes backup."""
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
            if each.command and not self.confirms_nothing:
                n = each.command.subflow[1]
                self.subflows[n] = replace(self.subflows[n], backup=each.command.backup)
        return decisions

    def normal(self) -> list[int]:
        return [n for n, each in self.subflows.items() if not each.backup]


def lossy(*aps: str, **params: object) -> Paths:
    """Paths after a first step, so that loss is being counted."""
    paths = Paths(*(aps or ("wifi1", "lte1")), **params)
    assert paths.step() == {}
    return paths


@pytest.mark.parametrize(
    ("ap", "loss", "leaves"),
    [
        ("wifi1", 0.0001, True),  # >=, not >
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
    assert paths.step() == ({1: True} if leaves else {})


@pytest.mark.parametrize(("source", "counter"), [("network", "lost"), ("tcp", "retransmitted")])
def test_the_loss_source_decides_what_counts_as_lost(source, counter):
    paths = lossy("lte1", "wifi1", loss_source=source)
    paths.reports(1, 0.5)  # does not count
    paths.send(1, 1000, **{counter: 9})
    assert paths.step() == {}
    paths.send(1, 1000, **{counter: 10})
    assert paths.step() == {1: True}


def test_a_window_ends_after_so_many_packets_and_the_next_begins_empty():
    paths = lossy("lte1", "wifi1", loss_source="network", window_packets=1000)
    paths.send(1, 600, lost=9)
    assert paths.step() == {}
    paths.send(1, 600)  # 9 of 1200
    assert paths.step() == {}
    paths.send(1, 999, lost=9)
    assert paths.step() == {}
    paths.send(1, 1, lost=1)
    assert paths.step() == {1: True}


def test_a_verdict_does_not_wait_for_a_full_window():
    paths = lossy("lte1", "wifi1", loss_source="network", window_packets=1000)
    paths.send(1, 150, lost=10)
    assert paths.step() == {1: True}


def test_only_the_subflow_with_the_largest_loss_becomes_backup_and_one_stays_normal():
    paths = lossy("wifi1", "wifi1", "wifi1", loss_source="network")
    for n, lost in ((1, 20), (2, 30), (3, 10)):
        paths.send(n, 1000, lost=lost)
        paths.reports(n, 0.02)
    assert paths.step() == {2: True}
    paths.send(1, 1000, lost=20)
    paths.send(3, 1000, lost=30)
    assert paths.step() == {3: True}
    paths.send(1, 1000, lost=900)
    (kept,) = (each for each in paths.decisions() if each.subject == "c/1")
    assert kept.command is None
    assert "last normal subflow" in kept.reason


def test_a_subflow_becomes_normal_when_its_interface_reports_less_than_the_threshold():
    paths = lossy()
    paths.reports(1, 0.05)
    paths.send(1, 1000)
    assert paths.step() == {1: True}
    for at_gamma in (0.0001, 1 - (1 - 0.0001)):  # <, not <=, and not by rounding either
        paths.reports(1, at_gamma)
        assert paths.step() == {}
    paths.reports(1, None)
    assert paths.step() == {}
    paths.reports(1, 0.00009)
    assert paths.step() == {1: False}


def test_a_new_window_begins_when_a_subflow_becomes_normal():
    paths = lossy(loss_source="network", window_packets=1000)
    paths.send(1, 1000, lost=50)
    assert paths.step() == {1: True}
    paths.send(1, 20, lost=20)  # the packets in flight
    assert paths.step() == {1: False}
    paths.send(1, 20, lost=20)
    assert paths.step() == {}


def test_a_shortest_stay_applies_to_both_modes():
    paths = lossy(stay_s=2.0)
    paths.reports(1, 0.05)
    paths.send(1, 1000)
    assert paths.step() == {}
    for _ in range(3):
        paths.send(1, 1000)
        last = paths.step()
    assert last == {1: True}
    paths.reports(1, 0)
    assert [paths.step() for _ in range(4)] == [{}, {}, {}, {1: False}]


def test_an_unconfirmed_backup_is_repeated_and_counts_as_backup():
    paths = lossy("wifi1", "wifi1")
    paths.confirms_nothing = True
    paths.reports(1, 0.05)
    paths.reports(2, 0.05)
    paths.send(1, 1000)
    assert paths.step() == {1: True}
    paths.send(2, 1000)
    assert paths.step() == {1: True}  # and not 2
    paths.reports(1, 0)
    paths.confirms_nothing = False
    assert paths.step() == {1: True}
    assert paths.step() == {1: False}


def test_a_single_subflow_and_one_without_counters_stay_as_they_are():
    alone = lossy("wifi1")
    alone.reports(1, 0.5)
    alone.send(1, 5000)
    assert alone.step() == {}
    uncounted = Paths("wifi1", "lte1")
    uncounted.subflows = {
        n: replace(each, sent_packets=None, device_loss=0.5)
        for n, each in uncounted.subflows.items()
    }
    assert [uncounted.step() for _ in range(3)] == [{}, {}, {}]


def test_restarted_counters_begin_a_new_window():
    paths = lossy("lte1", "wifi1", loss_source="network")
    paths.send(1, 500, lost=9)
    assert paths.step() == {}
    paths.subflows[1] = replace(paths.subflows[1], sent_packets=10, lost_packets=5)
    assert paths.step() == {}
    paths.send(1, 400, lost=0)
    assert paths.step() == {}


def test_a_restarted_controller_continues_from_what_the_hosts_confirm():
    paths = lossy()
    paths.subflows[1] = replace(paths.subflows[1], backup=True, device_loss=0.05)
    paths.strategy = LossAware(LossAware.Params())
    assert paths.step() == {}
    paths.reports(1, 0)
    assert paths.step() == {1: False}


def test_withdrawing_makes_every_subflow_normal():
    paths = lossy()
    paths.reports(1, 0.05)
    paths.send(1, 1000)
    paths.step()
    seen = Observation(0, subflows=tuple(paths.subflows.values()))
    assert [each.command for each in paths.strategy.withdraw(seen)] == [SetBackup(("c", 1), False)]


def test_reasons_carry_the_numbers():
    paths = lossy(loss_source="network")
    paths.send(1, 1200, lost=60)
    (decision,) = paths.decisions()
    assert decision.reason == "60 of 1200 packets lost: 5.000% >= 0.010%"
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
def test_at_least_one_subflow_is_always_normal(steps, source):
    control = Control("loss_aware", {"loss_source": source, "window_packets": 10})
    paths = Paths("wifi1", "lte1", "wifi1", "p1")
    for rows, silent in steps:
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
            if each.command and not silent:
                n = each.command.subflow[1]
                paths.subflows[n] = replace(paths.subflows[n], backup=each.command.backup)
                assert paths.normal()
