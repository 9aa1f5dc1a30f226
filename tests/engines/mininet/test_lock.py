"""One emulation at a time, however each of them ends."""

import os
import subprocess
import sys
import time

import pytest

from lab.engines.mininet.machine import lock
from lab.errors import MachineLacks

HOLDER = """
import sys, time
from pathlib import Path
from lab.engines.mininet.machine import lock
with lock.hold("run a", path=Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lock"


@pytest.fixture
def other(path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_it_has_a_holder_only_while_it_is_held(path):
    assert lock.holder(path) is None
    with lock.hold("run a", path=path):
        assert lock.holder(path).task == "run a"
        assert lock.holder(path).pid == os.getpid()
    assert lock.holder(path) is None


def test_a_second_start_is_refused_with_the_name_of_the_holder(path, other):
    with (
        pytest.raises(
            MachineLacks,
            match=rf"start run b: .* taken by run a \(process {other.pid}, since "
            r".*--wait.*clean --force",
        ),
        lock.hold("run b", path=path),
    ):
        pytest.fail("two held the lock")


def test_a_killed_holder_releases_it(path, other):
    other.kill()
    other.wait()
    assert lock.holder(path) is None
    with lock.hold("run b", path=path):
        assert lock.holder(path).task == "run b"


def test_waiting_ends_when_the_holder_ends(path, other):
    started = time.monotonic()
    with (
        subprocess.Popen(["sh", "-c", f"sleep 0.8; kill -9 {other.pid}"]),
        lock.hold("run b", wait=True, path=path),
    ):
        assert time.monotonic() - started > 0.7


def test_other_users_may_lock_it(path):
    with lock.hold("run a", path=path):
        assert path.stat().st_mode & 0o777 == 0o666


def test_a_forged_process_number_is_not_believed(path, other):
    path.write_text('{"pid": 1, "what": "run a", "since": 0}')
    assert lock.holder(path).pid == other.pid
