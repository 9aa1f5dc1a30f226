"""The set-up and a short run work on machines that differ: another Python, odd paths, no home, a
narrow umask, no git."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = (".git", ".venv", "data", "__pycache__", ".*_cache", ".hypothesis")
RUN = ("run", "two_paths", "--duration", "1", "--quiet", "--out")


def copied(place: Path) -> Path:
    """Copy the lab, with its .venv as a link."""
    shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
    (place / ".venv").symlink_to((ROOT / ".venv").resolve())
    return place


def called(place: Path, *words: str, **changes: str | None) -> subprocess.CompletedProcess:
    """Call run_lab.sh of a copy. A variable that is None is not set."""
    variables = os.environ | {"NUMBA_DISABLE_JIT": "1"} | changes
    return subprocess.run(
        ["sh", "-c", 'umask "${UMASK:-022}"; exec ./run_lab.sh "$@"', "sh", *words],
        cwd=place,
        env={key: value for key, value in variables.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=900,
    )


def works(place: Path, out: Path, **changes: str | None) -> dict[str, object]:
    """Call the two commands; return the manifest of the run."""
    listed = called(place, "list", "scenarios", **changes)
    assert (listed.returncode, listed.stderr) == (0, ""), listed.stderr
    assert "two_paths" in listed.stdout
    done = called(place, *RUN, str(out), **changes)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads((out / "result.json").read_text())["status"] == "complete"
    manifest: dict[str, object] = json.loads((out / "manifest.json").read_text())
    return manifest


@pytest.mark.parametrize(
    "name",
    ["a lab", "\u00dcbung f\u00fcr M\u00f6we", 'it\'s $HOME; (1) & "2"', "\u5b9f\u9a13 \U0001f4e1"],
)
def test_it_works_in_folders_with_odd_names(tmp_path, name):
    works(copied(tmp_path / name), tmp_path / f"{name} run")


@pytest.mark.parametrize("language", ["C", "C.UTF-8", "POSIX"])
def test_it_works_in_such_a_folder_without_a_language(tmp_path, language):
    name = "\u00dcbung 1"
    works(copied(tmp_path / name), tmp_path / f"{name} run", LC_ALL=language, PYTHONUTF8=None)


def test_it_works_without_a_home(tmp_path):
    works(copied(tmp_path / "lab"), tmp_path / "run", HOME=None)


def test_it_works_with_a_home_that_is_not_there(tmp_path):
    works(copied(tmp_path / "lab"), tmp_path / "run", HOME=str(tmp_path / "nobody"))
    assert not (tmp_path / "nobody").exists()


def test_it_works_with_a_narrow_umask(tmp_path):
    works(copied(tmp_path / "lab"), tmp_path / "run", UMASK="077")
    found = [tmp_path / "run", *(tmp_path / "run").rglob("*")]
    assert [each for each in found if stat.S_IMODE(each.stat().st_mode) & 0o077] == []


def test_it_works_without_git(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for each in Path(folder).iterdir():
            if not each.name.startswith("git") and not (programs / each.name).is_symlink():
                (programs / each.name).symlink_to(each)
    assert shutil.which("git", path=str(programs)) is None
    manifest = works(copied(tmp_path / "lab"), tmp_path / "run", PATH=str(programs))
    assert manifest["versions"]["lab"]


def other_python(version: str) -> str:
    """Path of this Python on this machine; the test is skipped without it."""
    places = [
        shutil.which(f"python{version}"),
        *Path.home().glob(f".pyenv/versions/{version}.*/bin/python"),
    ]
    for each in filter(None, places):
        words = [
            str(each),
            "-c",
            "import venv, ensurepip, sys; print('%d.%d' % sys.version_info[:2])",
        ]
        if subprocess.run(words, capture_output=True, text=True).stdout.strip() == version:
            return str(each)
    pytest.skip(
        f"PYTHON {version} IS NOT TESTED: this machine does not have it, with its module venv"
    )


@pytest.mark.long
@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_it_sets_itself_up_with_another_python(tmp_path, version):
    """From nothing: it makes .venv and installs the locked packages, which needs a network."""
    python = other_python(version)
    place = copied(tmp_path / "lab")
    (place / ".venv").unlink()
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3.11").symlink_to(python)  # the first name that run_lab.sh looks for
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = called(place, "list", "scenarios", PATH=path)
    assert done.returncode == 0, done.stderr
    assert "setting up .venv" in done.stderr
    manifest = works(place, tmp_path / "run", PATH=path)
    assert str(manifest["versions"]["python"]).startswith(version)
    assert not str(sys.version).startswith(version)
