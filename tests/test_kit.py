"""A kit sets up a machine without a network: what is in it, and how run_lab.sh installs from it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from users_files import _only_built_in, lab

from lab import installed, kit
from lab.cli import pack_offline
from lab.results.packages import LOCKS, locked, locked_lines
from lab.run import manifest

__all__ = ["_only_built_in"]

ROOT = Path(__file__).resolve().parents[1]
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
HERE = f"{platform.system()} {platform.machine()}"
PROGRAM = "import sys, demo; print(demo.WORD, *sys.argv[1:])\n"


def wheel(path: Path, name: str, version: str, files: dict[str, bytes]) -> str:
    """Write a wheel, and return its line for a lock file."""
    info = f"{name}-{version}.dist-info"
    about = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "".join(f"{each},,\n" for each in files),
    }
    file = path / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for each, content in (files | {k: v.encode() for k, v in about.items()}).items():
            archive.writestr(each, content)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return f"{name}=={version} --hash=sha256:{digest}\n"


def pip_itself() -> tuple[str, dict[str, bytes]]:
    found = importlib.metadata.distribution("pip")
    files = {
        str(each): Path(each.locate()).read_bytes()
        for each in found.files or ()
        if each.parts[0] == "pip" and each.suffix != ".pyc"
    }
    return found.version, files


@pytest.fixture
def kit_folder(tmp_path):
    """A kit with a program that needs one package."""
    folder = tmp_path / "a lab"
    wheels = folder / "kit" / kit.WHEELS
    for each in (wheels, folder / "locks", folder / "lab"):
        each.mkdir(parents=True)
    shutil.copy(ROOT / "run_lab.sh", folder)
    (folder / "lab" / "__main__.py").write_text(PROGRAM)
    line = wheel(wheels, "demo", "1", {"demo.py": b"WORD = 'packed'\n"})
    (folder / "locks" / "run.txt").write_text(line)
    (folder / "kit" / kit.PIP).write_text(wheel(wheels, "pip", *pip_itself()))
    about = f"machine {HERE}\npython {VERSION}\ncommit abc\n"
    (folder / "kit" / kit.ABOUT).write_text(about)
    return folder


def called(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Call run_lab.sh, which would not find its package at any other place than the kit."""
    programs = folder.parent / "programs"
    programs.mkdir(exist_ok=True)
    (programs / f"python{VERSION}").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (programs / f"python{VERSION}").chmod(0o755)
    own = {"PATH": f"{programs}:/usr/bin:/bin", "PIP_INDEX_URL": "http://127.0.0.1:9/simple"}
    left_out = ("PIP_FIND_LINKS", "SUDO_UID")
    return subprocess.run(
        ["./run_lab.sh", *words],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key not in left_out} | own,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.whole
def test_packages_come_from_the_kit_without_a_network_and_by_their_hashes(kit_folder):
    file = next((kit_folder / "kit" / kit.WHEELS).glob("demo-*"))
    content = file.read_bytes()
    file.write_bytes(content + b"x")
    done = called(kit_folder, "list", "cc")
    assert (done.returncode, done.stdout) == (3, "")
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert "pip failed, see above. The kit has what" in done.stderr
    file.write_bytes(content)
    done = called(kit_folder, "list", "cc")
    assert (done.returncode, done.stdout) == (0, "packed list cc\n")
    assert done.stderr == "installing packages ...\n"
    again = called(kit_folder, "again")
    assert (again.stdout, again.stderr) == ("packed again\n", "")


@pytest.mark.whole
@pytest.mark.skipif(not shutil.which("flock"), reason="flock is missing: commands do not wait")
def test_of_two_first_commands_one_installs_and_the_other_waits(kit_folder):
    called(kit_folder, "make the .venv")
    next((kit_folder / ".venv").glob("*.stamp")).unlink()
    with ThreadPoolExecutor() as both:
        done = list(both.map(lambda word: called(kit_folder, word), ("one", "two")))
    assert {each.stdout for each in done} == {"packed one\n", "packed two\n"}
    assert sorted(each.stderr for each in done) == ["", "installing packages ...\n"]


@pytest.mark.parametrize(
    ("here", "elsewhere", "says"),
    [
        (f"python {VERSION}", "python 3.99", "this kit is for Python 3.99, which is not here"),
        (f"machine {HERE}", "machine Linux s390x", "this kit is for Linux s390x, and this machine"),
    ],
)
def test_a_kit_for_another_machine_is_refused_before_anything_is_made(
    kit_folder, here, elsewhere, says
):
    about = kit_folder / "kit" / kit.ABOUT
    about.write_text(about.read_text().replace(here, elsewhere))
    done = called(kit_folder, "list", "cc")
    assert (done.returncode, done.stdout) == (3, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (kit_folder / ".venv").exists()


def test_a_kit_has_the_tracked_files_and_the_packages(tmp_path, monkeypatch):
    asked = []

    def download(locks, wheels, which=""):
        asked.append(([each.name for each in locks], which))
        wheels.mkdir(exist_ok=True)
        (wheels / "demo-1-py3-none-any.whl").write_bytes(b"x" * 2_000_000)

    monkeypatch.setattr(pack_offline, "_download", download)
    target = tmp_path / "stick" / "kit.tar"
    target.parent.mkdir()
    done = lab("pack-offline", "-o", target)
    assert done.exit_code == 0, done.output
    assert asked == [([kit.PIP, "run.txt", "fast.txt"], "")]
    size = round(target.stat().st_size / 1e6)
    assert f"{size} MB, SHA-256 {hashlib.sha256(target.read_bytes()).hexdigest()}" in done.output
    assert [each.name for each in target.parent.iterdir()] == ["kit.tar"]
    tracked = subprocess.run(
        ["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    with tarfile.open(target) as archive:
        members = {each.name.removeprefix("mptcp-lab/"): each for each in archive}
        about = archive.extractfile("mptcp-lab/kit/about").read().decode()
        pip = archive.extractfile("mptcp-lab/kit/pip.txt").read().decode()
    kits = {f"kit/{each}" for each in (kit.ABOUT, kit.PIP, "wheels/demo-1-py3-none-any.whl")}
    assert {*members} == {*(each for each in tracked if (ROOT / each).exists())} | kits
    assert {each.mode for each in members.values()} == {0o644, 0o755}
    assert members["run_lab.sh"].mode == 0o755
    assert {(each.uid, each.uname) for each in members.values()} == {(0, "")}
    assert f"machine {HERE}\npython {VERSION}\n" in about
    assert "system" not in about
    assert pip.startswith("pip==")
    assert "--hash=sha256:" in pip


@pytest.mark.parametrize("name", ["run.txt", "dev.txt"])
def test_the_lines_of_each_package_make_up_its_lock(name):
    lock = LOCKS / name
    lines = [locked_lines(lock, each.name) for each in locked(lock)]
    assert "".join(lines) == lock.read_text()


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("kit.zip", "it must end in .tar: write"),
        ("there.tar", "is there already"),
        ("none/kit.tar", "there is no folder"),
    ],
)
def test_a_target_that_does_not_do_is_refused(tmp_path, target, says):
    (tmp_path / "there.tar").touch()
    done = lab("pack-offline", "-o", tmp_path / target)
    assert done.exit_code == 2
    assert says in done.output
    assert [each.name for each in tmp_path.iterdir()] == ["there.tar"]


def test_a_failed_download_is_one_line_and_leaves_nothing(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "WARNING: x\nERROR: no route\n")
    run = subprocess.run

    def answer(argv, **more):
        return failed if "download" in argv else run(argv, **more)

    monkeypatch.setattr(pack_offline.subprocess, "run", answer)
    done = lab("pack-offline", "-o", tmp_path / "kit.tar")
    assert done.exit_code == 4
    assert "ERROR: no route. Check the network connection" in done.output
    assert [*tmp_path.iterdir()] == []


def test_runs_of_a_kit_name_its_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(kit, "FOLDER", tmp_path)
    monkeypatch.delenv("MULTIPATH_LAB_COMMIT", raising=False)
    digest = installed.sources_sha256()
    for recorded, named in ((digest, "abc"), ("0" * 64, "abc+")):
        (tmp_path / kit.ABOUT).write_text(f"commit abc\nsources_sha256 {recorded}\n")
        manifest.commit.cache_clear()
        assert manifest.commit() == named
    (tmp_path / kit.ABOUT).unlink()
    manifest.commit.cache_clear()
    assert manifest.commit() not in ("abc", "abc+")
    manifest.commit.cache_clear()


def test_a_kit_packs_no_kit(tmp_path, monkeypatch):
    monkeypatch.setattr(kit, "FOLDER", tmp_path)
    (tmp_path / kit.ABOUT).write_text(f"machine {HERE}\n")
    done = lab("pack-offline", "-o", tmp_path / "kit.tar")
    assert done.exit_code == 3
    assert "needs a clone" in done.output
