"""The emulation as an engine: build the network, start POX, agents and traffic, sample, apply changes, undo everything.

The order of building matters: POX starts first because it is slow to load, and needs only the description of the
network; what is undone is written into the ledger before it is done; links are measured before anybody uses them.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import Any

from lab import flows, units
from lab.engines import Change, Engine
from lab.engines.mininet import cell as wifi_cell
from lab.engines.mininet import execute, hosts, lock, netlink, pox, probes, sampler, shaping, shell, upstreams, watchdog
from lab.engines.mininet.ledger import Ledger
from lab.engines.mininet.network import Network
from lab.errors import LabError
from lab.recorder import Recorder
from lab.scenario import scaled_traffic
from lab.scenario_schema import Scenario
from lab.topology import Topology, wire

STATE = Path("/run/multipath-lab")
NETEM = 0x30
AGENT_TIMEOUT_S = 30


class MininetEngine(Engine):
    """One run of the emulation."""

    def open(self, topology: Topology, scenario: Scenario, recorder: Recorder) -> None:
        """Everything up to the first packet of traffic; t = 0 is when the flows start."""
        self.topology, self.scenario, self.recorder = topology, scenario, recorder
        self.wiring = wire(topology)
        self._undo = ExitStack()
        self._undo.enter_context(lock.hold(f"run {recorder.run_id}"))
        self.ledger = Ledger()
        self._tidy()
        self._undo.enter_context(shell.journal_to(self._journal))
        self._undo.callback(self._tidy)
        self.pox = pox.Pox(
            recorder.folder / "pox",
            upstreams.folder("pox"),
            self.ledger,
            scenario.strategy.name,
            dict(scenario.strategy.params),
        )
        self.pox.start(pox.topology_json(topology, self.wiring))
        self._undo.callback(self.pox.stop)
        self._build()
        self._measure()
        self._start_agents()
        self._start_sampling()
        self._acts = flows.plan(scaled_traffic(scenario), scenario.seed, scenario.duration_s)
        self._opened: dict[str, flows.Flow] = {}
        self._connect(act.flow for act in self._acts if act.verb == "start" and act.at_s == 0)
        self.started_at = time.time()
        self._zero = self._sampled = time.monotonic()
        self._act_until(0.0)

    def advance(self, until_s: float) -> list[dict[str, Any]]:
        """Wait until then, starting and stopping flows on the way, and take one sample."""
        self._act_until(until_s)
        if self.pox.revive():
            self._event("warning", text="POX had ended; it was started again. See pox/log.txt")
        return [self._sample(until_s)]

    def apply(self, change: Change) -> None:
        """Carry out a change of the strategy, a link, a station or a user."""
        kind, _, rest = change.target.partition(".")
        if kind == "strategy" and rest:
            self.pox.send("params", {rest: change.scaled})
        elif kind == "strategy":
            self.pox.send("strategy", change.scaled)
        elif kind == "link":
            self._change_link(*rest.rsplit(".", 1), change.scaled)
        elif kind == "cell":
            ap, user, _ = rest.split(".")
            self._change_station(ap, user, units.bps(change.scaled))
        elif kind == "user":
            self._change_demand(rest.split(".")[0], change.scaled)
        elif kind == "cc":
            self._cc = change.scaled
        else:
            raise LabError(f"change {change.target}: the emulation cannot change it while it runs")

    def close(self) -> dict[str, Any] | None:
        """The report of what was measured, and a clean machine."""
        report = self._report() if self.started_at is not None else None
        try:
            self._undo.close()
        except (LabError, OSError) as problem:
            self._event("warning", text=f"undo: {problem}. Type: ./run_lab.sh clean")
        return report

    # --- open, step by step

    def _tidy(self) -> None:
        """Undo what the ledger lists: what an earlier run left, or what this one made."""
        problems = self.ledger.undo_all()
        if problems:
            raise LabError(f"clean up: {'; '.join(problems)}. Type: ./run_lab.sh clean --force")

    def _build(self) -> None:
        """The network, its shaping, the cells, the traffic programs, and POX in charge of the bridges."""
        scratch = STATE / "wifi"
        scratch.mkdir(parents=True, exist_ok=True)
        wifi_cell.mount_pins(self.ledger)  # before the hosts exist: they see only mounts that were there first
        self.network = Network(self.topology, self.wiring, self.ledger, scratch)
        self._undo.callback(self.network.stop)
        self._progress("network: nodes, bridges, hostapd, association")
        self.network.start(upstreams.folder())
        self._progress("shaping: links and cells")
        self._shape()
        self.hosts = hosts.Hosts(self.network, self.ledger)
        self._undo.callback(self.hosts.stop)
        servers = self.topology.ids("server")
        for server in servers:
            if not self.scenario.multipath.server_enabled:
                self.network.run(server, ["sysctl", "-qw", "net.mptcp.enabled=0"], f"switch MPTCP off on {server}")
        answers = self.hosts.ask_all({server: {"do": "serve", "mptcp": True} for server in servers})
        for server, answer in answers.items():
            if not answer["mptcp"]:
                self._event(
                    "warning", text=f"{server} refuses Multipath TCP (net.mptcp.enabled=0): its connections are plain TCP"
                )
        self._progress("POX: switches connect")
        self.network.connect_controller()
        self.pox.wait_ready()

    def _shape(self) -> None:
        links = {link.id: link for link in self.topology.links}
        lines = [line for trunk in self.wiring.trunks for line in self._trunk_lines(trunk, links[trunk.link])]
        self.cells: dict[str, wifi_cell.AirOf] = {}
        for cell in self.topology.cells:
            if cell.kind == "lte":
                for station in cell.stations:
                    lines += shaping.rate(self.wiring.at(station.user, cell.ap).port, station.rate_bps, cell.queue_packets)
            else:
                self._start_cell(cell)
        shell.run(["tc", "-batch", "-"], "shape the links", stdin=shaping.batch(lines))
        for each in self.wiring.interfaces:
            link = links.get(each.link)
            if link is not None and _shaped(link):
                self._shape_host_link(each, link)

    def _trunk_lines(self, trunk: Any, link: Any) -> list[str]:
        """Both directions of a trunk; the delay of an access point is added to its own."""
        cell = next((cell for cell in self.topology.cells if cell.ap in (trunk.a, trunk.b)), None)
        delay_ns = link.delay_ns + (cell.delay_ns if cell else 0)
        jitter_ns = link.jitter_ns + (cell.jitter_ns if cell else 0)
        if not (_shaped(link) or delay_ns or jitter_ns):
            return []
        queue = link.queue_packets if link.rate_bps else 20_000
        ends = ((trunk.a_port, link.loss_ppm), (trunk.b_port, link.loss_back_ppm))
        return [shaping.link(port, link.rate_bps, delay_ns, jitter_ns, loss, queue) for port, loss in ends]

    def _shape_host_link(self, each: Any, link: Any) -> None:
        forward, back = (link.loss_back_ppm, link.loss_ppm) if link.a == each.node else (link.loss_ppm, link.loss_back_ppm)
        line = shaping.link(each.port, link.rate_bps, link.delay_ns, link.jitter_ns, forward, link.queue_packets)
        shell.run(["tc", *line.split()], f"shape {each.port}")
        line = shaping.link(each.name, link.rate_bps, link.delay_ns, link.jitter_ns, back, link.queue_packets)
        self.network.run(each.node, ["tc", *line.split()], f"shape {each.name}")

    def _start_cell(self, cell: Any) -> None:
        """Load the cell's program and attach it to the access point's radio and to every station's."""
        air = self.cells[cell.ap] = wifi_cell.AirOf(cell, self.ledger)
        lines = shaping.air(f"{cell.ap}-wlan1", "downlink", str(air.pins))
        shell.run(["tc", "-batch", "-"], f"attach the cell to {cell.ap}", stdin=shaping.batch(lines))
        for station in cell.stations:
            interface = self.wiring.at(station.user, cell.ap)
            air.set_rate(interface.address, station.rate_bps)
            lines = shaping.air(interface.name, "uplink", str(air.pins))
            self.network.run(
                station.user, ["tc", "-batch", "-"], f"attach the cell to {station.user}", stdin=shaping.batch(lines)
            )

    def _measure(self) -> None:
        """Rate and round trip of every user's interface, one after the other; more than 10 % off is a warning."""
        self._progress("measuring every link")
        server = self.wiring.of(self.topology.ids("server")[0])[0].address
        measured = {}
        for user in self.topology.users:
            for each in self.wiring.of(user):
                asked = probes.asked(self.topology, each)
                got = self.hosts.ask(user, do="probe", server=server, bind=each.address, packets=probes.PACKETS)
                measured[each.name] = probes.compare(asked, got)
                for complaint in probes.complaints(each.name, measured[each.name]):
                    self._event("warning", text=complaint)
        self.recorder.describe(links_measured=measured)

    def _start_agents(self) -> None:
        """The access points' agent reports to POX and to this process."""
        self._reports = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._reports.bind(("127.0.0.1", 0))
        self._undo.callback(self._reports.close)
        aps = {
            cell.ap: {"kind": cell.kind, "device": f"{cell.ap}-wlan1", "stations": self._stations(cell)}
            for cell in self.topology.cells
        }
        if not aps:
            return
        configuration = STATE / "agents.json"
        configuration.write_text(json.dumps({"aps": aps, "ports": [pox.AGENTS_PORT, self._reports.getsockname()[1]]}))
        argv = [sys.executable, "-SE", "-m", "lab.engines.mininet.ap_agent", str(configuration)]
        self._agent = shell.spawn(
            argv, "start the agent of the access points", stdin=subprocess.PIPE, cwd=pox.PROJECT, start_new_session=True
        )
        self.ledger.record("process", pid=self._agent.pid)
        self._wait_for_reports({cell.ap for cell in self.topology.cells})

    def _wait_for_reports(self, silent: set[str]) -> None:
        """Until every access point has reported: from then on LTE shares are kept, and POX sees."""
        self._reports.settimeout(AGENT_TIMEOUT_S)
        try:
            while silent:
                silent.discard(json.loads(self._reports.recv(65536))["ap"])
        except TimeoutError as problem:
            raise LabError(
                f"start the agent of {', '.join(sorted(silent))}: no report in {AGENT_TIMEOUT_S} s. See {self.recorder.folder / 'log.txt'}"
            ) from problem
        self._reports.setblocking(False)

    def _stations(self, cell: Any) -> dict[str, Any]:
        return {
            each.user: {"rate_bps": each.rate_bps, "weight": each.weight, "device": self.wiring.at(each.user, cell.ap).port}
            for each in cell.stations
        }

    def _start_sampling(self) -> None:
        """One netlink socket per host; it stays in the host's namespace."""
        users, servers = self.topology.users, self.topology.ids("server")
        self._diagnoses = {host: netlink.inside(self.network.pid(host), netlink.Diagnosis) for host in (*users, *servers)}
        self._scheduler = netlink.Scheduler()
        self._device = {port: self._scheduler.index(port) for port in (t.a_port for t in self.wiring.trunks)}
        self._radio = {ap: self._scheduler.index(f"{ap}-wlan1") for ap in self.cells}
        self._queues = self._scheduler.queues()
        self.sampler = sampler.Sampler(self.wiring)
        self.watchdog = watchdog.Watchdog()
        self._decisions = probes.Tail(self.recorder.folder / "pox" / "decisions.jsonl")
        self._occupancy: dict[str, list[float]] = {}
        self._meter: dict[str, float | None] = {}
        self._tiers: dict[str, dict[str, int]] = {}
        self._cc: str | None = None
        for diagnosis in self._diagnoses.values():
            diagnosis.sockets()  # the first question makes the kernel load a module
        self._executor = execute.Executor(self.recorder.folder, self.network.hosts, self._inside)
        self._undo.callback(self._executor.close)

    def _inside(self, host: str, argv: list[str]) -> list[str]:
        return argv if host == execute.MACHINE else self.network.inside(host, argv)

    # --- advance

    def _act_until(self, until_s: float) -> None:
        """Sleep through the time line up to `until_s`, acting on the way; what is due together starts together."""
        while self._acts and self._acts[0].at_s <= until_s:
            due = [act for act in self._acts if act.at_s <= self._acts[0].at_s]
            self._sleep_until(due[0].at_s)
            self._acts = self._acts[len(due) :]
            self._start([act.flow for act in due if act.verb == "start"])
            for act in due:
                if act.verb == "stop":
                    self.hosts.ask(act.flow.user, do="stop", id=act.flow.id)
                elif act.verb == "rate":
                    self.hosts.ask(act.flow.user, do="rate", id=act.flow.id, rate_bps=act.rate_bps)
        self._sleep_until(until_s)

    def _sleep_until(self, t: float) -> None:
        time.sleep(max(0.0, self._zero + t - time.monotonic()))

    def _start(self, starting: Iterable[flows.Flow]) -> None:
        """Let connected flows go; connect the others first."""
        starting = list(starting)
        self._connect([flow for flow in starting if flow.id not in self._opened])
        for batch in _one_each(starting):
            self.hosts.ask_all({flow.user: {"do": "go", "id": flow.id} for flow in batch})

    def _connect(self, connecting: Iterable[flows.Flow]) -> None:
        for batch in _one_each(connecting):
            answers = self.hosts.ask_all({flow.user: self._request(flow) for flow in batch})
            for flow in batch:
                endpoint = (self.wiring.of(flow.user)[0].address, answers[flow.user]["port"])
                self.sampler.open(
                    sampler.Opened(flow.id, flow.user, endpoint, flow.direction, flow.user in self.topology.multipath)
                )
                self._opened[flow.id] = flow

    def _request(self, flow: flows.Flow) -> dict[str, Any]:
        server = self.wiring.of(self.topology.ids("server")[0])[0]
        multipath = flow.user in self.topology.multipath
        return {
            "do": "connect",
            "id": flow.id,
            "server": server.address,
            "bind": self.wiring.of(flow.user)[0].address,
            "mptcp": multipath,
            "direction": flow.direction,
            "cc": self._cc or flow.cc,
            "rate_bps": flow.rate_bps,
            "volume_bytes": flow.volume_bytes,
            "receive_buffer_bytes": self.scenario.multipath.receive_buffer_kb * 1000,
        }

    def _sample(self, t: float) -> dict[str, Any]:
        self._read_decisions()
        self._read_reports()
        servers = self.topology.ids("server")
        now = time.monotonic()
        elapsed_s, self._sampled = now - self._sampled, now
        found = {host: diagnosis.sockets() for host, diagnosis in self._diagnoses.items()}
        self.sampler.take(
            [each for host in servers for each in found[host]],
            [each for host in self.topology.users for each in found[host]],
        )
        frame = self.sampler.frame(elapsed_s, self._status(), self._tiers)
        queues = self._scheduler.queues()
        frame["link"] = {trunk.link: self._link_row(trunk.a_port, queues, elapsed_s) for trunk in self.wiring.trunks}
        for reason in self.watchdog.look(t, now - self._zero - t, self._lag_ms(queues)):
            self._event("warning", text=f"overloaded: {reason}", overloaded=True)
        self._queues = queues
        frame["ap"] = {cell.ap: self._ap_row(cell, frame["ap"].get(cell.ap, {})) for cell in self.topology.cells}
        return {"t": round(t, 3), **frame}

    def _status(self) -> dict[str, Any]:
        """Every flow's status at its receiving end."""
        answers = self.hosts.ask_all({host: {"do": "status"} for host in self.network.hosts})
        return {name: flow for answer in answers.values() for name, flow in answer["flows"].items() if not flow["sends"]}

    def _read_decisions(self) -> None:
        for line in self._decisions.read():
            if line["kind"] == "observation":
                self._tiers = line.get("tiers", self._tiers)
                self._meter |= {ap: row.get("meter_mbps") for ap, row in line.get("aps", {}).items()}
            elif line["kind"] == "decision" and "meter_mbps" in line:
                self._meter[line["ap"]] = line["meter_mbps"]

    def _read_reports(self) -> None:
        """What the access points reported since the last look; without a report the last one holds."""
        seen: dict[str, list[float]] = {}
        while True:
            try:
                report = json.loads(self._reports.recv(65536))
            except BlockingIOError:
                break
            seen.setdefault(report["ap"], []).append(probes.tier1_occupancy(report, self._tiers))
        self._occupancy |= seen

    def _ap_row(self, cell: Any, row: dict[str, Any]) -> dict[str, Any]:
        seen = self._occupancy.get(cell.ap, [])
        return {
            "tier1_mbps": row.get("tier1_mbps", 0.0),
            "tier2_mbps": row.get("tier2_mbps", 0.0),
            "mac_occupancy": round(sum(seen) / len(seen), 4) if seen else None,
            "meter_mbps": self._meter.get(cell.ap),
            "stations": len(cell.stations),
        }

    def _link_row(self, port: str, queues: dict[tuple[int, int], netlink.Queue], elapsed_s: float) -> dict[str, Any]:
        """What left a shaped trunk towards the users; an unshaped one has no queue to read."""
        key = (self._device[port], NETEM)
        now, before = queues.get(key), self._queues.get(key)
        if now is None or before is None:
            return {"mbps": None, "backlog": None, "loss": None}
        sent, dropped = now.sent_packets - before.sent_packets, now.drops - before.drops
        return {
            "mbps": round((now.sent_bytes - before.sent_bytes) * 8 / elapsed_s / 1e6, 4),
            "backlog": now.backlog_packets,
            "loss": round(dropped / (sent + dropped), 5) if sent + dropped else 0.0,
        }

    def _lag_ms(self, queues: dict[tuple[int, int], netlink.Queue]) -> float:
        """How much longer packets wait for the air than the cell's clock says: the worst cell."""
        worst = 0.0
        for ap, air in self.cells.items():
            clock, waiting = air.read(), queues[self._radio[ap], 1].backlog_packets
            airtime_ns = clock.busy_ns / max(1, clock.sent)
            due_ns = max(0, clock.next_free_ns - time.monotonic_ns())
            worst = max(worst, (waiting * airtime_ns - due_ns) / 1e6)
        return worst

    # --- apply

    def _change_link(self, link_id: str, key: str, value: Any) -> None:
        trunk = next((each for each in self.wiring.trunks if each.link == link_id), None)
        link = next(each for each in self.topology.links if each.id == link_id)
        if key == "up":
            port = trunk.a_port if trunk else next(each.port for each in self.wiring.interfaces if each.link == link_id)
            shell.run(
                ["ip", "link", "set", port, "up" if value else "down"], f"take link {link_id} {'up' if value else 'down'}"
            )
            self.pox.send("link", {"link": link_id, "up": bool(value)})
            return
        field, convert = {
            "rate_mbps": ("rate_bps", units.bps),
            "delay_ms": ("delay_ns", units.ns),
            "loss": ("loss_ppm", units.ppm),
        }[key]
        changed = type(link)(**{**vars(link), field: convert(value)})
        self.topology = type(self.topology)(
            **{**vars(self.topology), "links": tuple(changed if each is link else each for each in self.topology.links)}
        )
        if trunk:
            shell.run(["tc", "-batch", "-"], f"change {link_id}", stdin=shaping.batch(self._trunk_lines(trunk, changed)))
        else:
            self._shape_host_link(next(each for each in self.wiring.interfaces if each.link == link_id), changed)

    def _change_station(self, ap: str, user: str, rate_bps: int) -> None:
        if ap in self.cells:
            self.cells[ap].set_rate(self.wiring.at(user, ap).address, rate_bps)
        assert self._agent.stdin is not None
        self._agent.stdin.write(json.dumps({"ap": ap, "user": user, "rate_bps": rate_bps}) + "\n")
        self._agent.stdin.flush()

    def _change_demand(self, user: str, mbps: float | None) -> None:
        mine = [flow for flow in self._opened.values() if flow.user == user]
        rate_bps = None if mbps is None else units.bps(mbps / max(1, len(mine)))
        for flow in mine:
            self.hosts.ask(user, do="rate", id=flow.id, rate_bps=rate_bps)

    # --- close

    def _report(self) -> dict[str, Any]:
        """What the run's result needs beside its samples."""
        duration_s = time.monotonic() - self._zero
        connections = self.sampler.report(duration_s)
        counters = {
            user: probes.mptcp_counters(Path(f"/proc/{self.network.pid(user)}/net/netstat").read_text())
            for user in self.topology.multipath
        }
        status = self._status()
        verdict = probes.verdict(
            self.sampler.connections.values(), status, counters, {user: len(self.wiring.of(user)) for user in counters}
        )
        if verdict["verified"] is False:
            self._event("warning", text=f"this was not Multipath TCP: {verdict['why']}", mptcp=False)
        seen = {subflow["cc"] for each in connections for subflow in each["subflows"] if subflow["cc"]}
        return {
            "connections": connections,
            "mptcp": verdict,
            "cc": "+".join(sorted(seen)) or None,
            "overload": self.watchdog.verdict(),
        }

    def _event(self, kind: str, **fields: Any) -> None:
        t = time.time() - self.started_at if self.started_at else 0.0
        self.recorder.event(round(t, 3), kind, **fields)

    def _journal(self, at: float, argv: Sequence[str], stdin: str | None) -> None:
        """Into commands.sh, a batch line by line, so that each can be pasted alone."""
        if stdin is None:
            self.recorder.command(argv, at - self.recorder.started)
            return
        program = list(argv[: argv.index("-batch")])
        for line in stdin.splitlines():
            self.recorder.command([*program, *line.split()], at - self.recorder.started)

    def _progress(self, text: str) -> None:
        self.recorder.log(text)


def _one_each(starting: Iterable[flows.Flow]) -> list[list[flows.Flow]]:
    """Rounds with at most one flow of each user, in order."""
    by_user: dict[str, list[flows.Flow]] = {}
    for flow in starting:
        by_user.setdefault(flow.user, []).append(flow)
    return [[flow for flow in column if flow] for column in zip_longest(*by_user.values())]


def _shaped(link: Any) -> bool:
    return bool(link.rate_bps or link.delay_ns or link.jitter_ns or link.loss_ppm or link.loss_back_ppm)
