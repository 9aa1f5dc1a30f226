"""Subflows opened from user space: for which hosts, when, and with which requests to the kernel."""

import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest
from machine import needs_root

from lab.engines.mininet.engine import MininetEngine
from lab.engines.mininet.kernel import netlink, path_manager, tcp_sockets
from lab.engines.mininet.kernel.netlink import attributes
from lab.engines.mininet.kernel.path_manager import Established, PathManager, established
from lab.engines.mininet.network.joins import hosts_that_need_it, joins
from lab.engines.mininet.programs.userspace_path_manager import Join, UserspacePathManager
from lab.errors import LabError, RequestError
from lab.scenario import loading
from lab.scenario.schema import Multipath
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
    assert hosts_that_need_it(*paths(9), Multipath()) == frozenset()
    assert hosts_that_need_it(*paths(10), Multipath()) == {"ue1", "srv1"}
    backup = {"endpoints": [{"host": "ue1", "interface": "eth2", "flags": ["backup"]}]}
    opened = joins(*paths(3), Multipath(**backup), "ue1")
    assert opened == [
        Join("10.16.0.1", 0, "10.0.0.1"),
        Join("10.17.0.1", 1, "10.0.0.1", True),
        Join("10.18.0.1", 2, "10.0.0.1"),
    ]
    limited = joins(*paths(12), Multipath(limits={"subflows": 4}), "ue1")
    assert [each.ident for each in limited] == [0, 1, 2, 3, 4]


def both_sides(interfaces, others=0, **multipath):
    """A server with two addresses, a user with so many, and others with one address each."""
    sides = [*(f"s{n}" for n in range(1, interfaces + 1))]
    others = [f"o{n}" for n in range(1, others + 1)]
    topology = {
        "kind": "nodes_and_links",
        "users": [{"id": each} for each in ("ue1", *others)],
        "servers": [{"id": "srv1"}],
        "switches": sides,
        "links": [
            *({"a": each, "b": "ue1", "rate_mbps": 5} for each in sides),
            *({"a": "srv1", "b": each, "rate_mbps": 5} for each in sides[:2]),
            *({"a": sides[0], "b": each} for each in sides[1:]),
            *({"a": each, "b": user, "rate_mbps": 5} for user in others for each in sides[:2]),
        ],
    }
    ends = [
        {"host": "srv1", "interface": "eth2", "flags": ["signal", "backup"]},
        *(
            {"host": "ue1", "interface": f"eth{n}", "flags": ["fullmesh"]}
            for n in range(1, interfaces + 1)
        ),
    ]
    data = {"name": "own", "title": "Own", "topology": topology, "traffic": [{"user": "all"}]}
    return loading.from_data(data | {"multipath": {"endpoints": ends, **multipath}}, "own.yaml")


def test_a_mesh_of_more_than_nine_subflows_is_opened_by_the_lab():
    small = both_sides(4)
    network, wiring = small.network, wire(small.network)
    assert hosts_that_need_it(network, wiring, small.multipath) == frozenset()
    large = both_sides(5, others=1)
    network, wiring = large.network, wire(large.network)
    assert hosts_that_need_it(network, wiring, large.multipath) == {"ue1", "srv1", "o1"}
    MininetEngine.check(large)
    opened = joins(network, wiring, large.multipath, "ue1")
    assert len(opened) == 10
    assert [each.ident for each in opened if each.is_backup] == [0, 1, 2, 3, 4]
    assert {each.server for each in opened} == {"10.0.0.1", "10.0.1.1"}
    assert len(joins(network, wiring, large.multipath, "o1")) == 3
    limited = both_sides(5, limits={"subflows": 8})
    known = wire(limited.network)
    assert hosts_that_need_it(limited.network, known, limited.multipath) == frozenset()


def test_what_the_lab_has_opened_is_not_switched():
    scenario = both_sides(5)
    events = [{"at_s": 1, "target": "iface.ue1.eth2.up", "value": False}]
    changed = loading.from_data(loading.resolved(scenario) | {"events": events}, "own.yaml")
    with pytest.raises(RequestError, match="opens none anew"):
        MininetEngine.check(changed)


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

    def create(self, token, local, ident, server, is_backup):
        if local in self.refuses:
            raise LabError("netlink request 1: no route")
        self.made.append((token, local, ident, server, is_backup))

    def set_subflow_backup(self, token, local, remote, backup):
        self.made.append((token, local, remote, backup))


def test_every_further_address_gets_one_subflow_even_if_another_is_refused():
    kernel = Kernel()
    kernel.refuses = ("10.17.0.1",)
    opened = [
        Join("10.16.0.1", 0, SERVER[0], True),
        Join("10.17.0.1", 1, SERVER[0]),
        Join("10.18.0.1", 2, "10.0.1.1", True),
    ]
    host = UserspacePathManager(7, kernel, opened)
    assert (host.act(), kernel.made) == ([], [])
    kernel.waiting = [(path_manager.ESTABLISHED, ABOUT)]
    refused = "open a subflow from 10.17.0.1 to 10.0.0.1: netlink request 1: no route"
    assert host.act() == [refused]
    assert kernel.made == [
        (77, "10.16.0.1", SERVER, True),
        (77, "10.18.0.1", 2, ("10.0.1.1", 5001), True),
    ]
    assert (host.act(), len(kernel.made)) == ([], 2)


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
def test_seventeen_subflows_of_which_one_more_becomes_backup(two_hosts):
    client, server = two_hosts
    for pid in two_hosts:
        configure(pid, "sysctl", "-qw", "net.mptcp.enabled=1", "net.mptcp.pm_type=1")
    for address in CLIENT:
        configure(client, "ip", "address", "add", f"{address}/24", "dev", "mlpa")
    configure(server, "ip", "address", "add", "10.9.0.3/24", "dev", "mlpb")
    opened = [
        *(Join(each, n, "10.9.0.2") for n, each in enumerate(CLIENT)),
        *(Join(each, n, "10.9.0.3", True) for n, each in enumerate(CLIENT[:2])),
    ]
    managers = [netlink.inside(pid, PathManager) for pid in two_hosts]
    userspace_managers = [
        netlink.inside(
            pid,
            lambda pid=pid, manager=manager, own=own: UserspacePathManager(pid, manager, own),
        )
        for pid, manager, own in zip(two_hosts, managers, (opened, []), strict=True)
    ]
    diagnoses = [netlink.inside(pid, tcp_sockets.Diagnosis) for pid in two_hosts]

    def listening():
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
        listener.bind(("0.0.0.0", 5001))
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
    while len(diagnoses[1].sockets()) < len(opened) and time.monotonic() < deadline:
        connection.sendall(b"data")
        accepted.recv(100)
        assert [each.act() for each in userspace_managers] == [[], []]
        time.sleep(0.05)
    found = diagnoses[0].sockets()
    ends = [(each.source[0], each.destination[0]) for each in found]
    assert sorted(ends) == sorted((each.address, each.server) for each in opened)
    assert {each.destination[0] for each in found if each.backup} == {"10.9.0.3"}
    one = next(each for each in found if each.source[0] == CLIENT[3])
    managers[0].set_subflow_backup(one.token, one.source[0], one.destination, True)
    time.sleep(0.3)
    at_server = {each.destination[0] for each in diagnoses[1].sockets() if each.backup}
    assert at_server == {*CLIENT[:2], CLIENT[3]}
    managers[0].set_subflow_backup(one.token, one.source[0], one.destination, False)
    time.sleep(0.3)
    backups = {each.source[0] for each in diagnoses[1].sockets() if each.backup}
    assert backups == {"10.9.0.3"}
    for each in (connection, accepted, listener, *diagnoses, *managers, *userspace_managers):
        each.close()
