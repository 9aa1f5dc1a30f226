"""The traffic program, run on the loopback interface."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from userspace_bridges import eventually

from lab.engines.mininet.kernel import tcp_sockets
from lab.engines.mininet.programs import path_probe
from lab.engines.mininet.programs.flow import FlowRequest
from lab.engines.mininet.traffic import probes, processes
from lab.scenario.clients import ClientSpec
from lab.scenario.flows import CallSpec

REQUEST = FlowRequest("f", "127.0.0.1", "127.0.0.2", mptcp=True, direction="down", cc="reno")


class Host:
    def __init__(self):
        self.program = subprocess.Popen(
            [sys.executable, "-SE", "-m", processes.PROGRAM],
            cwd=processes.PROJECT,
            stdin=-1,
            stdout=-1,
            text=True,
        )

    def send(self, **request):
        self.program.stdin.write(json.dumps(request) + "\n")
        self.program.stdin.flush()
        return json.loads(self.program.stdout.readline())

    def close(self):
        with self.program as program:
            program.stdin.close()
            return program.wait(5)


@pytest.fixture
def pair():
    if not Path("/proc/sys/net/mptcp/enabled").exists():
        pytest.skip("this kernel has no Multipath TCP")
    server, user = Host(), Host()
    if "error" in server.send(do="serve", mptcp=True):
        pytest.skip("port 5001 of this machine is taken")
    yield server, user
    user.close()
    server.close()


def start(user, mptcp=True, **more):
    answer = user.send(do="connect", **(REQUEST._asdict() | {"mptcp": mptcp} | more))
    user.send(do="go", id="f")
    return answer


def test_a_file_arrives_whole_and_its_time_is_reported(pair):
    _server, user = pair
    start(user, volume_bytes=3_000_000)
    deadline = time.monotonic() + 5
    while (flow := user.send(do="status")["flows"]["f"])[
        "done_s"
    ] is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert flow["bytes"] == 3_000_000
    assert flow["mptcp"]
    assert flow["error"] is None


@pytest.mark.parametrize("direction", ["down", "up"])
def test_a_flow_starts_at_its_time(pair, direction):
    _server, user = pair
    user.send(do="connect", **(REQUEST._asdict() | {"direction": direction}))
    at_s = time.monotonic() + 0.4
    user.send(do="go", id="f", at_s=at_s)
    deadline = at_s + 5
    while not (got := user.send(do="status")["flows"]["f"]["bytes"]):
        assert time.monotonic() < deadline
    assert got
    assert time.monotonic() >= at_s


def test_plain_tcp_is_distinguished_from_multipath(pair):
    _server, user = pair
    start(user, mptcp=False, rate_bps=1_000_000)
    time.sleep(0.2)
    assert user.send(do="status")["flows"]["f"]["mptcp"] is False


@pytest.mark.whole
def test_a_rate_limits_the_application_and_can_be_changed(pair):
    _server, user = pair
    start(user, rate_bps=0)
    time.sleep(0.3)
    assert user.send(do="status")["flows"]["f"]["bytes"] == 0
    user.send(do="rate", id="f", rate_bps=8_000_000)
    time.sleep(0.5)
    began, before = time.monotonic(), user.send(do="status")["flows"]["f"]["bytes"]
    time.sleep(1.0)
    sent = (user.send(do="status")["flows"]["f"]["bytes"] - before) * 8 / (time.monotonic() - began)
    assert 5_000_000 < sent < 8_500_000


@pytest.mark.whole
@pytest.mark.parametrize("mptcp", [True, False])
def test_an_unloaded_path_carries_the_requested_rate(pair, mptcp):
    """A program that waited 20 ms after each turn would send less on a busy machine."""
    _server, user = pair
    start(user, mptcp=mptcp, rate_bps=3_000_000)
    time.sleep(0.3)
    began, before = time.monotonic(), user.send(do="status")["flows"]["f"]["bytes"]
    time.sleep(3.0)
    sent = (user.send(do="status")["flows"]["f"]["bytes"] - before) * 8 / (time.monotonic() - began)
    assert 0.98 * 3_000_000 < sent < 1.05 * 3_000_000


@pytest.mark.parametrize("direction", ["down", "up"])
def test_datagrams_arrive_at_their_rate_until_the_flow_ends(pair, direction):
    server, user = pair
    request = REQUEST._asdict() | {"protocol": "udp", "direction": direction, "rate_bps": 2_000_000}
    port = user.send(do="connect", **request)["port"]
    assert server.send(do="expect", **request | {"port": port}) == {}
    receiver, sender = (user, server) if direction == "down" else (server, user)

    def flow(host):
        return host.send(do="status")["flows"]["f"]

    for host in (receiver, sender):
        host.send(do="go", id="f")
    time.sleep(0.5)
    began, before = time.monotonic(), flow(receiver)["bytes"]
    time.sleep(2.0)
    sent = (flow(receiver)["bytes"] - before) * 8 / (time.monotonic() - began)
    assert 0.95 * 2_000_000 < sent < 1.05 * 2_000_000
    sender.send(do="rate", id="f", rate_bps=0)
    time.sleep(0.2)
    assert flow(receiver)["datagrams"] == flow(sender)["datagrams"] == flow(receiver)["next"]
    assert (flow(receiver)["out_of_order"], flow(receiver)["mptcp"]) == (0, False)
    assert flow(receiver)["bytes"] == 1472 * flow(receiver)["datagrams"]
    for host in (receiver, sender):
        host.send(do="stop", id="f")


@pytest.mark.parametrize("direction", ["down", "up"])
def test_the_receiver_of_a_call_says_how_long_each_datagram_took(pair, direction):
    server, user = pair
    call = {"protocol": "udp", "direction": direction, "call": CallSpec(172, 0.01, 60.0)}
    request = REQUEST._asdict() | call
    port = user.send(do="connect", **request)["port"]
    assert server.send(do="expect", **request | {"port": port}) == {}
    receiver, sender = (user, server) if direction == "down" else (server, user)
    for host in (receiver, sender):
        host.send(do="go", id="f")
    arrived = []

    def has_arrived():
        arrived.extend(receiver.send(do="status")["flows"]["f"]["arrived"])
        return len(arrived) > 40

    assert eventually(has_arrived, "hear 40 datagrams")
    sender.send(do="stop", id="f")
    assert [number for number, _ in arrived] == list(range(len(arrived)))
    assert all(0 < delay_s < 5 for _, delay_s in arrived)
    status = receiver.send(do="status")["flows"]["f"]
    assert status["bytes"] == 172 * status["datagrams"]
    receiver.send(do="stop", id="f")


@pytest.mark.parametrize("mptcp", [True, False])
def test_a_new_congestion_control_reaches_connections_that_are_open(pair, mptcp):
    server, user = pair
    port = start(user, mptcp=mptcp, cc="cubic", rate_bps=1_000_000)["port"]
    time.sleep(0.2)
    assert server.send(do="cc", cc="reno") == {}
    with closing(tcp_sockets.Diagnosis()) as diagnosis:
        found = [each for each in diagnosis.sockets() if each.destination == ("127.0.0.2", port)]
    assert [each.cc for each in found] == ["reno"]
    assert "error" in server.send(do="cc", cc="unknown")


def test_the_kernel_confirms_congestion_control_and_token(pair):
    _server, user = pair
    port = start(user, cc="cubic", rate_bps=1_000_000)["port"]
    time.sleep(0.2)
    with closing(tcp_sockets.Diagnosis()) as diagnosis:
        found = [each for each in diagnosis.sockets() if each.destination == ("127.0.0.2", port)]
    assert found[0].cc == "cubic"
    assert os.geteuid() != 0 or found[0].token is not None


def test_a_probe_measures_a_rate_and_a_round_trip(pair):
    _server, user = pair
    burst = {"packets": probes.PACKETS, "send_bps": 20_000_000}
    request = {"do": "probe", "server": "127.0.0.1", "bind": "127.0.0.2", "burst": burst}
    got = user.send(**request)
    if "error" in got:
        pytest.skip("raw sockets need root")
    assert got["rtt_ms"] < 50
    assert got["rate_bps"] > 1e6
    assert got["up_bps"] is None
    assert user.send(**request, up=True)["up_bps"] > 1e6


def test_the_frames_of_a_burst_are_spread_over_time():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.bind(("127.0.0.1", 0))
        began = time.monotonic()
        path_probe.Burst(packets=26, send_bps=1_211_200).send(end, end.getsockname())
        assert time.monotonic() - began >= 0.25


@pytest.mark.parametrize(
    ("answers", "rate_bps"),
    [
        (["0", "5000000"], 5e6),
        (["0", None, "5000000"], 5e6),  # the full queue drops the question after the frames
        ([None, "0", "0", "5000000"], 5e6),  # the first question was answered twice, and late
        (["0"], None),
    ],
)
def test_the_rate_of_an_upload_is_asked_again(monkeypatch, answers, rate_bps):
    monkeypatch.setattr(path_probe, "ASK_AGAIN_S", 0.1)
    monkeypatch.setattr(path_probe, "UPLINK_TIMEOUT_S", 0.5)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(2)
        monkeypatch.setattr(path_probe, "PROBE_PORT", server.getsockname()[1])

        def answer():
            left = list(answers)
            while left:
                request, peer = server.recvfrom(2048)
                if request == path_probe.ARRIVED and (text := left.pop(0)) is not None:
                    server.sendto(text.encode(), peer)

        thread = threading.Thread(target=answer)
        thread.start()
        burst = path_probe.Burst(packets=5, send_bps=0)
        assert path_probe.measure_up("127.0.0.1", "127.0.0.1", burst) == rate_bps
        thread.join()


def test_a_command_that_fails_is_answered_and_the_program_continues(pair):
    _server, user = pair
    assert "KeyError" in user.send(do="stop", id="unknown")["error"]
    assert user.send(do="status") == {"flows": {}}


def test_the_program_ends_with_its_input():
    assert Host().close() == 0


@pytest.mark.parametrize("mptcp", [True, False])
def test_a_path_without_loss_holds_no_data_back(pair, mptcp):
    _server, user = pair
    start(user, mptcp=mptcp, volume_bytes=20_000_000)

    def status():
        return user.send(do="status")["flows"]["f"]

    eventually(lambda: status()["done_s"] is not None, "receive the file")
    assert status()["mptcp"] is mptcp
    assert status()["receive_buffer_max_bytes"] == 0


@pytest.mark.parametrize("direction", ["down", "up"])
def test_planned_flows_start_by_themselves_and_count_from_their_times(pair, direction):
    server, user = pair
    zero_s = time.monotonic() + 0.2
    flows = [
        REQUEST._asdict() | {"id": f"f{n}", "direction": direction, "volume_bytes": 100_000}
        for n in range(4)
    ]
    user.send(do="plan", flows=[each | {"at_s": 0.1 * n} for n, each in enumerate(flows)])
    assert user.send(do="status")["flows"] == {}
    user.send(do="begin", zero_s=zero_s)
    receiver = user if direction == "down" else server

    def found():
        return receiver.send(do="status")["flows"]

    assert eventually(
        lambda: [each["done_s"] is not None for each in found().values()] == [True] * 4,
        "transfer planned flows",
    )
    assert set(found()) == {"f0", "f1", "f2", "f3"}
    for each in found().values():
        assert each["bytes"] == 100_000
        assert each["mptcp"]
        assert each["error"] is None
        assert each["done_s"] > 0


def test_a_planned_flow_that_cannot_be_opened_is_missing_and_the_others_are_not(pair):
    _server, user = pair
    good = REQUEST._asdict() | {"id": "good", "volume_bytes": 1000, "at_s": 0.0}
    wrong = good | {"id": "wrong", "bind": "203.0.113.1"}  # no address of this machine
    user.send(do="plan", flows=[wrong, good])
    user.send(do="begin", zero_s=time.monotonic())
    assert eventually(
        lambda: user.send(do="status")["flows"].get("good", {}).get("done_s"),
        "transfer the flow that can be opened",
    )
    assert "wrong" not in user.send(do="status")["flows"]


def test_a_connection_opens_in_the_background_and_waits_for_its_start(pair):
    _server, user = pair
    good = REQUEST._asdict() | {"id": "good", "volume_bytes": 1000}
    wrong = good | {"id": "wrong", "bind": "203.0.113.1"}  # no address of this machine
    assert user.send(do="opened") == {"opened": {}}
    assert user.send(do="open", flows=[wrong, good]) == {}

    def opened():
        return user.send(do="opened")["opened"]

    assert eventually(lambda: len(opened()) == 2, "open a connection")
    assert "OSError" in opened()["wrong"]
    assert 0 < opened()["good"] < 65536
    assert user.send(do="status")["flows"]["good"]["bytes"] == 0
    user.send(do="go", id="good")
    assert eventually(
        lambda: user.send(do="status")["flows"]["good"]["done_s"], "transfer a flow that was opened"
    )


def test_commands_are_answered_while_a_connection_opens(pair):
    """A server that accepts nobody and has a full queue drops the SYN, as a full link does."""
    server, user = pair
    server.close()
    with socket.socket() as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        silent.bind(("127.0.0.3", 5001))
        silent.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.3", 5001))
        time.sleep(0.1)
        slow = REQUEST._asdict() | {"id": "slow", "server": "127.0.0.3", "mptcp": False}
        user.send(do="open", flows=[slow])
        for _ in range(20):
            assert user.send(do="status")["flows"] == {}
            assert user.send(do="opened") == {"opened": {}}
        for each in waiting:
            each.close()


def test_a_browser_begins_with_its_last_connection_and_loads_over_all(pair):
    _server, user = pair
    sizes = ((20, 0.0), (20, 1.0))
    client = ClientSpec("web", "1", 100.3, 200, 1, 0.02, None, 3, 8, sizes)
    request = REQUEST._asdict() | {"client": client}
    for n in (1, 0, 2):
        user.send(do="connect", **(request | {"id": f"f{n}", "place": n}))
    zero_s = time.monotonic() - 100
    for n in (0, 1, 2):
        assert user.send(do="status")["flows"]["f0"]["waiting"] == []
        user.send(do="go", id=f"f{n}", at_s=zero_s + 100, run_s=100.0)
    done = []

    def is_over():
        flows = user.send(do="status")["flows"]
        done.extend(flows["f0"]["exchanges"])
        return time.monotonic() > zero_s + 100.4 and not flows["f0"]["waiting"]

    assert eventually(is_over, "load pages")
    flows = user.send(do="status")["flows"]
    assert sum(flow["bytes"] for flow in flows.values()) == 8 * 20_000 * len(done) > 0
    assert all(flow["bytes"] for flow in flows.values())
    assert "exchanges" not in flows["f1"]


def test_a_client_asks_and_its_exchanges_are_reported_once(pair):
    server, user = pair
    client = ClientSpec("rpc", "1", 100.4, 500, 300_000, think_s=0.02, requests_per_s=None)
    user.send(do="connect", **(REQUEST._asdict() | {"client": client}))
    zero_s = time.monotonic() - 100
    user.send(do="go", id="f", at_s=zero_s + 100, run_s=100.0)
    done = []

    def is_over():
        got = user.send(do="status")["flows"]["f"]
        done.extend(got["exchanges"])
        return time.monotonic() > zero_s + 100.5 and not got["waiting"]

    assert eventually(is_over, "answer requests")
    assert len(done) > 3
    assert all(100 <= at_s < 100.4 and at_s < end_s for at_s, end_s, _ in done)
    assert {size for _, _, size in done} == {300_000}
    got = user.send(do="status")["flows"]["f"]
    assert got["bytes"] == 300_000 * len(done)
    assert got["exchanges"] == []
    assert got["mptcp"]
    assert server.send(do="status")["flows"]["f"]["sends"]
