"""Both engines count the same: lost segments, packets on a path, expected subflows.

The simulator runs. Of the emulation only the code that evaluates counters runs, with made-up
counters.
"""

from __future__ import annotations

import time

import pytest

from controller.paths import TCP, Flow, digest
from controller.pox_ext.counters import Counters, PathDelay
from controller.pox_ext.openflow13_messages import FlowCount
from lab.engines import registry
from lab.engines.mininet.kernel.tcp_sockets import TcpSocket
from lab.engines.mininet.traffic.sampler import OpenedFlow, Sampler
from lab.engines.mininet.traffic.workload import Workload
from lab.run.engine import Options
from lab.run.report import SubflowReport
from lab.scenario import loading, targets
from lab.scenario.loading import Overrides
from lab.scenario.schema import Scenario
from lab.topologies.topology import wire

USER, SERVER = ("10.16.0.1", 4000), ("10.0.0.1", 5001)
SECOND_NS = 1_000_000_000
FRAME_BYTES = 1514


def loaded(name: str, *settings: str) -> Scenario:
    return loading.load(name, Overrides(settings=settings))


@pytest.fixture
def simulate(record):
    def run(scenario: Scenario, until_s: float):
        engine = registry.create("sim", Options(0.0))
        engine.open(scenario, record(scenario))
        engine.advance(until_s)
        return engine

    return run


# Lost segments left the sender, did not arrive and are not in flight.


def test_the_simulator_reports_segments_that_left_and_did_not_arrive(simulate):
    file = "traffic=[{user: ue1, kind: file, volume_mb: 2}]"
    loss = "topology.paths.1.loss=0.02"
    engine = simulate(loaded("two_paths", file, loss, "multipath.scheduler=lowest_rtt"), 20)
    arrived = [each.record.segments_received for each in engine.network.subflows()]
    reports = engine.close().connections[0].subflows
    assert sum(each.lost_segments for each in reports) > 5
    for each, count in zip(reports, arrived, strict=True):
        assert each.lost_segments == each.segments - count  # the file is complete: none in flight


def socket(source, destination, **counters: int) -> TcpSocket:
    fields = dict.fromkeys(TcpSocket.__dataclass_fields__, 0)
    kept = {"cc": "reno", "token": 7, "backup": False}
    return TcpSocket(**fields | kept | {"source": source, "destination": destination} | counters)


def emulated_report(**counters: tuple[int, int]) -> SubflowReport:
    """Each counter is (at the sender, at the receiver)."""
    sampler = Sampler(wire(loaded("two_paths").network))
    sampler.open(OpenedFlow("ue1-1", "ue1", USER, "down", multipath=True))
    at_sender, at_receiver = ({name: pair[n] for name, pair in counters.items()} for n in (0, 1))
    sampler.take([socket(SERVER, USER, **at_sender)], [socket(USER, SERVER, **at_receiver)])
    return sampler.report(1.0, {})[0].subflows[0]


def test_the_emulation_reports_segments_that_left_and_did_not_arrive():
    report = emulated_report(
        data_segments_out=(1000, 0), data_segments_in=(0, 960), in_flight=(30, 0)
    )
    assert (report.segments, report.lost_segments) == (1000, 10)


def test_an_acknowledgement_is_no_data_segment():
    report = emulated_report(data_segments_out=(100, 0), data_segments_in=(50, 100))
    assert (report.segments, report.lost_segments) == (100, 0)


# A subflow's packets are those that reach the first switch of its path.


def test_the_simulator_counts_packets_at_the_first_switch(simulate):
    """The users' own links lose packets on their way up; POX counts only those that arrive."""
    scenario = loaded("collision_within", "traffic_direction=up")
    engine = simulate(scenario, 0.5)
    for link in ("access1", "access2"):
        engine.apply(targets.change(scenario, f"link.{link}.loss", 0.1))
    engine.advance(6)
    subflows = engine.controller.observer.observe(engine.network.now_ns, {}, {}).subflows
    lossy = 0
    for each in subflows:
        s = engine.network.subflow(each.key).record
        sent, dropped = (s.segments_sent, s.segments_dropped)
        own_link = s.segments_dropped_first
        assert each.sent_packets == sent - own_link
        assert each.lost_packets == dropped - own_link
        lossy += own_link
    assert lossy > 5


def test_pox_counts_packets_at_the_first_switch(monkeypatch):
    flow = Flow("10.16.0.1", "10.0.0.1", TCP, 4000, 5001)
    counters = Counters(lambda _switch: {})
    for second, (first, last) in enumerate([(0, 0), (1000, 990)]):
        monkeypatch.setattr(time, "monotonic_ns", lambda now=second * SECOND_NS: now)
        for switch, packets in (("p1", first), ("s1", last)):
            counted = FlowCount(digest(flow), packets, packets * FRAME_BYTES)
            counters.take_flows(switch, [counted])
        counters.update({flow: PathDelay(("p1", "s1"), 0.0)}, second)
    count = counters.data(flow)
    assert count is not None
    assert (count.sent, count.rate_bps) == (1000, 1000 * FRAME_BYTES * 8)


# Subflows over one interface are counted by address.


def test_both_engines_expect_a_subflow_for_each_address_of_an_interface(simulate):
    scenario = loaded("shared_pipe")
    wiring = wire(scenario.network)
    assert len(wiring.of("mp")) == 1
    engine = simulate(scenario, 1)
    (simulated,) = (each for each in engine.close().connections if each.user == "mp")
    workload = Workload(scenario, wiring, programs=None, sampler=None)
    opened = type("Connection", (), {})()
    opened.opened = OpenedFlow("mp-1", "mp", USER, "down", multipath=True)
    opened.subflows = {}
    (check,) = workload.mptcp_checks([opened], {"mp-1": {"mptcp": True}})
    assert check.wanted_subflows == len(simulated.subflows) == 2
