"""The simulator as an engine: virtual time, as fast as it goes.

Between two packets of the network three things happen at their own times: the traffic's time line (flows start, stop
and pause), a look at the access points ten times a second, and a step of control after such a look when one is due.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from controller.control import Control
from lab.congestion import BY_DELAY
from lab.engines.sim import compiled, compiler
from lab.engines.sim.cells import Cells
from lab.engines.sim.controller import Brain
from lab.engines.sim.core import layout as at
from lab.engines.sim.movement import EVERY_LOOKS, Movement
from lab.engines.sim.network import Network
from lab.engines.sim.observer import Observer
from lab.engines.sim.sampler import Sampler
from lab.engines.sim.tables import LARGEST_WINDOW, MPTCP_PAYLOAD_BYTES
from lab.errors import LabError
from lab.radio.occupancy import PERIOD_S
from lab.run.engine import Engine
from lab.run.frame import Frame
from lab.run.recorder import Recorder
from lab.run.report import Report
from lab.scenario.changes import (
    Change,
    SetCongestionControl,
    SetDemand,
    SetLinkDelay,
    SetLinkLoss,
    SetLinkRate,
    SetLinkUp,
    SetStationRate,
    SetStrategy,
    SetStrategyParameter,
    SetTier1Demand,
)
from lab.scenario.demands import Demands, Rates
from lab.scenario.flows import PAUSED_BPS, Act, plan
from lab.scenario.loading import scaled_traffic
from lab.scenario.schema import Scenario

LOOK_NS = round(PERIOD_S * at.NS_PER_S)


class SimEngine(Engine):
    """One simulated run."""

    _network: Network | None = None

    def open(self, scenario: Scenario, recorder: Recorder) -> None:
        """Lay out the tables; the flows that begin at 0 have begun."""
        self.recorder, self.scenario = recorder, scenario
        topology = scenario.network
        self._is_slow = self._begins_interpreted()
        self._acts: list[Act] = plan(scaled_traffic(scenario), scenario.seed, scenario.duration_s)
        flows = {act.flow.id: act.flow for act in self._acts}
        self.network = self._network = Network(
            topology, scenario.multipath, flows.values(), scenario.seed
        )
        self.cells = Cells(self.network, topology.cells)
        self.observer = Observer(topology, self.network, self.cells, scenario.rate_scale)
        strategy = scenario.strategy
        control = Control(strategy.name, strategy.params, scenario.rate_scale)
        self.brain = Brain(self.network, self.observer, control, self._event)
        self.movement = Movement(
            topology, scenario.mobility, scenario.seed, self.cells, self._handed_over
        )
        self.sampler = Sampler(topology, self.network, self.cells, self.movement)
        self._cc: str | None = None
        self._look_ns = 0
        self._occupancies: dict[str, list[float]] = {}
        self.demands = Demands()
        buffer_bytes = LARGEST_WINDOW * MPTCP_PAYLOAD_BYTES
        if scenario.multipath.receive_buffer_kb * 1000 > buffer_bytes:
            self._event(
                "warning", text=f"receive buffers hold {buffer_bytes // 1_000_000} MB at most"
            )

    def _begins_interpreted(self) -> bool:
        try:
            to_come = compiler.is_to_come()
        except LabError as error:
            self.recorder.log(f"the simulator goes on slowly: {error}")
            return False
        if to_come:
            self.recorder.log(
                "the simulator is being compiled, once for this version, and goes more slowly meanwhile"
            )
        return to_come

    def advance(self, until_s: float) -> list[Frame]:
        """Simulate until then and take one sample; the runner keeps the pace."""
        until_ns = round(until_s * at.NS_PER_S)
        while True:
            act_ns = round(self._acts[0].at_s * at.NS_PER_S) if self._acts else until_ns
            next_ns = min(until_ns, self._look_ns, act_ns)
            self.network.run(max(next_ns, self.network.now_ns))
            if self._acts and act_ns <= next_ns:
                self._act(self._acts.pop(0))
            elif self._look_ns <= next_ns:
                self._look()
            elif next_ns >= until_ns:
                break
        if self._is_slow and compiled.is_fast():
            self._is_slow = False
            self.recorder.log(
                f"the simulator is compiled, and goes faster now, at t = {until_s:g} s"
            )
        seen = {ap: sum(values) / len(values) for ap, values in self._occupancies.items()}
        self._occupancies = {}
        for flow in self.sampler.completed():
            self._set_rates(self.demands.end(flow))
        return [self.sampler.frame(self.brain.tiers, seen, self.brain.limits_bps)]

    def apply(self, change: Change) -> None:
        """Carry out a change of the strategy, a link, a station, a demand or the congestion control."""
        match change:
            case SetStrategy(name, params):
                self.brain.control.switch(name, dict(params))
            case SetStrategyParameter(key, value):
                self.brain.control.change({key: value})
            case SetLinkRate() | SetLinkDelay() | SetLinkLoss() | SetLinkUp():
                self.network.set_link(change)
            case SetTier1Demand(ap, rate_bps):
                self.brain.demand(ap, rate_bps)
            case SetStationRate(ap, user, rate_bps):
                self.cells.change(ap, user, rate_bps)
            case SetDemand(user, rate_bps):
                self._set_rates(self.demands.set_demand(user, rate_bps))
            case SetCongestionControl(name):
                if name in BY_DELAY and self.scenario.multipath.expected_by == "window":
                    why = "it reacts to delay, and expected_by 'window' limits windows"
                    raise LabError(f"change cc to {name}: {why}")
                self._cc = name

    def close(self) -> Report | None:
        """Return the report; there is nothing to undo."""
        return self.sampler.report() if self._network is not None else None

    # --- between packets

    def _act(self, act: Act) -> None:
        if act.verb == "start":
            cc = self._cc or act.flow.cc
            rates = self.demands.start(act.flow)
            self.network.start(replace(act.flow, rate_bps=rates.pop(act.flow)), cc)
            self.sampler.opened(act.flow, cc)
            self._set_rates(rates)
        elif act.verb == "stop":
            self.network.stop(act.flow)
            self._set_rates(self.demands.end(act.flow))
        else:
            self._set_rates(self.demands.set_silent(act.flow, act.rate_bps == PAUSED_BPS))

    def _set_rates(self, rates: Rates) -> None:
        for flow, rate_bps in rates.items():
            self.network.demand(flow, rate_bps)

    def _look(self) -> None:
        """At the users' places and the access points; then it is control's turn."""
        if self.movement.walkers and self._look_ns % (EVERY_LOOKS * LOOK_NS) == 0:
            self.movement.step(self._look_ns / at.NS_PER_S)
        seen = self.cells.look(self.brain.tiers)
        for ap, value in seen.items():
            self._occupancies.setdefault(ap, []).append(value)
        self.observer.see(seen)
        self.brain.step_if_due(self.network.now_ns)
        self._look_ns += LOOK_NS

    def _handed_over(self, user: str, old: str, new: str, rssi_dbm: float) -> None:
        """The controller sees the network as it is now; what it has decided still holds."""
        self.brain.hand_over(user, old, new)
        self.observer.redraw()
        self._event("handover", **{"user": user, "from": old, "to": new, "rssi_dbm": rssi_dbm})

    def _event(self, kind: str, **fields: Any) -> None:
        now_ns = self._network.now_ns if self._network else 0
        self.recorder.event(now_ns / at.NS_PER_S, kind, **fields)
