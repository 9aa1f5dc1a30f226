"""From observations to sets of subflows, and the commands for them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller import decision_log as lines
from controller.command import SetBackup
from controller.control import Control
from controller.observation import Arc, Observation, Subflow, air
from controller.strategies.baselines import Optimum
from controller.strategies.subflow_selection.selection import arcs_along, available_bps, quality
from controller.strategies.subflow_selection.strategy import SubflowSelection

MBPS = 1_000_000
FIFTEEN = tuple(
    arc
    for n in range(1, 16)
    for arc in (
        Arc(f"path{n}", "s1", f"p{n}", n * MBPS, delay_s=n * 0.01, loss=(n - 1) / 100),
        Arc(f"access{n}", f"p{n}", f"10.{n}.0.1", 1000 * MBPS),
    )
)
SERVER = Arc("server", "10.0.0.1", "s1", 1000 * MBPS)


def subflow(n: int, connection: str = "c", **fields: object) -> Subflow:
    return Subflow(
        connection,
        n,
        "ue1",
        "",
        "10.0.0.1:5001",
        f"10.{n}.0.1:4000",
        path=("s1", f"p{n}"),
        **fields,
    )


def seen(*subflows: Subflow, arcs: tuple[Arc, ...] = (SERVER, *FIFTEEN)) -> Observation:
    return Observation(0, subflows=subflows, arcs=arcs)


def full_mesh(**fields: object) -> tuple[Subflow, ...]:
    return tuple(subflow(n, **fields) for n in range(1, 16))


def strategy(kind=SubflowSelection, **params: object):
    return kind(kind.Params(**params))


def asked(decisions) -> list[tuple[str, bool]]:
    return [(each.subject, each.command.backup) for each in decisions if each.command]


@pytest.mark.parametrize("kind", [SubflowSelection, Optimum])
def test_three_of_fifteen_stay_active(kind):
    decisions = strategy(kind).decide(seen(*full_mesh()))
    assert asked(decisions) == [(f"c/{n}", True) for n in range(4, 16)]
    assert decisions[0].forecast.active == (("c", 1), ("c", 2), ("c", 3))
    assert decisions[0].forecast.throughput_bps == pytest.approx(1.936 * MBPS, rel=0.001)


def test_no_command_is_repeated_once_it_is_confirmed():
    confirmed = [replace(each, backup=each.number > 3) for each in full_mesh()]
    (only,) = strategy().decide(seen(*confirmed))
    assert only.action == "forecast"


def test_the_two_strategies_differ_in_their_search_only():
    assert asked(strategy(SubflowSelection, rl_max_kb=8).decide(seen(*full_mesh())))[0] == (
        "c/3",
        True,
    )
    assert asked(strategy(Optimum, rl_max_kb=8).decide(seen(*full_mesh())))[0] == ("c/1", True)


def test_a_set_may_need_half_of_the_receive_buffer_by_default():
    clean = (
        SERVER,
        *(
            replace(arc, loss=0.0, delay_s=arc.delay_s if arc.link != "path2" else 0.1)
            for arc in FIFTEEN
        ),
    )
    two = replace(seen(subflow(1), subflow(2), arcs=clean), receive_buffer_bytes=400_000)
    assert asked(strategy().decide(two)) == []
    assert asked(strategy().decide(replace(two, receive_buffer_bytes=30_000))) == [("c/2", True)]
    assert asked(strategy(rl_max_kb=60).decide(replace(two, receive_buffer_bytes=30_000))) == []
    assert asked(strategy(rl_max_kb=12).decide(two)) == [("c/2", True)]


def test_a_subflow_becomes_normal_before_another_becomes_backup():
    order = asked(strategy().decide(seen(subflow(1), subflow(2, backup=True), subflow(9))))
    assert order == [("c/2", False), ("c/9", True)]


def test_no_subflow_becomes_backup_before_a_chosen_one_is_normal():
    waiting = seen(subflow(1, backup=True), subflow(2, backup=True), subflow(9))
    assert asked(strategy().decide(waiting)) == [("c/1", False), ("c/2", False)]


def test_each_connection_has_its_own_set_and_a_lone_subflow_none():
    decisions = strategy().decide(
        seen(subflow(1), subflow(9), subflow(9, "d"), subflow(2, "e"), subflow(15, "e"))
    )
    assert asked(decisions) == [("c/9", True), ("e/15", True)]
    assert [each.subject for each in decisions if each.forecast] == ["c", "e"]


def test_all_subflows_stay_as_they_are_if_a_path_is_unknown():
    decisions = strategy().decide(seen(subflow(1), replace(subflow(9), path=())))
    assert [(each.subject, each.action) for each in decisions] == [("c/9", "keep")]
    assert "its path is unknown" in decisions[0].reason


def test_the_forecast_is_logged_beside_the_measurement():
    decision = strategy().decide(
        seen(subflow(1, rate_bps=600_000), subflow(2, rate_bps=None), subflow(3, rate_bps=900_000))
    )[0]
    line = lines.decision_line("subflow_selection", decision)
    assert line == {
        "kind": "decision",
        "strategy": "subflow_selection",
        "connection": "c",
        "action": "forecast",
        "active": ["c/1", "c/2", "c/3"],
        "forecast_mbps": pytest.approx(1.937, abs=0.001),
        "forecast_buffer_kb": pytest.approx(9.684, abs=0.001),
        "measured_mbps": 1.5,
        "reason": "forecast for 3 of 3 subflows: 1.94 Mb/s, 9.68 kB of receive buffer",
    }


def test_withdrawing_makes_every_subflow_normal():
    withdrawn = strategy().withdraw(seen(subflow(1), subflow(2, backup=True)))
    assert [each.command for each in withdrawn] == [SetBackup(("c", 2), False)]


def test_the_quality_of_a_path():
    path = (
        Arc("a", "x", "y", 8 * MBPS, delay_s=0.02, jitter_s=0.003, loss=0.1),
        Arc("b", "y", "z", 9 * MBPS, delay_s=0.01, loss=0.2),
    )
    found = quality(path, 8e6, 0.1)
    assert found.loss == pytest.approx(0.28)
    assert found.rtt_s == pytest.approx(0.06)
    assert found.rtt_sd_s == pytest.approx(0.003 * 2**0.5)
    assert quality(path[1:], 8e6, 0.1).rtt_sd_s == pytest.approx(0.1 * 0.02)


def test_the_air_of_an_access_point_is_part_of_the_path():
    arcs = (
        SERVER,
        Arc("wifi", "s1", "wifi1", 1000 * MBPS),
        Arc("wifi1", "wifi1", air("wifi1"), 10 * MBPS),
        Arc("wifi1", air("wifi1"), "10.1.0.1", 5 * MBPS),
    )
    by_ends = {(arc.tail, arc.head): arc for arc in arcs}
    over_wifi = replace(subflow(1), path=("s1", "wifi1"))
    assert arcs_along(over_wifi, by_ends) == arcs
    towards_server = replace(
        over_wifi, source=over_wifi.destination, destination=over_wifi.source, path=("wifi1", "s1")
    )
    assert arcs_along(towards_server, by_ends) is None
    back = {(arc.head, arc.tail): replace(arc, tail=arc.head, head=arc.tail) for arc in arcs}
    assert [arc.link for arc in arcs_along(towards_server, back)] == [
        "wifi1",
        "wifi1",
        "wifi",
        "server",
    ]


@pytest.mark.parametrize(
    ("used", "own", "left"), [(0, 0, 10), (4, 4, 10), (4.4, 4, 10), (4, 0, 6), (12, 0, 1)]
)
def test_available_bandwidth_is_what_others_leave_in_tenths(used, own, left):
    path = (Arc("a", "x", "y", 10 * MBPS, used_bps=round(used * MBPS)), SERVER)
    assert available_bps(path, {"a": own * MBPS}) == left * MBPS


def test_the_load_of_others_changes_the_set():
    busy = tuple(
        replace(arc, used_bps=round(0.9 * arc.capacity_bps)) if arc.link == "path1" else arc
        for arc in FIFTEEN
    )
    three = [subflow(n) for n in (1, 2, 3)]
    assert asked(strategy(starts="all").decide(seen(*three, arcs=(SERVER, *busy)))) == [
        ("c/1", True)
    ]
    assert (
        asked(
            strategy(starts="all", bandwidth="capacity").decide(seen(*three, arcs=(SERVER, *busy)))
        )
        == []
    )


flags = st.lists(st.booleans(), min_size=5, max_size=5)


@given(
    backup=flags,
    confirmed=st.lists(flags, max_size=3),
    numbers=st.sets(st.integers(1, 15), min_size=5, max_size=5),
)
def test_a_set_is_never_empty(backup, confirmed, numbers):
    subflows = [subflow(n, backup=each) for n, each in zip(sorted(numbers), backup, strict=True)]
    control = Control("subflow_selection")
    for heard in confirmed:
        step = control.step(seen(*subflows))
        assert step.refused == ()
        wanted = {
            each.command.subflow: each.command.backup for each in step.decisions if each.command
        }
        before = any(not each.backup for each in subflows)
        subflows = [
            replace(each, backup=wanted.get(each.key, each.backup)) if ok else each
            for each, ok in zip(subflows, heard, strict=True)
        ]
        assert not before or any(not each.backup for each in subflows)
