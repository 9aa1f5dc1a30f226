"""Measure the page of a running run in a real browser: its processor time and its growth."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.engines.sim import compiler
from lab.errors import LabError
from lab.evaluation.bench.browser import browser
from lab.evaluation.bench.server import dashboard

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
    """Start a run of two samples per simulated second from the form, and open its page."""
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
    """Return the share of one processor that all processes of the browser use while a page of more
    than 60 lines is live, and how often per second the page paints them."""
    with _live(MANY_LINES, "none") as page:
        lines = page.evaluate(LINES)
        if lines < 60:
            raise LabError(f"bench {MANY_LINES}: the page has only {lines} lines")
        page.evaluate("document.getElementById('charts').scrollIntoView()")
        page.wait_for_timeout(10_000)
        before, began = _processor_s(page), time.monotonic()
        rates = []
        while time.monotonic() < began + MEASURED_S:
            page.wait_for_timeout(5000)
            rates.append(page.evaluate(RATE))
        share = (_processor_s(page) - before) / (time.monotonic() - began)
    return share, sum(rates) / len(rates)


def _processor_s(page: Page) -> float:
    """Return the CPU time in s of all processes of the browser."""
    opened = page.context.browser
    assert opened is not None
    session = opened.new_browser_cdp_session()
    found = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return float(sum(each["cpuTime"] for each in found))


def hour(
    minutes: int = ENDS_MIN, settled_min: int = SETTLED_MIN, speed: int = 1
) -> tuple[float, float, float]:
    """Keep a live page open for an hour. Return the growth of its JavaScript heap, its DOM nodes
    and its event listeners from the 10th to the last minute, as shares."""
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
