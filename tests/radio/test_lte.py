"""Proportional-fair shares: MP-SDN eq (3), and resources that a user leaves unused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.radio.lte import BLOCKS, Bearer, cqi, is_backlogged, rate_bps, shares_bps

MBPS = 1_000_000


def test_the_papers_example():
    """MP-SDN, section III: with weights 2 and 1, users whose rates alone are 30 and 12 Mb/s get 20
    and 4 Mb/s."""
    got = shares_bps({"a": Bearer(30 * MBPS, 2, True, 0), "b": Bearer(12 * MBPS, 1, True, 0)})
    assert got == {"a": pytest.approx(20 * MBPS), "b": pytest.approx(4 * MBPS)}


def test_alone_a_user_gets_its_whole_rate():
    assert shares_bps({"a": Bearer(30 * MBPS, 0.5, True, 3 * MBPS)}) == {
        "a": pytest.approx(30 * MBPS)
    }


def test_a_user_takes_the_resources_that_another_leaves():
    got = shares_bps(
        {"a": Bearer(10 * MBPS, 1, False, 1 * MBPS), "b": Bearer(10 * MBPS, 1, True, 9 * MBPS)}
    )
    assert got["b"] == pytest.approx(9 * MBPS)
    assert got["a"] == pytest.approx(5 * MBPS)  # it may grow to its fair share at once


@pytest.mark.parametrize("users", [2, 4, 30])
def test_every_user_of_an_idle_cell_can_start_at_its_whole_rate(users):
    got = shares_bps({f"ue{n}": Bearer(10 * MBPS, 1, False, 0) for n in range(users)})
    assert set(got.values()) == {10 * MBPS}


def test_what_all_leave_free_is_there_for_each():
    used = {"a": 3.0, "b": 4.0, "c": 0.0}
    got = shares_bps(
        {name: Bearer(10 * MBPS, 1, False, mbps * MBPS) for name, mbps in used.items()}
    )
    assert got == {
        "a": pytest.approx(6 * MBPS),
        "b": pytest.approx(7 * MBPS),
        "c": pytest.approx(10 / 3 * MBPS),  # its fair share, which is more than what is free
    }


def test_with_a_backlog_nothing_is_free():
    cell = {"a": Bearer(10 * MBPS, 1, True, 9 * MBPS), "b": Bearer(10 * MBPS, 1, False, 0)}
    assert shares_bps(cell)["b"] == pytest.approx(5 * MBPS)


@pytest.mark.parametrize(
    ("waiting_packets", "used", "backlogged"),
    [
        (1, 10, True),  # it used its whole rate
        (0, 10, False),  # but its queue is empty now
        (1, 7.5, False),
        (1, 8.9, True),  # a tenth of the rate, less one frame, is tolerated
        (82, 0, False),  # 82 full frames have 0.99 Mbit, sent in 0.1 s
        (83, 0, True),
    ],
)
def test_a_user_with_a_backlog_uses_its_whole_rate(waiting_packets, used, backlogged):
    assert is_backlogged(waiting_packets, used * MBPS, 10 * MBPS, 0.1) == backlogged


def test_a_slow_user_with_a_packet_is_backlogged():
    """At 100 kb/s less than a frame is sent between two computations of the shares, so a user that
    sent nothing may still need its rate."""
    assert is_backlogged(1, 0, 100_000, 0.1)


bearers = st.dictionaries(
    st.sampled_from("abcdef"),
    st.builds(Bearer, st.floats(1e5, 1e8), st.floats(0.1, 10), st.booleans(), st.floats(0, 1e8)),
    min_size=1,
)


@given(bearers)
def test_backlogged_users_never_get_more_than_the_cell_has(cell):
    got = shares_bps(cell)
    assert all(0 <= got[user] <= cell[user].rate_bps * 1.0001 for user in cell)
    assert (
        sum(got[user] / each.rate_bps for user, each in cell.items() if each.backlogged) <= 1.0001
    )


@given(bearers)
def test_backlogged_users_share_by_weight(cell):
    got = shares_bps(cell)
    fractions = {
        user: got[user] / each.rate_bps / each.weight
        for user, each in cell.items()
        if each.backlogged
    }
    assert all(
        fraction == pytest.approx(next(iter(fractions.values()))) for fraction in fractions.values()
    )


@pytest.mark.parametrize(("snr_db", "quality"), [(-20, 1), (0, 2), (22, 13), (30, 15), (60, 15)])
def test_channel_quality(snr_db, quality):
    """At 22 dB a symbol carries log2(1 + 158.5 / 5.53) = 4.89 bit: enough for CQI 13 (4.52), not
    for 14 (5.12)."""
    assert cqi(snr_db) == quality


def test_the_best_rate_of_ten_megahertz():
    """5.5547 bit per symbol over 50 blocks of 180 kHz, three quarters of them for data."""
    assert rate_bps(15, BLOCKS[10]) == pytest.approx(37.5 * MBPS, rel=1e-3)
