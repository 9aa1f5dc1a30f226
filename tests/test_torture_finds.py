"""Each campaign of `./run_lab.sh torture` that is here finds a build whose guard was taken out."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from pathlib import Path

import pytest
from markupsafe import Markup
from torture import batches, campaign, files, honesty, large, roles, traps
from torture.kills import ROOT
from users_files import _only_built_in

from dashboard import markdown
from dashboard.classroom import guard, run_api, streams
from lab import plain_file
from lab.batch import jobs
from lab.classroom import chain, door, grades, rules, secrets, state
from lab.classroom.lesson import Lesson
from lab.run import reading
from lab.run.recorder import Recorder
from lab.scenario.files import Files
from lab.worksheets.evaluation import RunFiles

__all__ = ["_only_built_in"]

TRIALS = 12


def found(kind, folder):
    """The first failure of a campaign; "" if it has found nothing in some trials."""
    made = kind(folder)
    made.hangs_after_s *= 5  # other programs use this machine, too
    kept, campaign.MOST_FAILURES = campaign.MOST_FAILURES, 1
    try:
        outcome = campaign.run(made, 1, 30.0, range(TRIALS))
    finally:
        campaign.MOST_FAILURES = kept
    assert not outcome.skipped
    return outcome.failures[0][1] if outcome.failures else ""


def forgets_streams(self, owner, address, stream):
    self._check_free(owner, address)
    self._open[owner] += 1
    yield b""
    yield from stream


def keeps_cookies(self, event):
    before = dict(self.browsers)
    apply_event(self, event)
    self.browsers |= before


def locks_all(self, address, code):
    self._wrong_codes.check("all")
    if code != self._lesson.folder.settings.code:
        self._wrong_codes.count("all")
        raise door.Forbidden("wrong")


def answers_with_99(at, value, passed, points, runs):
    return answer(at, value, passed, 99, runs)


def believes_every_line(number, text):
    matched = chain._LINE.fullmatch(text)
    if not matched:
        return None
    body, before, digest = (matched[key] for key in ("body", "before", "digest"))
    return chain.Line(number, b"{%s}" % body, before.decode(), digest.decode())


def believes_unnamed_lines(intact, last):
    return [each for each in intact.values() if each], []


def follows_links(path, follow=False):
    return opened(path, follow=True)


apply_event = state.ClassState.apply
answer = rules._answer
opened = plain_file.opened
GUARDS = [  # (campaign, object, its guard, what is there instead, words of the failure)
    (roles.Roles, guard, "_may_pass", lambda path: True, ""),
    (roles.Roles, Lesson, "is_shared", lambda self, run: True, "has read"),
    (roles.Roles, Lesson, "hint_earned", lambda self, at, now: True, "the hint of"),
    (roles.Roles, run_api, "NOT_FOR_STUDENTS", (), "has read"),
    (roles.Roles, state.ClassState, "apply", keeps_cookies, "a freed seat"),
    (roles.Roles, streams.Slots, "_held", forgets_streams, "stream"),
    (roles.Roles, door.Door, "_check_code", locks_all, "locked out"),
    (roles.Roles, secrets, "is_pin", lambda pin, stored: True, "a wrong PIN"),
    (roles.Roles, rules, "_answer", answers_with_99, "99 points"),
    (honesty.EditedRuns, reading, "SEALED", {}, "is believed"),
    (honesty.EditedRuns, reading, "_seal", lambda result: "", "is believed"),
    (honesty.EditedRuns, Recorder, "check_unchanged", lambda self: None, "was edited at"),
    (honesty.Marks, chain, "_line", believes_every_line, "were changed"),
    (honesty.Marks, chain, "_named", believes_unnamed_lines, "it believes"),
    (honesty.Marks, grades, "_differs", lambda *_: iter(()), "points"),
    (files.Worksheets, markdown, "html", lambda text: Markup(text), "a page holds"),
    (files.Worksheets, Files, "refused", lambda self, path: "", "has run code"),
    (files.Archives, plain_file, "opened", follows_links, "outside"),
]


@pytest.mark.parametrize(("kind", "holder", "name", "instead", "words"), GUARDS)
def test_a_missing_guard_is_found(kind, holder, name, instead, words, tmp_path, monkeypatch):
    monkeypatch.setattr(holder, name, instead)
    if kind is files.Archives:  # two guards keep links out
        monkeypatch.setattr(Path, "is_symlink", lambda self: False)
    assert words in found(kind, tmp_path)


@contextmanager
def door_without(tmp_path, *parts):
    """run_lab.sh without these parts."""
    text = (ROOT / "run_lab.sh").read_text()
    text = text.replace('$(CDPATH=\'\' cd -- "$(dirname -- "$0")" && pwd)', f"'{ROOT}'")
    for part, instead in parts:
        assert part in text
        text = text.replace(part, instead)
    path = tmp_path / "run_lab.sh"
    path.write_text(text)
    yield type("Open", (traps.Traps,), {"door": ("sh", str(path))})


def test_a_door_that_imports_from_the_callers_folder_is_found(tmp_path):
    with door_without(tmp_path, (" -P -m lab", " -m lab")) as kind:
        assert "has run" in found(kind, tmp_path)


def test_a_door_that_keeps_the_callers_variables_is_found(tmp_path):
    kept = ("unset PYTHONHOME PYTHONSTARTUP\nPYTHONPATH=$here\n", "")
    with door_without(tmp_path, kept) as kind:
        assert found(kind, tmp_path)


@pytest.mark.parametrize("where", ["here", "in a copy"])
def test_an_exception_that_the_server_only_logs_is_found(tmp_path, where):
    def log():
        try:
            raise ValueError("a request that nobody expects")
        except ValueError:
            logging.getLogger("waitress").exception("Exception while serving /")

    class Served(campaign.Campaign):
        name = "served"

        def trial(self, rng):
            if where == "here":
                log()
            elif child := os.fork():
                os.waitpid(child, 0)
            else:
                log()
                os._exit(0)
            return campaign.Counts(1)

    assert "a request that nobody expects" in found(Served, tmp_path)


class SmallBatches(batches.Batches):
    repeat = 30


def test_a_batch_that_makes_complete_runs_again_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "kept", lambda job: None)
    assert "complete runs are lost" in found(SmallBatches, tmp_path)


class Small(large.Large):
    lines = 3000


def test_a_reader_that_takes_too_much_memory_or_time_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(large, "READS", ("worksheet",))
    assert found(Small, tmp_path) == ""
    real = RunFiles.read
    monkeypatch.setattr(large, "MOST_BYTES", 64 << 20)
    monkeypatch.setattr(
        RunFiles, "read", lambda folder: (real(folder), bytearray(b"x") * (300 << 20))
    )
    assert "MiB" in found(Small, tmp_path / "again")
