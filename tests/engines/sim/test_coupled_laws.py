"""The coupled laws on vectors of their papers, without packets.

Windows are in segments, RTTs in seconds, l (sent between losses) in bytes.
"""

from __future__ import annotations

import pytest

from lab.engines.sim.core import congestion
from lab.engines.sim.core import state as at

from .networks import MS, SECOND, Connection

SETS = {
    "A": ((10, 10), (0.1, 0.1), (1e5, 1e5)),
    "B": ((20, 10), (0.05, 0.1), (2e5, 5e4)),
    "C": ((8, 40), (0.02, 0.1), (3e5, 1e5)),
    "D": ((10, 20, 30), (0.03, 0.06, 0.12), (1e5, 4e5, 1e5)),
    "E": ((10,), (0.1,), (0,)),
}


def made(name, law, **multipath):
    return Connection(law, *SETS[name], **multipath)


INCREASES = [
    ("lia", "A", (0.025, 0.025)),
    ("lia", "B", (0.032, 0.032)),
    ("lia", "C", (0.03125, 0.025)),
    ("lia", "D", (0.0132231, 0.0132231, 0.0132231)),
    ("lia", "E", (0.1,)),
    ("olia", "A", (0.025, 0.025)),
    ("olia", "B", (0.032, 0.004)),
    ("olia", "C", (0.09375, -0.00625)),
    ("olia", "D", (0.0298898, 0.0149449, -0.0086318)),
    ("olia", "E", (0.1,)),
    ("balia", "A", (0.025, 0.025)),
    ("balia", "B", (0.032, 0.016)),
    ("balia", "C", (0.03125, 0.00625)),
    ("balia", "D", (0.0132231, 0.0066116, 0.0030854)),
    ("balia", "E", (0.1,)),
]


@pytest.mark.parametrize(("law", "name", "increases"), INCREASES)
def test_increase_per_segment(law, name, increases):
    assert made(name, law).increases() == pytest.approx(increases, abs=5e-8)


def test_olia_rates_paths_as_its_draft_if_configured():
    draft = made("D", "olia", olia_metric="draft").increases()
    assert draft == pytest.approx((0.0132231, 0.0232782, -0.0086318), abs=5e-8)
    for name in "ABC":
        assert made(name, "olia", olia_metric="draft").increases() == pytest.approx(
            made(name, "olia").increases()
        )


@pytest.mark.parametrize("law", ["lia", "olia"])
@pytest.mark.parametrize("name", SETS)
def test_lia_and_olia_halve(law, name):
    assert made(name, law).after_loss() == pytest.approx([window / 2 for window in SETS[name][0]])


@pytest.mark.parametrize(("name", "draft", "kernel"), [
    ("A", (5, 5), (5, 5)), ("B", (10, 2.5), (10, 3)), ("C", (4, 20), (4, 20)),
    ("D", (5, 10, 10), (5, 10, 15)), ("E", (5,), (5,)),
])  # fmt: skip
def test_balia_after_a_loss(name, draft, kernel):
    assert made(name, "balia", balia_decrease="draft").after_loss() == pytest.approx(
        draft, abs=1e-9
    )
    assert made(name, "balia").after_loss() == pytest.approx(kernel, abs=1e-9)


@pytest.mark.parametrize("law", ["lia", "olia", "balia"])
def test_a_backup_and_a_closed_subflow_count_in_no_sum(law):
    for field, value in (("backup", 1), ("state", at.CLOSED)):
        three = Connection(law, (8, 40, 99), (0.02, 0.1, 0.01), (3e5, 1e5, 9e9))
        setattr(three.rows[2], field, value)
        assert three.increases()[:2] == pytest.approx(made("C", law).increases())


@pytest.mark.parametrize("law", ["lia", "olia", "balia"])
def test_two_subflows_together_take_as_much_as_one_reno_flow(law):
    """At equal loss and RTT, mean increase equals mean decrease where each window is
    sqrt(1/(2p))."""
    p = 0.01
    window = (1 / (2 * p)) ** 0.5
    pair = Connection(law, (window, window), (0.1, 0.1), (1e5, 1e5))
    assert (1 - p) * pair.increases()[0] == pytest.approx(p * window / 2, rel=0.02)


def test_balia_grows_by_a_segment_per_acknowledgement_at_most():
    far = Connection("balia", (1000, 1), (0.001, 10), (0, 0))
    assert far.increases()[1] <= 1


def test_olia_keeps_one_segment_on_a_bad_path_and_does_not_enter_slow_start():
    pair = Connection("olia", (1.0005, 1), (0.5, 0.5), (10, 9e5))
    s = pair.rows[0]
    pair.set(s, 1.001, ssthresh=50.0)
    s.ssthresh = 1.0
    for _ in range(100):
        congestion.on_ack(s, 1, SECOND)
    assert s.cwnd >= 1
    assert s.ssthresh <= s.cwnd


# wVegas


def vegas(window=24, ssthresh=1.0, subflows=1):
    """A wVegas connection whose base RTT is 30 ms."""
    connection = Connection("wvegas", (window,) * subflows, (0.03,) * subflows)
    for s in connection.rows:
        s.base_rtt_ns = 30 * MS
        connection.set(s, window, ssthresh)
    return connection


def after_round(connection, rtt_ms, s=0):
    congestion.on_round(connection.rows[s], rtt_ms * MS, 10)
    return float(connection.rows[s].cwnd)


@pytest.mark.parametrize(
    ("others", "window", "ssthresh"),
    [(24 / 0.036 / 0.6 * 0.4, 25, 100), (24 / 0.036 / 0.3 * 0.7, 23, 22)],
)
def test_wvegas_approaches_its_share_of_ten_segments_in_queues(others, window, ssthresh):
    """At 36 ms 4 of 24 segments are in queues: fewer than alpha = 6 at weight 0.6, more than alpha
    = 3 at 0.3."""
    connection = vegas(subflows=2)
    s, other = connection.rows
    s.ssthresh = 24.0
    s.law.min_queue_ns = 5.0 * MS
    other.law.rate = others * 1.0000001
    assert after_round(connection, 36) == window
    assert s.ssthresh <= ssthresh


def test_wvegas_drains_a_queue_that_has_doubled():
    connection = vegas()
    connection.rows[0].law.min_queue_ns = 2.0 * MS
    assert after_round(connection, 36) == 10  # of 25; alone it has the whole share of 10 segments
    assert connection.rows[0].law.min_queue_ns == 0


def test_wvegas_refills_a_drained_window_by_slow_start():
    """As in the kernel, ssthresh follows a growing window at three quarters of it."""
    connection = vegas(window=39)
    s = connection.rows[0]
    assert after_round(connection, 30) == 40
    assert s.ssthresh == 30
    s.law.min_queue_ns = 2.0 * MS
    assert after_round(connection, 36) == 17
    assert s.ssthresh == 30
    congestion.on_ack(s, 10, SECOND)
    assert s.cwnd == 27


def test_wvegas_leaves_slow_start_when_more_than_one_segment_is_in_queues():
    connection = vegas(ssthresh=100.0)
    assert after_round(connection, 36) == 21
    assert connection.rows[0].ssthresh == 20


def test_wvegas_grows_while_there_is_no_queue():
    connection = vegas()
    assert after_round(connection, 30) == 25
    assert after_round(connection, 30) == 26


def test_wvegas_halves_after_a_loss_down_to_two_segments():
    connection = vegas(window=25)
    assert connection.after_loss() == [12]
    connection.set(connection.rows[0], 3)
    assert connection.after_loss() == [2]


@pytest.mark.parametrize("law", ["lia", "olia", "balia", "wvegas"])
def test_a_subflow_whose_handshake_never_ends_has_no_rtt_and_harms_no_law(paths, law):
    run = paths(
        {"rate_mbps": 5, "delay_ms": 10},
        {"rate_mbps": 5, "delay_ms": 10, "loss_both": 1.0},
        multipath={"cc": law},
        sample_interval_s=0.5,
    )
    frames = run.run(4)
    assert run.mbps(frames[4:]) > 4
