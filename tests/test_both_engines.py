"""The same rules hold in both engines: where `loss` of a link acts, what its delay is, and what its
sample shows.

The simulator runs. Of the emulation only the code that shapes links runs, with a fake `tc`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.engines import registry
from lab.engines.mininet.machine import shell
from lab.engines.mininet.network import links
from lab.engines.mininet.network.links import Links
from lab.engines.sim.network import Network
from lab.frame import Direction, LinkSample
from lab.run.engine import Options
from lab.run.reading import read_frames
from lab.run.recorder import Recorder
from lab.run.runner import run
from lab.scenario import flows as traffic
from lab.scenario import loading, targets
from lab.scenario.loading import Overrides
from lab.scenario.schema import Scenario
from lab.scenario.targets import SetLinkDelay
from lab.topologies.topology import wire

LOSSES = {  # scenario: link, and the ends from and to which its data travels
    "fat_tree": [("a1x1-e1x1", "e1x1", "a1x1"), ("a3x1-e3x1", "a3x1", "e3x1")],
    "two_paths": [("path1", "s1", "p1")],
}
CASES = [(name, *case) for name, each in LOSSES.items() for case in each]


def loaded(name: str, *settings: str) -> Scenario:
    return loading.load(name, Overrides(settings=settings))


class Emulated:
    """Shape the links of a scenario; `lines` are the lines for `tc`."""

    def __init__(self, scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines: list[str] = []
        topology = scenario.network
        monkeypatch.setattr(shell, "run", self._run)
        monkeypatch.setattr(Links, "_start_cells", lambda *_: None)  # needs the kernel
        monkeypatch.setattr(links, "set_shape", lambda *_: None)
        monkeypatch.setattr(
            shell, "journal_command", lambda argv, stdin: self.lines.extend(stdin.splitlines())
        )
        self.wiring = wire(topology)
        self.links = Links(topology, self.wiring, self, self, scenario.data_flows)  # type: ignore[arg-type]
        self.links.start()

    def _run(self, argv: list[str], doing: str, stdin: str = "") -> None:
        self.lines += stdin.splitlines()

    def run(self, host: str, argv: list[str], doing: str, stdin: str) -> None:
        """What is shaped inside a host does not count here."""

    def record(self, kind: str, **what: str) -> None:
        """This object is also the ledger, which keeps nothing."""

    def apply(self, change: targets.Change) -> None:
        self.lines.clear()
        self.links.change(change)  # type: ignore[arg-type]

    def loses(self, link: str, source: str) -> bool:
        trunk = next(each for each in self.wiring.trunks if each.link == link)
        port = trunk.a_port if trunk.a == source else trunk.b_port
        return "loss 10%" in self._netem(port)

    def delay_ms(self, link: str) -> float:
        (text,) = re.findall(r" delay ([\d.]+)us", self._netem(self._port(link)))
        return float(text) / 1000

    def _netem(self, port: str) -> str:
        (line,) = (each for each in self.lines if f" dev {port} " in each and " netem " in each)
        return line

    def _port(self, link: str) -> str:
        return next(each.a_port for each in self.wiring.trunks if each.link == link)


class Simulated:
    def __init__(self, scenario: Scenario, _: pytest.MonkeyPatch) -> None:
        acts = traffic.schedule(
            traffic.scaled_traffic(scenario), scenario.seed, scenario.duration_s
        )
        flows = {act.flow.id: act.flow for act in acts}.values()
        self.network = Network(scenario.network, scenario.multipath, flows, scenario.seed)
        self.ends = {link.id: (link.a, link.b) for link in scenario.network.links}

    def apply(self, change: targets.Change) -> None:
        self.network.set_link(change)  # type: ignore[arg-type]

    def loses(self, link: str, source: str) -> bool:
        a, b = self.ends[link]
        hop = self.network.tables.links[link, b if source == a else a]
        return hop.loss_ppm == 100_000

    def delay_ms(self, link: str) -> float:
        delays = {self.network.tables.links[link, end].delay_ns for end in self.ends[link]}
        (delay_ns,) = delays
        return delay_ns / 1e6


@pytest.fixture(params=[Simulated, Emulated])
def make(request, monkeypatch):
    return lambda scenario: request.param(scenario, monkeypatch)


@pytest.mark.parametrize(("name", "link", "source", "destination"), CASES)
def test_a_changed_loss_acts_on_data_only(make, name, link, source, destination):
    scenario = loaded(name)
    engine = make(scenario)
    engine.apply(targets.change(scenario, f"link.{link}.loss", 0.1))
    assert engine.loses(link, source)
    assert not engine.loses(link, destination)


@pytest.mark.parametrize(("name", "link", "source", "destination"), CASES)
def test_a_changed_loss_turns_with_the_traffic(make, name, link, source, destination):
    scenario = loaded(name, "traffic_direction=up")
    engine = make(scenario)
    engine.apply(targets.change(scenario, f"link.{link}.loss", 0.1))
    assert engine.loses(link, destination)
    assert not engine.loses(link, source)


@pytest.mark.parametrize("direction", ["down", "up"])
def test_the_loss_of_a_file_acts_on_data_only(make, direction):
    scenario = loaded("two_paths", "topology.paths.1.loss=0.1", f"traffic_direction={direction}")
    engine = make(scenario)
    assert engine.loses("path1", "s1") == (direction == "down")
    assert engine.loses("path1", "p1") == (direction == "up")
    assert targets.targets(scenario)["link.path1.loss"].value == 0.1


def test_loss_acts_in_both_directions_if_data_travels_in_both(make):
    flows = "traffic=[{user: ue1, kind: bulk}, {user: all, kind: bulk, direction: up}]"
    scenario = loaded("two_paths", flows)
    engine = make(scenario)
    engine.apply(targets.change(scenario, "link.path1.loss", 0.1))
    assert engine.loses("path1", "s1")
    assert engine.loses("path1", "p1")


@pytest.mark.parametrize(("link", "ap"), [("wifi", "wifi1"), ("lte", "lte1")])
def test_a_changed_delay_of_a_link_keeps_the_delay_of_the_cell_at_its_end(make, link, ap):
    scenario = loaded("testbed_wifi_lte")
    (cell,) = (each for each in scenario.network.cells if each.ap == ap)
    assert cell.delay_ns > 0
    engine = make(scenario)
    engine.apply(SetLinkDelay(link, 7_000_000))
    assert engine.delay_ms(link) == 7 + cell.delay_ns / 1e6


def test_a_sample_shows_the_busier_direction():
    data, acks = Direction(80.0, 30, 0.1), Direction(2.0, 1, 0.0)
    for sample in (LinkSample.of(data, acks), LinkSample.of(acks, data)):
        assert (sample.mbps, sample.backlog, sample.loss) == (80.0, 30, 0.1)
    assert LinkSample.of(acks, data).mbps_ba == 80.0


@pytest.mark.parametrize(
    ("name", "link"), [("two_paths", "path1"), ("rat_setup_1", "s1wifi1"), ("campus", "c1-a1x1")]
)
def test_links_between_switches_are_sampled_and_those_of_hosts_and_relays_are_not(
    name, link, tmp_path
):
    scenario = loaded(name, "duration_s=1", "sample_interval_s=1", "events=[]")
    network = scenario.network
    sampled = {each.id for each in network.sampled_links}
    assert link in sampled
    without = {*network.users, *network.ids("server"), *network.relays}
    assert sampled == {each.id for each in network.links if not without & {each.a, each.b}}
    run(scenario, registry.create("sim", Options(0.0)), Recorder(tmp_path, scenario, "sim"))
    (frame,) = read_frames(tmp_path)
    assert set(frame.link) == sampled


@pytest.fixture(scope="module")
def throughputs(tmp_path_factory) -> dict[float, tuple[float, Path]]:
    """Mb/s of a fat tree without loss, and with loss on each link between aggregation and
    servers."""
    found = {}
    for loss in (0.0, 0.1):
        lossy = [f"a{pod}x{a}-e{pod}x{e}" for pod in (1, 2) for a in (1, 2) for e in (1, 2)]
        events = ", ".join(
            f"{{at_s: 0, target: link.{each}.loss, value: {loss}}}" for each in lossy
        )
        scenario = loaded("fat_tree", "duration_s=8", f"events=[{events}]")
        folder = tmp_path_factory.mktemp("tree")
        outcome = run(
            scenario, registry.create("sim", Options(0.0)), Recorder(folder, scenario, "sim")
        )
        found[loss] = (outcome.result["throughput_mbps"], folder)
    return found


def test_loss_towards_the_core_lowers_throughput(throughputs):
    assert throughputs[0.1][0] < 0.5 * throughputs[0.0][0]


def test_links_towards_the_core_report_data_in_their_direction(throughputs):
    frame = read_frames(throughputs[0.0][1])[-1]
    busy = {name: link for name, link in frame.link.items() if (link.mbps or 0) > 4}
    assert any("a1x" in name for name in busy)
    for name, link in busy.items():
        climbs = any(f"a{pod}x" in name for pod in (1, 2))
        assert (link.mbps_ba > link.mbps_ab) == climbs, name
        assert link.mbps == max(link.mbps_ab, link.mbps_ba)
