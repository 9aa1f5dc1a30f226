"""Take the pictures of the page and of a class in this folder. It needs Chromium and playwright.

    PYTHONPATH=. .venv/bin/python docs/images/make.py     # in the lab's folder, in four minutes

The class is kept nowhere: it is wiped at the end. A run of the demo stays in data/runs.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from bench.browser import browser
from lab.isolation import python

HERE = Path(__file__).parent
CLASS = "pictures"
SHEET = "throttling"
GUESSES = (12, 8, 20, 14, 10, 15, 9, 30, 11, 13)
CAUSES = ("air time", "space in the queue of the LTE base station")
TIER_2 = "the subflow of UE1", "the WiFi subflow of UE3"
TEXT = (
    "A slow second path takes air time from all others. It brings you little, and costs them a lot."
)
PATIENCE_MS = 120_000


@contextlib.contextmanager
def started(*words: str) -> Iterator[str]:
    """Start a command of the lab; yield what it prints until its last link."""
    argv = python("-m", "lab", *words)
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    said = ""
    while "Ctrl-C" not in said:
        said += process.stdout.readline()
    try:
        yield said
    finally:
        process.terminate()
        process.communicate()


def opened(chromium: Browser, width: int, height: int) -> Page:
    page = chromium.new_page(viewport={"width": width, "height": height})
    page.set_default_timeout(PATIENCE_MS)
    return page


def found(pattern: str, text: str) -> str:
    matched = re.search(pattern, text)
    assert matched, text
    return matched[1]


def reached_s(page: Page) -> float:
    time_s = page.inner_text("#clock").partition(" ")[0]
    return float(time_s or 0)


def live(chromium: Browser) -> None:
    """The page of the demo, in which the first suggestion was pressed."""
    with started("up", "--no-browser", "--no-demo") as said:
        page = opened(chromium, 1440, 900)
        page.goto(found(r"(http\S+)", said))
        address = page.url.partition("?")[0].rstrip("/")
        asked = {"scenario": "testbed_wifi_lte", "duration_s": 600, "speed": 2}
        run = page.request.post(f"{address}/api/runs", data=asked).json()
        page.goto(f"{address}/runs/{run['id']}")
        while reached_s(page) < 29:
            page.wait_for_timeout(200)
        page.click("#try .press >> nth=0")
        while reached_s(page) < 50:
            page.wait_for_timeout(200)
        page.screenshot(path=HERE / "live.png")
        page.click("#stop")
        page.wait_for_timeout(2000)
        page.close()


class Seat:
    """A seat of the class. Its requests are those of its page."""

    def __init__(self, page: Page, address: str, code: str, name: str) -> None:
        self.page, self.address = page, f"{address}/api/class"
        self.post("join", code=code, people=[{"name": name}])
        self.post(f"worksheets/{SHEET}/open")

    def post(self, path: str, **body: Any) -> Any:
        answer = self.page.request.post(f"{self.address}/{path}", data=body)
        assert answer.ok, answer.text()
        return answer.json()

    def answer(self, step: str, value: Any) -> None:
        self.post(f"worksheets/{SHEET}/answers/{step}", value=value)

    def run(self, step: str) -> str:
        made = self.post(f"worksheets/{SHEET}/runs/{step}", chosen={})
        return str(made["run"]["id"])

    def state(self, run: str) -> dict[str, Any]:
        return dict(self.page.request.get(f"{self.address}/runs/{run}").json()["state"])


def classroom(chromium: Browser) -> None:
    """The room with eleven seats, and a seat that has drawn a prediction and made the run."""
    words = ("class", "--name", CLASS, "--worksheet", SHEET, "--speed", "4")
    with started(*words) as said:
        code = found(r"[?]code=(\w+)", said)
        address = found(r"(http\S+)/[?]code", said)
        student = opened(chromium, 1180, 760)
        seat = Seat(student, address, code, "table 1")
        others = [
            Seat(opened(chromium, 800, 600), address, code, f"table {n}") for n in range(2, 12)
        ]
        for n, each in enumerate(others):
            work(each, n)
        room = opened(chromium, 1360, 740)
        room.goto(found(r"(http\S+/instructor\S+)", said))
        room.wait_for_timeout(6000)
        room.screenshot(path=HERE / "class_room.png")
        prediction(seat)
    subprocess.run(python("-m", "lab", "class", "wipe", CLASS, "--yes"), check=True)


def curve(n: int) -> list[list[float]]:
    """A prediction of Tier 2 before and after the change, another one for each seat."""
    before, after = 3 + n % 4 * 2, 1 + n % 3 * 1.5
    return [[t, before if t <= 12 else after if t <= 21 else after / 3] for t in range(0, 61, 3)]


def work(seat: Seat, n: int) -> None:
    """Let a seat come as far as its number."""
    if n > 0:
        seat.answer("ue1_guess", GUESSES[n])
    if n > 1:
        seat.answer("cause", CAUSES[n % 3 == 1])
    if n > 2:
        seat.answer("which_tier2", TIER_2[n != 6])
        seat.answer("tier2_guess", curve(n))
    if n > 5:
        seat.answer("explain", TEXT)
    if n > 5:
        seat.run("single")


def prediction(seat: Seat) -> None:
    seat.answer("ue1_guess", 12)
    seat.answer("tier2_guess", curve(0))
    run = seat.run("throttled")
    while (seat.state(run).get("t") or 0) < 12:
        time.sleep(0.2)
    seat.post(f"runs/{run}/flips", target="strategy", value="meter_throttling")
    while not seat.state(run)["over"]:
        time.sleep(0.5)
    page = seat.page
    page.goto(f"{seat.address.removesuffix('/api/class')}/seat/{SHEET}")
    page.locator("#throttled").evaluate("(each) => each.scrollIntoView()")
    page.locator("#throttled .plot .main-svg").first.wait_for()
    page.locator("#throttled").evaluate("(each) => each.scrollIntoView()")
    page.wait_for_timeout(4000)
    page.screenshot(path=HERE / "class_prediction.png")


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["live", "classroom"]
    with browser() as chromium:
        for each in wanted:
            globals()[each](chromium)
