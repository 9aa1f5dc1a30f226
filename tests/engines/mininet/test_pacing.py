"""Rates of frames and of payload, and pacing in the kernel."""

import socket
import threading
import time

import pytest
from machine import needs_root

from lab.engines.mininet.kernel import netlink, subflow_rates, tcp_sockets
from lab.engines.mininet.machine import shell

RATE_BPS = 8_000_000


def test_rates_of_frames_and_payload_are_converted_both_ways():
    assert subflow_rates.payload_rate(1514 * 8) == 1420
    assert subflow_rates.frame_rate_bps(1420) == 1514 * 8
    assert subflow_rates.frame_rate_bps(subflow_rates.UNLIMITED) is None
    assert subflow_rates.frame_rate_bps(2**64 - 1) is None
    for rate_bps in (100_000, 4_500_000, 10**9):
        assert subflow_rates.frame_rate_bps(subflow_rates.payload_rate(rate_bps)) == pytest.approx(
            rate_bps, rel=1e-4
        )
    assert subflow_rates.payload_rate(10**12) < subflow_rates.UNLIMITED


def sending(pids):
    """Sockets at both ends of a connection on which the first host sends without end."""
    listener = netlink.inside(pids[1], lambda: socket.create_server(("10.9.0.2", 5001)))
    sender = netlink.inside(
        pids[0],
        lambda: socket.create_connection(("10.9.0.2", 5001), source_address=("10.9.0.1", 40001)),
    )
    receiver, _ = listener.accept()
    listener.close()

    def send():
        try:
            while True:
                sender.sendall(bytes(1 << 16))
        except OSError:
            return

    threading.Thread(target=send, daemon=True).start()
    return sender, receiver


def received_bps(receiver, seconds):
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        count += len(receiver.recv(1 << 16))
    return count * 8 / seconds


@pytest.mark.whole
@needs_root
def test_a_socket_is_paced_until_its_limit_is_removed(pins, two_hosts):
    sender, receiver = sending(two_hosts)
    commands = []
    subflow_rates.pacing_program()  # compiled now, so that the journal has only the commands below
    pacer = subflow_rates.Pacing(pins)
    diagnosis = netlink.inside(two_hosts[0], tcp_sockets.Diagnosis)
    try:
        with shell.journal_to(lambda _at, argv, _stdin: commands.append(argv)):
            pacer.set_rate(two_hosts[0], sender.getsockname(), sender.getpeername(), RATE_BPS)
        assert subflow_rates.frame_rate_bps(diagnosis.sockets()[0].pacing_limit) == pytest.approx(
            RATE_BPS, rel=1e-4
        )
        received_bps(receiver, 1.0)  # what was in flight
        assert received_bps(receiver, 2.0) == pytest.approx(RATE_BPS * 1420 / 1514, rel=0.05)
        pacer.set_rate(two_hosts[0], sender.getsockname(), sender.getpeername(), None)
        assert subflow_rates.frame_rate_bps(diagnosis.sockets()[0].pacing_limit) is None
        received_bps(receiver, 0.5)
        assert received_bps(receiver, 0.5) > 5 * RATE_BPS
        assert commands[0][:2] == ["bpftool", "prog"]
        assert commands[1][:4] == ["bpftool", "map", "update", "pinned"]
        assert commands[2][-2:] == ["cat", str(pins / "each")]
    finally:
        for each in (sender, receiver, diagnosis):
            each.close()
