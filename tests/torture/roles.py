"""Students, an instructor, a projector and strangers send random requests to a class.

Nobody may read or change what belongs to others, nobody may lock others out, and the journal always
says what the class says.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from classroom.class_fakes import SHEET, Clock, command, template

from dashboard.classroom.app import create_app
from dashboard.classroom.streams import STREAMS_PER_SEAT
from lab.classroom import folder, grades
from lab.classroom.journal import Answered, Checked, Event
from lab.classroom.queue import Load
from lab.classroom.room import Room
from lab.run.reading import run_digest
from torture import inputs
from torture.campaign import Campaign, Counts, Failed

STUDENTS = 4
REQUESTS = 60  # of a trial
STEPS = ("guess", "both", "enough", "cause", "rate", "words", "shown", "nothing")
NEVER = (  # parts of SHEET that no student may ever read
    *("9000.125", "loss=0.0625", "4321.0625", "1234.5625"),
    *("the-words-of-the-solution", "the-name-of-a-mistake", '"expect"', '"to_try"'),
)
EARNED = {"enough": "check", "cause": "question", "rate": "number"}  # steps with a hint
OWN = {"open", "answer", "check", "run", "flip", "ended"}  # kinds of events by a student
STAFF = {"run", "ended", "flip", "look", "freeze", "extend", "grade", "pin", "free"} | {
    *("remove", "merge", "worksheet"),
}
LEFT_OUT = ("/static", "/plotly", "/api/class/join", "/api/class/return", "/api/instructor/wipe")


class Class:
    """A class in this process, its people's browsers, and the events that it has recorded."""

    def __init__(self, made: folder.ClassFolder, finished: Path) -> None:
        self.room, self.finished = Room(made, Clock()), finished
        self.room.door._sleep = lambda _: None
        self.events: list[Event] = []
        record = self.room.record

        def noted(event: Any) -> Any:
            found = record(event)
            self.events.append(found)
            return found

        self.room.record = noted  # type: ignore[method-assign]
        self.app = create_app(self.room, {"COMMAND": command()})
        self.students: dict[str, Any] = {}  # their browsers, by seat
        settings = made.settings
        self.staff = {
            "instructor": self.browser(f"/instructor?key={settings.instructor_key}"),
            "projector": self.browser(f"/projector?key={settings.projector_key}"),
            "stranger": self.browser("/"),
        }

    def browser(self, first: str, address: str = "127.0.0.1") -> Any:
        client = self.app.test_client()
        client.environ_base["REMOTE_ADDR"] = address
        client.get(first)
        return client

    def join(self, name: str, address: str, pin: str = "") -> tuple[int, str]:
        client = self.browser("/", address)
        people = [{"name": name, "pin": pin}]
        body = {"code": self.room.folder.settings.code, "people": people}
        answer = client.post("/api/class/join", json=body)
        if answer.status_code == 201:
            self.students[answer.json["seat"]] = client
            client.post("/api/class/worksheets/small/open", json={})
        return answer.status_code, answer.text

    def close(self) -> None:
        self.app.extensions["conductor"].stop()
        self.room.close()


class Roles(Campaign):
    name = "roles"
    what = "random requests of students, instructor, projector and strangers to a class"
    hangs_after_s = 60.0

    def prepare(self) -> None:
        self.finished = template(self.folder / "finished")
        sheet = self.folder / "small.yaml"
        sheet.write_text(SHEET)
        self.made = folder.make("test", [str(sheet)], classes=self.folder / "made")

    def trial(self, rng: random.Random) -> Counts:
        path = self.folder / "classes" / "test"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.made.path, path)
        of = Class(replace(self.made, path=path), self.finished)
        try:
            for n in range(STUDENTS):
                of.join(f"student {n}", f"10.0.0.{n}", pin="1234" if n == 0 else "")
            acts = (requests, requests, requests, requests, work, lockout, streams, seats)
            count = sum(rng.choice(acts)(of, rng) for _ in range(REQUESTS))
            check_journal(of)
        finally:
            of.close()
        return Counts(count)


def requests(of: Class, rng: random.Random) -> int:
    """Send one request in one of the roles, and compare what it read and changed with the role."""
    role = rng.choice([*of.students, *of.students, *of.staff])
    client = of.students.get(role) or of.staff[role]
    rules = [each for each in of.app.url_map.iter_rules() if is_tried(each.rule)]
    own = [each for each in rules if each.rule.startswith("/api/class/")]
    rule = rng.choice(own if rng.random() < 0.5 else rules)
    values = {each: value_of(of, each, rng) for each in rule.arguments}
    path = rule.build(values)[1]
    method = (
        rng.choice(sorted(rule.methods - {"HEAD", "OPTIONS"})) if rng.random() < 0.95 else "PUT"
    )
    before = len(of.events)
    with client.open(path, method=method, buffered=False, **content(rng, method)) as answer:
        text = first_of(answer, path)
    what = f"{role}: {method} {path}"
    if answer.status_code >= 500 and answer.status_code != 503:
        raise Failed(f"{what}: {answer.status_code} {text[:200]}")
    judge_changes(of, role, of.events[before:], what)
    if answer.status_code < 300:
        judge_reading(of, role, values, path, text)
    return 1


def is_tried(rule: str) -> bool:
    return not rule.startswith(LEFT_OUT)


def value_of(of: Class, argument: str, rng: random.Random) -> str:
    """A value in an address: mostly one that is there."""
    if rng.random() < 0.1:
        return rng.choice(("..", "x" * 200, "\u00e4", "none"))
    known = {
        "id": [*of.room.state.runs, "s1-small-both-1"],
        "seat": [*of.room.state.seats, "s99"],
        "step": STEPS,
        "name": ("small",),
        "scenario": ("two_paths",),
    }
    return rng.choice(known.get(argument, ("none",)))


def content(rng: random.Random, method: str) -> dict[str, Any]:
    if method not in ("POST", "PUT"):
        query = inputs.changed(rng, b"since=3&points=9").decode("latin-1")
        return {"query_string": query} if rng.random() < 0.3 else {}
    value: Any = rng.choice((12, "two", "one", f"{rng.random()}", [[0, 1], [5, 2]], True, None))
    body = rng.choice(
        (
            *({}, {"value": value}, {"value": value}, {"chosen": {}}, {"frozen": False}),
            *({"target": "link.path1.loss", "value": 0.1}, {"run": "s1-small-both-1"}),
            {"seat": "s1", "worksheet": "small", "step": "words", "points": 3, "comment": "good"},
            {"worksheet": "small", "minutes": 5, "seat": None},
        )
    )
    text = json.dumps(body).encode()
    text = inputs.changed(rng, text) if rng.random() < 0.1 else text
    return {"data": text, "content_type": "application/json"}


def first_of(answer: Any, path: str) -> str:
    """The text of an answer; of a stream, only its beginning."""
    if not path.endswith("/stream"):
        return "".join(each.decode("latin-1") for each in answer.response)
    pieces = iter(answer.response)
    return "".join(next(pieces, b"").decode("latin-1") for _ in range(2))


def judge_changes(of: Class, role: str, events: list[Event], what: str) -> None:
    allowed = OWN if role in of.students else STAFF if role == "instructor" else set()
    for event in events:
        run = of.room.state.runs.get(getattr(event, "run", None) or "")
        seat = run.seat if run else getattr(event, "seat", None)
        mine = seat == role or role == "instructor"
        if event.kind not in allowed or not mine:
            raise Failed(f"{what} has recorded {event}")


def judge_reading(of: Class, role: str, values: dict[str, str], path: str, text: str) -> None:
    if role == "instructor":
        return
    if "/instructor" in path or ("/projector" in path and role != "projector"):
        raise Failed(f"{role} has read {path}: {text[:200]}")
    state = of.room.state
    run = state.runs.get(values.get("id", ""))
    if run and run.seat not in (None, role) and state.look.run != run.id:
        raise Failed(f"{role} has read {path} of {run.seat}: {text[:100]}")
    if found := [each for each in NEVER if each in text]:
        raise Failed(f"{role} has read {found} at {path}")
    for step, name in EARNED.items():
        tries = tries_of(of, role, step)
        if f"the-hint-of-the-{name}" in text and tries.count(False) < 2:
            raise Failed(f"{role} has read the hint of {step} at {path}")
        if f"the-reason-of-the-{name}" in text and not any(tries):
            raise Failed(f"{role} has read the reason of {step} at {path}")


def tries_of(of: Class, seat: str, step: str) -> list[bool | None]:
    """Whether each try of a seat at a step was right, from the events."""
    return [
        each.passed
        for each in of.events
        if isinstance(each, Answered | Checked)
        and (each.seat, each.step) == (seat, step)
        and not getattr(each, "problem", "")
    ]


def work(of: Class, rng: random.Random) -> int:
    """Let a student predict and request a run. Then let the first run of the queue end."""
    if of.students:
        client = of.students[rng.choice(list(of.students))]
        base = "/api/class/worksheets/small"
        client.post(f"{base}/answers/guess", json={"value": rng.randrange(40)})
        client.post(f"{base}/runs/both", json={"chosen": {}})
    if run := of.room.take_next(Load(0, 2, 0)):
        target = of.room.run_folder(run.id)
        shutil.copytree(of.finished, target, dirs_exist_ok=True)
        of.room.ended(run, "complete", run_digest(target))
    return 2


def lockout(of: Class, rng: random.Random) -> int:
    """Guess codes and a PIN from one address; others must still get in from theirs."""
    attacker = of.browser("/", f"10.1.{rng.randrange(256)}.{rng.randrange(256)}")
    name, address = "student 0", f"10.2.{rng.randrange(256)}.{rng.randrange(256)}"
    code = of.room.folder.settings.code
    for n in range(14):
        wrong = {"code": "AAAAAA", "people": [{"name": f"x {n}", "pin": ""}]}
        if attacker.post("/api/class/join", json=wrong).status_code not in (403, 429):
            raise Failed("a wrong code was taken")
    for _ in range(rng.randrange(1, 8)):
        tried = {"code": code, "name": name, "pin": "0000"}
        if attacker.post("/api/class/return", json=tried).status_code not in (403, 429):
            raise Failed("a wrong PIN was taken")
    victim = of.browser("/", address)
    seat = of.room.state.seat_of_person(name)
    known = seat is not None and seat.people[0].pin == of.events[0].people[0].pin
    answer = victim.post("/api/class/return", json={"code": code, "name": name, "pin": "1234"})
    if known and answer.status_code != 200:
        raise Failed(f"the owner of a PIN is locked out: {answer.status_code} {answer.text}")
    status, text = of.join(f"late {rng.getrandbits(40)}", address)
    if status != 201:
        raise Failed(f"a newcomer is locked out: {status} {text}")
    return 24


def streams(of: Class, rng: random.Random) -> int:
    """Open too many streams for one seat; the instructor still gets one, and all are given back."""
    if not of.students:
        return 0
    seat = rng.choice(list(of.students))
    wanted = rng.randrange(1, 7)
    opened = [of.students[seat].get("/api/class/stream", buffered=False) for _ in range(wanted)]
    good = [each for each in opened if each.status_code == 200]
    if len(good) != min(wanted, STREAMS_PER_SEAT):
        raise Failed(f"{wanted} streams of a seat: {[each.status_code for each in opened]}")
    grid = of.staff["instructor"].get("/api/instructor/stream", buffered=False)
    if grid.status_code != 200:
        raise Failed(f"no stream for the instructor: {grid.status_code}")
    for each in (*opened, grid):
        each.close()
    if left := of.app.extensions["slots"].open():
        raise Failed(f"closed streams still count: {sorted(left)}")
    return wanted + 1


def seats(of: Class, rng: random.Random) -> int:
    """Free a seat: its browser is a stranger from then on, and nothing of its work is lost."""
    if len(of.students) < 2 or rng.random() < 0.5:
        return 0
    seat = rng.choice(list(of.students))
    points = dict(points_of(of))
    of.staff["instructor"].post(f"/api/instructor/seats/{seat}/free", json={})
    client = of.students.pop(seat)
    if client.get("/api/class/seat").status_code != 403:
        raise Failed(f"a freed seat can still be used: {seat}")
    if points != dict(points_of(of)):
        raise Failed(f"free {seat}: the points were {points}, and are {dict(points_of(of))}")
    return 2


def points_of(of: Class) -> Iterator[tuple[str, int]]:
    for each in grades.submissions(of.room.folder, of.room.state):
        if of.room.state.seats[each.seat].has_work:
            yield each.seat, each.points


def check_journal(of: Class) -> None:
    """The journal says what the class says, and every mark follows from it."""
    record = grades.read_record(of.room.folder)
    if record.faults:
        raise Failed(f"the journal has faults: {record.faults[0]}")
    live = grades.submissions(of.room.folder, of.room.state)
    if live != grades.submissions(of.room.folder, record.state):
        raise Failed("the journal gives other marks than the class")
    for each in live:
        if wrong := [
            *grades.impossible(each),
            *grades.mark_again(of.room.folder, record.state, each),
        ]:
            raise Failed(f"{each.seat}, {wrong[0].step}: {wrong[0].text}")


ALL = (Roles,)
