"""Measure the server of a class of 30 students. Each student watches a run in real time.

The students are HTTP clients. In one of the two measurements, ten of them are real browsers.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Any

from bench.browser import browsers
from lab.errors import LabError
from lab.run.manifest import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request, Response, ViewportSize

BROWSERS, CLIENTS = 10, 20
WINDOW: ViewportSize = {"width": 1280, "height": 900}
PATIENCE_MS = 120_000.0
NOT_YET = 409  # HTTP status for a run that has no samples yet
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
    """A student with a real browser.

    `beside` is an HTTP client that has joined as the same student. It reads the samples of the
    student's run, which tell when the run started. `lost` counts failed requests.
    """

    page: Page
    beside: Seat
    answer_ms: list[float] = field(default_factory=list)
    lost: int = 0

    def begin(self, code: str) -> None:
        """Join the class, open the worksheet, start the run, and wait for its charts.

        `code` is the code of the class. Raises `LabError` if the browser does not succeed.
        """
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
        """Submit an answer in the browser, and append the time until it is saved to `answer_ms`."""
        from playwright.sync_api import Error

        try:
            self.answer_ms.append(self.page.evaluate(ANSWER, f"{time.time()}"))
        except Error:
            self.lost += 1

    def late_ms(self, first: float, last: float) -> list[float]:
        """Return how late the browser drew the charts with each sample [ms].

        Only draws between `first` and `last` count. Both are times of `time.perf_counter` [s].
        """
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
    """Measure a class of ten real browsers and twenty HTTP clients. Return, in this order:

    - the 99th percentile of how late a browser draws a chart with a new sample [ms]
    - the 99th percentile of the time from a click until the browser shows "Saved." [ms]
    - the number of failed requests of all 30 students
    - the largest memory (PSS) of the server and all runs [MiB]
    - the time until all runs had begun and all ten browsers drew their charts [s]
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
    """Let all students answer for `MEASURED_S`, each about once in `EACH_ANSWERS_S`.

    The HTTP clients answer in a separate thread. Only their answers are in the result.
    """
    found: list[Answered] = []
    pause_s = EACH_ANSWERS_S / CLIENTS

    def work() -> None:
        found.append(answered(pid, clients, pause_s))

    crowd = threading.Thread(target=work)
    crowd.start()
    while crowd.is_alive():
        for student in students:
            student.answer()
            student.page.wait_for_timeout(1000 * EACH_ANSWERS_S / BROWSERS)
    return found[0]


SEATS, RUN_S = 30, 900.0
ALL_RUN_WITHIN_S, MEASURED_S = 400.0, 40.0
EACH_ANSWERS_S = 5.0
SHEET = f"""
title: A run and a text
goals: [Measure the server.]
minutes: 60
steps:
  - run: {{id: demo, scenario: testbed_wifi_lte, strategy: meter_throttling, duration_s: {RUN_S}}}
  - question: {{id: words, ask: What do you see, text: true}}
solution: {{answers: {{words: it moves}}}}
wrong: [{{name: nothing is said, answers: {{words: nothing}}, fails: [words]}}]
"""
SERVER = """
import sys, threading
from pathlib import Path
from dashboard.classroom.app import create_app
from dashboard.classroom.serve import LOOPBACK, THREADS, listen
from dashboard.base.serving import server
from lab.classroom import folder
from lab.classroom.room import Room
place = Path(sys.argv[1])
room = Room(folder.make("bench", [str(place / "demo.yaml")], classes=place))
app = create_app(room)
sock = listen(LOOPBACK, None)
threading.Thread(target=server(app, sock, THREADS).run, daemon=True).start()
app.extensions["conductor"].start()
print(sock.getsockname()[1], room.folder.settings.code, flush=True)
sys.stdin.read()
app.extensions["conductor"].stop()
"""


@dataclass
class Seat:
    """A student simulated by an HTTP client.

    - `arrived`: a pair for each sample of the student's run: its time in the run [s], and the time
      of `time.perf_counter` when it arrived [s]
    - `asked_s`: time until the response of each request of `post`
    - `lost`: number of failed requests
    """

    port: int
    name: str
    cookie: str = ""
    run: str = ""
    arrived: list[tuple[float, float]] = field(default_factory=list)
    lost: int = 0
    asked_s: list[float] = field(default_factory=list)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Send a request and return the JSON in the response. A failed request counts as lost.

        If there is no response, the result is {}.
        """
        headers = {"Content-Type": "application/json", "Cookie": self.cookie}
        began = time.perf_counter()
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            connection.request("POST", f"/api/class/{path}", json.dumps(body), headers)
            answer = connection.getresponse()
            found = json.loads(answer.read())
            connection.close()
        except (OSError, http.client.HTTPException, ValueError):
            self.lost += 1
            return {}
        self.lost += answer.status >= 400
        self.asked_s.append(time.perf_counter() - began)
        self.cookie = self.cookie or (answer.getheader("Set-Cookie") or "").partition(";")[0]
        return found

    def begin(self, code: str) -> None:
        """Join the class, open the worksheet, start the run, and read two event streams.

        `code` is the code of the class.
        """
        self.post("join", {"code": code, "people": [{"name": self.name}]})
        self.post("worksheets/demo/open", {})
        self.run = self.post("worksheets/demo/runs/demo", {})["run"]["id"]
        self.follow("stream")
        self.follow(f"runs/{self.run}/stream")

    def start(self) -> float:
        """Return when the run began, as a time of `time.perf_counter` [s].

        This time is computed from the sample that arrived with the smallest delay.
        """
        return min(at - t for t, at in list(self.arrived))

    def late_ms(self, first: float, last: float) -> list[float]:
        """Return how late each sample arrived [ms].

        Only samples that arrived between `first` and `last` count. Both are times of
        `time.perf_counter` [s].
        """
        start = self.start()
        return [1000 * (at - t - start) for t, at in list(self.arrived) if first <= at <= last]

    def follow(self, path: str) -> None:
        """Read an event stream in a separate thread until the server ends."""
        threading.Thread(target=self._follow, args=(path,), daemon=True).start()

    def _follow(self, path: str) -> None:
        """Read an event stream and append its samples to `arrived`.

        If the connection ends, it is opened again after one second, as a browser does.
        """
        headers = {"Cookie": self.cookie}
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            try:
                connection.request("GET", f"/api/class/{path}", headers=headers)
                answer = connection.getresponse()
                for line in answer if answer.status == 200 else ():
                    if line.startswith(b'data: {"t":'):
                        t = float(line[11:].partition(b",")[0])
                        self.arrived.append((t, time.perf_counter()))
            except (OSError, http.client.HTTPException):
                return  # the server has ended
            connection.close()
            time.sleep(1.0)


@dataclass(frozen=True)
class ClassServer:
    port: int
    code: str
    pid: int


@contextmanager
def class_server() -> Iterator[ClassServer]:
    """Start the server of a class in a new process. At the end, stop it and all its runs."""
    with tempfile.TemporaryDirectory() as made:
        (Path(made) / "demo.yaml").write_text(SHEET, encoding="utf-8")
        argv = [sys.executable, "-c", SERVER, made]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        process = subprocess.Popen(argv, cwd=ROOT, **pipes)  # type: ignore[call-overload]
        try:
            port, code = process.stdout.readline().split()
            yield ClassServer(int(port), code.decode(), process.pid)
        finally:
            process.communicate()


def class_of_30() -> tuple[float, float, float, float, float]:
    """Measure a class of 30 HTTP clients. Return, in this order:

    - the 99th percentile of how late a sample arrives at a client [ms]
    - the 99th percentile of the time until an answer is saved [ms]
    - the number of failed requests
    - the largest memory (PSS) of the server and all runs [MiB]
    - the time until all runs had begun [s]

    The sample for time t of a run is due at the start of the run plus t. The start is computed from
    the sample with the smallest delay.
    """
    with class_server() as server:
        seats = [Seat(server.port, f"student {n}") for n in range(SEATS)]
        began = time.perf_counter()
        for seat in seats:
            seat.begin(server.code)
        wait_for_runs(seats, time.sleep)
        all_run_s = time.perf_counter() - began
        found = answered(server.pid, seats, EACH_ANSWERS_S / SEATS)
        late_ms = [each for seat in seats for each in seat.late_ms(found.first, found.last)]
        lost = float(sum(seat.lost for seat in seats))
    return p99(late_ms), p99(found.asked_ms), lost, found.pss_mib, all_run_s


def wait_for_runs(seats: Sequence[Seat], wait_s: Callable[[float], object]) -> None:
    """Wait until every student has received a sample. `wait_s` sleeps for a number of seconds.

    Raises `LabError` after `ALL_RUN_WITHIN_S`.
    """
    began = time.perf_counter()
    while not all(seat.arrived for seat in seats):
        if time.perf_counter() - began > ALL_RUN_WITHIN_S:
            waiting = sum(not seat.arrived for seat in seats)
            raise LabError(f"bench: after {ALL_RUN_WITHIN_S:g} s, {waiting} runs still wait")
        wait_s(0.2)


@dataclass
class Answered:
    """What was measured while students sent answers, between the times `first` and `last`.

    `asked_ms` has the time that each answer took. `pss_mib` is the largest memory (PSS) of the
    server and all runs.
    """

    first: float
    last: float
    asked_ms: list[float]
    pss_mib: float


def answered(pid: int, seats: Sequence[Seat], pause_s: float) -> Answered:
    """Let students answer in turn for `MEASURED_S`, with a pause of `pause_s` after each answer.

    `pid` is the process of the server. Its memory is measured together with that of its children.
    """
    first, pss = time.perf_counter(), 0.0
    before = [len(seat.asked_s) for seat in seats]
    while time.perf_counter() - first < MEASURED_S:
        for seat in seats:
            seat.post("worksheets/demo/answers/words", {"value": f"{time.time()}"})
            time.sleep(pause_s)
        pss = max(pss, sum(map(_pss_mib, _family(pid))))
    asked_s = [each for n, seat in zip(before, seats, strict=True) for each in seat.asked_s[n:]]
    return Answered(first, time.perf_counter(), [1000 * each for each in asked_s], pss)


def p99(values: Sequence[float]) -> float:
    """Return the 99th percentile of at least two values."""
    return quantiles(values, n=100)[98]


def _family(pid: int) -> list[int]:
    """Return a process and all its descendants, or [] if the process has ended."""
    path = Path(f"/proc/{pid}/task")
    try:
        texts = [(each / "children").read_text() for each in path.iterdir()]
    except OSError:
        return []
    children = [int(each) for text in texts for each in text.split()]
    return [pid, *(each for child in children for each in _family(child))]


def _pss_mib(pid: int) -> float:
    """Return the PSS of a process [MiB], or 0 if the process has ended.

    In the PSS, shared memory is divided among the processes that share it.
    """
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0.0
    pss = next((line for line in text.splitlines() if line.startswith("Pss:")), "Pss: 0 kB")
    return int(pss.split()[1]) / 1024
