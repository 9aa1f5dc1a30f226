"""Tier 2 subflows are backup while the limit of their access point is at its floor."""

from dataclasses import replace

import pytest

from controller.command import SetBackup, Throttle, Unthrottle
from controller.control import Control
from controller.observation import AccessPoint, Association, Observation, Subflow
from controller.strategies.meter_throttling import MOST_DRAIN_STEPS

MBPS = 1_000_000
FLOOR, CONGESTED, IDLE = 100_000, 0.99, 0.1
PRIMARY, SECONDARY = ("ue1-1", 1), ("ue1-1", 2)


class Network:
    """One user on LTE, its primary, and on WiFi; every command takes effect at once."""

    def __init__(self, subflows=(PRIMARY, SECONDARY), **params):
        backup = {"at_floor": "backup"}  # without the rest of the improved form
        self.control = Control("meter_throttling", backup | params)
        self.limit_bps, self.now_ns, self.decided = None, 0, []
        ends = {PRIMARY: ("lte1", "10.2.0.1"), SECONDARY: ("wifi1", "10.1.0.1")}
        self.subflows = {
            key: Subflow(*key, "ue1", ends[key][0], "10.0.0.1:5001", f"{ends[key][1]}:{key[1]}")
            for key in subflows
        }

    def observation(self, occupancy, tier2_bps):
        return Observation(
            self.now_ns,
            (
                AccessPoint("lte1", "lte", 40 * MBPS, 0.5),
                AccessPoint("wifi1", "wifi", 20 * MBPS, occupancy, tier2_bps, self.limit_bps),
            ),
            (
                Association("ue1", "lte1", 40 * MBPS, 1.0, ("10.2.0.1",)),
                Association("ue1", "wifi1", 20 * MBPS, 1.0, ("10.1.0.1",)),
            ),
            frozenset({"ue1"}),
            tuple(self.subflows.values()),
        )

    def steps(self, count, occupancy, left_bps=0):
        """Make control steps with this MAC occupancy at the WiFi access point.

        `left_bps` is what the subflow sends while it is backup.
        """
        for _ in range(count):
            used = left_bps if self.is_backup else self.limit_bps
            step = self.control.step(self.observation(occupancy, used))
            assert not step.refused
            self.decided = step.decisions
            for each in step.decisions:
                if isinstance(each.command, SetBackup):
                    key = each.command.subflow
                    self.subflows[key] = replace(self.subflows[key], backup=each.command.backup)
                elif isinstance(each.command, Throttle):
                    self.limit_bps = each.command.rate_bps
                elif isinstance(each.command, Unthrottle):
                    self.limit_bps = None
            self.now_ns += 2 * 10**9
        return self

    @property
    def is_backup(self):
        return SECONDARY in self.subflows and self.subflows[SECONDARY].backup


@pytest.mark.parametrize("steps", [1, 3])
def test_a_subflow_is_backup_after_that_many_steps_at_the_floor(steps):
    network = Network(floor_steps=steps)
    assert not network.steps(steps - 1, CONGESTED).is_backup
    assert network.steps(1, CONGESTED).is_backup
    assert not network.subflows[PRIMARY].backup
    assert any("limit is 0.1 Mb/s: backup" in each.reason for each in network.decided)


def test_a_new_backup_sends_the_data_that_it_has_without_a_limit():
    network = Network(floor_steps=3).steps(2, CONGESTED)
    assert network.limit_bps == FLOOR
    network.steps(1, CONGESTED)
    assert network.is_backup
    assert network.limit_bps is None
    assert "become backup: no limit until they have sent" in network.decided[0].reason
    network.steps(2, CONGESTED, left_bps=FLOOR)
    assert network.limit_bps is None
    assert "still send 0.1 Mb/s: no limit until they have sent" in network.decided[0].reason
    assert network.steps(1, CONGESTED).limit_bps == FLOOR
    assert network.is_backup
    assert network.steps(3, CONGESTED, left_bps=FLOOR).limit_bps == FLOOR


def test_the_limit_is_back_after_some_steps_whatever_the_backup_sends():
    network = Network().steps(1, CONGESTED)
    assert network.steps(MOST_DRAIN_STEPS - 1, CONGESTED, left_bps=MBPS).limit_bps is None
    assert network.steps(1, CONGESTED, left_bps=MBPS).limit_bps == FLOOR
    assert network.is_backup


def test_a_limit_stays_where_a_subflow_must_stay_in_use():
    network = Network()
    only = replace(network.subflows[SECONDARY], connection="ue1-2", number=1)
    network.subflows[only.key] = only
    assert network.steps(1, CONGESTED).is_backup
    assert not network.subflows[only.key].backup
    assert network.limit_bps == FLOOR


def test_the_limit_grows_while_nothing_is_sent_and_the_subflow_comes_back_with_room():
    network = Network().steps(5, CONGESTED)
    network.steps(1, 0.5)  # 0.135 Mb/s, less than four times the floor
    assert network.limit_bps > FLOOR
    assert network.is_backup
    network.steps(1, IDLE)
    assert network.limit_bps >= 4 * FLOOR
    assert not network.is_backup
    network.steps(1, 0.9)  # halved, still above the floor
    assert not network.is_backup
    assert network.steps(5, CONGESTED).is_backup


def test_the_count_begins_anew_when_the_limit_has_left_the_floor():
    network = Network(floor_steps=3).steps(2, CONGESTED).steps(1, 0.5).steps(2, CONGESTED)
    assert not network.is_backup
    assert network.steps(1, CONGESTED).is_backup


def test_a_restarted_controller_goes_on_from_the_flags():
    network = Network().steps(2, CONGESTED)
    network.control = Control("meter_throttling", {"at_floor": "backup", "floor_steps": 100})
    assert network.steps(3, CONGESTED).is_backup
    assert not network.steps(3, IDLE).is_backup


def test_the_only_subflow_of_a_connection_stays_in_use():
    network = Network(subflows=(SECONDARY,)).steps(5, CONGESTED)
    assert network.limit_bps == FLOOR
    assert not network.is_backup


@pytest.mark.parametrize("name", ["none", "meter_throttling"])
def test_another_strategy_or_the_papers_form_uses_the_subflow_once_more(name):
    network = Network().steps(2, CONGESTED)
    network.control.switch(name)
    assert not network.steps(1, CONGESTED).is_backup


def test_a_changed_parameter_uses_the_subflow_once_more():
    network = Network().steps(2, CONGESTED)
    network.control.change({"at_floor": "keep"})
    assert not network.steps(1, CONGESTED).is_backup


def test_a_limit_is_lifted_once():
    network = Network().steps(1, CONGESTED)
    lifted = network.decided[0]
    network.steps(1, CONGESTED, left_bps=FLOOR)
    assert lifted.command is None  # there was none yet
    network = Network(floor_steps=2).steps(2, CONGESTED)
    assert network.decided[0].command == Unthrottle("wifi1")
    network.steps(1, CONGESTED, left_bps=FLOOR)
    assert (network.decided[0].subject, network.decided[0].command) == ("wifi1", None)


@pytest.mark.parametrize(("left_bps", "limit_bps"), [(FLOOR // 2, None), (FLOOR // 2 - 1, FLOOR)])
def test_the_limit_is_back_when_less_than_half_of_the_floor_is_sent(left_bps, limit_bps):
    network = Network().steps(1, CONGESTED).steps(1, CONGESTED, left_bps=left_bps)
    assert network.limit_bps == limit_bps


def test_room_is_four_times_the_floor_and_no_less():
    for room, used in ((4.0, True), (4.01, False)):
        network = Network(room_factor=room).steps(3, CONGESTED)
        network.limit_bps = 4 * FLOOR
        assert network.steps(1, None).is_backup != used  # without a report the limit stays
