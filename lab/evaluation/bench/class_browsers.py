"""Measure a class of 30 students of whom ten have real browsers, and twenty are HTTP clients."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lab.errors import LabError
from lab.evaluation.bench import classes
from lab.evaluation.bench.browser import browsers
from lab.evaluation.bench.classes import Answered, Seat, class_server, p99, wait_for_runs

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request, Response, ViewportSize

BROWSERS, CLIENTS = 10, 20
WINDOW: ViewportSize = {"width": 1280, "height": 900}
PATIENCE_MS = 120_000.0
NOT_YET = 409  # the status of a run that has measured nothing yet
WATCH = """() => {
  window.drawn = [];
  const now = () => (performance.timeOrigin + performance.now()) / 1000;
  const clock = document.querySelector("#demo .run-head .meta");
  let last = 0;
  const look = () => {
    const t = parseFloat(/: ([0-9.]+) of/.exec(clock.textContent)?.[1] ?? "0");
    if (!(t > last)) return;
    last = t;
    requestAnimationFrame(() => window.drawn.push([t, now()]));
  };
  new MutationObserver(look).observe(document.querySelector("#demo .charts"),
    {subtree: true, childList: true, attributes: true, attributeFilter: ["d"]});
}"""
ANSWER = """(text) => new Promise((done, failed) => {
  const field = document.querySelector("#words textarea");
  const saved = document.querySelector("#words .saved");
  field.value = text;
  field.dispatchEvent(new Event("input", {bubbles: true}));
  const late = setTimeout(() => failed(new Error(saved.textContent)), 30000);
  const began = performance.now();
  new MutationObserver((_, watching) => {
    if (saved.textContent !== "Saved.") return;
    watching.disconnect();
    clearTimeout(late);
    requestAnimationFrame(() => done(performance.now() - began));
  }).observe(saved, {childList: true, characterData: true, subtree: true});
  document.querySelector("#words button.primary").click();
})"""


@dataclass
class Student:
    """Hold a student's browser. `beside` is an HTTP client that follows the same run: from it comes
    the time at which the run began. `lost` counts requests that were not answered well."""

    page: Page
    beside: Seat
    answer_ms: list[float] = field(default_factory=list)
    lost: int = 0

    def begin(self, code: str) -> None:
        """Join, open the worksheet, and start the run, as a student does."""
        from playwright.sync_api import Error

        page, address = self.page, f"http://127.0.0.1:{self.beside.port}"
        page.set_default_timeout(PATIENCE_MS)
        page.on("response", self._answered)
        page.on("requestfailed", self._failed)
        try:
            page.goto(f"{address}/?code={code}")
            page.fill("#name-1", self.beside.name)
            page.click("#join button[type=submit]")
            page.wait_for_url("**/seat")
            page.goto(f"{address}/seat/demo")
            page.click("#open")
            page.click("#demo button.primary")
            page.wait_for_selector("#demo .charts .main-svg")
        except Error as error:
            raise LabError(f"bench: {self.beside.name} cannot begin: {error.message}") from error
        (cookie,) = page.context.cookies()
        self.beside.cookie = f"{cookie['name']}={cookie['value']}"
        self.beside.run = self._run()
        self.beside.follow(f"runs/{self.beside.run}/stream")
        page.evaluate(WATCH)

    def answer(self) -> None:
        """Write a text, press the button, and note how long it takes until the page says that it is
        saved."""
        from playwright.sync_api import Error

        try:
            self.answer_ms.append(self.page.evaluate(ANSWER, f"{time.time()}"))
        except Error:
            self.lost += 1

    def late_ms(self, first: float, last: float) -> list[float]:
        """Return by how many ms the samples that the charts showed from `first` to `last` were
        late. All times are of the performance counter."""
        offset, start = time.time() - time.perf_counter(), self.beside.start()
        shown = [(t, at - offset) for t, at in self.page.evaluate("() => window.drawn")]
        return [1000 * (at - t - start) for t, at in shown if first <= at <= last]

    def _run(self) -> str:
        sheet: Any = self.page.request.get(
            f"http://127.0.0.1:{self.beside.port}/api/class/worksheets/demo"
        ).json()
        return str(sheet["steps"][0]["runs"][-1]["id"])

    def _answered(self, response: Response) -> None:
        self.lost += response.status >= 400 and response.status != NOT_YET

    def _failed(self, request: Request) -> None:
        self.lost += "ERR_ABORTED" not in str(request.failure)  # a page aborts when it is left


def class_with_browsers() -> tuple[float, float, float, float, float]:
    """Return the figures of a class of which ten are real browsers: the 99th percentile of how late
    a chart in a browser is drawn with a sample, in ms; the same from the press of a button until a
    page says that an answer is saved; the number of requests that were lost, also by the HTTP
    clients; the largest memory (PSS) of the server with all runs, in MiB; and the s until all runs
    were going on and all ten browsers drew theirs.
    """
    with class_server() as server, browsers(BROWSERS) as opened:
        clients = [Seat(server.port, f"client {n}") for n in range(CLIENTS)]
        began = time.perf_counter()
        for client in clients:
            client.begin(server.code)
        students = [_student(each, server.port, n) for n, each in enumerate(opened)]
        for student in students:
            student.begin(server.code)
        beside = [student.beside for student in students]
        wait_for_runs([*clients, *beside], lambda s: students[0].page.wait_for_timeout(1000 * s))
        all_run_s = time.perf_counter() - began
        found = _all_answer(server.pid, clients, students)
        late_ms = [ms for each in students for ms in each.late_ms(found.first, found.last)]
        lost = sum(each.lost for each in clients) + sum(each.lost for each in students)
    asked_ms = [ms for each in students for ms in each.answer_ms]
    return p99(late_ms), p99(asked_ms), float(lost), found.pss_mib, all_run_s


def _student(browser: Browser, port: int, n: int) -> Student:
    return Student(browser.new_page(viewport=WINDOW), Seat(port, f"browser {n}"))


def _all_answer(pid: int, clients: list[Seat], students: list[Student]) -> Answered:
    """Let everybody answer, each once in `EACH_ANSWERS_S`, for `MEASURED_S`."""
    found: list[Answered] = []
    pause_s = classes.EACH_ANSWERS_S / CLIENTS

    def work() -> None:
        found.append(classes.answered(pid, clients, pause_s))

    crowd = threading.Thread(target=work)
    crowd.start()
    while crowd.is_alive():
        for student in students:
            student.answer()
            student.page.wait_for_timeout(1000 * classes.EACH_ANSWERS_S / BROWSERS)
    return found[0]
