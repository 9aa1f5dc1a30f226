"""The AP agent: what it measures, and how it divides LTE cells."""

import socket
import time

import pytest

from controller.agent_messages import read_ap_report
from lab.engines.mininet.kernel.cell_maps import Activity
from lab.engines.mininet.kernel.netlink import Queue
from lab.engines.mininet.kernel.shaping import FQ, PFIFO
from lab.engines.mininet.programs import ap_agent
from lab.engines.mininet.programs.ap_agent import (
    AccessPoint,
    LteCell,
    Report,
    Station,
    StationReport,
    WifiCell,
    encode,
    mean,
)
from lab.radio import contention


def lte(uploads=(), rate_bps=8_000_000):
    """Users ue3 and ue4, with the devices p3 and p4 for the downlink, p13 and p14 for the
    uplink."""
    stations = {
        f"ue{n}": Station(rate_bps, 1.0, f"p{n}", f"ue{n}" in uploads, uplink_device=f"p1{n}")
        for n in (3, 4)
    }
    return AccessPoint("lte", "", stations)


IDLE_UPLINKS = {(13, PFIFO): Queue(0, 0, 0, 0), (14, PFIFO): Queue(0, 0, 0, 0)}


class Members:
    """Stations of a cell that send until these times; records the collisions that are set."""

    def __init__(self, *busy_until_ns):
        self.busy_until_ns, self.set = busy_until_ns, []

    def activity(self):
        return {f"10.1.0.{n}": Activity(busy_ns, 1) for n, busy_ns in enumerate(self.busy_until_ns)}

    def set_collisions(self, transmissions, loss):
        self.set.append((transmissions, loss))


def test_stations_that_send_at_the_same_time_collide():
    later = time.monotonic_ns() + 10**12
    members = Members(later, later, later, 0)
    collisions = ap_agent.Collisions(members, loss_ppm=0)
    for _ in range(100):
        collisions.update(downlinks=1)
    expected = contention.transmissions(4.0), contention.abandoned(4.0)
    assert members.set[-1] == pytest.approx(expected)
    count = len(members.set)
    collisions.update(downlinks=1)
    assert len(members.set) == count  # the effect is the same, so it is not set again


def test_a_cell_where_one_node_sends_has_no_collisions():
    members = Members(0, 0)
    collisions = ap_agent.Collisions(members, loss_ppm=1000)
    collisions.update(downlinks=1)
    assert members.set == [(1.0, pytest.approx(0.001))]


class Scheduler:
    """The number of the device p3 is 3. Records the rates that are set."""

    def __init__(self):
        self.rates = {}

    def index(self, device):
        return int(device[1:])

    def set_rates(self, rates):
        self.rates |= {index: rate_bps for index, (rate_bps, _burst) in rates.items()}


def queue(waiting, sent_bytes=0):
    return Queue(waiting, 0, sent_bytes, 0)


FULL = 100_000  # bytes that a user of `lte()` which is alone sends between two polls


def wifi_cell(uploads=False, wait_ns=0):
    stations = {"ue1": Station(10_500_000, 1.0, "", uploads)}
    return WifiCell(AccessPoint("wifi", "p1", stations), Scheduler(), lambda: wait_ns)


def test_a_radio_is_as_full_as_its_ring():
    report = wifi_cell().poll({(1, FQ): queue(8)}, 0.1)
    assert (report.backlog_packets, report.mac_occupancy) == (8, 0.5)
    assert report.stations == {"ue1": StationReport(10.5)}
    assert wifi_cell().poll({(1, FQ): queue(100)}, 0.1).mac_occupancy == 1.0


def test_all_access_points_of_a_channel_contend_for_it():
    members = Members()
    ap = AccessPoint("wifi", "p1", {}, collisions=True, sharing=["p2", "p5"])
    cell = WifiCell(ap, Scheduler(), lambda: 0, ap_agent.Collisions(members, loss_ppm=0))
    for _ in range(100):
        cell.poll({(1, FQ): queue(0), (2, FQ): queue(3), (5, FQ): queue(9)}, 0.1)
    assert members.set[-1][0] == pytest.approx(contention.transmissions(2.0))


def test_uploads_that_wait_for_the_air_fill_a_radio():
    frame_ns = round(1e9 * 8 * 1514 / 10_500_000)
    report = wifi_cell(uploads=True, wait_ns=12 * frame_ns).poll({(1, FQ): queue(4)}, 0.1)
    assert (report.backlog_packets, report.mac_occupancy) == (12, 0.75)


def test_acknowledgements_that_wait_for_the_air_do_not_fill_a_radio():
    report = wifi_cell(uploads=False, wait_ns=10**9).poll({(1, FQ): queue(4)}, 0.1)
    assert report.mac_occupancy == 0.25


def downlink(first, second):
    return {(3, PFIFO): first, (4, PFIFO): second} | IDLE_UPLINKS


def test_backlogged_users_of_an_lte_cell_get_half_of_it_each():
    scheduler = Scheduler()
    report = LteCell(lte(), scheduler).poll(downlink(queue(20, FULL), queue(4, FULL)), 0.1)
    assert (scheduler.rates[3], scheduler.rates[4]) == (4_000_000, 4_000_000)
    assert [each.mac_occupancy for each in report.stations.values()] == [1.0, 0.25]
    assert (report.backlog_packets, report.mac_occupancy) == (24, 0.625)


def test_slow_users_together_get_no_more_than_the_cell_has():
    """As with 19 users of a cell at a rate scale of 0.03, who have 59 kb/s each."""
    scheduler = Scheduler()
    LteCell(lte(rate_bps=100_000), scheduler).poll(downlink(queue(20), queue(20)), 0.1)
    assert (scheduler.rates[3], scheduler.rates[4]) == (50_000, 50_000)


def test_what_one_user_leaves_unused_goes_to_the_others():
    scheduler = Scheduler()
    cell = LteCell(lte(), scheduler)
    cell.poll(downlink(queue(20, FULL), queue(0)), 0.1)
    assert scheduler.rates[3] == 8_000_000
    assert scheduler.rates[4] == 4_000_000  # ue4 sent nothing, and may start with its share
    cell.poll(downlink(queue(20, 2 * FULL), queue(0, 20_000)), 0.1)
    assert scheduler.rates[3] == 6_400_000  # ue4 sent 1.6 Mb/s, a fifth of the cell


def test_a_packet_that_waits_does_not_make_a_user_backlogged():
    """ue4 sends 3 Mb/s: often a packet waits, but ue4 needs no higher rate."""
    scheduler = Scheduler()
    cell = LteCell(lte(), scheduler)
    cell.poll(downlink(queue(20, FULL), queue(0, 37_500)), 0.1)
    cell.poll(downlink(queue(20, 2 * FULL), queue(1, 75_000)), 0.1)
    assert scheduler.rates[3] == 5_000_000
    assert scheduler.rates[4] == 4_000_000


def test_the_directions_of_an_lte_cell_are_divided_separately():
    scheduler = Scheduler()
    busy = {
        (3, PFIFO): queue(0),
        (4, PFIFO): queue(20, FULL),
        (13, PFIFO): queue(9, FULL),
        (14, PFIFO): queue(9, FULL),
    }
    LteCell(lte(), scheduler).poll(busy, 0.1)
    assert scheduler.rates == {3: 4_000_000, 4: 8_000_000, 13: 4_000_000, 14: 4_000_000}


def test_the_uplink_queue_of_an_uploading_user_fills_its_bearer():
    queues = {
        (3, PFIFO): queue(2),
        (4, PFIFO): queue(2),
        (13, PFIFO): queue(12),
        (14, PFIFO): queue(12),
    }
    report = LteCell(lte(uploads=["ue4"]), Scheduler()).poll(queues, 0.1)
    assert [each.mac_occupancy for each in report.stations.values()] == [2 / 16, 12 / 16]
    assert report.backlog_packets == 14


def test_a_rate_that_hardly_changed_is_not_set_once_more():
    scheduler = Scheduler()
    cell = LteCell(lte(), scheduler)
    cell.poll(downlink(queue(20, FULL), queue(20, FULL)), 0.1)
    scheduler.rates.clear()
    cell.poll(downlink(queue(20, 2 * FULL), queue(20, 2 * FULL)), 0.1)
    assert scheduler.rates == {}


def test_a_datagram_holds_the_mean_of_several_polls():
    def polled(occupancy):
        stations = {"ue3": StationReport(8.0, occupancy), "ue1": StationReport(8.0)}
        return Report(3, occupancy, stations)

    report = mean([polled(0.5), polled(1.0)])
    assert (report.mac_occupancy, report.stations["ue3"].mac_occupancy) == (0.75, 0.75)
    assert report.stations["ue1"].mac_occupancy is None
    datagram = read_ap_report(encode("lte1", 7, report, "secret"), "secret")
    assert (datagram.ap, datagram.seq, datagram.mac_occupancy) == ("lte1", 7, 0.75)


def test_changes_are_taken_one_by_one_even_if_they_come_together():
    read, write = socket.socketpair()
    with read, write:
        lines = ap_agent.Lines(read.fileno())
        aps = {
            "wifi1": AccessPoint("wifi", "p1", {"ue1": Station(1, 1.0, "")}),
            "wifi2": AccessPoint("wifi", "p2", {}),
        }
        assert ap_agent.take_change(aps, lines, 0.01) == ""
        assert aps["wifi1"].stations["ue1"].rate_bps == 1
        write.sendall(
            b'{"ap": "wifi1", "user": "ue1", "rate_bps": 7}\n'
            b'{"ap": "wifi2", "user": "ue1", "from": "wifi1", '
            b'"station": {"rate_bps": 9, "rssi_dbm": -60}}\n{"ap":'
        )
        assert ap_agent.take_change(aps, lines, 1) == ""
        assert aps["wifi1"].stations["ue1"].rate_bps == 7
        assert ap_agent.take_change(aps, lines, 1) == "wifi2"
        assert aps["wifi1"].stations == {}
        assert aps["wifi2"].stations == {"ue1": Station(9, 1.0, "", rssi_dbm=-60)}
        assert ap_agent.take_change(aps, lines, 0.01) == ""  # a line without its end waits
        write.shutdown(socket.SHUT_WR)
        assert ap_agent.take_change(aps, lines, 1) is None


def test_an_adopted_access_point_is_measured_by_the_qdisc_at_its_radio():
    ap = AccessPoint("queue", "p7", {"sta1": Station(54_000_000, 1.0, "p7")}, qdisc=2)
    cell = ap_agent.make_cell("ap1", ap, Scheduler())
    assert cell.queues == [(7, 2)]
    assert cell.poll({(7, 2): queue(8)}, 0.1) == Report(8, 0.5, {"sta1": StationReport(54.0)})
    assert cell.poll({}, 0.1).mac_occupancy is None  # the script has removed it
