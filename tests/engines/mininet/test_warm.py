"""Programs run in forks of a Python that has its imports done, as in a restored VM."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.engines.mininet.machine import shell, warm
from vm import warm_python

SERVER = """
import sys
from pathlib import Path
sys.path.insert(0, {project!r})
from vm import restored_root, warm_python as warm
warm.FOLDER = Path({folder!r})
warm.import_all = lambda pox: []
restored_root.mount = lambda started: False
(warm.FOLDER / "complete").touch()
warm.run(warm.serve(Path("/")))
"""


@pytest.fixture
def forks(tmp_path, monkeypatch):
    """Start the serving process; programs of the test then run in forks of it."""
    folder = tmp_path / "warm"
    (folder / "requests").mkdir(parents=True)
    code = SERVER.format(project=str(warm_python.PROJECT), folder=str(folder))
    monkeypatch.setattr(warm, "FOLDER", folder)
    with subprocess.Popen([sys.executable, "-c", code, "x" * 200]) as server:
        while not (folder / "ready").exists():
            assert server.poll() is None
            time.sleep(0.01)
        yield folder
        server.kill()


def start(tmp_path, *words, **variables):
    env = {"PATH": os.environ["PATH"], **variables}
    return warm.start(
        [sys.executable, *words], "try it", cwd=tmp_path, env=env, log=tmp_path / "log.txt"
    )


def test_a_program_has_the_arguments_environment_and_folder_of_its_request(tmp_path, forks):
    (tmp_path / "two words.py").write_text(
        "import os, sys; print(sys.argv[1:], os.environ['NOTE'], os.getcwd()); "
        "print('error', file=sys.stderr); sys.exit(7)"
    )
    program = start(tmp_path, "-u", str(tmp_path / "two words.py"), "a b", "", NOTE="n\nn")
    assert program.wait(20) == 7
    assert (tmp_path / "log.txt").read_text() == f"['a b', ''] n\nn {tmp_path}\nerror\n"


def test_a_module_runs_as_with_m(tmp_path, forks):
    (tmp_path / "own.py").write_text("import sys; print(__name__, sys.argv[1:], sys.path[0])")
    assert start(tmp_path, "-SE", "-m", "own", "word").wait(20) == 0
    assert (tmp_path / "log.txt").read_text() == f"__main__ ['word'] {tmp_path}\n"


def test_random_numbers_differ_between_forks(tmp_path, forks):
    for _ in range(2):
        assert start(tmp_path, "-c", "import random; print(random.random())").wait(20) == 0
    first, second = (tmp_path / "log.txt").read_text().split()
    assert first != second


def test_a_program_is_listed_by_its_command_line_and_ends_by_signals(tmp_path, forks):
    waiting = "import time; time.sleep(60)"
    for end, status in (("terminate", -signal.SIGTERM), ("kill", -signal.SIGKILL)):
        program = start(tmp_path, "-c", waiting)
        shown = Path(f"/proc/{program.pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        deadline = time.monotonic() + 5
        while shown[1:] != [b"-c", waiting.encode()] and time.monotonic() < deadline:
            shown = Path(f"/proc/{program.pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        assert shown[1:] == [b"-c", waiting.encode()]
        assert program.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            program.wait(0.05)
        getattr(program, end)()
        assert program.wait(20) == status
        with contextlib.suppress(ProcessLookupError):
            os.kill(program.pid, 0)
            pytest.fail("it is still there")


def test_without_a_warm_python_a_new_process_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(warm, "FOLDER", tmp_path / "missing")
    journal = []
    with shell.journal_to(lambda _at, argv, _stdin: journal.append(argv)):
        program = start(tmp_path, "-c", "print('new')")
    assert program.wait(20) == 0
    assert (tmp_path / "log.txt").read_text() == "new\n"
    assert len(journal) == 1


def test_what_must_be_imported_after_pox_has_started_is_forgotten(monkeypatch):
    import types

    early, right = types.ModuleType("controller.early"), types.ModuleType("controller.right")
    early.core, right.core = None, object()
    for module in (early, right):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    warm_python._forget(warm_python._holds_no_core)
    assert "controller.early" not in sys.modules
    assert "controller.right" in sys.modules
