"""Count the files that a reader opens on four ways through the product, by tracing real calls.

`python tests/ways.py` prints a row for each way; `-v` adds the files in the order of the way.

A file is on the way if one of its functions is called. A reader opens it, except where the
functions called there have at most 15 lines together (`units.ns_from_ms`): names say what they do.
Docstrings do not count. A return is a step into an opened file that was left before, to a function
that was not called before. To load a scenario is a way of its own, which lies inside of others: the
second group of numbers counts only its entry.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType, SimpleNamespace
from typing import Any

os.environ["NUMBA_DISABLE_JIT"] = "1"  # compiled code cannot be traced
ROOT = Path(__file__).resolve().parents[1]
PRODUCT = tuple(f"{ROOT / folder}{os.sep}" for folder in ("lab", "controller", "dashboard"))
LOADING = str(ROOT / "lab" / "scenario" / "loading.py")
KNOWN_BY_NAME = 15  # lines of the functions of a file, without docstrings
Step = tuple[str, str, int]  # a file, a function in it, and the lines of this function
OPENFLOW13, FLOW_MOD, METER_MOD = 4, 14, 29


@dataclass
class Way:
    """The functions of the product in the order of their first calls, as (file, name)."""

    steps: list[Step] = field(default_factory=list)
    outside: list[Step] = field(default_factory=list)  # of the loading of a scenario
    _known: set[CodeType] = field(default_factory=set)
    _imports: int = 0  # imports that have not ended: calls inside of them are not on the way
    _loads: int = 0  # the same for the loading of a scenario

    @contextmanager
    def traced(self) -> Iterator[None]:
        self.start()
        try:
            yield
        finally:
            self.stop()

    def start(self) -> None:
        """Begin with the function of the product that is running now, if there is one."""
        frame = inspect.currentframe()
        while frame is not None and not self._is_ours(frame.f_code):
            frame = frame.f_back
        if frame is not None:
            self._enter(frame.f_code)
        sys.setprofile(self._event)

    def stop(self) -> None:
        sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return"):
            return
        change = 1 if event == "call" else -1
        if code.co_name == "<module>":
            self._imports += change
        elif event == "call" and not self._imports and self._is_ours(code):
            self._enter(code)
        if code.co_name in ("load", "load_recorded") and code.co_filename == LOADING:
            self._loads += change

    def _is_ours(self, code: CodeType) -> bool:
        """Whether it is a function of the product. A lambda or a comprehension belongs to the
        function around it, and the body of a class is no function."""
        is_function = bool(code.co_flags & inspect.CO_OPTIMIZED) and code.co_name[0] != "<"
        return is_function and code.co_filename.startswith(PRODUCT)

    def _enter(self, code: CodeType) -> None:
        if code not in self._known:
            self._known.add(code)
            lines = [line for _, _, line in code.co_lines() if line]
            text = code.co_consts[0] if code.co_consts else None  # the docstring, if it has one
            docstring = text.count("\n") + 1 if isinstance(text, str) else 0
            length = max(lines) - code.co_firstlineno + 1 - docstring
            step = os.path.relpath(code.co_filename, ROOT), code.co_qualname, length
            self.steps.append(step)
            if not self._loads:
                self.outside.append(step)


def stages(steps: Iterable[Step]) -> list[tuple[str, list[str]]]:
    """Return (file, functions) for each stretch of a way that stays in one file."""
    return [
        (file, [name for _, name, _ in group])
        for file, group in groupby(steps, lambda step: step[0])
    ]


def opened(steps: Sequence[Step]) -> list[Step]:
    """The steps in files that a reader opens."""
    lines: Counter[str] = Counter()
    for file, _, length in steps:
        lines[file] += length
    return [step for step in steps if lines[step[0]] > KNOWN_BY_NAME]


def counted(steps: Sequence[Step]) -> tuple[int, int, int]:
    """Files on the way, files that a reader opens, and returns to these."""
    visited = [file for file, _ in stages(opened(steps))]
    files = {file for file, _, _ in steps}
    return len(files), len(set(visited)), len(visited) - len(set(visited))


def scenario_file_to_scenario(way: Way, _: Path) -> None:
    """Scenario file to frozen Scenario."""
    from lab.scenario import loading

    with way.traced():
        loading.load("testbed_wifi_lte")


def flip_to_open_vswitch(way: Way, folder: Path) -> None:
    """Flip in the browser to Open vSwitch.

    A limit on Tier 1 of an access point: by HTTP into the inbox of the run, by the runner to the
    engine, by the engine into the inbox of POX, by POX to the meter of the access point.
    """
    from dashboard.app import create_app
    from lab.engines.mininet.controller_client import ControllerClient, RunningStrategy
    from lab.engines.mininet.engine import MininetEngine
    from lab.engines.mininet.machine.ledger import Ledger
    from lab.run.recorder import Recorder
    from lab.run.runner import _Run
    from lab.scenario import loading

    scenario = loading.load("moving_users")
    ap = next(cell.ap for cell in scenario.network.cells if cell.radio)
    run = folder / "runs" / "one"
    (run / "pox" / "inbox").mkdir(parents=True)
    engine = MininetEngine()
    strategy = RunningStrategy("none", {})
    pox = ControllerClient(run / "pox", folder, Ledger(folder / "ledger"), strategy, folder / "key")
    engine.emulated = SimpleNamespace(pox=pox)
    runner = _Run(scenario, engine, Recorder(run, scenario, "mininet"), lambda _: None)
    client = create_app({"RUNS": run.parent, "TESTING": True}).test_client()
    session, bridge = _session(scenario, run / "pox", ap)
    bridge.on_change = way.stop
    flip = {"target": f"cell.{ap}.tier1_mbps", "value": 2}
    with way.traced():
        answer = client.post("/api/runs/one/flips", json=flip)
    assert answer.status_code == 202, answer.text
    with way.traced():
        runner._apply_due()
    assert list((run / "pox" / "inbox").iterdir())
    with way.traced():
        session.tick()
    assert bridge.changes == [METER_MOD], bridge.changes


class Bridge:
    """The socket of a bridge: notes which messages change it. `on_change` is called with the first
    one."""

    def __init__(self) -> None:
        self.changes: list[int] = []
        self.on_change: Callable[[], None] = lambda: None

    def fileno(self) -> int:
        return 0

    def send(self, data: bytes) -> int:
        if data[0] == OPENFLOW13 and data[1] in (FLOW_MOD, METER_MOD) and not self.changes:
            self.on_change()
            self.changes.append(data[1])
        return len(data)


def _session(scenario: Any, folder: Path, ap: str) -> tuple[Any, Bridge]:
    """Return POX's side of the run, with an access point that has connected and is empty."""
    import pox_stand_in

    sys.modules.update(pox_stand_in.modules())
    from controller.control import Control
    from controller.pox_ext.openflow13_channel import Channel
    from controller.pox_ext.run_folder import RunFolder
    from controller.pox_ext.session import Session
    from controller.topology import read
    from lab.topologies.topology import as_json, wire

    text = json.dumps(as_json(scenario.network, wire(scenario.network)))
    network = read(text)
    nexus = SimpleNamespace(addListeners=lambda _: None, getConnection=lambda _: None)
    made = Session(network, Control("none"), RunFolder(folder), nexus, lambda _: None)
    bridge = Bridge()
    channel = Channel(bridge, SimpleNamespace(warn=print))
    channel.dpid = network.switches[ap].dpid
    made.channel_up(channel)
    while channel._waiting:
        number = next(iter(channel._waiting))
        callback, _ = channel._waiting.pop(number)
        callback(b"")
    bridge.changes.clear()
    return made, bridge


def segment_in_the_core(way: Way, _: Path) -> None:
    """Segment in the simulator's core.

    It is sent, queued, received and acknowledged, in interpreted code.
    """
    from lab.engines.sim.core import event_loop
    from lab.engines.sim.network import Network
    from lab.scenario.flows import Flow
    from lab.scenario.schema import Multipath
    from lab.topologies.topology import Link, Node, Topology

    nodes = (Node("ue1", "user", "l1"), Node("s1", "switch"), Node("srv1", "server"))
    links = (Link("l1", "s1", "ue1", 10**7, 10**7), Link("l2", "s1", "srv1", 10**7, 10**7))
    one = Flow("ue1-1", "ue1", "down", "reno", None, 1000)
    network = Network(Topology("one", nodes, links), Multipath(), [one], seed=1)
    network.start(one, one.cc)
    subflow = network.subflow(("ue1-1", 1)).record
    with way.traced():
        event_loop.run(network.w, 10**9)
    assert subflow.snd_una == 1


def sample_to_chart(way: Way, folder: Path) -> None:
    """Sample to the chart.

    A frame of the engine into samples.jsonl, and by HTTP into Plotly figures.
    """
    from fake_engine import FakeEngine

    from dashboard.app import create_app
    from lab.run.recorder import Recorder
    from lab.run.runner import _Run
    from lab.scenario import loading

    class Noted(Recorder):
        def sample(self, frame: Any) -> None:
            super().sample(frame)
            way.stop()

    class OneFrame(FakeEngine):
        def advance(self, until_s: float) -> Any:
            frames = super().advance(until_s)
            way.start()
            return frames

    settings = ("duration_s=0.5", "sample_interval_s=0.5")
    scenario = loading.load("testbed_wifi_lte", loading.Overrides(settings=settings))
    run = folder / "runs" / "one"
    run.mkdir(parents=True)
    runner = _Run(scenario, OneFrame(), Noted(run, scenario, "sim"), lambda _: None)
    runner.engine.open(scenario, runner.recorder)
    client = create_app({"RUNS": run.parent, "TESTING": True}).test_client()
    runner._loop()
    with way.traced():
        answer = client.get("/api/runs/one/charts")
    assert any(each["figure"]["data"] for each in answer.json["figures"]), answer.json


WAYS: tuple[tuple[Callable[[Way, Path], None], int], ...] = (
    (scenario_file_to_scenario, 8),
    (flip_to_open_vswitch, 12),
    (segment_in_the_core, 6),
    (sample_to_chart, 10),
)


def main() -> None:
    print(f"{'':<40}                      without loading")
    print(f"{'way':<40} files opened returns files opened returns  aim")
    for go, aim in WAYS:
        way = Way()
        with tempfile.TemporaryDirectory() as folder:
            go(way, Path(folder))
        title = (go.__doc__ or "").partition("\n")[0].strip(". ")
        files, looked, returns = counted(way.steps)
        fewer, less, rarer = counted(way.outside)
        print(f"{title:<40} {files:5} {looked:6} {returns:7} {fewer:5} {less:6} {rarer:7} {aim:4}")
        if "-v" in sys.argv:
            seen: set[str] = set()
            for file, functions in stages(opened(way.steps)):
                print(f"  {'returns to ' if file in seen else ''}{file}: {', '.join(functions)}")
                seen.add(file)


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    main()
