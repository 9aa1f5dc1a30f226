"""Whether the process that writes a run folder is still running."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from lab.run import process


def test_this_process_is_alive_and_an_ended_one_is_not(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    named = {
        "pid": child.pid,
        "pid_started": process.started(child.pid),
        "boot_id": process.boot_id(),
    }
    assert process.alive(named, tmp_path)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not process.alive(named, tmp_path)  # also not while it is a zombie
    child.communicate()
    assert not process.alive(named, tmp_path)


def test_a_reused_id_is_another_process(tmp_path):
    mine = {
        "pid": os.getpid(),
        "pid_started": process.started(os.getpid()),
        "boot_id": process.boot_id(),
    }
    assert process.alive(mine, tmp_path)
    assert mine["pid_started"] is None or not process.alive(mine | {"pid_started": 1}, tmp_path)


def test_a_run_of_another_kernel_is_judged_by_the_age_of_its_files(tmp_path):
    inside = {"pid": os.getpid(), "pid_started": 7, "boot_id": "another"}
    samples = tmp_path / "samples.jsonl"
    samples.touch()
    assert process.alive(inside, tmp_path)
    os.utime(samples, (0, time.time() - 2 * process.QUIET_S))
    assert not process.alive(inside, tmp_path)
