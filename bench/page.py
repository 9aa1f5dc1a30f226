"""Measure the dashboard and the web page of a running run: delays, CPU use and growth of memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

from bench.browser import browser
from lab.engines.sim import compiler
from lab.errors import LabError
from lab.frame import ApSample, Frame, LinkSample, SubflowSample, UserSample
from lab.run.manifest import ROOT
from lab.run.recorder import Recorder
from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides

# A dashboard in its own process


SERVER = """
import sys, threading, time
from pathlib import Path
from dashboard.app import create_app
from dashboard.base.serving import server
from dashboard.serve import listen
sock = listen(None)
app = create_app({"RUNS": Path(sys.argv[1])})
waitress = server(app, sock)
threading.Thread(target=waitress.run, daemon=True).start()
print(sock.getsockname()[1], flush=True)
for line in sys.stdin:
    print(time.process_time(), flush=True)
app.extensions["launcher"].stop_all()
"""


@contextmanager
def dashboard(runs: Path) -> Iterator[tuple[str, Callable[[], float]]]:
    """Start a dashboard in a new process. Stop it and all its runs at the end of the `with` block.

    Yields its URL, and a function that returns the CPU time [s] that its process has used.
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(runs)], cwd=ROOT, **pipes)  # type: ignore[call-overload]

    def answer() -> bytes:
        return bytes(process.stdout.readline())

    def spent_s() -> float:
        process.stdin.write(b"\n")
        process.stdin.flush()
        return float(answer())

    try:
        yield f"http://127.0.0.1:{int(answer())}", spent_s
    finally:
        process.communicate()


# Viewers of a dashboard


VIEWERS, FRAMES, FRAMES_PER_S = 40, 100, 10
DEMO = "testbed_wifi_lte"


def viewers() -> tuple[float, float]:
    """Return the 99th percentile of the delay of samples [ms], and the CPU share of the dashboard.

    The delay of a sample is the time from writing it until the last of 40 viewers has received it.
    This process writes the samples, and its threads are the viewers. The CPU share is a fraction of
    one processor.
    """
    loaded = scenario.load(DEMO, Overrides(settings=("duration_s=600",)))
    written_s = [0.0] * FRAMES
    ready = threading.Barrier(VIEWERS + 1)

    def watch(url: str) -> list[float]:
        arrived: list[float] = []
        with urlopen(url, timeout=60) as stream:  # noqa: S310 - the address is a constant
            ready.wait(60)
            for line in stream:
                if b'"ap":' in line:
                    arrived.append(time.perf_counter())
                    if len(arrived) == FRAMES:
                        break
        return arrived

    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(VIEWERS) as pool:
        folder = Path(made, "runs", "watched")
        folder.mkdir(parents=True)
        recorder = Recorder(folder, loaded, "sim")
        with dashboard(folder.parent) as (url, spent_s):
            watching = [
                pool.submit(watch, f"{url}/api/runs/watched/stream") for _ in range(VIEWERS)
            ]
            ready.wait(60)
            began, before = time.perf_counter(), spent_s()
            for n in range(FRAMES):
                written_s[n] = time.perf_counter()
                recorder.sample(_frame((n + 1) / FRAMES_PER_S))
                time.sleep(max(0.0, began + (n + 1) / FRAMES_PER_S - time.perf_counter()))
            arrived = [each.result(60) for each in watching]
            share = (spent_s() - before) / (time.perf_counter() - began)
        recorder.close()
    last_s = [max(times) for times in zip(*arrived, strict=True)]
    late_ms = [(last - written) * 1000 for last, written in zip(last_s, written_s, strict=True)]
    return quantiles(late_ms, n=100)[98], share


def _frame(t: float) -> Frame:
    """Return a sample with as much data as a sample of the demo."""
    ap = ApSample(9.1, 0.1, 0.97, 0.1, 3)
    subflow = SubflowSample(4.5, 17, 41.2, 1, False, None, 0.12)
    return Frame(
        t,
        {"wifi1": ap, "lte1": ap},
        {"wifi": LinkSample(9.2, 0.4, 4, 0.0)},
        {f"ue{n}": UserSample(5.2) for n in range(1, 5)},
        {f"ue{n}-1/{k}": subflow for n in range(1, 5) for k in (1, 2)},
    )


if TYPE_CHECKING:
    from playwright.sync_api import Page, ViewportSize

WINDOW: ViewportSize = {"width": 1440, "height": 900}
MANY_LINES = "thirty_users"  # 30 users and 42 subflows at the same time
MEASURED_S = 60
LIMIT_S = 120  # for the first samples
SETTLED_MIN, ENDS_MIN = 10, 60
LIVE_HOUR = "testbed_wifi_lte"
REGULATES = "meter_throttling"  # two decisions every two seconds are events on the page
POINTS = """() => Math.max(0, ...[...document.querySelectorAll('.chart')].map(each =>
  each.card.traces[0]?.x.length ?? 0))"""
LINES = """() => [...document.querySelectorAll('.chart')].reduce((sum, each) =>
  sum + each.card.traces.filter(trace => trace.meta.key.length).length, 0)"""
RATE = """() => parseFloat(
  /redrawn ([\\d.]+)/.exec(document.getElementById('rate').textContent)?.[1] ?? '0')"""


@contextmanager
def _live(scenario: str, strategy: str, speed: int = 1) -> Iterator[Page]:
    """Start a run in the browser, and yield the run's web page when it shows ten samples.

    The run makes two samples per simulated second. Raises `LabError` after `LIMIT_S`.
    """
    compiler.wait()
    with (
        tempfile.TemporaryDirectory() as made,
        dashboard(Path(made, "runs")) as (url, _),
        browser() as opened,
    ):
        page = opened.new_page(viewport=WINDOW)
        page.goto(f"{url}/scenarios/{scenario}")
        page.select_option("#strategy", strategy)
        page.select_option("#speed", str(speed))
        page.fill("#duration", "86400")
        page.click("button[type=submit]")
        page.wait_for_url("**/runs/*")
        ends = time.monotonic() + LIMIT_S
        while page.evaluate(POINTS) < 10:
            if time.monotonic() > ends:
                raise LabError(f"bench {scenario}: its page shows no samples after {LIMIT_S} s")
            page.wait_for_timeout(500)
        yield page


def many_lines() -> tuple[float, float]:
    """Return the CPU share of the browser, and how often it redraws the charts of a run [1/s].

    The run goes on meanwhile, and the charts have at least 60 lines. The CPU share is a fraction of
    one processor, for all processes of the browser together.
    """
    with _live(MANY_LINES, "none") as page:
        lines = page.evaluate(LINES)
        if lines < 60:
            raise LabError(f"bench {MANY_LINES}: the page has only {lines} lines")
        page.wait_for_timeout(10_000)
        before, began = _processor_s(page), time.monotonic()
        rates = []
        while time.monotonic() < began + MEASURED_S:
            page.wait_for_timeout(5000)
            rates.append(page.evaluate(RATE))
        share = (_processor_s(page) - before) / (time.monotonic() - began)
    return share, sum(rates) / len(rates)


def _processor_s(page: Page) -> float:
    """Return the CPU time [s] that all processes of the browser have used."""
    opened = page.context.browser
    assert opened is not None
    session = opened.new_browser_cdp_session()
    found = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return float(sum(each["cpuTime"] for each in found))


def hour(
    minutes: int = ENDS_MIN, settled_min: int = SETTLED_MIN, speed: int = 1
) -> tuple[float, float, float]:
    """Keep the page of a running run open for `minutes`, and return by how much it has grown.

    The three numbers are the growth of the JavaScript heap, of the DOM nodes and of the event
    listeners, from minute `settled_min` to the last minute. A growth of 0.1 means 10 %.
    """
    with _live(LIVE_HOUR, REGULATES, speed) as page:
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        began, settled = time.monotonic(), (1.0, 1.0, 1.0)
        for minute in range(1, minutes + 1):
            while time.monotonic() < began + 60 * minute:
                page.wait_for_timeout(1000)
            sizes = _sizes(session)
            text = f"minute {minute}: heap {sizes[0] / 1e6:.2f} MB, {sizes[1]:.0f} nodes"
            print(f"{text}, {sizes[2]:.0f} listeners", file=sys.stderr, flush=True)
            if minute == settled_min:
                settled = sizes
    heap, nodes, listeners = (last / first - 1 for last, first in zip(sizes, settled, strict=True))
    return heap, nodes, listeners


def _sizes(session: Any) -> tuple[float, float, float]:
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    found = {
        each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]
    }
    return found["JSHeapUsedSize"], found["Nodes"], found["JSEventListeners"]
