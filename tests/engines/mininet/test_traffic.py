"""The traffic program, for real, on the loopback interface."""

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import termios
import time
from contextlib import closing
from pathlib import Path

import pytest
from userspace_network import eventually

from lab.engines.mininet import probes
from lab.engines.mininet import traffic_processes as hosts
from lab.engines.mininet.kernel import netlink
from lab.engines.mininet.programs import traffic

PROGRAM = Path(hosts.PROGRAM)


class Host:
    def __init__(self):
        self.program = subprocess.Popen(
            [sys.executable, "-SE", str(PROGRAM)], stdin=-1, stdout=-1, text=True
        )

    def ask(self, **request):
        self.program.stdin.write(json.dumps(request) + "\n")
        self.program.stdin.flush()
        return json.loads(self.program.stdout.readline())

    def close(self):
        with self.program as program:
            program.stdin.close()
            return program.wait(5)


@pytest.fixture
def pair():
    """A server and a user."""
    if not Path("/proc/sys/net/mptcp/enabled").exists():
        pytest.skip("this kernel has no Multipath TCP")
    server, user = Host(), Host()
    if "error" in server.ask(do="serve", mptcp=True):
        pytest.skip("port 5001 of this machine is taken")
    yield server, user
    user.close()
    server.close()


def start(user, mptcp=True, **more):
    request = {
        "id": "f",
        "server": "127.0.0.1",
        "bind": "127.0.0.2",
        "mptcp": mptcp,
        "direction": "down",
        "cc": "reno",
    }
    answer = user.ask(do="connect", **(request | {"rate_bps": None, "volume_bytes": None} | more))
    user.ask(do="go", id="f")
    return answer


def test_a_file_arrives_whole_and_says_when(pair):
    _server, user = pair
    start(user, volume_bytes=3_000_000)
    deadline = time.monotonic() + 5
    while (flow := user.ask(do="status")["flows"]["f"])[
        "done_s"
    ] is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert flow["bytes"] == 3_000_000
    assert flow["mptcp"]
    assert flow["error"] is None


def test_plain_tcp_is_told_from_multipath(pair):
    _server, user = pair
    start(user, mptcp=False, rate_bps=1_000_000)
    time.sleep(0.2)
    assert user.ask(do="status")["flows"]["f"]["mptcp"] is False


@pytest.mark.whole
def test_a_rate_limits_the_application_and_can_be_changed(pair):
    _server, user = pair
    start(user, rate_bps=0)
    time.sleep(0.3)
    assert user.ask(do="status")["flows"]["f"]["bytes"] == 0
    user.ask(do="rate", id="f", rate_bps=8_000_000)
    time.sleep(0.5)
    began, before = time.monotonic(), user.ask(do="status")["flows"]["f"]["bytes"]
    time.sleep(1.0)
    sent = (user.ask(do="status")["flows"]["f"]["bytes"] - before) * 8 / (time.monotonic() - began)
    assert 5_000_000 < sent < 8_500_000


def test_the_kernel_confirms_congestion_control_and_token(pair):
    _server, user = pair
    port = start(user, cc="cubic", rate_bps=1_000_000)["port"]
    time.sleep(0.2)
    with closing(netlink.Diagnosis()) as diagnosis:
        found = [each for each in diagnosis.sockets() if each.destination == ("127.0.0.2", port)]
    assert found[0].cc == "cubic"
    assert os.geteuid() != 0 or found[0].token is not None


def test_a_probe_measures_a_rate_and_a_round_trip(pair):
    _server, user = pair
    got = user.ask(do="probe", server="127.0.0.1", bind="127.0.0.2", packets=probes.PACKETS)
    if "error" in got:
        pytest.skip("raw sockets need root")
    assert got["rtt_ms"] < 50
    assert got["rate_bps"] > 1e6


def test_what_cannot_be_done_is_said_and_the_program_goes_on(pair):
    _server, user = pair
    assert "KeyError" in user.ask(do="stop", id="nobody")["error"]
    assert user.ask(do="status") == {"flows": {}}


def test_it_ends_with_its_input():
    assert Host().close() == 0


@pytest.fixture
def received():
    """A flow that receives, the socket that sends to it, and how often its program asked the kernel for data."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = socket.create_connection(listener.getsockname())
        connection, _peer = listener.accept()

    class Counted:
        calls = 0

        def __getattr__(self, name):
            return getattr(connection, name)

        def recv_into(self, *arguments):
            self.calls += 1
            return connection.recv_into(*arguments)

    counted = Counted()
    flow = traffic.Flow({}, counted, sends=False)
    flow.go()
    yield flow, sender, counted
    sender.close()
    connection.close()


def waiting_bytes(connection):
    return struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.FIONREAD, b"\0\0\0\0"))[0]


def test_data_is_read_as_it_comes_by_a_program_that_seldom_wakes(received):
    """A program that read every 50 ms would leave data where they are most of the time, one that woke for each would wake 200 times."""
    _flow, sender, connection = received
    left, began = 0, time.monotonic()
    for _ in range(100):
        sender.sendall(bytes(1000))
        time.sleep(0.005)
        left += waiting_bytes(connection) > 0
    assert left < 50
    assert connection.calls <= (time.monotonic() - began) / traffic.COUNT_S + 2


def test_what_has_come_is_counted_soon_and_the_end_at_once(received):
    flow, sender, _connection = received
    sender.sendall(bytes(1234))
    eventually(lambda: flow.bytes == 1234, "count what has come")
    assert flow.done_s is None
    sender.sendall(bytes(66))
    sender.shutdown(socket.SHUT_WR)
    eventually(lambda: flow.done_s is not None, "see the end")
    assert (flow.bytes, flow.error) == (1300, None)
