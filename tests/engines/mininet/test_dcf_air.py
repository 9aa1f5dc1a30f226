"""The C code of WiFi cells with `air: dcf`, compiled for this machine, beside the simulator, which
draws every backoff, and the layout of its maps."""

from __future__ import annotations

import ctypes
import heapq
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from lab.engines.mininet.kernel import cell_maps
from lab.engines.mininet.network.packet_programs import DCF_SOURCE
from lab.engines.sim.network import Network
from lab.engines.sim.routes import DOWN, UP
from lab.radio import contention, dcf
from lab.radio.cell import Station, wifi_cell
from lab.radio.wifi import FRAME_BYTES, STANDARDS
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.topologies.topology import Link, Node, Topology

SECOND = 10**9
WARM_S = 2  # until the first burst is over
WINDOW = 20  # packets of a sender that wait
TESTS = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler on this machine")
    target = tmp_path_factory.mktemp("dcf") / "dcf_air.so"
    source = TESTS / "dcf_air.c"
    options = ["-O2", "-shared", "-fPIC", "-Wno-unknown-pragmas", f"-I{DCF_SOURCE.parent}"]
    subprocess.run([compiler, *options, str(source), "-o", str(target)], check=True)
    loaded = ctypes.CDLL(str(target))
    loaded.depart.restype = loaded.sizes.restype = ctypes.c_uint64
    return loaded


class Maps:
    """Stands for a map of the kernel; keeps what is written."""

    def __init__(self, *_):
        self.entries = {}

    def write(self, key, value):
        self.entries[key] = value

    def find(self, key):
        return self.entries.get(key)

    def items(self, most):
        return list(self.entries.items())

    def delete(self, key):
        del self.entries[key]


def member(n, name, phy_mbps):
    return Station(f"ue{n}", round(8e6 * FRAME_BYTES / STANDARDS[name].frame_us(phy_mbps)))


class Air:
    """A cell in C. Senders are (number of the contender, station, direction)."""

    def __init__(self, library, monkeypatch, cell):
        monkeypatch.setattr(cell_maps, "Map", Maps)
        members = cell_maps.DcfMembers(Path(), cell)
        members.start()
        self.depart, self.at_ns = library.depart, 0
        self.cell = ctypes.create_string_buffer(cell_maps.LAYOUT.size)
        self.channel = ctypes.create_string_buffer(members._channel.entries[cell_maps.ZERO])
        self.ways = {
            (each.user, way): ctypes.create_string_buffer(
                cell_maps.WAY.pack(*dcf.frames(cell, each).values(), 0, 0, 0, 0, 0)
            )
            for each in cell.stations
            for way in (DOWN, UP)
        }

    def leaves_ns(self, number, user, way, now_ns, size=FRAME_BYTES):
        return self.depart(
            self.cell,
            self.channel,
            self.ways[user, way],
            number,
            way == UP,
            ctypes.c_uint64(size),
            ctypes.c_uint64(now_ns),
        )

    def saturated(self, senders, seconds, window=WINDOW):
        """Return how many frames of each sender leave, if `window` of each always wait."""
        sent = [0] * len(senders)
        waiting = [(1 + n, n) for n in range(len(senders)) for _ in range(window)]
        heapq.heapify(waiting)
        while waiting[0][0] < (WARM_S + seconds) * SECOND:
            now_ns, n = heapq.heappop(waiting)
            sent[n] += now_ns > WARM_S * SECOND
            heapq.heappush(waiting, (max(now_ns + 1, self.leaves_ns(*senders[n], now_ns)), n))
        return sent


def cell_of(phy_mbps, name):
    members = tuple(member(n, name, mbps) for n, mbps in enumerate(phy_mbps, 1))
    return wifi_cell("wifi1", members, 150, 0, air="dcf", standard=name)


def simulated(cell, flows, seconds):
    """Frames per second of each flow in the simulator."""
    nodes = (
        *(Node(each.user, "user", "wifi1") for each in cell.stations),
        Node("wifi1", "wifi"),
        Node("srv1", "server"),
    )
    topology = Topology("one", nodes, (Link("server", "wifi1", "srv1"),), (cell,))
    network = Network(topology, Multipath(), flows, 1)
    for flow in flows:
        network.start(flow, flow.cc)
    hops = [network.tables.stations["wifi1", each.user, each.direction] for each in flows]
    network.run(SECOND // 5)
    before = [each.out_packets for each in hops]
    network.run(SECOND // 5 + seconds * SECOND)
    return [(each.out_packets - count) / seconds for each, count in zip(hops, before, strict=True)]


def udp(user, direction):
    return Flow(f"{user}-1", user, direction, "reno", 60_000_000, None, "udp")


def both(library, monkeypatch, phy_mbps, directions, name="11a", window=WINDOW, seconds=4):
    """Frames per second of each station's flow: of the C code, and of the simulator."""
    cell = cell_of(phy_mbps, name)
    flows = [udp(f"ue{n}", way) for n, way in enumerate(directions, 1)]
    senders = [
        (0 if each.direction == DOWN else cell_maps.ACCESS_POINTS + n, each.user, each.direction)
        for n, each in enumerate(flows)
    ]
    sent = Air(library, monkeypatch, cell).saturated(senders, seconds, window)
    return [each / seconds for each in sent], simulated(cell, flows, seconds)


def test_the_maps_have_the_layout_of_the_program(library):
    found = [library.sizes(n) for n in range(3)]
    assert found == [cell_maps.LAYOUT.size, cell_maps.CHANNEL.size, cell_maps.WAY.size]


def test_a_station_keeps_its_number_and_times_and_one_that_has_left_frees_its_number(monkeypatch):
    monkeypatch.setattr(cell_maps, "Map", Maps)
    cell = cell_of([6, 54], "11a")
    members, (slow, fast) = cell_maps.DcfMembers(Path(), cell), cell.stations
    neighbour = members.sharing(replace(cell, ap="other"))

    def numbers():
        values = members._stations.entries.values()
        return [cell_maps.DCF_STATION.unpack(each)[-2:] for each in values]

    members.set("10.1.0.1", slow)
    neighbour.set("10.1.0.2", fast)
    assert numbers() == [(0, 8), (1, 9)]
    key, before = members._stations.items(9)[0]
    members._stations.write(
        key, before[:128] + cell_maps.DCF_STATION.pack(*[b""] * 2, 7, 5, 0, 8)[128:]
    )
    members.set("10.1.0.1", fast)
    assert members.activity()["10.1.0.1"] == cell_maps.Activity(7, 5)
    ways = [cell_maps.WAY.unpack(each[:64]) for each in members._stations.entries.values()]
    assert ways[0] == ways[1] != cell_maps.WAY.unpack(before[:64])
    members.remove("10.1.0.1")
    members.set("10.1.0.3", slow)
    assert numbers() == [(1, 9), (0, 8)]


@pytest.mark.parametrize("window", [3, WINDOW])
@pytest.mark.parametrize("nodes", range(1, 11))
def test_uploads_take_as_long_as_in_the_simulator(library, monkeypatch, nodes, window):
    ours, theirs = both(library, monkeypatch, [24] * nodes, [UP] * nodes, window=window)
    assert sum(ours) == pytest.approx(sum(theirs), rel=0.03)
    assert min(ours) > 0.95 * max(ours)


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_so_do_aggregates(library, monkeypatch, nodes):
    ours, theirs = both(library, monkeypatch, [26] * nodes, [UP] * nodes, "11n5")
    assert sum(ours) == pytest.approx(sum(theirs), rel=0.03)


@pytest.mark.parametrize("name", ["11a", "11n5"])
@pytest.mark.parametrize(("up", "down"), [(1, 1), (2, 2), (3, 1), (1, 3), (0, 3)])
def test_an_access_point_is_one_contender(library, monkeypatch, up, down, name):
    """In the simulator an A-MPDU of an access point is not full if its queue has few frames for
    the receiver, so uploads have up to a tenth more."""
    mbps = {"11a": 24, "11n5": 26}[name]
    ours, theirs = both(library, monkeypatch, [mbps] * (up + down), [UP] * up + [DOWN] * down, name)
    assert sum(ours) == pytest.approx(sum(theirs), rel=0.03)
    assert sum(ours[:up]) == pytest.approx(sum(theirs[:up]), rel=0.1)
    assert sum(ours[up:]) == pytest.approx(sum(theirs[up:]), rel=0.1)


def test_a_slow_station_has_as_many_accesses_as_a_fast_one(library, monkeypatch):
    ours, theirs = both(library, monkeypatch, [6, 54, 54], [UP] * 3, seconds=10)
    assert sum(ours) == pytest.approx(sum(theirs), rel=0.05)
    assert min(ours) > 0.95 * max(ours)


@pytest.mark.parametrize("size", [98, 700, FRAME_BYTES])
@pytest.mark.parametrize("way", [DOWN, UP])
def test_a_lone_frame_takes_as_long_as_a_ping_is_expected_to(library, monkeypatch, size, way):
    cell = cell_of([24, 6], "11a")
    air = Air(library, monkeypatch, cell)
    for number, station in enumerate(cell.stations, 8):
        now_ns = (1 + number) * SECOND
        left_ns = air.leaves_ns(number, station.user, way, now_ns, size) - now_ns
        assert left_ns == pytest.approx(dcf.alone_ns(cell, station, size), abs=9)


def test_a_lone_frame_leaves_at_once_and_all_departures_take_the_time_of_their_accesses(
    library, monkeypatch
):
    air = Air(library, monkeypatch, cell_of([24, 24], "11a"))
    idle_ns = round(contention.means(1).idle_slots * 9000) + 34_000
    frame_ns = dcf.frames_ns(dcf.times("11a", 1.0), 24, 1, FRAME_BYTES)
    assert air.leaves_ns(8, "ue1", UP, SECOND) == pytest.approx(SECOND + idle_ns + frame_ns, abs=9)
    ends = [air.leaves_ns(0, "ue2", DOWN, SECOND + 1) for _ in range(20)]
    assert ends == sorted(ends)
    assert ends[-1] - SECOND > 20 * (idle_ns + frame_ns)
