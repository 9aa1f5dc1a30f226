"""Run folders keep what was recorded: after a kill, on a full disk, under sudo."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from lab import sudo
from lab.errors import LabError, RequestError
from lab.frame import Frame
from lab.run.reading import Follower, read_events, read_samples
from lab.run.recorder import new_folder
from lab.scenario.loading import experiment, from_data

ROOT = Path(__file__).resolve().parents[1]


def test_a_new_folder_has_a_manifest_and_the_scenario(load_testbed, record):
    scenario = load_testbed("strategy.name=meter_throttling")
    folder = record(scenario).folder
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["experiment"] == experiment(scenario, "fake")
    assert manifest["params"]["cth"] == 0.85
    assert manifest["links_asked"]["wifi1"]["ue1"] == {"rate_mbps": 42.0}
    assert manifest["host"]["kernel"]
    assert from_data(yaml.safe_load((folder / "scenario.yaml").read_text()), "x") == scenario
    assert {path.name for path in folder.iterdir()} == {
        "manifest.json", "scenario.yaml", "samples.jsonl", "events.jsonl", "commands.sh", "log.txt", "inbox", ".reserve",
    }  # fmt: skip


def test_fields_can_be_added_to_the_manifest(load_testbed, record):
    recorder = record(load_testbed())
    recorder.describe(links_measured={"wifi1": {"rate_mbps": 10.4}}, versions={"pox": "1"})
    manifest = json.loads((recorder.folder / "manifest.json").read_text())
    assert manifest["links_measured"] == {"wifi1": {"rate_mbps": 10.4}}
    assert {"pox", "lab", "python"} <= set(manifest["versions"])


def test_two_runs_of_the_same_second_get_two_folders(load_testbed, tmp_path):
    folders = {new_folder(load_testbed(), runs=tmp_path / "runs") for _ in range(3)}
    assert len(folders) == 3
    assert all("testbed_wifi_lte" in folder.name for folder in folders)


def test_an_occupied_folder_is_refused(load_testbed, tmp_path):
    (tmp_path / "x").touch()
    with pytest.raises(RequestError, match="not empty"):
        new_folder(load_testbed(), out=tmp_path)


def test_an_incomplete_last_line_is_left_out_and_other_damage_is_an_error(tmp_path):
    (tmp_path / "samples.jsonl").write_bytes(b'{"t":1}\n{"t":2}\n{"t":3,"us')
    assert read_samples(tmp_path) == [{"t": 1}, {"t": 2}]
    (tmp_path / "events.jsonl").write_bytes(b'{"t":1}\n{"t":\n{"t":3}\n')
    with pytest.raises(RequestError, match="line 2 is damaged"):
        read_events(tmp_path)


def test_a_killed_process_leaves_every_line_it_wrote(tmp_path):
    program = (
        "import sys, time; from pathlib import Path; from lab.scenario import loading as scenario;"
        " from lab.run.recorder import Recorder; from lab.frame import Frame; s ="
        " scenario.load('testbed_wifi_lte'); r = Recorder(Path(sys.argv[1]), s, 'fake')\nfor n in"
        " range(100): r.sample(Frame(n))\nprint('written', flush=True); time.sleep(60)"
    )
    argv = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGKILL)
    assert len(read_samples(tmp_path)) == 100


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_clear_error(load_testbed, record):
    recorder = record(load_testbed())
    recorder.sample(Frame(0.5))
    recorder.event(0.5, "warning")
    (recorder.folder / "log.txt").unlink()
    (recorder.folder / "log.txt").symlink_to("/dev/full")
    with pytest.raises(LabError, match=r"record log.txt in .*[Nn]o space left.*kept"):
        recorder.log("x")
    with pytest.raises(LabError, match="kept"):
        recorder.sample(Frame(1.0))  # recording has stopped
    recorder.close()
    assert [frame["t"] for frame in read_samples(recorder.folder)] == [0.5]


def test_a_result_is_complete_or_missing(load_testbed, record, monkeypatch):
    recorder = record(load_testbed())

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LabError, match=r"result\.json"):
        recorder.result({"schema": 1})
    assert not (recorder.folder / "result.json").exists()


def test_under_sudo_the_folder_belongs_to_the_caller(load_testbed, record, monkeypatch):
    given = []
    monkeypatch.setattr(sudo, "caller", lambda: (1234, 99))
    monkeypatch.setattr(
        os, "chown", lambda path, uid, gid, **_: given.append((Path(path).name, uid, gid))
    )
    recorder = record(load_testbed())
    recorder.sample(Frame(1))
    recorder.close()
    assert ("samples.jsonl", 1234, 99) in given
    assert ("run", 1234, 99) in given


def test_commands_are_kept_with_their_time(load_testbed, record):
    recorder = record(load_testbed())
    recorder.command(["tc", "qdisc", "add", "dev", "a b"], t=1.5)
    assert (recorder.folder / "commands.sh").read_text() == "tc qdisc add dev 'a b'  # 1.500 s\n"


def test_a_follower_waits_for_the_end_of_a_line(tmp_path):
    path = tmp_path / "lines"
    follower = Follower(path)
    assert follower.new() == []
    path.write_text('{"a":1}\n{"a"')
    assert follower.new() == [{"a": 1}]
    with path.open("a") as file:
        file.write(":2}\n")
    assert follower.new() == [{"a": 2}]
    assert follower.new() == []


def test_starting_a_recorder_is_quick(load_testbed, record):
    before = time.monotonic()
    record(load_testbed())
    assert time.monotonic() - before < 2
