"""Who carries what: Linux's scheduler and redundant copies, by hand and over links; what is sent again elsewhere."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from lab.engines import registry
from lab.engines.sim import tables
from lab.engines.sim.core import layout as at
from lab.engines.sim.core import linux_scheduler, mptcp, reinjection, rings, sender
from lab.engines.sim.network import Network
from lab.errors import MachineLacks
from lab.run.engine import Options
from lab.scenario import loading as scenario
from lab.scenario.flows import Flow
from lab.scenario.loading import Overrides
from lab.scenario.schema import Multipath
from lab.topologies.topology import Link, Node, Topology

from .rows import on_links, places
from .test_coupled_laws import MS, SECOND, Connection

SEGMENT = 1420 + 896  # bytes of a socket's memory
FAST, SLOW = {"rate_mbps": 20, "delay_ms": 10}, {"rate_mbps": 12, "delay_ms": 37}


def two(windows=(10, 2), rtts_s=(0.1, 0.03), **multipath):
    """Two subflows and a transfer of a thousand segments, of which none has been given to anybody."""
    connection = Connection("reno", windows, rtts_s, **multipath)
    connection.w.row[connection.place + at.TOTAL_SEGMENTS] = 1000
    linux_scheduler.grow_buffers(connection.w, connection.place)
    return connection


def given_to(connection, number, segments, first_dsn=0):
    """A subflow has been given segments."""
    for dsn in range(first_dsn, first_dsn + segments):
        sender.queue_segment(connection.w.row, connection.rows[number], dsn)
    connection.w.row[connection.place + at.DATA_SND_NXT] = max(
        connection.w.row[connection.place + at.DATA_SND_NXT], first_dsn + segments
    )


def queued(connection):
    return [
        int(connection.w.row[f + at.WRITE_SEQ] - connection.w.row[f + at.SND_UNA])
        for f in connection.rows
    ]


# --- Linux


def test_a_burst_goes_to_whom_lingers_least():
    """23 x 2316 B over 170.4 kB/s is 0.31 s; 30 x 2316 B over 113.6 kB/s 0.61 s."""
    connection = two(scheduler="linux")
    w, (first, second) = connection.w, connection.rows
    assert linux_scheduler.pacing_rate(w, first) == 170_400  # 1.2 x 10 x 1420 B in 100 ms
    assert linux_scheduler.pacing_rate(w, second) == 113_600
    given_to(connection, 0, 23)
    assert linux_scheduler.choose_subflow(w, connection.place) == second
    given_to(connection, 1, 30, 23)
    assert linux_scheduler.choose_subflow(w, connection.place) == first


def test_nobody_gets_anything_while_the_memory_of_the_best_is_full():
    connection = two(scheduler="linux")
    given_to(connection, 0, 38)  # 38 x 2316 B: more than 87380
    given_to(connection, 1, 30, 38)
    assert not linux_scheduler.has_free_memory(connection.w.row, connection.rows[0])
    assert linux_scheduler.has_free_memory(connection.w.row, connection.rows[1])
    assert linux_scheduler.choose_subflow(connection.w, connection.place) == at.NOTHING


def test_the_mean_pace_follows_the_sockets_with_every_burst():
    connection = two(scheduler="linux")
    w, second = connection.w, connection.rows[1]
    given_to(connection, 0, 38)
    linux_scheduler.choose_subflow(w, connection.place)
    given_to(connection, 1, 10, 38)
    connection.set(second, 8)
    assert linux_scheduler.choose_subflow(w, connection.place) == second
    had, burst = 10 * SEGMENT, linux_scheduler.BURST_BYTES
    assert w.row[second + at.MEAN_PACING_RATE] == (113_600 * had + 454_400 * burst) // (had + burst)


def test_slow_start_paces_at_twice_the_window_and_an_expected_rate_is_a_ceiling():
    connection = two(scheduler="linux")
    connection.set(connection.rows[0], 10, 100.0)
    assert linux_scheduler.pacing_rate(connection.w, connection.rows[0]) == 284_000
    connection.w.row[connection.rows[0] + at.EXPECTED_BPS] = 800_000
    assert linux_scheduler.pacing_rate(connection.w, connection.rows[0]) == 100_000


def test_a_burst_is_two_fragments_and_what_has_no_window_waits_in_the_socket():
    connection = two(scheduler="linux")
    assert mptcp.assign(connection.w, connection.place, connection.rows[1], SECOND) == 46
    mptcp.push(connection.w, connection.place, SECOND)
    w, (first, second) = connection.w, connection.rows
    assert [int(w.row[f + at.SND_NXT]) for f in (first, second)] == [10, 2]
    assert queued(connection) == [46, 46]  # each lingers, and its memory is full


def test_a_socket_gets_more_memory_when_its_window_is_larger_than_what_it_holds():
    """tcp_sndbuf_expand: 8704 B for each segment of the window, while the application waits and the window is not full."""
    connection = two((60, 2), scheduler="linux")
    assert connection.w.row[connection.place + at.SEND_WINDOW] == (10_240 + 2 * 87_380) // 1420
    linux_scheduler.grow_buffers(connection.w, connection.place)
    assert connection.w.row[connection.rows[0] + at.SNDBUF_BYTES] == 60 * 8704
    assert (
        connection.w.row[connection.place + at.SEND_WINDOW] == (10_240 + 60 * 8704 + 87_380) // 1420
    )


def test_a_backup_is_chosen_while_no_other_is_active():
    connection = two(scheduler="linux")
    w, (first, second) = connection.w, connection.rows
    w.row[second + at.BACKUP] = 1
    given_to(connection, 0, 30)
    assert linux_scheduler.choose_subflow(w, connection.place) == first
    w.row[first + at.IS_STALE] = 1
    assert linux_scheduler.choose_subflow(w, connection.place) == second
    w.row[first + at.ACKS_RECEIVED] += 1  # it was heard of
    assert linux_scheduler.choose_subflow(w, connection.place) == first


def run_out(connection):
    """The connection's timer runs out now."""
    connection.w.row[connection.place + at.REINJECT_TIMER_NS] = connection.w.row[
        connection.place + at.REINJECT_EVENT_NS
    ] = SECOND
    assert reinjection.on_reinject_timer(connection.w.row, connection.place, SECOND)
    mptcp.push(connection.w, connection.place, SECOND)


def test_the_oldest_fragment_goes_over_an_idle_subflow_when_the_timer_runs_out():
    """Of data 5 to 29 the rest of the first 32 kB: 5 to 22."""
    connection = two(scheduler="linux")
    (
        connection.w.row[connection.place + at.DATA_SND_UNA],
        connection.w.row[connection.place + at.TOTAL_SEGMENTS],
    ) = 5, 30
    given_to(connection, 0, 25, 5)
    run_out(connection)
    w, second = connection.w, connection.rows[1]
    assert [int(w.row[rings.segment(w.row, second, n) + rings.SEG_DSN]) for n in range(18)] == list(
        range(5, 23)
    )
    assert queued(connection) == [25, 18]
    run_out(connection)
    assert queued(connection) == [25, 18]  # nobody is idle
    assert w.row[connection.place + at.REINJECTED] == 18


def test_a_subflow_that_is_silent_five_times_is_stale_and_all_goes_again_over_the_others():
    connection = two(scheduler="linux")
    connection.w.row[connection.place + at.TOTAL_SEGMENTS] = 30
    given_to(connection, 0, 30)
    w, (first, second) = connection.w, connection.rows
    for silent in range(1, 6):
        assert w.row[first + at.IS_STALE] == 0
        w.row[second + at.ACKS_RECEIVED] += 1
        run_out(connection)
        assert w.row[first + at.STALE_COUNT] == silent
    assert w.row[first + at.IS_STALE] == 1
    assert queued(connection) == [
        30,
        23 + 23,
    ]  # a fragment by the timer, and one of all that goes again: memory is full
    assert w.row[connection.place + at.REINJECT_COUNT] == 7


def test_the_connections_timer_runs_as_long_as_the_longest_of_its_subflows():
    connection = two(scheduler="linux")
    w, (first, second) = connection.w, connection.rows
    given_to(connection, 0, 5)
    linux_scheduler.restart_timer(w.row, connection.place, SECOND)
    assert w.row[connection.place + at.REINJECT_TIMER_NS] == SECOND + 200 * MS
    w.row[first + at.RTO_TIMER_NS], w.row[second + at.RTO_TIMER_NS] = (
        SECOND + 300 * MS,
        SECOND + 700 * MS,
    )
    linux_scheduler.restart_timer(w.row, connection.place, SECOND)
    assert w.row[connection.place + at.REINJECT_TIMER_NS] == SECOND + 700 * MS
    w.row[second + at.STALE_COUNT] = 1
    linux_scheduler.restart_timer(w.row, connection.place, SECOND)
    assert w.row[connection.place + at.REINJECT_TIMER_NS] == SECOND + 300 * MS
    w.row[connection.place + at.DATA_SND_UNA] = 5
    linux_scheduler.restart_timer(w.row, connection.place, SECOND)
    assert w.row[connection.place + at.REINJECT_TIMER_NS] == 0


def test_linux_carries_the_sum_of_two_paths(paths):
    simulation = paths(FAST, SLOW, multipath={"scheduler": "linux"})
    simulation.run(5)
    assert simulation.mbps(simulation.run(5)) > 0.9 * 32 * 1420 / 1514


@pytest.mark.whole
def test_linux_stalls_behind_a_path_that_is_much_slower_than_its_window_says(testbed):
    """A policed path keeps a short round trip, so its pace looks fast: seconds of data wait in its socket, and the other path
    for them. What the emulation showed on a throttled subflow: 75,532 bytes not yet sent."""
    rates = dict.fromkeys(("lowest_rtt", "linux"), 0.0)
    for seed in (1, 2, 3):  # the stalls are seconds long, and few
        for scheduler in rates:
            simulation = testbed(
                f"multipath.scheduler={scheduler}", f"seed={seed}", strategy="meter_throttling"
            )
            simulation.run(6)
            frames = simulation.run(24)
            rates[scheduler] += sum(simulation.mbps(frames, user) for user in ("ue2", "ue3"))
    f = next(
        each
        for each in simulation.network.tables.subflows["ue3-1"]
        if each.ends.user.link == "wifi1"
    ).place
    row = simulation.network.w.row
    assert 40_000 < (row[f + at.WRITE_SEQ] - row[f + at.SND_NXT]) * 1420 < 100_000
    assert rates["linux"] < 0.9 * rates["lowest_rtt"]


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


# --- redundant


def test_every_subflow_carries_every_segment_and_the_receiver_keeps_one(paths):
    simulation = paths(
        FAST, FAST, multipath={"scheduler": "redundant"}, traffic={"kind": "file", "volume_mb": 1}
    )
    simulation.run(3)
    (connection,) = simulation.report()["connections"]
    segments = -(-1_000_000 // 1420)
    assert connection["completion_s"] is not None
    assert simulation.network.w.row[places(simulation.network)[0] + at.DATA_RCV_NXT] == segments
    first, second = (
        each["segments"] - each["retransmitted_segments"] for each in connection["subflows"]
    )
    assert first >= 0.98 * segments
    assert second > 0.9 * segments
    assert simulation.mbps(simulation.run(1)) == 0


def test_a_copy_hides_what_one_path_loses(paths):
    """Nothing waits for the other path's losses, and nothing stops when it dies."""
    lossy = {**FAST, "loss": 0.05}
    simulation = paths(lossy, SLOW, multipath={"scheduler": "redundant"})
    simulation.run(3)
    assert simulation.mbps(simulation.run(3)) > 0.97 * 12 * 1420 / 1514
    simulation.flip("link.path1.up", False)
    rates = [frame["user"]["ue1"]["mbps"] for frame in simulation.run(3)]
    assert min(rates) > 0.9 * 12 * 1420 / 1514


def test_a_subflow_does_not_carry_what_has_been_acknowledged():
    connection = two(scheduler="redundant")
    w, (first, second) = connection.w, connection.rows
    assert [mptcp.take_next_dsn(w.row, connection.place, first) for _ in range(3)] == [0, 1, 2]
    assert mptcp.take_next_dsn(w.row, connection.place, second) == 0
    w.row[connection.place + at.DATA_SND_UNA] = 3
    assert mptcp.take_next_dsn(w.row, connection.place, second) == 3
    assert mptcp.take_next_dsn(w.row, connection.place, first) == 3


# --- a receiver without room


def without_room(rtts_s=(0.02, 0.2), **multipath):
    """The receiver waits for segment 0, which the second subflow has under way, and has no room for another."""
    connection = two((10, 40), rtts_s, penalisation=True, receive_buffer_kb=142, **multipath)
    given_to(connection, 1, 20)
    given_to(connection, 0, 80, 20)
    connection.set(connection.rows[1], 40, 30.0)
    assert connection.w.row[connection.place + at.RECEIVE_WINDOW] == 100
    return connection


def test_what_everybody_waits_for_goes_again_over_the_faster_subflow_and_the_slower_is_halved_once():
    connection = without_room()
    w, (first, second) = connection.w, connection.rows
    assert mptcp.assign(w, connection.place, first, SECOND) == 1
    assert w.row[rings.segment(w.row, first, 80) + rings.SEG_DSN] == 0
    assert (w.window[second + at.CWND], w.window[second + at.SSTHRESH]) == (20, 15)
    assert mptcp.assign(w, connection.place, first, SECOND + MS) == 0  # it is there already
    assert w.window[second + at.CWND] == 20
    w.row[connection.place + at.DATA_SND_UNA], w.row[connection.place + at.DATA_SND_NXT] = 1, 101
    assert mptcp.assign(w, connection.place, first, SECOND + 21 * MS) == 1
    assert (w.window[second + at.CWND], w.window[second + at.SSTHRESH]) == (10, 7.5)


@pytest.mark.parametrize("changed", [
    {at.DATA_SND_NXT: 99}, {at.WRITTEN: 100}, {at.TOTAL_SEGMENTS: 100}, {at.DATA_SND_UNA: 20, at.DATA_SND_NXT: 120},
])  # fmt: skip
def test_nobody_is_helped_out_where_there_is_room_or_nothing_to_send_or_nobody_slower(changed):
    connection = without_room()
    for field, value in changed.items():
        connection.w.row[connection.place + field] = value
    mptcp.assign(connection.w, connection.place, connection.rows[0], SECOND)
    assert connection.w.row[connection.place + at.REINJECTED] == 0
    assert connection.w.window[connection.rows[1] + at.CWND] == 40


def test_a_subflow_that_is_not_much_slower_is_halved_but_not_helped():
    connection = without_room((0.1, 0.2))
    assert mptcp.assign(connection.w, connection.place, connection.rows[0], SECOND) == 0
    assert connection.w.window[connection.rows[1] + at.CWND] == 20


def test_penalisation_saves_a_small_buffer(paths):
    slow, rates = {"rate_mbps": 2, "delay_ms": 200, "queue_packets": 100}, []
    for penalisation in (False, True):
        simulation = paths(
            FAST, slow, multipath={"receive_buffer_kb": 200, "penalisation": penalisation}
        )
        simulation.run(4)
        rates.append(simulation.mbps(simulation.run(6)))
    assert rates[1] > 2 * rates[0]


def test_penalisation_without_a_scheduler_it_belongs_to_is_refused():
    with pytest.raises(
        ValidationError, match="belongs to the schedulers lowest_rtt and round_robin"
    ):
        Multipath(scheduler="linux", penalisation=True)


def test_the_emulation_has_the_kernels_scheduler_under_both_names():
    for name in ("linux", "lowest_rtt"):
        registry.admit(
            "mininet",
            scenario.load("pooling", Overrides(settings=(f"multipath.scheduler={name}",))),
            Options(),
        )
    with pytest.raises(MachineLacks, match="one packet scheduler"):
        registry.admit(
            "mininet",
            scenario.load("pooling", Overrides(settings=("multipath.scheduler=redundant",))),
            Options(),
        )


# --- whatever the scheduler


def parallel(*shapes):
    """s1 - p1 - ue1 and s1 - p2 - ue1."""
    nodes = [Node("ue1", "user", "a1"), Node("srv1", "server"), Node("s1", "switch")]
    links = [Link("server", "s1", "srv1")]
    for n, shape in enumerate(shapes, 1):
        nodes.append(Node(f"p{n}", "switch"))
        links += [Link(f"path{n}", "s1", f"p{n}", **shape), Link(f"a{n}", f"p{n}", "ue1")]
    return Topology("parallel", tuple(nodes), tuple(links), multipath=("ue1",))


SHAPES = st.fixed_dictionaries({
    "rate_bps": st.integers(100_000, 20_000_000), "delay_ns": st.integers(1, 100).map(lambda ms: ms * MS),
    "loss_ppm": st.sampled_from([0, 1_000, 50_000]), "loss_back_ppm": st.sampled_from([0, 20_000]),
    "queue_packets": st.integers(2, 60), "jitter_ns": st.sampled_from([0, 3_000_000]),
})  # fmt: skip


@settings(max_examples=25)
@given(
    scheduler=st.sampled_from(sorted(tables.SCHEDULERS)),
    shapes=st.tuples(SHAPES, SHAPES),
    buffer_kb=st.sampled_from([32, 4000]),
    milliseconds=st.integers(1, 1500),
    penalisation=st.booleans(),
)
def test_what_is_sent_is_received_lost_or_under_way(
    scheduler, shapes, buffer_kb, milliseconds, penalisation
):
    penalisation = penalisation and scheduler in ("lowest_rtt", "round_robin")
    multipath = Multipath(
        scheduler=scheduler, receive_buffer_kb=buffer_kb, penalisation=penalisation
    )
    flow = Flow("ue1-1", "ue1", "down", "cubic", None, None)
    network = Network(parallel(*shapes), multipath, [flow], seed=1)
    network.start(flow, flow.cc)
    network.run(milliseconds * MS)
    w, c, packets = network.w, places(network)[0], on_links(network)
    for f in (each.place for each in network.subflows()):
        data = [p for p in packets if w.row[p + at.SUBFLOW] == f and not w.row[p + at.PACKET_TYPE]]
        assert w.row[f + at.SEGMENTS_SENT] == w.row[f + at.SEGMENTS_RECEIVED] + w.row[
            f + at.SEGMENTS_DROPPED
        ] + len(data)
        assert (
            w.row[f + at.SND_UNA]
            <= w.row[f + at.RCV_NXT]
            <= w.row[f + at.SND_NXT]
            <= w.row[f + at.WRITE_SEQ]
        )
        assert scheduler == "linux" or w.row[f + at.SND_NXT] == w.row[f + at.WRITE_SEQ]
        ring = [
            w.row[rings.segment(w.row, f, n) + rings.SEG_STATE] for n in range(w.row[at.RING_SIZE])
        ]
        assert (w.row[f + at.PIPE], w.row[f + at.LOST]) == tuple(
            sum(each == state for each in ring) for state in (rings.IN_FLIGHT, rings.LOST)
        )
    assert (
        w.row[c + at.DATA_SND_UNA]
        <= w.row[c + at.DATA_RCV_NXT]
        <= w.row[c + at.DATA_SND_NXT]
        <= w.row[c + at.DATA_SND_UNA] + w.row[c + at.RECEIVE_WINDOW]
    )
    assert w.row[c + at.REORDER_BUFFERED_MAX] <= w.row[c + at.RECEIVE_WINDOW]
