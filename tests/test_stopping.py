"""A run ends when it is told to, also if its process is suspended or deaf; no other process does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from lab.isolation import python
from lab.run import process, stopping
from lab.run.reading import read_document, read_events

# Writes a run folder like the lab, and then ignores its inbox and every signal that it can.
DEAF = """
import json, os, pathlib, signal, sys, time
from lab.run import process
signal.signal(signal.SIGINT, signal.SIG_IGN)
folder = pathlib.Path(sys.argv[1])
(folder / "inbox").mkdir()
(folder / "samples.jsonl").write_text('{"t": 3.5}\\n')
(folder / "events.jsonl").write_text(sys.argv[2])
me = {"pid": os.getpid(), "pid_started": process.started(os.getpid()), "boot_id": process.boot_id()}
(folder / "new").write_text(json.dumps(me))
(folder / "new").rename(folder / "manifest.json")
time.sleep(600)
"""


def until(condition, seconds=60.0):
    ends = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < ends, f"not within {seconds:g} s"
        time.sleep(0.05)
    return found


@pytest.fixture
def started():
    children = []

    def start(*argv):
        children.append(subprocess.Popen([*map(str, argv)]))
        return children[-1]

    yield start
    for child in children:
        child.kill()
        child.wait()


@pytest.fixture
def deaf(started, tmp_path):
    def start(events=""):
        child = started(sys.executable, "-P", "-c", DEAF, tmp_path, events)
        until((tmp_path / "manifest.json").exists)
        return child

    return start


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(stopping, "ANSWERS_WITHIN_S", 0.3)
    monkeypatch.setattr(stopping, "ENDS_WITHIN_S", 0.3)


def test_a_suspended_run_is_continued_and_keeps_its_results(started, tmp_path):
    folder = tmp_path / "run"
    run = ["run", "two_paths", "--speed", "1", "--duration", "600", "--out", folder, "--quiet"]
    child = started(*python("-m", "lab"), *run)
    until(lambda: (folder / "samples.jsonl").exists() and (folder / "samples.jsonl").stat().st_size)
    manifest = read_document(folder, "manifest.json")
    child.send_signal(signal.SIGSTOP)
    assert "kill -CONT" in until(lambda: stopping.suspended_text(manifest))
    stopping.stop(folder)
    assert child.wait(60) == 130
    assert read_document(folder, "result.json")["status"] == "interrupted"
    assert not stopping.suspended_text(manifest)


@pytest.mark.parametrize("events", ["", '{"t": 1, "kind": "note"}\n', '{"t": 1, "kind": "no'])
@pytest.mark.parametrize("is_suspended", [False, True])
def test_a_deaf_run_is_killed_and_its_folder_says_so(
    deaf, tmp_path, impatient, events, is_suspended
):
    child = deaf(events)
    if is_suspended:
        child.send_signal(signal.SIGSTOP)
    stopping.stop(tmp_path)
    assert child.wait(30) == -signal.SIGKILL
    noted = until(
        lambda: [
            each
            for each in map(_parsed, (tmp_path / "events.jsonl").read_text().splitlines())
            if each.get(stopping.KILLED)
        ]
    )
    assert noted[0]["t"] == 3.5
    assert "killed" in noted[0]["text"]
    if events.endswith("\n"):
        assert [each["kind"] for each in read_events(tmp_path)] == ["note", "warning"]


def _parsed(line):
    try:
        return json.loads(line)
    except ValueError:
        return {}


@pytest.mark.parametrize("changed", ["pid_started", "boot_id"])
def test_a_process_with_a_recycled_id_gets_no_signal(deaf, tmp_path, impatient, changed):
    child = deaf()
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {changed: {"pid_started": 1, "boot_id": "x"}[changed]}))
    stopping.stop(tmp_path)
    time.sleep(1.5)
    assert child.poll() is None
    assert all(not process.send(json.loads(path.read_text()), number) for number in (2, 9, 18))


def test_a_run_that_this_process_makes_gets_no_signal():
    mine = {
        "pid": os.getpid(),
        "pid_started": process.started(os.getpid()),
        "boot_id": process.boot_id(),
    }
    assert not process.send(mine, signal.SIGKILL)


@pytest.mark.parametrize("manifest", [{}, {"pid": None}, {"pid": "12"}, {"error": "damaged"}])
def test_a_run_whose_process_is_not_named_has_none(tmp_path, manifest):
    (tmp_path / "samples.jsonl").touch()
    assert not process.alive(manifest | {"boot_id": process.boot_id()}, tmp_path)
    assert not process.is_suspended(manifest)
    assert not process.send(manifest, signal.SIGCONT)


@pytest.mark.parametrize("jump_s", [-86_400, 86_400])
def test_a_clock_that_jumps_makes_no_ended_run_alive(tmp_path, monkeypatch, jump_s):
    elsewhere = {"pid": 4, "pid_started": 7, "boot_id": "another"}
    (tmp_path / "samples.jsonl").touch()
    assert process.alive(elsewhere, tmp_path)
    now = time.time()
    monkeypatch.setattr(process.time, "time", lambda: now + jump_s)
    assert not process.alive(elsewhere, tmp_path)
