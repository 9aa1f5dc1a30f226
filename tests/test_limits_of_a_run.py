"""Whatever others put into the inbox or the folders, and whatever the machine lacks, a run ends
with a result."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from pathlib import Path

import pytest

from lab.engines.mininet.machine import lock
from lab.engines.sim import code_cache
from lab.errors import MachineLacks
from lab.results.store import AtomicStorage
from lab.run import inbox, recorder
from lab.run.reading import Follower, read_events, read_samples

BAD = [
    b"[" * 2000,
    b'{"target": "link.path1.loss", "value": 1' + b"0" * 400 + b"}",
    b'{"control": "speed", "value": 1' + b"0" * 400 + b"}",
    b'{"control": "speed", "value": 1e308}',
    b'{"control": "speed", "value": 1e-308}',
    b'{"control": ["pause"]}',
    b'{"control": {"a": 1}, "value": []}',
    b'{"target": "\\ud800", "value": "\\udfff"}',
    b'{"target": "strategy", "value": {"name": {"a": 1}}}',
    b'{"target": "strategy", "value": {"name": "none", "params": 5}}',
    b'{"target": "cc", "value": {"a": [1]}}',
    b'{"target": "strategy.cth", "value": "x\xe2\x80\xa8y"}',
    b'{"target": "' + b"x" * 60_000 + b'"}',
    b'{"target": 5, "value": NaN}',
    b"\xff\xfe",
    b"",
    b"x" * 70_000,
]


def test_no_message_ends_a_run(go, monkeypatch):
    """All messages are there when the run begins; each is refused with a reason."""
    receive, sent = inbox.receive, []

    def fill(folder: Path):
        if not sent:
            box = folder / "inbox"
            for n, text in enumerate(BAD):
                (box / f"{n:03d}.json").write_bytes(text)
            (box / "900.json").mkdir()
            os.mkfifo(box / "901.json")
            (box / "902.json").symlink_to("/dev/zero")
            (box / os.fsdecode(b"903\xff.json")).write_text("{}")
            sent.append(True)
            os.utime(box)
        yield from receive(folder)

    monkeypatch.setattr(inbox, "receive", fill)
    began = time.monotonic()
    outcome, _ = go()
    assert time.monotonic() - began < 5
    assert (outcome.exit_code, outcome.result["status"]) == (0, "complete")
    noted = [each for each in read_events(outcome.folder) if each["kind"] in ("flip", "control")]
    noted = [each for each in noted if each.get("state") != "sent"]
    assert len(noted) == len(BAD) + 4
    assert not list((outcome.folder / "inbox").iterdir())
    taken = [each for each in noted if each["ok"]]
    assert all(each.get("control") == "speed" for each in taken)


def test_a_line_separator_inside_of_a_text_is_no_end_of_a_line(load_testbed, record):
    made = record(load_testbed())
    made.event(1.0, "warning", text="a\u2028b\x85c")
    made.event(2.0, "warning", text="half of a pair: \ud800")
    follower = Follower(made.folder / "events.jsonl")
    assert [each["text"] for each in follower.new()] == ["a\u2028b\x85c", "half of a pair: ?"]
    assert len(read_events(made.folder)) == 2


def test_a_follower_leaves_out_damaged_lines(tmp_path):
    path = tmp_path / "decisions.jsonl"
    path.write_bytes(b'{"a": 1}\nnonsense{"a": 2}\n[1]\n\xff\n{"a": 3}\n')
    assert Follower(path).new() == [{"a": 1}, {"a": 3}]


def test_a_full_disk_leaves_a_result_that_says_so(go, monkeypatch):
    append = recorder.Recorder._append

    def full(self, name: str, text: str) -> None:
        if name == "samples.jsonl" and len(read_samples(self.folder)) > 1:
            raise self._failed(name, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        append(self, name, text)

    monkeypatch.setattr(recorder.Recorder, "_append", full)
    outcome, _ = go()
    kept = json.loads((outcome.folder / "result.json").read_text())
    assert (outcome.exit_code, kept["status"]) == (4, "failed")
    assert "No space left on device" in kept["error"]
    assert not (outcome.folder / recorder.RESERVE).exists()


def test_room_for_the_result_is_reserved_from_the_start(load_testbed, record):
    made = record(load_testbed())
    assert (made.folder / recorder.RESERVE).stat().st_size == recorder.RESERVED_BYTES


def test_a_folder_that_is_removed_during_the_run_is_a_failed_run(go, monkeypatch):
    sample = recorder.Recorder.sample

    def gone(self, frame) -> None:
        sample(self, frame)
        shutil.rmtree(self.folder, ignore_errors=True)

    monkeypatch.setattr(recorder.Recorder, "sample", gone)
    outcome, _ = go()
    assert outcome.exit_code == 4
    assert outcome.error


def test_a_run_folder_is_readable_for_its_owner_only(load_testbed, tmp_path):
    for made in (
        recorder.new_folder(load_testbed(), runs=tmp_path / "runs"),
        recorder.new_folder(load_testbed(), out=tmp_path / "a" / "b"),
    ):
        assert made.stat().st_mode & 0o777 == 0o700


def test_copies_that_are_links_of_one_another_do_not_stop_writing(tmp_path):
    storage = AtomicStorage(tmp_path / "index.json")
    for n in range(3):
        storage.write({"runs": {"1": {"n": n}}})
    for n in (1, 2, 3):
        copy = tmp_path / f"index.json.{n}"
        copy.unlink(missing_ok=True)
        os.link(tmp_path / "index.json", copy)
    for n in range(3, 9):
        storage.write({"runs": {"1": {"n": n}}})
    kept = [
        json.loads((tmp_path / f"index.json{end}").read_text()) for end in ("", ".1", ".2", ".3")
    ]
    assert [each["runs"]["1"]["n"] for each in kept] == [8, 7, 6, 5]


def test_the_lock_file_of_the_emulation_is_no_link(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("content")
    for make in (os.symlink, os.link):
        path = tmp_path / make.__name__
        make(precious, path)
        with pytest.raises(MachineLacks, match="lock file"), lock.hold("a test", path=path):
            pass
    with pytest.raises(MachineLacks, match="lock file"):
        lock.holder(tmp_path / "symlink")
    assert precious.read_text() == "content"


def test_compiled_code_of_another_user_is_refused(tmp_path, monkeypatch):
    where = tmp_path / "cache"
    with code_cache.compiling(where) as must:
        assert must
    assert code_cache.is_complete(where)
    assert where.stat().st_mode & 0o077 == 0
    where.chmod(0o777)
    with pytest.raises(MachineLacks, match="only you can write"):
        code_cache.is_complete(where)
    where.chmod(0o700)
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    monkeypatch.setattr(code_cache, "ROOT_ID", -1)
    for use in (code_cache.is_complete, code_cache.is_being_compiled):
        with pytest.raises(MachineLacks, match="MULTIPATH_LAB_CACHE"):
            use(where)
