"""Subflows opened from user space: for which hosts, when, and with which requests to the kernel."""

import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest
from machine import needs_root

from lab.engines.mininet.kernel import netlink, path_manager, tcp_sockets
from lab.engines.mininet.kernel.netlink import attributes
from lab.engines.mininet.kernel.path_manager import Established, PathManager, established
from lab.engines.mininet.programs.userspace_path_manager import (
    UserspacePathManager,
    further_addresses,
    hosts_that_need_it,
)
from lab.errors import LabError
from lab.topologies import parallel_paths
from lab.topologies.topology import wire

SERVER = ("10.0.0.1", 5001)
ABOUT = {
    1: struct.pack("=I", 77),
    5: socket.inet_aton("10.16.0.1"),
    7: socket.inet_aton(SERVER[0]),
    10: struct.pack("!H", 5001),
}


def paths(number):
    topology = parallel_paths.build(parallel_paths.Params(paths=[{"rate_mbps": 1}] * number))
    return topology, wire(topology)


def test_only_a_user_with_more_addresses_than_the_kernel_opens_needs_it():
    assert hosts_that_need_it(*paths(9)) == frozenset()
    assert hosts_that_need_it(*paths(10)) == {"ue1", "srv1"}
    assert further_addresses(paths(3)[1], "ue1") == ["10.17.0.1", "10.18.0.1"]


def test_only_established_connections_are_reported():
    assert list(
        established([(1, ABOUT), (path_manager.ESTABLISHED, ABOUT), (2, {1: b"\0" * 4})])
    ) == [Established(77, SERVER)]


class Kernel:
    """`waiting` has the messages of the kernel, `made` the requests for subflows."""

    def __init__(self):
        self.waiting, self.made, self.refuses = [], [], ()

    def listen(self):
        return self

    def messages(self):
        waiting, self.waiting = self.waiting, []
        return waiting

    def create(self, token, local, ident, server):
        if local in self.refuses:
            raise LabError("netlink request 1: no route")
        self.made.append((token, local, ident, server))


def test_every_further_address_gets_one_subflow_even_if_another_is_refused():
    kernel = Kernel()
    kernel.refuses = ("10.17.0.1",)
    host = UserspacePathManager(7, kernel, ["10.17.0.1", "10.18.0.1"])
    assert (host.act(), kernel.made) == ([], [])
    kernel.waiting = [(path_manager.ESTABLISHED, ABOUT)]
    assert host.act() == ["open a subflow from 10.17.0.1: netlink request 1: no route"]
    assert kernel.made == [(77, "10.18.0.1", 2, SERVER)]
    assert (host.act(), len(kernel.made)) == ([], 1)


@pytest.fixture
def requests(monkeypatch):
    """(command, attributes) of each netlink request."""

    class Family:
        def __init__(self, _name):
            pass

        def request(self, command, body):
            sent.append((command, dict(attributes(body))))

    sent = []
    monkeypatch.setattr(path_manager, "Family", Family)
    return sent


def test_a_subflow_is_created_and_changed_by_its_connection_and_both_ends(requests):
    manager = PathManager()
    manager.create(77, "10.18.0.1", 2, SERVER)
    manager.set_subflow_backup(77, "10.18.0.1", SERVER, True)
    (create, created), (change, changed) = requests
    assert (create, change) == (10, 7)  # MPTCP_PM_CMD_SUBFLOW_CREATE, _SET_FLAGS
    for body in (created, changed):
        assert body[4] == struct.pack("=I", 77)
        assert dict(attributes(body[6]))[5] == struct.pack("=H", 5001)
    assert dict(attributes(created[1]))[2] == b"\2"
    flags = dict(attributes(changed[1]))
    assert (flags[3], flags[6]) == (
        socket.inet_aton("10.18.0.1"),
        struct.pack("=I", path_manager.BACKUP),
    )


MPTCP = 262
CLIENT = [f"10.9.0.{n}" for n in range(11, 26)]


def configure(pid: int, *words: str) -> None:
    subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", *words], check=True)


@needs_root
@pytest.mark.skipif(
    not Path("/proc/sys/net/mptcp/pm_type").exists(),
    reason="needs a kernel with a path manager in user space",
)
def test_fifteen_subflows_of_which_one_becomes_backup(two_hosts):
    client, server = two_hosts
    for pid in two_hosts:
        configure(pid, "sysctl", "-qw", "net.mptcp.enabled=1", "net.mptcp.pm_type=1")
    for address in CLIENT:
        configure(client, "ip", "address", "add", f"{address}/24", "dev", "mlpa")
    managers = [netlink.inside(pid, PathManager) for pid in two_hosts]
    userspace_managers = [
        netlink.inside(
            pid,
            lambda pid=pid, manager=manager, opens=opens: UserspacePathManager(pid, manager, opens),
        )
        for pid, manager, opens in zip(two_hosts, managers, (CLIENT[1:], []), strict=True)
    ]
    diagnoses = [netlink.inside(pid, tcp_sockets.Diagnosis) for pid in two_hosts]

    def listening():
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
        listener.bind(("10.9.0.2", 5001))
        listener.listen()
        return listener

    listener = netlink.inside(server, listening)
    connection = netlink.inside(
        client, lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    )
    connection.bind((CLIENT[0], 0))
    connection.connect(("10.9.0.2", 5001))
    accepted, _ = listener.accept()
    deadline = time.monotonic() + 5
    while len(diagnoses[1].sockets()) < len(CLIENT) and time.monotonic() < deadline:
        connection.sendall(b"data")
        accepted.recv(100)
        assert [each.act() for each in userspace_managers] == [[], []]
        time.sleep(0.05)
    found = diagnoses[0].sockets()
    assert sorted(each.source[0] for each in found) == CLIENT
    one = next(each for each in found if each.source[0] == CLIENT[3])
    managers[0].set_subflow_backup(one.token, one.source[0], one.destination, True)
    time.sleep(0.3)
    assert [each.destination[0] for each in diagnoses[1].sockets() if each.backup] == [CLIENT[3]]
    managers[0].set_subflow_backup(one.token, one.source[0], one.destination, False)
    time.sleep(0.3)
    assert not [each for each in diagnoses[1].sockets() if each.backup]
    for each in (connection, accepted, listener, *diagnoses, *managers, *userspace_managers):
        each.close()
