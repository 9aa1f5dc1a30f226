"""loss_aware with measured thresholds: a lossy path is left only if the others then carry more."""

from __future__ import annotations

from dataclasses import replace

from controller.command import SetBackup
from controller.observation import Observation, Subflow
from controller.strategies.loss_aware import LossAware

SECOND = 1_000_000_000


class Connection:
    """Two or three subflows that send `packets(numbers in use)[number]` packets per second."""

    def __init__(self, packets, count: int = 2, **params: object) -> None:
        self.packets, self.t_s = packets, 0.0
        self.strategy = LossAware(LossAware.Params(thresholds="measured", **params))
        self.subflows = {
            n: Subflow("c", n, "ue1", "", "10.0.0.1:5001", f"10.{n}.0.1:4000",
                       sent_packets=0, device_loss=0.0)
            for n in range(1, count + 1)
        }  # fmt: skip
        self.reasons: list[str] = []
        self.others: tuple[Subflow, ...] = ()  # of another connection of the same user

    @property
    def used(self) -> set[int]:
        return {n for n, each in self.subflows.items() if not each.backup}

    def loses(self, n: int, loss: float | None) -> None:
        self.subflows[n] = replace(self.subflows[n], device_loss=loss)

    def observation(self) -> Observation:
        return Observation(
            round(self.t_s * SECOND), subflows=(*self.subflows.values(), *self.others)
        )

    def run(self, seconds: float) -> Connection:
        for _ in range(round(2 * seconds)):
            self.t_s += 0.5
            for n, per_s in self.packets(self.used).items():
                old = self.subflows[n]
                self.subflows[n] = replace(old, sent_packets=old.sent_packets + round(per_s / 2))
            self.carry_out(self.strategy.decide(self.observation()))
        return self

    def carry_out(self, decisions) -> None:
        for each in decisions:
            if not isinstance(each.command, SetBackup):
                continue
            n = each.command.subflow[1]
            self.subflows[n] = replace(self.subflows[n], backup=each.command.backup)
            self.reasons.append(each.reason)


def harmful(used: set[int]) -> dict[int, float]:
    """Path 1 carries little and slows path 2."""
    return {1: 100, 2: 2900} if used == {1, 2} else dict.fromkeys(used, 4000)


def useful(used: set[int]) -> dict[int, float]:
    """Path 1 carries a fifth, and path 2 as much as alone."""
    return {n: {1: 1000, 2: 4000}[n] for n in used}


def test_a_lossy_path_is_left_if_the_other_carries_more_without_it():
    connection = Connection(harmful).run(10)
    connection.loses(1, 0.05)
    assert connection.run(20).used == {2}
    assert any(
        " 5.000% >= " in each and "trial of subflows 2" in each for each in connection.reasons
    )


def test_a_lossy_path_stays_if_it_still_adds_something():
    connection = Connection(useful).run(10)
    connection.loses(1, 0.05)
    assert connection.run(60).used == {1, 2}
    assert any("trial ended, subflows 1, 2 in use" in each for each in connection.reasons)


def test_the_paper_leaves_this_path_all_the_same():
    connection = Connection(useful)
    connection.strategy = LossAware(LossAware.Params())
    connection.loses(1, 0.05)
    assert connection.run(10).used == {2}


def test_a_path_below_the_threshold_is_never_tried_without():
    connection = Connection(harmful)
    connection.loses(1, 0.00005)
    assert connection.run(60).used == {1, 2}
    assert len(connection.reasons) == 0


def test_a_path_is_used_again_when_its_interface_reports_no_loss():
    connection = Connection(harmful)
    connection.loses(1, 0.05)
    assert connection.run(30).used == {2}
    connection.loses(1, 0.0)
    assert connection.run(1).used == {1, 2}


def test_a_path_whose_interface_reports_nothing_is_tried_after_a_while():
    rates = {"now": harmful}
    connection = Connection(lambda used: rates["now"](used), loss_source="tcp")
    for n in (1, 2):
        connection.loses(n, None)
        connection.subflows[n] = replace(connection.subflows[n], retransmitted_packets=10 * (2 - n))
    connection.run(20)
    one = connection.subflows[1]
    connection.subflows[1] = replace(one, retransmitted_packets=one.retransmitted_packets + 50)
    assert connection.run(15).used == {2}
    rates["now"] = lambda used: dict.fromkeys(used, 4000)
    assert connection.run(60).used == {1, 2}


def test_of_three_paths_the_one_that_loses_most_is_tried_first():
    connection = Connection(
        lambda used: {n: 4000 if used == {2} else 50 if n != 2 else 2000 for n in used}, count=3
    )
    connection.loses(1, 0.02)
    connection.loses(3, 0.05)
    connection.run(20)
    assert any("trial of subflows 1, 2:" in each for each in connection.reasons)


def test_the_last_path_stays():
    connection = Connection(lambda used: dict.fromkeys(used, 1000))
    for n in (1, 2):
        connection.loses(n, 0.05)
    for _ in range(60):
        assert connection.run(1).used


def test_a_withdrawn_strategy_leaves_every_path_normal():
    connection = Connection(harmful)
    connection.loses(1, 0.05)
    assert connection.run(30).used == {2}
    connection.carry_out(connection.strategy.withdraw(connection.observation()))
    assert connection.used == {1, 2}


def test_nothing_is_tried_while_the_user_has_two_connections():
    """The kernel sets backup flags per address, so a trial would change the other connection,
    too."""
    connection = Connection(harmful)
    connection.loses(1, 0.05)
    assert connection.run(30).used == {2}
    connection.others = (replace(connection.subflows[1], connection="d", backup=False),)
    assert connection.run(30).used == {1, 2}
    connection.others = ()
    assert connection.run(30).used == {2}
