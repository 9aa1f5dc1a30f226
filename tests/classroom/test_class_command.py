"""The commands `class` and `class wipe`."""

from __future__ import annotations

import re
import signal
import ssl
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import pytest
from click.testing import CliRunner
from filelock import FileLock

from lab.classroom import folder, journal
from lab.cli.commands import cli

SERVE = """
import sys
from pathlib import Path
from dashboard.classroom import serve
classes, sheet, *tls = map(Path, sys.argv[1:])
wanted = serve.Options("test", worksheets=(str(sheet),), **dict(zip(("certificate", "key"), tls)))
serve.serve(wanted, classes)
"""


@pytest.fixture
def classes(class_folder, monkeypatch):
    monkeypatch.setattr(folder, "CLASSES", class_folder.path.parent)
    return class_folder.path.parent


def wipe(*argv, answer="y\n"):
    return CliRunner().invoke(cli, ["class", "wipe", *argv], input=answer)


def test_a_class_is_wiped_after_asking(classes):
    assert wipe("test", answer="n\n").exit_code == 1
    assert (classes / "test").exists()
    with FileLock(classes / "test" / folder.LOCK):
        done = wipe("test")
        assert (done.exit_code, "being served" in done.output) == (2, True)
    assert wipe("test").exit_code == 0
    assert not list(classes.iterdir())
    done = wipe("test")
    assert (done.exit_code, "there is no class yet" in done.output) == (2, True)
    assert wipe("../test").exit_code == 2


@contextmanager
def serving(place, sheet, *tls):
    """Serve a class in a process; yield the process and its output so far."""
    argv = [sys.executable, "-c", SERVE, str(place / "classes"), str(sheet), *map(str, tls)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "Ctrl-C" in line:
                break
        yield process, "".join(lines)
        process.kill()


def test_the_command_prints_the_links_and_ends_with_a_signal(tmp_path, sheet):
    with serving(tmp_path, sheet) as (process, printed):
        check_links(printed)
        process.send_signal(signal.SIGTERM)
        said = process.stdout.read()
        assert process.wait(60) == 0
    head = journal.read(tmp_path / "classes" / "test" / "journal.jsonl").head
    assert f"  {head}\n" in said
    assert "./run_lab.sh grade test --digest" in said


def check_links(printed):
    join = re.search(r"http://127\.0\.0\.1:\d+/\?code=[A-Z]{6}", printed)[0]
    assert re.search(r"/projector\?key=[\w-]{32}\n", printed)
    assert "--host" in printed
    about = join.partition("?")[0] + "api/class"
    with urllib.request.urlopen(about, timeout=60) as answer:
        assert b'"name":"test"' in answer.read()


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_a_class_that_is_wiped_on_its_page_answers_and_ends(tmp_path, sheet, request, tls):
    files = request.getfixturevalue("certificate") if tls else ()
    with serving(tmp_path, sheet, *files) as (process, printed):
        link, key = re.search(
            r"(https?://127\.0\.0\.1:\d+)/instructor\?key=(\S+)", printed
        ).groups()
        assert link.startswith("https") == tls
        headers = {
            "Cookie": f"lab_{link.rpartition(':')[2]}_instructor={key}",
            "Content-Type": "application/json",
        }
        address = f"{link}/api/instructor/wipe"
        wanted = urllib.request.Request(address, b'{"name": "test"}', headers)
        trust = ssl.create_default_context(cafile=files[0]) if tls else None
        with urllib.request.urlopen(wanted, timeout=60, context=trust) as answer:
            assert (answer.status, answer.read()) == (200, b"{}\n")
        assert process.wait(60) == 0
    assert not list((tmp_path / "classes").iterdir())
