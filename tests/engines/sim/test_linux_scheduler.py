"""Linux's MPTCP scheduler, by hand and over links."""

from __future__ import annotations

import pytest

from lab.engines.sim.core import linux_scheduler, mptcp, reinjection
from lab.engines.sim.core import state as at

from .networks import FAST, MS, SECOND, SLOW, assign, queued, two_subflows

SEGMENT = 1420 + 896  # socket memory of a segment [bytes]


def test_a_burst_goes_to_the_subflow_with_the_shortest_queue_time():
    """23 x 2316 B over 170.4 kB/s is 0.31 s; 30 x 2316 B over 113.6 kB/s is 0.61 s."""
    connection = two_subflows(scheduler="linux")
    w, (first, second) = connection.w, connection.rows
    assert linux_scheduler.pacing_rate(first) == 170_400  # 1.2 x 10 x 1420 B in 100 ms
    assert linux_scheduler.pacing_rate(second) == 113_600
    assign(connection, 0, 23)
    assert linux_scheduler.choose_subflow(w, connection.record, SECOND) == second
    assign(connection, 1, 30, 23)
    assert linux_scheduler.choose_subflow(w, connection.record, SECOND) == first


def test_no_subflow_gets_data_while_the_memory_of_the_best_is_full():
    connection = two_subflows(scheduler="linux")
    assign(connection, 0, 38)  # 38 x 2316 B, more than 87380
    assign(connection, 1, 30, 38)
    assert not linux_scheduler.has_free_memory(connection.rows[0])
    assert linux_scheduler.has_free_memory(connection.rows[1])
    assert (
        linux_scheduler.choose_subflow(connection.w, connection.record, SECOND)
        == connection.w.no_subflow
    )


def test_the_mean_pacing_rate_follows_the_sockets_with_every_burst():
    connection = two_subflows(scheduler="linux")
    w, second = connection.w, connection.rows[1]
    assign(connection, 0, 38)
    linux_scheduler.choose_subflow(w, connection.record, SECOND)
    assign(connection, 1, 10, 38)
    connection.set(second, 8)
    assert linux_scheduler.choose_subflow(w, connection.record, SECOND) == second
    had, burst = 10 * SEGMENT, linux_scheduler.BURST_BYTES
    assert second.mean_pacing_rate == (113_600 * had + 454_400 * burst) // (had + burst)


def test_the_pacing_rate_is_twice_the_window_in_slow_start_and_at_most_the_expected_rate():
    connection = two_subflows(scheduler="linux")
    connection.set(connection.rows[0], 10, 100.0)
    assert linux_scheduler.pacing_rate(connection.rows[0]) == 284_000
    connection.rows[0].expected_bps = 800_000
    assert linux_scheduler.pacing_rate(connection.rows[0]) == 100_000


def test_a_burst_is_two_fragments_and_waits_in_the_socket_for_the_window():
    connection = two_subflows(scheduler="linux")
    assert mptcp.assign(connection.record, connection.rows[1], SECOND) == 46
    mptcp.push(connection.w, connection.record, SECOND)
    first, second = connection.rows
    assert [s.snd_nxt for s in (first, second)] == [10, 2]
    assert queued(connection) == [46, 46]  # both wait, and their memory is full


@pytest.mark.parametrize("in_flight", [0, 60])
def test_the_memory_of_a_socket_follows_its_window_while_the_application_waits(in_flight):
    """tcp_sndbuf_expand: 8704 B for each segment of the window, also if the last segment of a burst
    has filled it."""
    connection = two_subflows((60, 2), scheduler="linux")
    connection.rows[0].pipe = in_flight
    assert connection.record.send_window == (10_240 + 2 * 87_380) // 1420
    linux_scheduler.grow_buffers(connection.record)
    assert connection.rows[0].sndbuf_bytes == 60 * 8704
    assert connection.record.send_window == (10_240 + 60 * 8704 + 87_380) // 1420


def test_a_backup_is_chosen_while_no_other_is_active():
    connection = two_subflows(scheduler="linux")
    w, (first, second) = connection.w, connection.rows
    second.backup = 1
    assign(connection, 0, 30)
    assert linux_scheduler.choose_subflow(w, connection.record, SECOND) == first
    first.is_stale = 1
    assert linux_scheduler.choose_subflow(w, connection.record, SECOND) == second
    first.acks_received += 1  # an acknowledgement has arrived
    assert linux_scheduler.choose_subflow(w, connection.record, SECOND) == first


def expire_timer(connection):
    connection.record.reinject_timer.expires_ns = connection.record.reinject_timer.due_ns = SECOND
    assert reinjection.on_reinject_timer(connection.w, connection.record, SECOND)
    mptcp.push(connection.w, connection.record, SECOND)


def test_the_oldest_fragment_is_reinjected_over_an_idle_subflow_when_the_timer_expires():
    """Data 5 to 22 are the rest of the first 32 kB of 5 to 29."""
    connection = two_subflows(scheduler="linux")
    (
        connection.record.data_snd_una,
        connection.record.total_segments,
    ) = 5, 30
    assign(connection, 0, 25, 5)
    expire_timer(connection)
    second = connection.rows[1]
    assert [int(at.segment(second, n).dsn) for n in range(18)] == list(range(5, 23))
    assert queued(connection) == [25, 18]
    expire_timer(connection)
    assert queued(connection) == [25, 18]  # no subflow is idle
    assert connection.record.reinjected == 18


def test_a_subflow_without_acknowledgements_at_five_timers_is_stale_and_all_is_reinjected():
    connection = two_subflows(scheduler="linux")
    connection.record.total_segments = 30
    assign(connection, 0, 30)
    first, second = connection.rows
    for count in range(1, 6):
        assert first.is_stale == 0
        second.acks_received += 1
        expire_timer(connection)
        assert first.stale_count == count
    assert first.is_stale == 1
    assert queued(connection) == [
        30,
        23 + 23,
    ]  # one fragment by the timer and one by everything else that reinjects; memory is full
    assert connection.record.reinject_count == 7


def test_every_second_timer_counts_for_a_subflow_with_acknowledgements():
    """mptcp_pm_subflow_chk_stale looks at acknowledgements from the second timer on."""
    connection = two_subflows(scheduler="linux")
    assign(connection, 0, 30)
    first, _ = connection.rows
    counts = []
    for _ in range(5):
        first.acks_received += 1
        expire_timer(connection)
        counts.append(first.stale_count)
    assert counts == [1, 0, 1, 0, 1]


def test_a_subflow_sends_its_burst_when_the_next_subflow_is_chosen():
    """The timer's interval is set after the last fragment, when only the first subflow has sent. So
    it ends with that subflow's timer."""
    connection = two_subflows(scheduler="linux")
    w, c = connection.w, connection.record
    c.state, c.total_segments = at.ESTABLISHED, 60
    mptcp.push(w, c, SECOND)
    assert queued(connection) == [46, 14]
    assert [s.transmissions for s in connection.rows] == [10, 2]
    timers = [s.timer.expires_ns - SECOND for s in connection.rows]
    assert c.reinject_interval_ns == timers[0]
    assert c.reinject_timer.expires_ns == SECOND + timers[0]


def test_the_interval_is_200_ms_when_one_subflow_gets_all_data():
    """It has not sent anything when the interval is set."""
    connection = two_subflows(scheduler="linux")
    w, c = connection.w, connection.record
    c.state, c.total_segments = at.ESTABLISHED, 30
    mptcp.push(w, c, SECOND)
    assert queued(connection) == [30, 0]
    assert c.reinject_interval_ns == 200 * MS


@pytest.mark.parametrize("stale", [0, 1])
def test_subflows_are_considered_in_the_order_in_which_they_were_opened(stale):
    """If the first subflow becomes stale, its data is reinjected over the second, which then is not
    idle any more."""
    connection = two_subflows(scheduler="linux")
    assign(connection, stale, 30)
    w, c, rows = connection.w, connection.record, connection.rows
    rows[stale].stale_count = linux_scheduler.STALE_AFTER
    rows[stale].acks_at_check = rows[stale].acks_received
    assert linux_scheduler.idle_subflow(w, c) == (rows[0] if stale else w.no_subflow)
    assert rows[stale].is_stale == 1
    assert c.reinject_count == 30


def test_the_connections_timer_is_as_long_as_the_longest_rto_when_data_was_scheduled():
    connection = two_subflows(scheduler="linux")
    (w, c), (first, second) = (connection.w, connection.record), connection.rows
    assign(connection, 0, 5)

    def due(*, scheduled: bool) -> int:
        if scheduled:
            linux_scheduler.set_interval(c, SECOND)
        linux_scheduler.restart_timer(w, c, SECOND)
        return c.reinject_timer.expires_ns - SECOND

    assert due(scheduled=False) == 200 * MS
    first.timer.expires_ns, second.timer.expires_ns = SECOND + 300 * MS, SECOND + 700 * MS
    assert due(scheduled=True) == 700 * MS
    second.timer.expires_ns = SECOND + 5000 * MS
    assert due(scheduled=False) == 700 * MS
    second.stale_count = 1
    assert due(scheduled=True) == 300 * MS
    c.data_snd_una = 5
    assert due(scheduled=True) == -SECOND


def test_the_timers_interval_stays_when_all_data_is_given_to_subflows():
    connection = two_subflows(scheduler="linux")
    w, c = connection.w, connection.record
    c.reinject_interval_ns = 7
    c.total_segments = c.data_snd_nxt
    linux_scheduler.choose_subflow(w, c, SECOND)
    assert c.reinject_interval_ns == 7
    c.total_segments += 100
    linux_scheduler.choose_subflow(w, c, SECOND)
    assert c.reinject_interval_ns == 200 * MS


def test_linux_reaches_the_sum_of_two_paths(paths):
    simulation = paths(FAST, SLOW, multipath={"scheduler": "linux"})
    simulation.run(5)
    assert simulation.mbps(simulation.run(5)) > 0.9 * 32 * 1420 / 1514


@pytest.mark.whole
def test_linux_stalls_behind_a_path_that_is_much_slower_than_its_window_says(testbed):
    """A policed path keeps a short RTT, so its pacing rate is high. Seconds of data wait in its
    socket, and the other path waits for them. The emulation showed 75,532 unsent bytes on a
    throttled subflow."""
    rates = dict.fromkeys(("lowest_rtt", "linux"), 0.0)
    for seed in (1, 2, 3):  # stalls last seconds, and are few
        for scheduler in rates:
            simulation = testbed(
                f"multipath.scheduler={scheduler}", f"seed={seed}", strategy="meter_throttling"
            )
            simulation.run(6)
            frames = simulation.run(24)
            rates[scheduler] += sum(simulation.mbps(frames, user) for user in ("ue2", "ue3"))
    s = next(
        each
        for each in simulation.network.tables.subflows["ue3-1"]
        if each.ends.user.link == "wifi1"
    ).record
    assert 40_000 < (s.write_seq - s.snd_nxt) * 1420 < 100_000
    assert rates["linux"] < 0.95 * rates["lowest_rtt"]


@pytest.mark.parametrize("scheduler", ["linux", "redundant"])
def test_a_dead_path_does_not_stop_the_connection(paths, scheduler):
    simulation = paths(FAST, SLOW, multipath={"scheduler": scheduler})
    simulation.run(3)
    simulation.flip("link.path1.up", False)
    simulation.run(5)
    assert simulation.mbps(simulation.run(2)) > 0.85 * 12 * 1420 / 1514
    simulation.flip("link.path1.up", True)
    simulation.run(8)
    assert simulation.mbps(simulation.run(3)) > 0.8 * 20 * 1420 / 1514
