"""How a flow's receiver counts what has arrived, and when its file is complete."""

import fcntl
import socket
import struct
import termios
import time

import pytest
from userspace_bridges import eventually

from lab.engines.mininet.programs import flow
from lab.engines.mininet.programs.flow import FlowRequest

REQUEST = FlowRequest("f", "127.0.0.1", "127.0.0.2", mptcp=True, direction="down", cc="reno")


@pytest.fixture
def received(request):
    """A receiving flow, the socket that sends to it, and the receiving socket, which counts reads.

    The fixture's parameter, if any, is the volume of the flow in bytes.
    """
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
    volume_bytes = getattr(request, "param", None)
    receiving = flow.Flow(REQUEST._replace(volume_bytes=volume_bytes), counted, sends=False)
    receiving.go()
    yield receiving, sender, counted
    sender.close()
    connection.close()


def waiting_bytes(connection):
    return struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.FIONREAD, b"\0\0\0\0"))[0]


def test_the_kernel_copies_data_at_once_for_a_program_that_seldom_wakes(received):
    """A program that read every 50 ms would mostly leave data in the socket. One that woke for each
    packet would wake 200 times."""
    _flow, sender, connection = received
    left, began = 0, time.monotonic()
    for _ in range(100):
        sender.sendall(bytes(1000))
        time.sleep(0.005)
        left += waiting_bytes(connection) > 0
    assert left < 50
    assert connection.calls <= (time.monotonic() - began) / flow.COUNT_S + 2


@pytest.mark.parametrize("received", [1500], indirect=True)
def test_a_file_is_complete_with_its_last_byte_although_the_connection_stays_open(received):
    receiving, sender, _connection = received
    sender.sendall(bytes(1000))
    time.sleep(1.0)
    assert receiving.status()["done_s"] is None
    sender.sendall(bytes(500))
    time.sleep(0.2)
    status = receiving.status()
    assert (status["bytes"], status["error"]) == (1500, None)
    assert 1.0 <= status["done_s"] < 1.1


@pytest.mark.parametrize("received", [1500], indirect=True)
def test_a_file_that_was_cut_short_is_not_complete(received):
    receiving, sender, _connection = received
    sender.sendall(bytes(1000))
    sender.close()
    time.sleep(0.3)
    assert receiving.status()["bytes"] == 1000
    assert receiving.status()["done_s"] is None


def test_a_slow_flow_is_counted_seldom_but_its_status_is_exact(received):
    """To count thirty slow flows often would cost an emulated machine more than their packets."""
    receiving, sender, connection = received
    for sent in range(100, 1600, 100):
        sender.sendall(bytes(100))
        time.sleep(0.1)
        assert receiving.status()["bytes"] == sent
    assert connection.calls < 10


def test_a_receiver_waits_longer_for_few_bytes_and_less_long_for_many():
    waits = [flow.COUNT_S]
    for received in [100] * 5 + [10**6] * 5:
        waits.append(flow.next_wait_s(waits[-1], received))
    assert waits == [0.05, 0.1, 0.2, 0.4, 0.4, 0.4, 0.2, 0.1, 0.05, 0.05, 0.05]


@pytest.mark.parametrize("received", [1300], indirect=True)
def test_received_data_is_counted_soon_and_the_end_at_once(received):
    receiving, sender, _connection = received
    sender.sendall(bytes(1234))
    eventually(lambda: receiving.bytes == 1234, "count what has come")
    assert receiving.done_s is None
    sender.sendall(bytes(66))
    sender.shutdown(socket.SHUT_WR)
    eventually(lambda: receiving.done_s is not None, "notice the end")
    assert (receiving.bytes, receiving.error) == (1300, None)
