"""Measure a class of 30 students, each with a live page and a run at real-time pace."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

from lab.errors import LabError
from lab.run.manifest import ROOT

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
from dashboard.classroom import create_app
from dashboard.classroom.serve import LOOPBACK, THREADS, listen
from dashboard.serve import server
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
    """Hold one student's browser. `arrived` are the pairs (time in the run, time of arrival), both
    in s, of the samples of its run, and `lost` counts requests that were not answered well."""

    port: int
    name: str
    cookie: str = ""
    run: str = ""
    arrived: list[tuple[float, float]] = field(default_factory=list)
    lost: int = 0
    asked_s: list[float] = field(default_factory=list)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Send a request. Return its answer; count it as lost if it is an error or none."""
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
        """Join, open the worksheet, ask for a run, and open both streams of the page."""
        self.post("join", {"code": code, "people": [{"name": self.name}]})
        self.post("worksheets/demo/open", {})
        self.run = self.post("worksheets/demo/runs/demo", {})["run"]["id"]
        for path in ("stream", f"runs/{self.run}/stream"):
            threading.Thread(target=self._follow, args=(path,), daemon=True).start()

    def _follow(self, path: str) -> None:
        """Read a stream of the page, as a browser does: connect until the run has begun."""
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


def class_of_30() -> tuple[float, float, float, float, float]:
    """Return figures of a class: the 99th percentile of how late a page shows a sample, in ms; the
    same for answers to be saved; the number of requests that were lost; the largest memory (PSS) of
    the server with all runs, in MiB; and the s until all runs were going on.

    A sample for the time t of a run is due t after the start of the run. The start is taken from
    the sample that was least late.
    """
    with tempfile.TemporaryDirectory() as made:
        (Path(made) / "demo.yaml").write_text(SHEET, encoding="utf-8")
        argv = [sys.executable, "-c", SERVER, made]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        server = subprocess.Popen(argv, cwd=ROOT, **pipes)  # type: ignore[call-overload]
        try:
            port, code = server.stdout.readline().split()
            return _measured(int(port), code.decode(), server.pid)
        finally:
            server.communicate()


def _measured(port: int, code: str, pid: int) -> tuple[float, float, float, float, float]:
    seats = [Seat(port, f"student {n}") for n in range(SEATS)]
    began = time.perf_counter()
    for seat in seats:
        seat.begin(code)
    while not all(seat.arrived for seat in seats):
        if time.perf_counter() - began > ALL_RUN_WITHIN_S:
            waiting = sum(not seat.arrived for seat in seats)
            raise LabError(f"bench: after {ALL_RUN_WITHIN_S:g} s, {waiting} runs still wait")
        time.sleep(0.2)
    all_run_s = time.perf_counter() - began
    first, pss = time.perf_counter(), 0.0
    before = [len(seat.asked_s) for seat in seats]
    while time.perf_counter() - first < MEASURED_S:
        for seat in seats:
            seat.post("worksheets/demo/answers/words", {"value": f"{time.time()}"})
            time.sleep(EACH_ANSWERS_S / SEATS)
        pss = max(pss, sum(map(_pss_mib, _family(pid))))
    last = time.perf_counter()
    late_ms = [each for seat in seats for each in _late_ms(seat, first, last)]
    asked = [each for n, seat in zip(before, seats, strict=True) for each in seat.asked_s[n:]]
    return (
        quantiles(late_ms, n=100)[98],
        quantiles(asked, n=100)[98] * 1000,
        float(sum(seat.lost for seat in seats)),
        pss,
        all_run_s,
    )


def _late_ms(seat: Seat, first: float, last: float) -> list[float]:
    """Return by how many ms the samples that arrived between `first` and `last` were late."""
    arrived = list(seat.arrived)
    start = min(at - t for t, at in arrived)
    return [(at - t - start) * 1000 for t, at in arrived if first <= at <= last]


def _family(pid: int) -> list[int]:
    """Return a process and all that it has started."""
    path = Path(f"/proc/{pid}/task")
    try:
        texts = [(each / "children").read_text() for each in path.iterdir()]
    except OSError:
        return []
    children = [int(each) for text in texts for each in text.split()]
    return [pid, *(each for child in children for each in _family(child))]


def _pss_mib(pid: int) -> float:
    """Return the memory of a process in MiB; memory that several share counts in parts."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0.0
    pss = next((line for line in text.splitlines() if line.startswith("Pss:")), "Pss: 0 kB")
    return int(pss.split()[1]) / 1024
