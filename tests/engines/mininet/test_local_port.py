import socket
import time
from itertools import pairwise

import pytest

from lab.engines.mininet.programs import flow
from lab.scenario import flows
from lab.scenario.loading import load

HERE = "127.0.0.1"


@pytest.fixture
def free_port():
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        return probe.getsockname()[1]


def test_a_socket_gets_the_requested_port_and_no_other(free_port):
    with socket.socket() as own:
        flow.bind(own, HERE, free_port)
        assert own.getsockname() == (HERE, free_port)


def test_a_taken_port_is_replaced_by_a_free_one(free_port):
    with socket.socket() as first, socket.socket() as second:
        first.bind((HERE, free_port))
        first.listen()
        flow.bind(second, HERE, free_port)
        assert second.getsockname()[1] not in {0, free_port}


def test_a_kernel_without_the_option_still_binds(free_port, monkeypatch):
    monkeypatch.setattr(flow, "IP_LOCAL_PORT_RANGE", 250)
    with socket.socket() as own:
        flow.bind(own, HERE, free_port)
        assert own.getsockname()[1]


def test_the_limit_is_lifted_after_the_opening(free_port, monkeypatch):
    monkeypatch.setattr(flow, "OPENING_S", 0.0)
    with socket.socket() as own:
        flow.bind(own, HERE, free_port)
        for _ in range(200):
            allowed = own.getsockopt(socket.IPPROTO_IP, flow.IP_LOCAL_PORT_RANGE)
            if not allowed:
                return
            time.sleep(0.01)
        pytest.fail(f"the range is still {allowed:#x}")


def started(seed):
    scenario = load("rat_setup_1")
    acts = flows.schedule(scenario.traffic, seed, 60.0)
    return [act.flow for act in acts if act.verb == "start"]


def test_the_seed_determines_the_ports_and_each_connection_of_a_user_has_its_own(monkeypatch):
    assert started(1) == started(1)
    assert [each.port for each in started(1)] != [each.port for each in started(2)]
    monkeypatch.setattr(flows, "PORTS", 20)  # so few that random draws collide
    for seed in range(20):
        ports = sorted((each.user, each.port) for each in started(seed))
        assert all(a != b for a, b in pairwise(ports))
