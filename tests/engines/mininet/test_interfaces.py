"""Interfaces of a host that are switched off and on: the commands, and the kernel's subflows."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
import time
from dataclasses import replace

import pytest
from machine import needs_root

from lab.engines.mininet.engine import MininetEngine
from lab.engines.mininet.kernel import netlink, shaping, tcp_sockets
from lab.engines.mininet.network import host_setup
from lab.errors import RequestError
from lab.scenario import loading, subflows
from lab.scenario.interfaces import role_of
from lab.scenario.schema import Multipath
from lab.topologies import parallel_paths
from lab.topologies.topology import Interface, Link, wire

MPTCP = 262
TOPOLOGY = parallel_paths.build(parallel_paths.Params(paths=[{"rate_mbps": 1}] * 2))
WIRING = wire(TOPOLOGY)
FIRST, SECOND = OWN = WIRING.of("ue1")
(SERVER,) = WIRING.of("srv1")


def test_an_interface_loses_its_addresses_and_endpoints_and_gets_them_again():
    assert list(host_setup.take_down(SECOND, OWN, "subflow")) == [
        "addr del 10.17.0.1/32 dev ue1-eth2",
        "mptcp endpoint delete id 2",
    ]
    assert list(host_setup.bring_up(SECOND, WIRING, "subflow")) == [
        "addr add 10.17.0.1/32 dev ue1-eth2",
        "route replace 10.0.0.0/8 dev ue1-eth2 table 2",
        f"neigh replace 10.0.0.1 lladdr {SERVER.mac} dev ue1-eth2 nud permanent",
        "mptcp endpoint add 10.17.0.1 id 2 dev ue1-eth2 subflow",
    ]


def test_every_command_of_the_set_up_is_there_again_after_both():
    """The kernel keeps the rule and the state of an interface, but no route and no ARP entry."""
    of_setup = [*host_setup.addresses(OWN), *host_setup.neighbours("ue1", WIRING)]
    kept = {line for line in of_setup if line.startswith(("link ", "rule "))}
    again = {line for each in OWN for line in host_setup.bring_up(each, WIRING, "subflow")}
    assert {line for line in again if "endpoint" not in line} == {*of_setup} - kept


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("subflow", "backup", ["change id 2 backup"]),
        ("backup", "subflow", ["change id 2 nobackup"]),
        ("backup", "none", ["delete id 2"]),
        ("none", "backup", ["add 10.17.0.1 id 2 dev ue1-eth2 subflow backup"]),
        ("none", "none", []),
    ],
)
def test_an_endpoint_changes_without_its_address(before, after, lines):
    found = host_setup.endpoint_changes(SECOND, OWN, before, after)
    assert list(found) == [f"mptcp endpoint {each}" for each in lines]


def test_an_interface_without_an_endpoint_has_none_when_it_is_back():
    lines = [
        *host_setup.take_down(SECOND, OWN, "none"),
        *host_setup.bring_up(SECOND, WIRING, "none"),
    ]
    assert not [line for line in lines if "endpoint" in line]


def test_an_interface_with_several_addresses_loses_all():
    topology = parallel_paths.build(parallel_paths.Params(paths=[{"rate_mbps": 1}] * 2))
    node, *others = topology.nodes
    assert node.kind == "user"
    with_two = type(topology)(
        topology.name,
        (type(node)(node.id, "user", node.home, subflows=2), *others),
        topology.links,
        multipath=topology.multipath,
    )
    first, second = own = wire(with_two).of("ue1")
    deleted = [line for line in host_setup.take_down(second, own, "subflow") if "endpoint" in line]
    assert deleted == ["mptcp endpoint delete id 3", "mptcp endpoint delete id 4"]
    assert len(list(host_setup.take_down(first, own, "subflow"))) == 4


@pytest.mark.parametrize(
    "said",
    [
        "events: [{at_s: 1, target: iface.ue1.eth2.up, value: false}]",
        "events: [{at_s: 1, target: endpoint.ue1.eth2, value: backup}]",
    ],
)
def test_with_the_labs_own_path_manager_the_change_is_refused_before_the_start(said, tmp_path):
    paths = ", ".join(["{rate_mbps: 1}"] * 10)
    file = tmp_path / "mine.yaml"
    file.write_text(
        f"name: mine\ntitle: T\ntopology: {{kind: parallel_paths, paths: [{paths}]}}\n"
        "traffic: [{user: ue1}]\n"
        f"{said}\n"
    )
    with pytest.raises(RequestError, match=r"more than 9 subflows.*--engine sim"):
        MininetEngine.check(loading.load(str(file)))


def in_host(pid: int, lines: list[str]) -> None:
    """Run lines of `ip -batch` in the network namespace of a process."""
    command = ["nsenter", f"--net=/proc/{pid}/ns/net", "ip", "-batch", "-"]
    subprocess.run(command, input=shaping.batch(lines), text=True, check=True)


@pytest.fixture
def hosts(request):
    """PIDs of a user with two interfaces and of its server, which is at the other end of both. A
    parameter says what the endpoint of the second interface is for."""
    pids, roles = [], {SECOND: getattr(request, "param", "subflow")}
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            host = subprocess.Popen(
                ["unshare", "--net", "sh", "-c", "echo; read _"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            stack.callback(host.communicate)
            host.stdout.readline()
            pids.append(host.pid)
        user, server = pids
        for each in OWN:
            veth = f"ip link add {each.name} netns {user} type veth peer name to{each.name}"
            subprocess.run([*veth.split(), "netns", str(server)], check=True)
        in_host(user, list(host_setup.addresses(OWN)))
        lines = ["link set lo up", f"addr add {SERVER.address}/32 dev lo"]
        for each in OWN:
            lines += [f"link set to{each.name} up", f"route add {each.address} dev to{each.name}"]
        in_host(server, lines)
        all_roles = dict.fromkeys(OWN, "subflow") | roles
        values = host_setup.settings([each.name for each in OWN])
        netlink.inside(user, lambda: host_setup.write_settings(values, list))
        netlink.inside(user, lambda: host_setup.endpoints(OWN, all_roles, Multipath(), list))
        netlink.inside(server, lambda: host_setup.endpoints((), {}, Multipath(), list))
        yield user, server


@pytest.fixture
def transfer(hosts):
    """A connection over which the server sends as much as it can; the user counts the bytes."""
    user, server = hosts

    def open_socket():
        return socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)

    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(netlink.inside(server, open_socket))
        listener.bind(("", 5001))
        listener.listen()
        connection = stack.enter_context(netlink.inside(user, open_socket))
        connection.bind((FIRST.address, 0))
        connection.settimeout(5)
        connection.connect((SERVER.address, 5001))
        accepted, _ = listener.accept()
        stack.enter_context(accepted)
        accepted.settimeout(5)

        def send():
            with contextlib.suppress(OSError):
                while True:
                    accepted.sendall(bytes(1000))
                    time.sleep(0.001)

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        diagnoses = [netlink.inside(pid, tcp_sockets.Diagnosis) for pid in hosts]
        yield connection, diagnoses
        connection.close()
        sender.join(timeout=10)
        for each in diagnoses:
            each.close()


def addresses_in_use(connection, diagnoses, wanted):
    """The user's addresses of the subflows at both ends, when they are `wanted`, or after 10 s."""
    deadline = time.monotonic() + 10
    while True:
        assert connection.recv(1 << 16)
        user, server = (each.sockets() for each in diagnoses)
        found = (
            sorted(each.source[0] for each in user),
            sorted(each.destination[0] for each in server),
        )
        if found == (wanted, wanted) or time.monotonic() > deadline:
            return found


@needs_root
@pytest.mark.parametrize("interface", OWN, ids=["first", "second"])
def test_the_kernel_closes_the_subflow_and_opens_it_again(interface, hosts, transfer):
    both = sorted(each.address for each in OWN)
    (other,) = [each.address for each in OWN if each != interface]
    assert addresses_in_use(*transfer, both) == (both, both)
    for _ in range(2):
        in_host(hosts[0], list(host_setup.take_down(interface, OWN, "subflow")))
        assert addresses_in_use(*transfer, [other]) == ([other], [other])
        again = host_setup.bring_up(interface, WIRING, "subflow")
        in_host(hosts[0], [line for line in again if "neigh" not in line])  # MACs are the kernel's
        assert addresses_in_use(*transfer, both) == (both, both)


def shares(connection, diagnoses, seconds=1.0):
    """Segments that each subflow of the server sends in this time, by the user's address, and whether
    it is a backup."""
    _, of_server = diagnoses

    def sent():
        return {
            each.destination[0]: (each.data_segments_out, each.backup)
            for each in of_server.sockets()
        }

    before, end = sent(), time.monotonic() + seconds
    while time.monotonic() < end:
        assert connection.recv(1 << 16)
    return {
        address: (total - before.get(address, (0, False))[0], backup)
        for address, (total, backup) in sent().items()
    }


@needs_root
@pytest.mark.parametrize("hosts", ["backup"], indirect=True)
def test_a_backup_carries_nothing_until_it_is_needed(hosts, transfer):
    both = sorted(each.address for each in OWN)
    assert addresses_in_use(*transfer, both) == (both, both)
    found = shares(*transfer)
    assert found[SECOND.address][1]
    assert found[SECOND.address][0] < 0.1 * found[FIRST.address][0]  # 0 but for timeouts
    in_host(hosts[0], list(host_setup.take_down(FIRST, OWN, "subflow")))
    assert addresses_in_use(*transfer, [SECOND.address]) == ([SECOND.address],) * 2
    assert shares(*transfer)[SECOND.address][0] > 0


@needs_root
def test_an_endpoint_is_a_backup_for_a_while_and_then_removed(hosts, transfer):
    both = sorted(each.address for each in OWN)
    assert addresses_in_use(*transfer, both) == (both, both)
    for before, after in (("subflow", "backup"), ("backup", "none"), ("none", "backup")):
        in_host(hosts[0], list(host_setup.endpoint_changes(SECOND, OWN, before, after)))
        wanted = [FIRST.address] if after == "none" else both
        assert addresses_in_use(*transfer, wanted) == (wanted, wanted)
        assert shares(*transfer, 0.2).get(SECOND.address, (0, True))[1]


# A server with two addresses, of which it announces one


HOMES = [Interface("srv1", f"srv1-eth{n}", f"10.0.{n - 1}.1", "", "", "", "") for n in (1, 2)]


def multipath(*flags, **limits):
    ends = [{"host": "srv1", "interface": "eth2", "flags": ("signal",)}]
    ends += [{"host": "ue1", "interface": "eth2", "flags": flags}] if flags else []
    return Multipath.model_validate({"endpoints": tuple(ends), "limits": limits})


@pytest.fixture
def both_sides(hosts, request):
    """A connection to a server that announces its second address, and the user's settings."""
    user, server = hosts
    settings = request.param
    in_host(server, [f"addr add {HOMES[1].address}/32 dev lo", "mptcp endpoint flush"])
    in_host(user, ["mptcp endpoint flush"])

    def start(own, usual):
        roles = {each: role_of(settings, each, usual) for each in own}
        lines = []
        host_setup.endpoints(own, roles, settings, lambda argv: lines.append(argv) or argv)
        return lines

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_setup.socket, "if_nametoindex", lambda name: 1 if "srv" in name else 0)
        netlink.inside(server, lambda: start(HOMES, "none"))
    netlink.inside(user, lambda: start(OWN, "subflow"))
    return settings


def ends_in_use(connection, diagnoses, wanted):
    """The pairs of addresses of the server's subflows, when they are `wanted`, or after 10 s."""
    deadline = time.monotonic() + 10
    while True:
        assert connection.recv(1 << 16)
        found = sorted((each.destination[0], each.source[0]) for each in diagnoses[1].sockets())
        if found == wanted or time.monotonic() > deadline:
            return found


@needs_root
@pytest.mark.parametrize(
    "both_sides",
    [
        multipath(),
        multipath("fullmesh"),
        multipath(add_addr_accepted=0),
        multipath("fullmesh", subflows=1),
    ],
    indirect=True,
    ids=["one", "fullmesh", "none", "limited"],
)
def test_the_kernel_opens_the_subflows_that_are_planned(both_sides, hosts, request):
    topology = replace(TOPOLOGY, links=(*TOPOLOGY.links, Link("further", "s1", "srv1")))
    plan = subflows.planned(topology, wire(topology), both_sides, "ue1")
    wanted = sorted((each.address, each.server.address) for each in plan)
    transfer = request.getfixturevalue("transfer")
    assert ends_in_use(*transfer, wanted) == wanted
    if both_sides.limits.add_addr_accepted and both_sides.limits.subflows is None:
        left = [each for each in wanted if each[1] == HOMES[0].address]
        in_host(hosts[1], list(host_setup.take_down(HOMES[1], HOMES, "signal"))[1:])
        assert ends_in_use(*transfer, left) == left
        lines = [f"mptcp endpoint add {HOMES[1].address} id 2 dev lo signal"]
        in_host(hosts[1], lines)
        assert ends_in_use(*transfer, wanted) == wanted
