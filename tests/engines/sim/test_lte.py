"""LTE cells: which bearer a TTI serves, how block errors delay packets, and what TCP sees of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.engines.sim.core import event_loop, events, links, lte
from lab.engines.sim.core import state as at
from lab.engines.sim.network import Network, add_room
from lab.engines.sim.routes import DOWN, UP
from lab.engines.sim.wireless import Wireless
from lab.radio.cell import Cell, Station
from lab.radio.lte import ATTEMPTS, BLOCK_ERROR, HARQ_TTIS, on_air_bps
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.topologies.topology import Link, Node, Topology

from .networks import MS, SECOND
from .rows import places

LONG = 15_140  # bytes; a few of these packets keep a bearer busy


def set_error(network: Network, error: float) -> None:
    """Set the block error rate of all cells."""
    for h in network.tables.stations.values():
        h.direction.block_error_ppm = round(error * 1e6)


class Air:
    """One LTE cell without TCP, into which tests put packets; stations are (Mb/s alone, weight)."""

    def __init__(
        self, *stations: tuple[float, float], error: float = BLOCK_ERROR, queue_packets: int = 2000
    ) -> None:
        users = tuple(
            Station(f"ue{n}", round(mbps * 1e6), weight)
            for n, (mbps, weight) in enumerate(stations, 1)
        )
        nodes = (
            *(Node(each.user, "user", "lte1") for each in users),
            Node("lte1", "lte"),
            Node("srv1", "server"),
        )
        topology = Topology(
            "one",
            nodes,
            (Link("server", "lte1", "srv1"),),
            (Cell("lte1", "lte", users, queue_packets),),
        )
        self.network = Network(
            topology, Multipath(), [Flow("ue1-1", "ue1", "down", "reno", None, None)], seed=1
        )
        self.arrivals: list[tuple[int, int]] = []  # (time [ns], number)
        self.put_in = 0
        set_error(self.network, error)

    def hop(self, user: str, direction: str = DOWN) -> at.Hop:
        return self.network.tables.stations["lte1", user, direction]

    def put(
        self, user: str, packets: int = 1, size: int = 1514, now_ns: int = 0, direction: str = DOWN
    ) -> None:
        h, w = self.hop(user, direction), self.network.w
        route = self.network.steps((h,))
        for _ in range(packets):
            if w.free_packets < event_loop.NEW_PER_EVENT:
                add_room(self.network.tables, packets)
            self.put_in += 1
            p = links.new_packet(w, w.no_subflow, at.SEGMENT, route, size)
            p.seq = self.put_in
            event_loop.enter_hop(w, h, p, now_ns)

    def run(self, until_ns: int) -> None:
        """Let TTIs pass and record what arrives; nothing is acknowledged."""
        w = self.network.w
        while events.next_ns(w) < until_ns:
            now_ns, e = events.next_ns(w), w.heap[0].event
            if e.kind == at.TTI_DUE:
                events.remove_first(w)
                lte.on_tti(w, e.direction, now_ns)
            else:
                p = events.take_arrival(w, e)
                self.arrivals.append((now_ns, p.seq))
                links.free_packet(w, p)

    def mbps(self, seconds: float) -> list[float]:
        """Rate of each user while packets wait for all of them."""
        users = [user for ap, user, direction in self.network.tables.stations if direction == DOWN][
            ::-1
        ]
        for user in users:
            alone_bps = self.hop(user).rate_bps
            self.put(user, 1 + round(alone_bps * seconds / 8 / LONG), LONG)
        self.run(round(seconds * SECOND))
        sent = [
            (
                self.hop(user).out_bytes,
                self.hop(user).head_sent_bits,
            )
            for user in users
        ]
        return [(8 * whole_bytes + bits) * 1e-6 / seconds for whole_bytes, bits in sent]


STRONG, WEAK = (40, 4), (5, 0.5)
LTE_SERIES = {
    0: 40.0,
    1: 39.15,
    2: 38.33,
    3: 37.56,
    5: 36.11,
    10: 33.0,
}  # MP-SDN's numerical model, Figure 6


@pytest.mark.parametrize(
    "stations",
    [[(30, 2), (12, 1)], [(10, 1), (10, 1), (10, 1)], [(8, 0.25), (20, 3), (37.5, 1), (11.5, 1)]],
)
def test_waiting_users_get_their_weighted_shares(stations):
    """MP-SDN, eq (3): w_i r_i / sum_j w_j; in the paper's own example 20 and 4."""
    expected = [mbps * weight / sum(each for _, each in stations) for mbps, weight in stations]
    assert Air(*stations).mbps(4) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("weak", LTE_SERIES)
def test_weak_users_cost_the_cell_little(weak):
    assert sum(Air(*[STRONG] * 5, *[WEAK] * weak).mbps(4)) == pytest.approx(
        LTE_SERIES[weak], rel=0.01
    )


def test_a_user_alone_gets_its_rate_in_spite_of_retransmissions():
    """One TTI in ten is a retransmission: 1.111 attempts per block, so the rate in the air is
    higher by this factor. It is 1 if no attempt fails, and 4 if all do."""
    attempts = {0: 1, BLOCK_ERROR: 1.111, 1: ATTEMPTS}
    for error, mean in attempts.items():
        assert Air((20, 1), error=error).mbps(4) == pytest.approx([20 * 1.111 / mean], rel=0.01)


def test_a_packet_waits_for_a_tti_and_8_ms_for_every_error():
    """0.75 ms to the next TTI and 1 ms in it; one in ten comes 8 ms later, one in a hundred 16."""
    air, count = Air((20, 1)), 2000
    for n in range(count):
        sent_ns = n * 50 * MS + MS // 4
        air.run(sent_ns)
        air.put("ue1", now_ns=sent_ns)
    air.run(count * 50 * MS)
    delays = [arrived_ns - (number - 1) * 50 * MS - MS // 4 for arrived_ns, number in air.arrivals]
    late = [round((delay - 1.75 * MS) / MS / HARQ_TTIS, 6) for delay in delays]
    assert len(late) == count
    assert set(late) <= {0, 1, 2, 3}
    for errors, fraction in ((0, 0.9), (1, 0.09), (2, 0.009)):
        assert late.count(errors) / count == pytest.approx(
            fraction, abs=3 * (fraction * (1 - fraction) / count) ** 0.5
        )


def test_later_blocks_wait_for_a_failed_one():
    """Half of all blocks fail. 1500 bytes at 12 Mb/s are one packet per TTI."""
    air = Air((12 / 1.111, 1), error=0.5)
    air.put("ue1", 200, 1500)
    air.run(5 * SECOND)
    assert [number for _, number in air.arrivals] == list(range(1, 201))
    together = [
        sum(at_ns == other for other, _ in air.arrivals)
        for at_ns in sorted({each for each, _ in air.arrivals})
    ]
    assert max(together) > 3  # they arrive in bursts


def test_small_packets_of_several_users_share_a_tti():
    """Ten acknowledgements of 78 bytes take 0.3 ms at 20 Mb/s; the other user gets the rest."""
    air = Air(*[(20, 1)] * 11, error=0)
    for n in range(1, 11):
        air.put(f"ue{n}", size=78)
    air.put("ue11", 2, 1514)
    air.run(2 * MS)
    assert air.arrivals == []
    air.run(3 * MS)
    assert sorted(air.arrivals) == [(2 * MS, number) for number in range(1, 12)]


def test_a_returning_user_is_served_first_for_a_while():
    """The means of the other user and of this one, e^(-t/T) and 1 - e^(-t/T), meet after T ln 2: 69
    of 100 TTIs. Then both take turns."""
    air, begins_ns = Air((10, 1), (10, 1), error=0), SECOND
    air.put("ue1", 1500)
    air.run(begins_ns)
    air.put("ue2", 500, now_ns=begins_ns)
    got = []
    for after_ms in (69, 269):
        air.run(begins_ns + after_ms * MS)
        got.append(8 * air.hop("ue2").out_bytes)
    all_bps = on_air_bps(10_000_000)
    assert got[0] == pytest.approx(0.069 * all_bps, rel=0.05)
    assert got[1] - got[0] == pytest.approx(0.2 * all_bps / 2, rel=0.05)


def test_an_empty_cell_schedules_no_events():
    """Retransmissions of long ago use no air time now."""
    air = Air((12 / 1.111, 1), error=1)
    for now_ns in (0, 40 * MS, 3600 * SECOND):
        air.put("ue1", size=1500, now_ns=now_ns)
        air.run(now_ns + 30 * MS)
        assert air.network.w.heap_count == 0
    assert [at_ns for at_ns, _ in air.arrivals] == [
        (start + 2 + 3 * HARQ_TTIS) * MS for start in (0, 40, 3_600_000)
    ]


PUTS = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.integers(1, 30),
        st.integers(60, 1514),
        st.integers(0, 30),
        st.sampled_from([DOWN, UP]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=25)
@given(puts=PUTS, error=st.sampled_from([0, 0.1, 0.7, 1]), metered=st.booleans())
def test_every_packet_arrives_is_dropped_or_waits(puts, error, metered):
    air = Air((3, 1), (20, 0.3), (0.5, 2), (0.01, 1), error=error, queue_packets=40)
    network, now_ns, sizes = air.network, 0, {}
    if metered:
        network._data_directions |= {("ue2", DOWN), ("ue2", UP)}
        Wireless(network).set_meter("lte1", ["ue2"], 500_000)
    for user, packets, size, gap_ms, direction in puts:
        now_ns += gap_ms * MS
        air.run(now_ns)
        sizes |= dict.fromkeys(range(air.put_in + 1, air.put_in + packets + 1), size)
        air.put(f"ue{user}", packets, size, now_ns, direction)
        air.run(now_ns + MS // 2)
        waiting = 0
        for h in network.tables.stations.values():
            in_packets, out, lost = (
                getattr(h, each) for each in ("in_packets", "out_packets", "drops")
            )
            assert in_packets == out + lost + h.queue_count
            sent_bits = 8 * h.out_bytes + h.head_sent_bits
            assert sent_bits * SECOND <= (now_ns + 2 * MS) * h.rate_bps
            waiting += h.queue_count
        assert waiting == network.w.packets_in_bearers
    air.run(now_ns + 3600 * SECOND)
    out = sum(h.out_packets for h in network.tables.stations.values())
    lost = sum(h.drops for h in network.tables.stations.values())
    assert (len(air.arrivals), out + lost) == (out, air.put_in)
    assert sum(sizes[number] for _, number in air.arrivals) == sum(
        h.out_bytes for h in network.tables.stations.values()
    )


def round_trip_ms(error: float) -> float:
    """First RTT sample of a transfer of one segment, which is acknowledged at once."""
    nodes = (Node("ue1", "user", "lte1"), Node("lte1", "lte"), Node("srv1", "server"))
    cell = Cell("lte1", "lte", (Station("ue1", 40_000_000),), delay_ns=20 * MS)
    flow = Flow("ue1-1", "ue1", "down", "reno", None, 1448, warm=True)
    network = Network(
        Topology("one", nodes, (Link("server", "lte1", "srv1"),), (cell,)),
        Multipath(),
        [flow],
        seed=1,
    )
    set_error(network, error)
    network.start(flow, "reno")
    _, s = places(network)
    s.srtt_ns = 0  # so that SRTT becomes an eighth of the first sample
    s.probe_end = at.FOREVER  # no tail loss probe
    network.run(SECOND)
    assert s.segments_dropped == s.segments_retransmitted == 0
    return 8 * s.srtt_ns / MS


def test_block_errors_lengthen_the_round_trip():
    """Twice 20 ms, and in each direction a TTI and the wait for it. With four attempts per block,
    three times 8 ms more in each direction."""
    quick, slow = round_trip_ms(0), round_trip_ms(1)
    assert 42 <= quick <= 44.2
    assert slow - quick == pytest.approx(2 * (ATTEMPTS - 1) * HARQ_TTIS, abs=1e-6)


def test_three_reno_flows_fill_the_buffers(testbed):
    users = [f"traffic.{n}.user={user}" for n, user in enumerate(("ue1", "ue3", "ue4", "ue4"), 1)]
    simulation = testbed("topology.multipath=[]", *users)
    simulation.run(2)
    frames = simulation.run(5)
    assert sum(frame["ap"]["lte1"]["mac_occupancy"] for frame in frames) / len(frames) > 0.95
