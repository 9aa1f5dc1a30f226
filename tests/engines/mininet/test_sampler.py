"""Samples of subflows, users and tiers, computed from sockets."""

import pytest

from controller import paths
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.router import Router
from controller.topology import Topology
from lab.engines.mininet.kernel import subflow_rates
from lab.engines.mininet.kernel.tcp_sockets import TcpSocket
from lab.engines.mininet.traffic.sampler import UDP, OpenedFlow, Sampler, receivers, single_path
from lab.topologies import fat_tree, rat_setup, wifi_lte
from lab.topologies.topology import as_json, wire

WIFI, LTE, SERVER = ("10.1.0.1", 4000), ("10.2.0.1", 4001), ("10.0.0.1", 5001)


def sampler():
    user = wifi_lte.User(id="ue1", wifi_mbps=10, lte_mbps=10)
    made = Sampler(wire(wifi_lte.build(wifi_lte.Params(users=(user,), multipath=("ue1",)))))
    made.open(OpenedFlow("ue1-1", "ue1", WIFI, "down", True, "ue1"))
    return made


def socket(source, destination, received=0, token=None, **more):
    fields = {
        "cc": "reno",
        "rtt_ms": 20.0,
        "cwnd": 10,
        "bytes_acked": 0,
        "data_segments_out": 0,
        "data_segments_in": 0,
    }
    fields |= {
        "retransmitted": 0,
        "in_flight": 0,
        "out_of_order": 0,
        "backup": False,
        "pacing_limit": 2**64 - 1,
    } | more
    return TcpSocket(
        source=source, destination=destination, bytes_received=received, token=token, **fields
    )


def sample(made, wifi_bytes, lte_bytes, read_bytes, elapsed_s=1.0):
    server = [socket(SERVER, WIFI, token=7), socket(SERVER, LTE, token=7)]
    user = [socket(WIFI, SERVER, wifi_bytes, 9), socket(LTE, SERVER, lte_bytes, 9)]
    made.take(server, user)
    return made.sample(
        elapsed_s,
        {"ue1-1": {"bytes": read_bytes, "done_s": None}},
        {"ue1": {"wifi1": 1, "lte1": 2}},
    )


def test_a_subflow_over_a_relay_counts_at_every_access_point_of_its_path():
    topology = rat_setup.build(rat_setup.Params(setup=2, pairs=1))
    made = Sampler(wire(topology))
    made.open(OpenedFlow("ue1-1", "ue1", WIFI, "down", True, "ue1"))
    made.routed(WIFI, 1, ("n1", "wifi1", "s1", "wifi2"))
    made.take([socket(SERVER, WIFI, token=7)], [socket(WIFI, SERVER, 125_000, 9)])
    got = made.sample(1.0, {"ue1-1": {"bytes": 0, "done_s": None}}, {})
    assert got.tier_mbps == {"wifi1": {1: 1.0, 2: 0.0}, "wifi2": {1: 1.0, 2: 0.0}}


def test_rates_are_differences_at_the_receiver():
    made = sampler()
    sample(made, 1000, 1000, 2000)
    frame = sample(made, 126_000, 63_500, 189_500)
    assert frame.subflows["ue1-1/1"].mbps == 1.0
    assert frame.subflows["ue1-1/2"].mbps == 0.5
    assert frame.users["ue1"].mbps == 1.5
    assert frame.tier_mbps == {"wifi1": {1: 1.0, 2: 0.0}, "lte1": {1: 0.0, 2: 0.5}}


def test_a_join_belongs_to_the_connection_of_its_token_and_comes_second():
    made = sampler()
    sample(made, 0, 0, 0)
    subflows = made.connections["ue1-1"].subflows
    assert [(each.number, each.interface.link) for each in subflows.values()] == [
        (1, "wifi1"),
        (2, "lte1"),
    ]


def test_an_unknown_socket_belongs_to_no_connection():
    made = sampler()
    made.take([socket(SERVER, ("10.9.0.9", 1), token=99)], [])
    assert made.connections["ue1-1"].subflows == {}


def test_a_closed_subflow_keeps_its_counters():
    made = sampler()
    sample(made, 125_000, 125_000, 250_000)
    made.take([socket(SERVER, WIFI, token=7)], [socket(WIFI, SERVER, 250_000, 9)])
    frame = made.sample(1.0, {"ue1-1": {"bytes": 375_000}}, {})
    assert frame.subflows["ue1-1/2"].mbps == 0.0
    assert made.report(2.0, {})[0].subflows[1].throughput_mbps == 0.5


def test_out_of_order_segments_are_those_the_receiver_put_aside():
    made = sampler()
    made.take(
        [socket(SERVER, WIFI, token=7), socket(SERVER, LTE, token=7)],
        [socket(WIFI, SERVER, data_segments_in=60), socket(LTE, SERVER, data_segments_in=20)],
    )
    made.sample(1.0, {}, {})
    assert made.report(2.0, {"ue1": 20})[0].out_of_order_fraction == 0.25
    assert made.report(2.0, {})[0].out_of_order_fraction is None


def test_uploads_are_out_of_order_at_the_server():
    """The server counts for both users together, so their connections have one fraction."""
    made = sampler()
    made.open(OpenedFlow("ue1-2", "ue1", ("10.1.0.1", 4100), "up", True, "srv1"))
    made.open(OpenedFlow("ue1-3", "ue1", ("10.1.0.1", 4200), "up", True, "srv1"))
    ports = (4100, 4200)
    made.take(
        [socket(SERVER, (WIFI[0], port), data_segments_in=50, token=port) for port in ports],
        [socket((WIFI[0], port), SERVER) for port in ports],
    )
    made.sample(1.0, {}, {})
    down, *up = (each.out_of_order_fraction for each in made.report(2.0, {"ue1": 0, "srv1": 25}))
    assert (down, up) == (0.0, [0.25, 0.25])


def test_plain_tcp_is_out_of_order_where_its_one_subflow_is():
    made = sampler()
    made.open(OpenedFlow("ue1-2", "ue1", ("10.1.0.1", 4100), "down", False, "ue1", ("s1", "wifi1")))
    made.take(
        [socket(SERVER, ("10.1.0.1", 4100))],
        [socket(("10.1.0.1", 4100), SERVER, data_segments_in=50, out_of_order=5)],
    )
    made.sample(1.0, {}, {"ue1": {"wifi1": 2}})
    report = made.report(2.0, {"ue1": 40})[1]
    assert report.out_of_order_fraction == 0.1
    assert report.subflows[0].path == ("s1", "wifi1")
    assert report.subflows[0].tier == 2


def test_lost_segments_left_the_sender_did_not_arrive_and_are_not_in_flight():
    made = sampler()
    made.take(
        [socket(SERVER, WIFI, token=7, data_segments_out=100, in_flight=10, retransmitted=8)],
        [socket(WIFI, SERVER, token=9, data_segments_in=85)],
    )
    subflow = made.report(1.0, {})[0].subflows[0]
    assert (subflow.segments, subflow.lost_segments, subflow.retransmitted_segments) == (100, 5, 8)


def test_the_most_data_held_back_is_what_the_receiving_program_counted():
    made = sampler()
    made.sample(1.0, {"ue1-1": {"bytes": 9, "receive_buffer_max_bytes": 70_000}}, {})
    assert made.report(1.0, {})[0].receive_buffer_max_bytes == 70_000


def test_data_held_back_is_summed_over_the_connections_of_a_user():
    made = sampler()
    made.open(OpenedFlow("ue1-2", "ue1", ("10.1.0.1", 4100), "down", True, "ue1"))
    status = {"ue1-1": {"bytes": 0, "held_back_bytes": 70_000}, "ue1-2": {"bytes": 0}}
    assert made.sample(1.0, status, {}).users["ue1"].held_back_kb == 70
    status["ue1-2"]["held_back_bytes"] = 1500
    assert made.sample(1.0, status, {}).users["ue1"].held_back_kb == 71.5
    assert made.sample(1.0, {"ue1-1": {}, "ue1-2": {}}, {}).users["ue1"].held_back_kb is None


def test_a_completed_flow_is_reported_once_with_its_time():
    made = sampler()
    made.sample(1.0, {"ue1-1": {"bytes": 9, "done_s": 0.8}}, {})
    assert made.newly_complete() == {"ue1-1": 0.8}
    assert made.newly_complete() == {}


def test_windows_and_round_trips_are_the_senders():
    made = sampler()
    made.take(
        [socket(SERVER, WIFI, token=7, cwnd=42, rtt_ms=33.0)],
        [socket(WIFI, SERVER, token=9, cwnd=3, rtt_ms=1.0)],
    )
    row = made.sample(1.0, {}, {}).subflows["ue1-1/1"]
    assert (row.cwnd, row.rtt_ms) == (42, 33.0)


def test_a_subflow_has_the_controllers_number_and_path():
    made = sampler()
    made.routed(WIFI, 2, ("s1", "c1", "wifi1"))
    made.routed(LTE, 1, ("s1", "lte1"))
    frame = sample(made, 0, 0, 0)
    assert frame.subflows["ue1-1/2"].ap == "wifi1"
    made.routed(WIFI, 2, ("s1", "wifi1"))
    sample(made, 0, 0, 0)
    paths = {each.id: each.path for each in made.report(1.0, {})[0].subflows}
    assert paths == {"ue1-1/2": ("s1", "wifi1"), "ue1-1/1": ("s1", "lte1")}


def test_the_pacing_rate_of_the_sender_is_the_expected_rate():
    made = sampler()
    made.take(
        [socket(SERVER, WIFI, token=7, pacing_limit=subflow_rates.payload_rate(4_500_000))], []
    )
    assert made.sample(1.0, {}, {}).subflows["ue1-1/1"].expected_mbps == pytest.approx(
        4.5, abs=1e-3
    )
    made.take([socket(SERVER, WIFI, token=7)], [])
    assert made.sample(1.0, {}, {}).subflows["ue1-1/1"].expected_mbps is None


# UDP


def udp(sent, arrived, following, late=0):
    """Status of a UDP flow; `following` is one more than the largest number that has arrived."""
    return {"ue1-2": {"bytes": 1472 * arrived, "done_s": None, "sent": sent, "datagrams": arrived,
                      "next": following, "out_of_order": late, "receive_buffer_max_bytes": 0}}  # fmt: skip


def test_a_udp_flow_is_sampled_and_reported_like_a_subflow():
    made = sampler()
    path = ("s1", "wifi1")
    made.open(OpenedFlow("ue1-2", "ue1", ("10.1.0.1", 4100), "up", False, "srv1", path, "udp"))
    made.sample(1.0, udp(100, 90, 95, late=2), {"ue1": {"wifi1": 1}})
    frame = made.sample(1.0, udp(200, 180, 190, late=5), {"ue1": {"wifi1": 1}})
    row = frame.subflows["ue1-2/1"]
    assert row.mbps == pytest.approx(90 * 1472 * 8 / 1e6, abs=1e-4)
    assert (row.cwnd, row.rtt_ms, row.expected_mbps, row.backup) == (None, None, None, False)
    assert row.out_of_order == pytest.approx(3 / 90, abs=1e-5)
    assert frame.tier_mbps["wifi1"][1] == row.mbps == frame.users["ue1"].mbps
    (subflow,) = made.report(2.0, {})[1].subflows
    assert (subflow.segments, subflow.lost_segments, subflow.out_of_order_segments) == (200, 10, 5)
    assert (subflow.path, subflow.cc, subflow.retransmitted_segments) == (("s1", "wifi1"), None, 0)


def test_what_a_sender_has_sent_is_added_to_the_status_of_the_receiver():
    sending = {"sends": True, "datagrams": 7}
    receiving = {"sends": False, "datagrams": 5}
    tcp = {"sends": False, "bytes": 1}
    answers = [{"flows": {"a-1": sending, "b-1": tcp}}, {"flows": {"a-1": receiving}}]
    assert receivers(answers) == {"a-1": receiving | {"sent": 7}, "b-1": tcp}


def test_the_path_of_udp_is_the_one_that_the_controller_chooses():
    topology = fat_tree.build(fat_tree.Params(k=4))
    wiring = wire(topology)
    network = Topology.model_validate(as_json(topology, wiring))
    router = Router(network, Hosts(network))
    for user in topology.users:
        own, server = wiring.of(user)[0], wiring.of(topology.server_of(user))[0]
        found = single_path(wiring, server, own)
        assert found == router.path(paths.Flow(server.address, own.address, UDP))
        assert found[::-1] == router.path(paths.Flow(own.address, server.address, UDP))
