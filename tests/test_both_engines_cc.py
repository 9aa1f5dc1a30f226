"""A change of congestion control reaches the same connections in both engines.

The simulator runs. Of the emulation the traffic programs of two hosts run on the loopback
interface, and the kernel says what their sockets use.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.engines import registry
from lab.engines.mininet.kernel import tcp_sockets
from lab.engines.mininet.traffic.processes import TrafficProcesses
from lab.engines.mininet.traffic.workload import Workload
from lab.engines.sim.core import dispatch
from lab.run.engine import Options
from lab.scenario import loading, targets
from lab.scenario.loading import Overrides
from lab.scenario.schema import Scenario
from lab.topologies.topology import wire

FLOWS = (
    "{user: ue1, cc: cubic}, {user: ue1, cc: cubic, direction: up}, "
    "{user: ue1, cc: cubic, start_s: 2}, {user: ue1, kind: udp, rate_mbps: 1}"
)


def scenario() -> Scenario:
    return loading.load("two_paths", Overrides(settings=(f"traffic=[{FLOWS}]",)))


class Simulated:
    def __init__(self, record) -> None:
        self.scenario = scenario()
        self.engine = registry.create("sim", Options(0.0))
        self.engine.open(self.scenario, record(self.scenario))
        self.engine.advance(1)

    def change_cc(self, name: str) -> None:
        self.engine.apply(targets.change(self.scenario, "cc", name))

    def open_a_later_connection(self) -> None:
        self.engine.advance(3)

    def ccs(self) -> list[str]:
        laws = [
            each.record.law_number
            for connection in self.engine.connections.values()
            if connection.cc is not None
            for each in connection.subflows
        ]
        return [list(dispatch.LAWS)[law] for law in laws]

    def close(self) -> None:
        used = {each.cc for each in self.engine.close().connections for each in each.subflows}
        assert used == {"reno", None}  # None: UDP


class Emulated:
    def __init__(self, _record) -> None:
        if not Path("/proc/sys/net/mptcp/enabled").exists():
            pytest.skip("this kernel has no Multipath TCP")
        here = SimpleNamespace(pid=lambda _host: 0)  # all hosts are in the test's namespace
        nothing = SimpleNamespace(record=lambda *_args, **_fields: None)
        self.programs = TrafficProcesses(here, nothing, ("ue1", "srv1"))
        loaded = scenario()
        self.workload = Workload(loaded, wire(loaded.network), self.programs, sampler=None)
        self.flows = [act.flow for act in self.workload._acts if act.verb == "start"]
        self.ports: list[int] = []
        self.programs.send("srv1", do="serve", mptcp=True)
        for flow in [flow for flow in self.flows if flow.protocol == "tcp"][:2]:
            self._open(flow)

    def _open(self, flow) -> None:
        ends = {"server": "127.0.0.1", "bind": "127.0.0.2", "rate_bps": 100_000}
        request = self.workload._request(flow) | ends
        self.ports.append(self.programs.send("ue1", **request)["port"])
        self.programs.send("ue1", do="go", id=flow.id)
        time.sleep(0.3)

    def change_cc(self, name: str) -> None:
        self.workload.set_cc(name)

    def open_a_later_connection(self) -> None:
        self._open([flow for flow in self.flows if flow.protocol == "tcp"][2])

    def ccs(self) -> list[str]:
        """Of the sending sockets: the server's, and the user's for the upload."""
        with closing(tcp_sockets.Diagnosis()) as diagnosis:
            sockets = {(each.source[1], each.destination[1]): each for each in diagnosis.sockets()}
        senders = [(5001, port) for port in self.ports]
        senders[1] = senders[1][::-1]
        return [sockets[ends].cc for ends in senders]

    def close(self) -> None:
        self.programs.stop()


@pytest.fixture(params=[Simulated, Emulated])
def engine(request, record) -> Iterator[Simulated | Emulated]:
    made = request.param(record)
    yield made
    made.close()


def test_open_and_later_connections_use_a_new_congestion_control(engine):
    assert set(engine.ccs()) == {"cubic"}
    engine.change_cc("reno")
    opened = engine.ccs()
    assert set(opened) == {"reno"}
    engine.open_a_later_connection()
    assert len(engine.ccs()) >= len(opened)
    assert set(engine.ccs()) == {"reno"}
