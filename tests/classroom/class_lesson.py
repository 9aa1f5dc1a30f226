"""Students who work on the small worksheet over HTTP, each in a manner of its own.

A manner is a function of a `Student`. `POINTS` has the points that it must get.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
import traceback
from http.cookies import SimpleCookie
from urllib.parse import urlsplit

POINTS_OF = 8
PATIENCE_S = 240


class Refused(Exception):
    """Raised for an HTTP status of 400 or more."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status


class Student:
    """A student's browser: cookies, and a connection for each request."""

    def __init__(self, address, code, names, pin="", think_s=0.0, worksheet="small"):
        self.host, self.code = urlsplit(address).netloc, code
        self.names, self.pin, self.think_s = names, pin, think_s
        self.sheet_path = f"/api/class/worksheets/{worksheet}"
        self.cookies = {}

    def ask(self, path, body=None, method=None):
        time.sleep(self.think_s)
        connection = http.client.HTTPConnection(self.host, timeout=PATIENCE_S)
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        data = None if body is None else json.dumps(body)
        if data is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, data, headers)
            answer = connection.getresponse()
            text = answer.read()
            for line in answer.headers.get_all("Set-Cookie") or ():
                self.cookies |= {key: each.value for key, each in SimpleCookie(line).items()}
        finally:
            connection.close()
        found = json.loads(text) if text else None
        if answer.status >= 400:
            raise Refused(answer.status, found["error"])
        return found

    def refused(self, path, body=None):
        """Status with which a request is refused; it must be refused."""
        try:
            self.ask(path, body)
        except Refused as refused:
            return refused.status
        raise AssertionError(f"{path} was not refused")

    def join(self):
        people = [{"name": name, "pin": self.pin} for name in self.names]
        self.seat = self.ask("/api/class/join", {"code": self.code, "people": people})["seat"]

    def come_back(self):
        """Use the seat from another browser."""
        self.cookies = {}
        body = {"code": self.code, "name": self.names[0], "pin": self.pin}
        assert self.ask("/api/class/return", body)["seat"] == self.seat

    def do(self, path, body=None):
        return self.ask(f"{self.sheet_path}/{path}", body or {})

    def answer(self, step, value):
        found = self.do(f"answers/{step}", {"value": value})
        assert found["saved"]
        return found["step"]

    def sheet(self):
        return self.ask(self.sheet_path)

    def step(self, name):
        return next(each for each in self.sheet()["steps"] if each.get("id") == name)

    def run(self, step="both", chosen=None):
        """Make a run, wait for its end, and return its ID."""
        made = self.do(f"runs/{step}", {"chosen": chosen or {}})["run"]["id"]
        return self.ended(made, step)

    def ended(self, run, step="both"):
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends:
            (found,) = [each for each in self.step(step)["runs"] if each["id"] == run]
            if found["status"] not in ("waiting", "running"):
                assert found["status"] == "complete", found
                return run
            time.sleep(0.1)
        raise AssertionError(f"{self.names}: run {run} did not end")

    def measured(self, run):
        """Rate on the page of the run, in Mb/s."""
        return self.ask(f"/api/class/runs/{run}")["throughput_mbps"]

    # Parts of a lesson

    def begin(self):
        self.join()
        self.do("open")
        self.answer("guess", 12)

    def finish(self, run):
        """Answer all that is left, rightly."""
        checked = self.do("checks/enough")["step"]
        assert checked["state"] == "passed", checked
        assert self.answer("cause", "two")["state"] == "passed"
        assert self.answer("rate", self.measured(run) + 4321)["state"] == "passed"
        assert self.answer("words", f"In the words of {self.names[0]}")["state"] == "saved"


def straight(student):
    """Do everything at once and rightly."""
    student.begin()
    student.finish(student.run())


def mended(student):
    """Be wrong twice, read the hint, and be right."""
    student.begin()
    run = student.run()
    for value in ("one", "three"):
        assert student.answer("cause", value)["state"] == "failed"
    assert student.step("cause")["hint"] == "the-hint-of-the-question"
    student.finish(run)


def wrong(student):
    """Guess until the forced wait begins, and give up that question."""
    student.begin()
    run = student.run()
    for value in ("one", "three", "one"):
        student.answer("cause", value)
    assert student.refused("/api/class/worksheets/small/answers/cause", {"value": "two"}) == 429
    assert student.do("checks/enough")["step"]["state"] == "passed"
    student.answer("rate", student.measured(run) + 4321)


def leaves(student):
    """Leave in the middle, and come back from another browser."""
    student.begin()
    run = student.run()
    student.do("checks/enough")
    student.come_back()
    assert student.step("enough")["state"] == "passed"
    assert student.answer("cause", "two")["state"] == "passed"
    student.answer("rate", student.measured(run) + 4321)
    student.answer("words", "Back again.")


def two_tabs(student):
    """Answer in two tabs at the same moment; the student's page then shows one of the answers."""
    student.begin()
    run = student.run()

    def send(value):
        other = Student(f"http://{student.host}", student.code, student.names)
        other.cookies = dict(student.cookies)
        other.answer("words", value)

    tabs = [threading.Thread(target=send, args=(f"tab {n}",)) for n in (1, 2)]
    for each in tabs:
        each.start()
    for each in tabs:
        each.join()
    assert student.step("words")["answer"] in ("tab 1", "tab 2")
    student.finish(run)


def phone(student):
    """Lose the connection while the page follows the class, and send an answer twice."""
    student.begin()
    run = student.run()
    for _ in range(3):
        stream = http.client.HTTPConnection(student.host, timeout=PATIENCE_S)
        cookies = "; ".join(f"{name}={value}" for name, value in student.cookies.items())
        stream.request("GET", "/api/class/stream", headers={"Cookie": cookies})
        assert (
            stream.getresponse().readline().startswith((b"event", b"id", b"retry", b":", b"data"))
        )
        stream.close()
    student.finish(run)
    path = "/api/class/worksheets/small/answers/cause"
    assert student.refused(path, {"value": "two"}) == 409  # it is passed, and stays so


def never_predicts(student):
    """Skip the prediction: no run, so nothing can be measured."""
    student.join()
    student.do("open")
    assert student.refused("/api/class/worksheets/small/runs/both", {"chosen": {}}) == 409
    assert student.refused("/api/class/worksheets/small/answers/rate", {"value": 1}) == 409
    assert "make it first" in student.do("checks/enough")["step"]["problem"]
    assert student.answer("cause", "two")["state"] == "passed"


def greedy(student):
    """Start as many runs as possible, and try to read what belongs to others."""
    student.begin()
    made, statuses = [], set()
    for _ in range(6):
        try:
            made.append(student.do("runs/both", {"chosen": {}})["run"]["id"])
        except Refused as refused:
            statuses.add(refused.status)
    assert statuses <= {429}
    others = f"s{int(student.seat[1:]) % 5 + 1}" if student.seat != "s1" else "s2"
    assert student.refused(f"/api/class/runs/{others}-small-both-1") == 404
    assert student.refused("/api/instructor/class") == 403
    for run in made:
        student.ended(run)
    student.finish(made[-1])


def stops_early(student):
    """Predict, and do nothing else."""
    student.begin()


POINTS = {  # without the text, which a person grades
    straight: 5,
    mended: 3,  # two wrong choices took 2
    wrong: 3,
    leaves: 5,
    two_tabs: 5,
    phone: 5,
    never_predicts: 2,
    greedy: 5,
    stops_early: 1,
}
TEXTS = (straight, mended, leaves, two_tabs, phone, greedy)  # these write the text


def hold(address, code, people):
    """Let all students work at the same time.

    `people` has pairs (student, manner). Return one line for each student that could not finish.
    """
    faults = []

    def work(student, manner):
        try:
            manner(student)
        except (AssertionError, Refused, OSError, http.client.HTTPException, KeyError) as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__} {error} in line {where.lineno}: {where.line}"
            faults.append(f"{student.names} {manner.__name__}: {what}")

    threads = [threading.Thread(target=work, args=each) for each in people]
    for each in threads:
        each.start()
    for each in threads:
        each.join(2 * PATIENCE_S)
    faults += [f"{each.name} is stuck" for each in threads if each.is_alive()]
    return faults


def room_of(address, code, count, think_s=0.0):
    """`count` pairs (student, manner), with all manners in turn. Every sixth student is a pair of
    people."""
    manners = list(POINTS)
    return [
        (
            Student(
                address,
                code,
                (f"Student {n}", f"Partner {n}") if n % 6 == 5 else (f"Student {n}",),
                pin=f"{4711 + n}",
                think_s=think_s * (n % 4),
            ),
            manners[n % len(manners)],
        )
        for n in range(count)
    ]
