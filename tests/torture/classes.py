"""The server of a class is killed: no answer that was shown as saved may be lost.

The server is a copy of this process that listens on a port; students are threads that speak HTTP.
Runs are copies of a finished run.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import socket
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from classroom.class_fakes import SHEET, command, template

from dashboard.base.serving import server
from dashboard.classroom.app import create_app
from lab.classroom import folder, journal
from lab.classroom.room import Room
from torture.campaign import Campaign, Counts, Failed
from torture.kills import copy_of_this_process, kill_later

STUDENTS = 5
KILLS_PER_CLASS = 40
SETTLES_WITHIN_S = 60.0


@dataclass
class Student:
    """Answers and makes runs until the server is gone.

    `saved` has the answers that the server has reported as saved, `runs` the runs that it has
    accepted. `sent` counts requests, and `problem` is an answer that the server must never give.
    """

    name: str
    code: str
    cookie: str = ""
    seat: str = ""
    sent: int = 0
    problem: str = ""
    saved: list[tuple[str, Any]] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)

    def work(self, port: int, seed: str) -> None:
        rng = random.Random(seed)
        try:
            while True:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                with closing(connection):
                    self._one(connection, rng)
        except (OSError, http.client.HTTPException):
            return  # the server was killed

    def _one(self, connection: http.client.HTTPConnection, rng: random.Random) -> None:
        if not self.cookie:
            body = {"code": self.code, "people": [{"name": self.name}]}
            status, found, cookie = self._post(connection, "join", body)
            if status == 201:
                self.seat, self.cookie = found["seat"], cookie
            elif status == 409:  # it was saved but the answer was lost, so take another name
                self.name += "x"
            return
        step, value = rng.choice(
            [("guess", rng.randint(0, 40)), ("cause", "two"), *[("words", f"{self.sent}")] * 3]
        )
        match rng.randrange(8):
            case 0:
                self._post(connection, "worksheets/small/open", {})
            case 1:
                status, found, _ = self._post(connection, "worksheets/small/runs/both", {})
                self.runs += [found["run"]["id"]] if status == 202 else []
            case 2:
                self._post(connection, "worksheets/small/checks/enough", {})
            case _:
                body = {"value": value}
                path = f"worksheets/small/answers/{step}"
                status, found, _ = self._post(connection, path, body)
                self.saved += [(step, value)] if status == 200 and found["saved"] else []

    def _post(
        self, connection: http.client.HTTPConnection, path: str, body: dict[str, Any]
    ) -> tuple[int, Any, str]:
        self.sent += 1
        headers = {"Content-Type": "application/json", "Cookie": self.cookie}
        connection.request("POST", f"/api/class/{path}", json.dumps(body), headers)
        with connection.getresponse() as answer:
            found = json.loads(answer.read())
        if answer.status >= 500:
            self.problem = f"{path}: status {answer.status}: {found}"
        return answer.status, found, (answer.getheader("Set-Cookie") or "").partition(";")[0]


class Classes(Campaign):
    name = "classes"
    what = "kill -9 of the server of a class while students answer and make runs"
    hangs_after_s = 120.0

    def prepare(self) -> None:
        os.environ["FAKE_RUN"] = str(template(self.folder / "finished"))
        self.sheet = self.folder / "small.yaml"
        self.sheet.write_text(SHEET)
        self.kills = 0
        self._new_class()

    def trial(self, rng: random.Random) -> Counts:
        if self.kills >= KILLS_PER_CLASS:
            self._settle()
            self._new_class()
        self.kills += 1
        before = sum(each.sent for each in self.students)
        sock = socket.create_server(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        child = copy_of_this_process(lambda: self._serve(sock))
        sock.close()
        threads = [
            threading.Thread(target=each.work, args=(port, f"{rng.random()}"), daemon=True)
            for each in self.students
        ]
        for thread in threads:
            thread.start()
        kill_later(child, rng.uniform(0.05, 0.8))
        for thread in threads:
            thread.join()
        self._check()
        return Counts(sum(each.sent for each in self.students) - before, 1)

    def finish(self) -> None:
        if hasattr(self, "students"):
            self._settle()

    def _new_class(self) -> None:
        shutil.rmtree(self.folder / "classes", ignore_errors=True)
        self.found = folder.make("test", [str(self.sheet)], classes=self.folder / "classes")
        code = self.found.settings.code
        self.students = [Student(f"student {n}", code) for n in range(STUDENTS)]
        self.kills = 0

    def _app(self) -> Any:
        return create_app(Room(self.found), {"COMMAND": command()})

    def _serve(self, sock: socket.socket) -> None:
        app = self._app()
        app.extensions["conductor"].start()
        server(app, sock, 16).run()

    def _check(self) -> None:
        """Compare the journal with what the students were told."""
        events = journal.read(self.found.journal).events if self.found.journal.exists() else ()
        room = Room(self.found)
        room.close()
        for student in self.students:
            if student.problem:
                raise Failed(student.problem)
            seat = room.seat_of(student.cookie.partition("=")[2])
            if student.cookie and seat != student.seat:
                raise Failed(f"{student.name} has lost seat {student.seat}")
            written = [
                (each.step, each.value)
                for each in events
                if each.kind == "answer" and each.seat == student.seat
            ]
            if not is_within(student.saved, written):
                raise Failed(f"{student.name} has lost an answer: {student.saved} {written}")
            if lost := set(student.runs) - set(room.state.runs):
                raise Failed(f"{student.name} has lost the runs {lost}")

    def _settle(self) -> None:
        """Start the server again, and wait until it has ended all runs."""
        app = self._app()
        room, conductor = app.extensions["room"], app.extensions["conductor"]
        ends = time.monotonic() + SETTLES_WITHIN_S
        while left := [each.id for each in room.state.unfinished()]:
            if time.monotonic() > ends:
                raise Failed(f"runs never end: {left}")
            conductor.poll()
            time.sleep(0.02)
        conductor.stop()
        room.close()


def is_within(part: list[Any], whole: list[Any]) -> bool:
    """True if `whole` has all of `part` in the same order, perhaps with others between."""
    rest = iter(whole)
    return all(each in rest for each in part)


ALL = (Classes,)
