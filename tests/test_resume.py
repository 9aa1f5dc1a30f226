"""After any kill, the same command continues a batch, and its table is that of a batch without
kills."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import fake_engine
import pytest
from command_line import lab, start  # noqa: F401 - a fixture

from lab.batch import jobs
from lab.batch.request import Request, placed
from lab.errors import RequestError
from lab.run import process, recorder

BATCH = "run testbed_wifi_lte --duration 1 --strategy none --strategy meter_throttling"
STAGES = {  # what a kill leaves before the manifest is complete
    "nothing": (),
    "room for the result": (".reserve",),
    "inbox": (".reserve", "inbox"),
    "scenario": (".reserve", "inbox", "scenario.yaml"),
    "half a manifest beside": (".reserve", "inbox", "scenario.yaml", ".manifest.json.new"),
    "half a manifest": (".reserve", "inbox", "scenario.yaml", "manifest.json"),
}


@pytest.fixture
def batch(lab, tmp_path):  # noqa: F811
    return lambda *more: lab(
        BATCH, "--engine", "fake", "--repeat", 3, "--out", tmp_path / "r", *more
    )


def left(folder: Path, names) -> None:
    folder.mkdir(parents=True)
    for name in names:
        if name == "inbox":
            (folder / name).mkdir()
        else:
            (folder / name).write_text('{"schema": 2, "exp')


@pytest.mark.parametrize("names", STAGES.values(), ids=STAGES)
def test_a_folder_without_a_complete_manifest_is_a_run_that_never_began(batch, tmp_path, names):
    undisturbed = batch().stdout
    shutil.rmtree(tmp_path / "r" / "none-2")
    left(tmp_path / "r" / "none-2", names)
    got = batch()
    assert got.exit_code == 0, got.stderr
    assert "5 of 6 runs exist already" in got.stderr
    assert got.stdout == undisturbed


@pytest.mark.parametrize("names", [each for each in STAGES.values() if "manifest.json" not in each])
def test_one_run_with_its_own_folder_begins_where_none_began(lab, tmp_path, names):  # noqa: F811
    left(tmp_path / "r", names)
    got = lab("run testbed_wifi_lte --engine fake --duration 1 --quiet --out", tmp_path / "r")
    assert got.exit_code == 0, got.stderr
    assert (tmp_path / "r" / "result.json").exists()
    assert not (tmp_path / "r" / ".manifest.json.new").exists()


@pytest.mark.parametrize("name", ["thesis.tex", "scenario.yaml", "inbox"])
def test_files_of_somebody_else_stay(lab, tmp_path, name):  # noqa: F811
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / name).write_text("mine")
    got = lab("run testbed_wifi_lte --engine fake --duration 1 --out", tmp_path / "r")
    assert got.exit_code == 2
    assert "not empty" in got.stderr
    assert [path.name for path in (tmp_path / "r").iterdir()] == [name]


def test_files_of_somebody_else_in_a_batch_stop_it_before_anything_starts(batch, tmp_path):
    (tmp_path / "r" / "meter_throttling-3").mkdir(parents=True)
    (tmp_path / "r" / "meter_throttling-3" / "thesis.tex").write_text("mine")
    got = batch()
    assert got.exit_code == 2
    assert "meter_throttling-3 is there already and not empty" in got.stderr
    assert len(list(tmp_path.rglob("*"))) == 3


def test_a_removal_that_is_killed_can_be_continued(batch, tmp_path, monkeypatch):
    """After each step of the removal the folder is a run that the same command makes again."""
    batch("--quiet")
    folder = tmp_path / "r" / "none-1"
    whole = sorted(path.name for path in folder.iterdir())
    remove, steps = recorder.plain_file.remove, 0
    for most in range(len(whole)):
        batch("--quiet")
        job = next(each for each in made(tmp_path / "r") if each.out == folder)
        (folder / "result.json").unlink()
        (folder / ".reserve").touch()
        steps = 0

        def some(path, most=most):
            nonlocal steps
            steps += 1
            if steps > most:
                raise KeyboardInterrupt
            remove(path)

        monkeypatch.setattr(recorder.plain_file, "remove", some)
        with pytest.raises(KeyboardInterrupt):
            jobs._remove_unusable(job)
        monkeypatch.setattr(recorder.plain_file, "remove", remove)
        assert not jobs.is_occupied(job)
        assert batch("--quiet").exit_code == 0, most


def made(out: Path):
    return placed(Request("testbed_wifi_lte", "fake", ("none",), repeat=3, duration_s=1, out=out))


def test_a_run_that_another_process_is_making_is_left_alone(lab, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(jobs, "ENDS_WITHIN_S", 0.1)
    words = [BATCH, "--engine", "slow", "--duration", 3000, "--repeat", 1, "--out", tmp_path]
    other = start(*words)
    try:
        wait_for(lambda: len(list(tmp_path.glob("*/manifest.json"))) == 2)
        got = lab(*words)
        assert got.exit_code == 2
        assert "is making the run in" in got.stderr
        assert other.poll() is None
        assert len(list(tmp_path.glob("*/samples.jsonl"))) == 2
    finally:
        end(other)


def test_runs_end_with_their_command(tmp_path):
    """A worker that outlives a killed command would write into the folders of the next one."""
    words = [BATCH, "--engine", "slow", "--duration", 3000, "--out", tmp_path]
    command = start(*words)
    wait_for(lambda: len(list(tmp_path.glob("*/manifest.json"))) == 2)
    manifests = [json.loads(path.read_text()) for path in tmp_path.glob("*/manifest.json")]
    assert all(process.alive(each, tmp_path) for each in manifests)
    end(command)
    wait_for(lambda: not any(process.alive(each, tmp_path) for each in manifests))


def test_a_run_whose_process_is_killed_is_repeated_alone(batch, tmp_path, monkeypatch):
    killed = tmp_path / "killed"

    def kill_once(_):
        if not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(fake_engine.FakeEngine, "on_advance", staticmethod(kill_once))
    got = batch("--json")
    assert got.exit_code == 0, got.stderr
    assert {run["status"] for run in json.loads(got.stdout)} == {"complete"}


def test_a_run_that_is_killed_alone_fails_and_all_others_are_made(batch, tmp_path, monkeypatch):
    """As if it needed more memory than there is."""
    large = "none-2"

    class Large(fake_engine.FakeEngine):
        def advance(self, until_s):
            if self.folder.name == large:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().advance(until_s)

    monkeypatch.setattr(fake_engine, "FakeEngine", Large)
    got = batch()
    assert got.exit_code == 4
    status = {
        path.parent.name: json.loads(path.read_text())["status"]
        for path in (tmp_path / "r").glob("*/result.json")
    }
    assert {name for name, each in status.items() if each == "failed"} == {large}
    assert len(status) == 6
    assert "none, seed 2: its process was killed, also when it ran alone" in got.stderr
    assert "1 of 6 runs failed" in got.stderr
    large = ""
    assert batch().exit_code == 0


@pytest.mark.whole
def test_the_table_after_some_kills_is_that_without_kills(tmp_path):
    assert after_kills(tmp_path, kills=6, repeat=12, seed=1) == undisturbed(tmp_path, repeat=12)


@pytest.mark.long
def test_the_table_after_many_kills_is_that_without_kills(tmp_path):
    assert after_kills(tmp_path, kills=60, repeat=100, seed=2) == undisturbed(tmp_path, repeat=100)


def undisturbed(tmp_path: Path, repeat: int) -> str:
    done = command(tmp_path / "undisturbed", repeat)
    return done.communicate(timeout=300)[0]


def after_kills(tmp_path: Path, kills: int, repeat: int, seed: int) -> str:
    """Kill a batch so often, at random moments, then let it end. Return the table."""
    chance, out = random.Random(seed), tmp_path / "killed"
    count = 0
    while count < kills:
        begun = command(out, repeat)
        try:
            begun.communicate(timeout=chance.uniform(0.3, 2.0))
            assert begun.returncode == 0
            shutil.rmtree(out)
        except subprocess.TimeoutExpired:
            end(begun, chance.choice(("command", "worker", "all")))
            count += 1
        if begun.returncode not in (0, -signal.SIGKILL):
            raise AssertionError(f"kill {count}: status {begun.returncode}")
    final = command(out, repeat)
    text, errors = final.communicate(timeout=300)
    assert final.returncode == 0, errors
    return text


def command(out: Path, repeat: int) -> subprocess.Popen[str]:
    words = [BATCH, "--engine", "fake", "--repeat", repeat, "--out", out]
    return start(*words, start_new_session=True)


def end(begun: subprocess.Popen[str], whom: str = "command") -> None:
    """Kill the command, all its processes, or one of its workers and then the command."""
    workers = children(begun.pid) if whom == "worker" else []
    for each in workers[:1]:
        os.kill(each, signal.SIGKILL)
        time.sleep(0.1)
    if whom == "all":
        os.killpg(begun.pid, signal.SIGKILL)
    begun.kill()
    begun.communicate(timeout=20)


def children(pid: int) -> list[int]:
    try:
        return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def wait_for(what, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_folder_of_another_experiment_is_named(tmp_path, lab):  # noqa: F811
    job = made(tmp_path)[0]
    lab("run testbed_wifi_lte --engine fake --duration 2 --quiet --out", job.out)
    with pytest.raises(RequestError, match="not empty"):
        jobs.refuse_occupied([job])
