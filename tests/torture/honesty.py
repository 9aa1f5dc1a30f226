"""Inputs, results and marks are edited between and during runs: what was edited is named, and
counts nowhere."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from classroom import forged
from classroom.class_fakes import SHEET, Clock, template
from fake_engine import FakeEngine

from dashboard.app import create_app
from lab.classroom import folder, grades
from lab.classroom.door import Newcomer
from lab.classroom.lesson import Place
from lab.classroom.queue import Load
from lab.classroom.room import Room
from lab.errors import LabError, RequestError
from lab.run.reading import APPENDED, read_document, run_digest
from lab.run.recorder import Recorder
from lab.run.runner import run
from lab.scenario import loading
from lab.scenario.loading import Overrides
from lab.worksheets.evaluation import RunFiles
from torture import inputs
from torture.campaign import Campaign, Counts, Failed
from torture.http import KEY, NO_RUN

MEASURED = ("result.json", "samples.jsonl", "events.jsonl", "scenario.yaml")
EACH = 20  # edits of a trial
RIGHT = {"guess": 1, "enough": 0, "cause": 2, "rate": 1, "words": 0}  # points without a person


class EditedRuns(Campaign):
    name = "edited_runs"
    what = "edits of the files of a run, during the run and after it"
    hangs_after_s = 30.0

    def prepare(self) -> None:
        settings = ("duration_s=2", "events=[{at_s: 0.2, target: user.ue1.demand_mbps, value: 3}]")
        self.scenario = loading.load("testbed_wifi_lte", Overrides(settings=settings))
        self.runs = self.folder / "runs"
        for name in ("one", "two"):
            template(self.runs / name)
        shutil.copytree(self.runs / "one", self.folder / "whole")
        self.app = create_app({"RUNS": self.runs, "KEY": KEY, "COMMAND": NO_RUN})

    def trial(self, rng: random.Random) -> Counts:
        for _ in range(EACH):
            self.after(rng)
        for _ in range(2):
            self.during(rng)
        return Counts(EACH + 2)

    def after(self, rng: random.Random) -> None:
        path = self.runs / "one" / rng.choice(MEASURED)
        content = path.read_bytes()
        edited = edit(rng, content)
        path.write_bytes(edited)
        try:
            if edited == content or (path.suffix == ".json" and same(edited, content)):
                return
            believed = refused(lambda: RunFiles.read(self.runs / "one"))
            headers = {"Authorization": f"Bearer {KEY}"}
            client = self.app.test_client()
            compared = client.get("/api/compare?runs=one,two", headers=headers).status_code
            listed = client.get("/api/runs/one", headers=headers).json
            status = listed.get("status")
            if believed or compared == 200 or status in ("complete", "interrupted"):
                text = f"worksheet {believed}, compare {compared}, page {status}"
                raise Failed(f"{path.name} was edited and is believed: {text}")
        finally:
            path.write_bytes(content)

    def during(self, rng: random.Random) -> None:
        target = self.folder / "now"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        engine, recorder = FakeEngine(), Recorder(target, self.scenario, "sim")
        path, at_s = target / rng.choice(APPENDED), rng.choice((0.5, 1.0, 1.5))
        before = after = b""  # of the file, once it was edited

        def change(until_s: float) -> None:
            nonlocal before, after
            if until_s >= at_s and not after:
                before = path.read_bytes()
                after = edit(rng, before) or b" "
                path.write_bytes(after)

        engine.on_advance = change
        outcome = run(self.scenario, engine, recorder)
        if not after:
            raise Failed(f"{path.name} was never edited")
        if before != after and outcome.result["status"] == "complete":
            raise Failed(f"{path.name} was edited at {at_s} s and is believed")


class Marks(Campaign):
    name = "marks"
    what = "edits of the journal of a class, and forged points"
    hangs_after_s = 30.0

    def prepare(self) -> None:
        sheet = self.folder / "small.yaml"
        sheet.write_text(SHEET)
        finished = template(self.folder / "finished")
        self.found = folder.make("test", [str(sheet)], classes=self.folder / "classes")
        room = Room(self.found, Clock())
        for n in range(3):
            attend(room, finished, f"student {n}")
        room.close()
        self.whole = self.found.journal.read_bytes()
        self.head = grades.read_record(self.found).log.head
        self.events = grades.read_record(self.found).log.events
        self.points = self.counted()

    def trial(self, rng: random.Random) -> Counts:
        for _ in range(EACH):
            self.found.journal.write_bytes(self.whole)
            rng.choice((self.damaged, self.moved, self.cut, self.remade))(rng)
        return Counts(EACH)

    def counted(self) -> dict[str, int]:
        state = grades.read_record(self.found).state
        return {each.seat: each.points for each in grades.submissions(self.found, state)}

    def judge(self, what: str) -> None:
        """The journal is named as changed, no mark went up, and a class does not go on with it."""
        record = grades.read_record(self.found)
        if not record.faults:
            raise Failed(f"{what}: nothing is named")
        if forged := [each for each in record.log.events if each not in self.events]:
            raise Failed(f"{what}: it believes {forged[0]}")
        if more := [seat for seat, n in self.counted().items() if n > self.points[seat]]:
            raise Failed(f"{what}: {more} have more points than before")
        if refused(lambda: Room(self.found).close()):
            raise Failed(f"{what}: the class goes on with it")

    def damaged(self, rng: random.Random) -> None:
        content = self.whole
        while content == self.whole or self.whole.startswith(content):
            content = edit(rng, self.whole)
        self.found.journal.write_bytes(content)
        if not self.whole.startswith(content[: content.rfind(b"\n") + 1]):
            self.judge(f"bytes were changed: {difference(self.whole, content)}")

    def moved(self, rng: random.Random) -> None:
        lines = forged.texts(self.found.journal)
        place, other = rng.randrange(len(lines) - 1), rng.randrange(len(lines))
        match rng.randrange(4):
            case 0:
                del lines[place]
            case 1:
                lines.insert(other, lines[place])
            case 2 if place != other:
                lines[place], lines[other] = lines[other], lines[place]
            case _:
                changes = {"points": rng.randrange(-9, 99), "passed": True, "at": 1.5}
                event = json.loads(lines[place])
                known = {key: value for key, value in changes.items() if key in event}
                lines[place] = forged.edited(lines[place], **known)
        forged.put(self.found.journal, lines)
        self.judge("lines were changed")

    def cut(self, rng: random.Random) -> None:
        end = rng.randrange(len(self.whole))
        self.found.journal.write_bytes(self.whole[:end])
        record = grades.read_record(self.found)
        if record.faults or len(record.log.events) != self.whole[:end].count(b"\n"):
            raise Failed(f"cut at {end}: {record.faults[:1]} {len(record.log.events)} lines")

    def remade(self, rng: random.Random) -> None:
        """All digests are made anew: the marks must follow from the answers all the same."""
        step, right = rng.choice(list(RIGHT.items()))
        possible = [each for each in range(4) if each != right]
        points = rng.choice((-1, 53, 103, rng.randrange(-(2**40), 2**40), *possible))
        forged.change(self.found.journal, {"step": step}, points=points, passed=True)
        record = grades.read_record(self.found)
        if self.head in record.log.heads:
            raise Failed(f"{step}: {points} points: the old digest is still there")
        handed_in = grades.submissions(self.found, record.state)
        said = [
            each.step
            for one in handed_in
            for each in (*grades.impossible(one), *grades.mark_again(self.found, record.state, one))
        ]
        if step not in said or any(not 0 <= each.points <= each.of for each in handed_in):
            raise Failed(f"{step}: {points} points: {said}, {self.counted()}")


def attend(room: Room, finished: Path, name: str) -> None:
    seat, _ = room.join("here", room.folder.settings.code, [Newcomer(name)])
    room.open(seat, "small")
    room.answer(Place(seat, "small", "guess"), 12)
    made = room.request_run(Place(seat, "small", "both"), {}, lambda _: None)
    assert room.take_next(Load(0, 2, 0)) is made
    shutil.copytree(finished, room.run_folder(made.id))
    room.ended(made, "complete", run_digest(finished))
    room.check(Place(seat, "small", "enough"))
    rate = read_document(finished, "result.json")["throughput_mbps"] + 4321
    for step, value in (("cause", "two"), ("rate", rate), ("words", f"by {name}")):
        room.answer(Place(seat, "small", step), value)


def edit(rng: random.Random, content: bytes) -> bytes:
    """`content` after a small change: bits, digits, lines, or bytes of any kind."""
    made, place = bytearray(content), rng.randrange(max(1, len(content)))
    match rng.randrange(4):
        case 0 if made:
            made[place] ^= 1 << rng.randrange(8)
        case 1:
            digits = [n for n, each in enumerate(made) if chr(each).isdigit()]
            for n in rng.sample(digits, min(len(digits), 2)):
                made[n] = rng.choice(b"0123456789")
        case 2:
            lines = content.splitlines(keepends=True)
            rng.shuffle(lines)
            return b"".join(lines)
        case _:
            return inputs.changed(rng, content)
    return bytes(made)


def difference(one: bytes, other: bytes) -> str:
    """Where two texts begin to differ, with some bytes of both."""
    place = next(n for n, (a, b) in enumerate(zip(one, other + b"\0", strict=False)) if a != b)
    return f"{one[place - 9 : place + 30]!r} {other[place - 9 : place + 30]!r}"


def same(one: bytes, other: bytes) -> bool:
    """Whether two texts are the same JSON, written in another way."""
    try:
        return bool(json.loads(one) == json.loads(other))
    except (ValueError, RecursionError):
        return False


def refused(do: Callable[[], Any]) -> bool:
    """False if `do` raised a `LabError`: then what was edited is refused."""
    try:
        do()
    except (LabError, RequestError):
        return False
    return True


ALL = (EditedRuns, Marks)
