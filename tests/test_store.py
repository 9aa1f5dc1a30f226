"""The index of runs and its storage: killed processes lose no finished run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock

from lab.errors import LabError, RequestError
from lab.results.store import AtomicStorage, Store
from lab.run import process

ROOT = Path(__file__).resolve().parents[1]


def put(runs, name, result=None, **manifest):
    """A run folder; without `result` the run is still going on, in this process."""
    folder = runs / name
    folder.mkdir(parents=True)
    mine = {
        "pid": os.getpid(),
        "pid_started": process.started(os.getpid()),
        "boot_id": process.boot_id(),
    }
    said = {
        "scenario": "s",
        "strategy": "none",
        "engine": "sim",
        "seed": 1,
        "started": f"2026-01-01T00:00:{len(name):02}",
    }
    (folder / "manifest.json").write_text(json.dumps(mine | said | manifest))
    if result is not None:
        (folder / "result.json").write_text(
            json.dumps({"status": "complete", "throughput_mbps": 7.0} | result)
        )
    return folder


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs")


def statuses(store):
    store.refresh()
    return {doc["id"]: doc["status"] for doc in store.all()}


def test_runs_are_found_by_themselves_and_updated(store):
    folder = put(store.runs_folder, "a")
    assert statuses(store) == {"a": "running"}
    (folder / "result.json").write_text(
        json.dumps({"status": "interrupted", "throughput_mbps": 3.0})
    )
    assert statuses(store) == {"a": "interrupted"}
    assert store.get("a")["throughput_mbps"] == 3.0
    assert not store.refresh()


def test_only_the_owner_reads_the_index_and_its_copies(store):
    for name in "abcde":
        put(store.runs_folder, name)
        store.refresh()
    files = list(store.runs_folder.parent.glob("index.json*"))
    kept = {"index.json", "index.json.1", "index.json.2", "index.json.3"}
    assert {each.name for each in files} == kept | {"index.json.lock"}
    assert {each.stat().st_mode & 0o777 for each in files if each.suffix != ".lock"} == {0o600}


def test_a_run_whose_process_is_gone_is_cut(store):
    put(store.runs_folder, "a", pid_started=1)
    put(store.runs_folder, "b", result={}, pid_started=1)
    assert statuses(store) == {"a": "cut", "b": "complete"}


def test_a_folder_without_manifest_is_starting_until_it_is_old(store):
    folder = store.runs_folder / "a"
    folder.mkdir(parents=True)
    assert statuses(store) == {"a": "starting"}
    os.utime(folder, (0, 0))
    assert statuses(store) == {}


def test_a_damaged_result_is_a_failed_run(store):
    (put(store.runs_folder, "a") / "result.json").write_text("{cut")
    assert statuses(store) == {"a": "failed"}
    assert "read result.json" in store.get("a")["error"]


def test_every_run_has_the_same_fields_and_only_a_finished_one_has_figures(store):
    result = {
        "duration_s": 5.0,
        "tiers": {"tier1_mbps": 7.0},
        "aps": {"wifi1": {"throughput_mbps": 7.0}},
        "fairness": {"jain": 0.9},
        "overloaded": False,
        "users": {"ue1": {"kind": "multipath"}},
        "mptcp": {"verified": True},
    }
    told = {
        "experiment": "0" * 64,
        "params": {"cth": 0.5},
        "cc": "lia",
        "duration_s": 6.0,
        "rate_scale": 0.5,
    }
    put(store.runs_folder, "finished", result=result, **told)
    put(store.runs_folder, "running")
    put(store.runs_folder, "cut", pid_started=1)
    edited = put(store.runs_folder, "edited", result=result | {"scenario_sha256": "0" * 64})
    (edited / "scenario.yaml").write_text("name: edited\n")
    store.refresh()
    figures = {
        "measured_s": 5.0,
        "throughput_mbps": 7.0,
        "tiers": {"tier1_mbps": 7.0},
        "aps": {"wifi1": 7.0},
        "jain": 0.9,
        "overloaded": False,
        "verified": True,
    }
    finished = store.get("finished")
    assert {key: finished[key] for key in figures} == figures
    assert {key: finished[key] for key in told} == told
    assert (finished["scenario"], finished["strategy"], finished["engine"]) == ("s", "none", "sim")
    assert (finished["seed"], finished["started"]) == (1, "2026-01-01T00:00:08")
    for name, status in (("running", "running"), ("cut", "cut"), ("edited", "changed")):
        doc = store.get(name)
        assert doc["status"] == status
        assert doc.keys() == finished.keys()
        assert {key: doc[key] for key in figures} == dict.fromkeys(figures)


@pytest.mark.parametrize("verified", [True, False])
@pytest.mark.parametrize(("kind", "is_shown"), [("multipath", True), ("single", False)])
def test_whether_multipath_was_used_is_shown_of_runs_with_multipath_users(
    store, verified, kind, is_shown
):
    result = {"users": {"ue1": {"kind": kind}}, "mptcp": {"verified": verified}}
    put(store.runs_folder, "a", result=result)
    store.refresh()
    assert store.get("a")["verified"] is (verified if is_shown else None)


def test_a_note_that_cannot_be_written_is_an_error(store):
    folder = put(store.runs_folder, "a", result={})
    store.annotate("a", note="kept")
    (folder / "note.json").unlink()
    (folder / "note.json").mkdir()
    with pytest.raises(LabError, match="Check who owns the folder"):
        store.annotate("a", note="lost")


def test_a_new_note_takes_the_place_of_a_damaged_one(store):
    folder = put(store.runs_folder, "a", result={})
    (folder / "note.json").write_text("{cut")
    store.refresh()
    assert "read note.json" in store.get("a")["error"]
    doc = store.annotate("a", note="new")
    assert (doc["note"], doc["tags"], doc["error"]) == ("new", [], None)
    assert store.annotate("a", tags=["course"])["note"] == "new"


def test_tags_and_notes_survive_a_new_index(store):
    put(store.runs_folder, "a", result={})
    store.annotate("a", tags=["course"], note="worth reading")
    (store.runs_folder.parent / "index.json").unlink()
    reopened = Store(store.runs_folder)
    assert reopened.reindex() == 1
    assert (reopened.get("a")["tags"], reopened.get("a")["note"]) == (["course"], "worth reading")


def test_what_is_returned_is_the_callers_own(store):
    put(store.runs_folder, "a", result={})
    store.refresh()
    store.get("a")["tags"].append("mine")
    store.all()[0]["tags"].append("mine")
    assert store.get("a")["tags"] == []


def test_deleting(store):
    put(store.runs_folder, "a", result={})
    put(store.runs_folder, "b")
    store.refresh()
    store.delete("a")
    assert statuses(store) == {"b": "running"}
    with pytest.raises(RequestError, match="Stop it first"):
        store.delete("b")
    (store.runs_folder / ".deleted-c-1").mkdir()  # of a process that was killed
    put(store.runs_folder, "d", result={})
    store.delete("d")
    assert [each.name for each in store.runs_folder.iterdir()] == ["b"]


def test_a_run_that_cannot_be_deleted_stays(store, monkeypatch):
    folder = put(store.runs_folder, "a", result={})

    def refuse(*_):
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        with pytest.raises(LabError, match=f"delete {folder}: Read-only file system"):
            store.delete("a")
    assert statuses(store) == {"a": "complete"}


@pytest.mark.parametrize("name", ["..", "../runs", "a/../a", ".hidden", "", "nope", "a\\b"])
def test_names_that_lead_elsewhere_are_unknown(store, name):
    put(store.runs_folder, "a", result={})
    with pytest.raises(RequestError, match="unknown"):
        store.folder(name)


def test_a_folder_that_is_a_link_is_no_run(store, tmp_path):
    store.runs_folder.mkdir()
    (store.runs_folder / "a").symlink_to(tmp_path)
    assert statuses(store) == {}


def test_two_stores_see_each_others_changes(store):
    other = Store(store.runs_folder)
    put(store.runs_folder, "a", result={})
    assert store.refresh()
    assert not other.refresh()
    other.annotate("a", note="hello")
    assert store.get("a")["note"] == "hello"


def test_an_index_that_another_process_holds_is_written_later(store, monkeypatch):
    put(store.runs_folder, "a", result={})
    store.refresh()
    index = store.runs_folder.parent / "index.json"
    before = index.read_bytes()
    monkeypatch.setattr("lab.results.store.LOCK_S", 0.05)
    put(store.runs_folder, "b", result={})
    with FileLock(f"{index}.lock"):
        assert statuses(store) == {"a": "complete", "b": "complete"}
        with pytest.raises(LabError, match="another process holds it"):
            store.reindex()
        assert index.read_bytes() == before
    assert statuses(store) == {"a": "complete", "b": "complete"}
    assert set(statuses(Store(store.runs_folder))) == {"a", "b"}
    assert index.read_bytes() != before


def test_a_damaged_index_is_moved_aside_and_the_last_good_copy_loaded(tmp_path):
    path = tmp_path / "index.json"
    first = AtomicStorage(path)
    for n in range(5):
        first.write({"runs": {"1": {"n": n}}})
    path.write_text('{"runs": {"1"')
    reopened = AtomicStorage(path)
    assert reopened.read() == {"runs": {"1": {"n": 3}}}
    assert "took its place" in reopened.recovered
    assert len(list(tmp_path.glob("index.json.damaged-*"))) == 1
    assert json.loads(path.read_text()) == {"runs": {"1": {"n": 3}}}


def test_a_batch_begins_with_what_another_process_has_written(tmp_path):
    mine, other = (AtomicStorage(tmp_path / "index.json") for _ in range(2))
    mine.write({"runs": {"1": {"n": 1}}})
    assert other.read() == {"runs": {"1": {"n": 1}}}
    mine.write({"runs": {"1": {"n": 2}}})
    with other.together():
        other.write({"runs": other.read()["runs"] | {"2": {"n": 3}}})
    assert mine.read() == {"runs": {"1": {"n": 2}, "2": {"n": 3}}}


def test_an_interrupted_batch_changes_nothing(tmp_path):
    storage = AtomicStorage(tmp_path / "index.json")
    storage.write({"runs": {"1": {"n": 1}}})

    def fail():
        with storage.together():
            storage.write({"runs": {}})
            raise ValueError("interrupted")

    with pytest.raises(ValueError, match="interrupted"):
        fail()
    assert storage.read() == {"runs": {"1": {"n": 1}}}


def test_a_full_disk_keeps_the_index_that_was_there(store, monkeypatch):
    put(store.runs_folder, "a", result={})
    store.refresh()
    put(store.runs_folder, "b", result={})

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert statuses(store) == {"a": "complete", "b": "complete"}  # the index is then in memory
        with pytest.raises(LabError, match="No space left on device"):
            store.reindex()
        assert [doc["id"] for doc in Store(store.runs_folder).all()] == ["a"]
    assert statuses(store) == {"a": "complete", "b": "complete"}
    assert statuses(Store(store.runs_folder)) == {"a": "complete", "b": "complete"}


WRITER = """
import sys, pathlib
from lab.results.store import Store
store = Store(pathlib.Path(sys.argv[1]))
store.refresh()
print("ready", flush=True)
n = 0
while True:
    n += 1
    store.annotate(store.all()[n % 3]["id"], note=str(n))
"""


@pytest.mark.whole
def test_a_killed_writer_loses_no_finished_run(store):
    for name in ("a", "b", "c"):
        put(store.runs_folder, name, result={})
    dice = random.Random(7)
    for _ in range(4):
        argv = [sys.executable, "-c", WRITER, str(store.runs_folder)]
        with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE) as child:
            child.stdout.readline()
            time.sleep(dice.uniform(0, 0.1))
            child.kill()
        reopened = Store(store.runs_folder)
        assert statuses(reopened) == dict.fromkeys("abc", "complete")
        assert not reopened.recovered


def test_a_killed_run_is_cut_and_keeps_its_samples(store):
    store.runs_folder.mkdir()
    out = store.runs_folder / "killed"
    argv = [
        sys.executable,
        str(ROOT / "tests" / "fake_engine.py"),
        "run",
        "testbed_wifi_lte",
        "--engine",
        "slow",
    ]
    with subprocess.Popen(
        [*argv, "--out", str(out), "--quiet"], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}
    ) as child:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and not (out / "samples.jsonl").exists():
            time.sleep(0.02)
        assert statuses(store) == {"killed": "running"}
        child.send_signal(signal.SIGKILL)
    assert statuses(store) == {"killed": "cut"}
