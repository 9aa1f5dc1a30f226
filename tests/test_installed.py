"""What pip installs from a wheel, and from an sdist: the command `mptcp-lab`."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

from lab import __version__, installed
from lab.run import manifest

ROOT = Path(__file__).resolve().parents[1]
COMMIT = re.compile(r"[0-9a-f]{12}\+?")


def build(source: Path, kind: str, to: Path) -> Path:
    """Build a `wheel` or an `sdist` of the sources."""
    pytest.importorskip("hatchling", reason="hatchling is missing: see requirements-dev.txt")
    argv = [sys.executable, "-P", "-m", "hatchling", "build", "--target", kind, "--directory"]
    subprocess.run([*argv, str(to)], cwd=source, check=True, capture_output=True)
    return next(to.iterdir())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def command(wheel, tmp_path_factory):
    """Run `mptcp-lab` of an environment that lies in a git repository of somebody else. Its folder
    is `command.root`, the user's folder for data `command.data`."""
    folder = tmp_path_factory.mktemp("repository of a user")
    git = ["git", "-C", str(folder), "-c", "user.name=U", "-c", "user.email=u@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "theirs"], check=True)
    venv.create(folder / "env", with_pip=False)
    packages = next((folder / "env").glob("lib/python*/site-packages"))
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    into = ["-m", "pip", "--python", str(folder / "env" / "bin" / "python"), "install", "--quiet"]
    subprocess.run([sys.executable, *into, "--no-deps", "--no-index", str(wheel)], check=True)
    variables = {
        **{key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        "XDG_DATA_HOME": str(folder / "user"),
        "MULTIPATH_LAB_CACHE": str(folder / "cache"),
        "NUMBA_DISABLE_JIT": "1",  # each folder of sources would be compiled
    }

    def run(*words: str, **more):
        argv = [str(folder / "env" / "bin" / "mptcp-lab"), *words]
        more = {"timeout": 300, "capture_output": True, "text": True, **more}
        return subprocess.run(argv, cwd=folder, env=variables, check=False, **more)

    run.root, run.data = packages / "mptcp_sdn_lab", folder / "user" / "multipath-lab"
    run.folder, run.variables = folder, variables
    return run


def content(archive: zipfile.ZipFile) -> dict[str, bytes]:
    return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.whole
def test_a_wheel_has_one_package_the_requirements_and_the_licences(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = next(name.partition("/")[0] for name in names if name.endswith("/METADATA"))
        metadata = archive.read(f"{info}/METADATA").decode()
    assert {name.partition("/")[0] for name in names} == {"mptcp_sdn_lab", info}
    assert {name.rpartition("/")[2] for name in names if "/licenses/" in name} == {
        "LICENSE",
        "GPL-2.0-only.txt",
    }
    assert f"\nVersion: {__version__}\n" in metadata
    assert "\nRequires-Dist: click==" in metadata
    assert re.search(r"^Requires-Dist: numba==\S+; extra == 'fast'$", metadata, re.MULTILINE)
    assert re.search(r"^Requires-Dist: pandas==\S+; extra == 'figures'$", metadata, re.MULTILINE)


@pytest.mark.whole
def test_an_sdist_makes_the_same_wheel(wheel, tmp_path):
    with tarfile.open(build(ROOT, "sdist", tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path / "sources", filter="data")
    again = build(next((tmp_path / "sources").iterdir()), "wheel", tmp_path / "wheel")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as other:
        assert content(one) == content(other)


@pytest.mark.whole
def test_the_installed_command_lists_and_runs_in_the_users_folder(command):
    assert "testbed_wifi_lte" in command("list", "scenarios").stdout
    done = command("run", "testbed_wifi_lte", "--duration", "1", "--json")
    assert done.returncode == 0, done.stderr
    (folder,) = (command.data / "runs").iterdir()
    assert json.loads(done.stdout) == json.loads((folder / "result.json").read_text())
    versions = json.loads((folder / "manifest.json").read_text())["versions"]
    assert versions["lab"] == __version__
    assert versions["commit"] == manifest.commit()
    assert not (command.root / "data").exists()


@pytest.mark.whole
def test_the_installed_command_runs_a_grid_with_the_bytes_of_a_clone(command, tmp_path):
    words = ["run", "two_paths", "--vary", "multipath.cc=lia,olia", "--duration", "1", "--quiet"]
    assert command(*words, "--out", str(tmp_path / "installed")).returncode == 0
    clone = [sys.executable, "-P", "-m", "lab", *words, "--out", str(tmp_path / "clone")]
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run(clone, env=variables, check=True, timeout=300)
    found = {
        place: {
            path.relative_to(tmp_path / place): path.read_bytes()
            for path in (tmp_path / place).rglob("samples.jsonl")
        }
        for place in ("installed", "clone")
    }
    assert len(found["clone"]) == 2
    assert found["installed"] == found["clone"]


@pytest.mark.whole
def test_without_a_command_the_installed_command_starts_the_page(command):
    argv = [str(command.folder / "env" / "bin" / "mptcp-lab"), "--no-browser", "--no-demo"]
    server = subprocess.Popen(
        argv, env=command.variables, cwd=command.folder, stdout=subprocess.PIPE, text=True
    )
    try:
        line = next(line for line in server.stdout if "http://" in line)
        address = re.search(r"http://[0-9.]+:\d+", line)[0]
        for path in ("/healthz", "/static/app.js"):
            with urllib.request.urlopen(address + path, timeout=60) as answer:
                assert answer.status == 200
    finally:
        server.terminate()
        server.communicate(timeout=60)


@pytest.mark.whole
@pytest.mark.parametrize("words", [("setup-emulation",), ("bench",), ("reproduce", "dtmc")])
def test_what_is_not_installed_names_the_clone(command, words):
    done = command(*words)
    assert done.returncode == 3
    assert "Use a clone of the lab" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.whole
def test_messages_name_the_installed_command(command):
    message = command("link").stderr
    assert "mptcp-lab" in message
    assert "run_lab.sh" not in message


@pytest.fixture
def built(tmp_path, monkeypatch):
    """Sources that are installed, and were built from this commit."""

    def make(commit: str) -> Path:
        for folder in installed.FOLDERS:
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "file.py").write_text(folder)
        row = {"commit": commit, "sources_sha256": installed.sources_sha256(tmp_path)}
        (tmp_path / installed.BUILT_FROM).write_text(json.dumps(row))
        monkeypatch.setattr(installed, "ROOT", str(tmp_path))
        return tmp_path

    return make


@pytest.mark.parametrize("name", ["lab/file.py", "scenarios/file.py", "templates/new.html"])
def test_the_commit_of_installed_files_that_somebody_changed_has_a_mark(built, name):
    root = built("0123456789ab")
    assert installed.commit() == "0123456789ab"
    (root / name).write_text("other")
    assert installed.commit() == "0123456789ab+"


@pytest.mark.parametrize(("commit", "says"), [("", None), ("0123456789ab+", "0123456789ab+")])
def test_an_unknown_or_changed_commit_stays_so(built, commit, says):
    built(commit)
    assert installed.commit() == says


def test_a_compiled_file_does_not_change_the_digest(built):
    root = built("0123456789ab")
    (root / "lab" / "__pycache__").mkdir()
    (root / "lab" / "__pycache__" / "file.pyc").touch()
    assert installed.commit() == "0123456789ab"


def test_a_clone_is_not_installed():
    assert installed.built_from() is None
    assert Path(installed.DATA) == ROOT / "data"
    assert installed.how_to_add("fast") is None
    assert installed.worded("type ./run_lab.sh") == "type ./run_lab.sh"


def test_the_build_backend_is_the_one_of_the_tests():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (wanted,) = project["build-system"]["requires"]
    assert wanted in (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
    pytest.importorskip("hatchling")
    assert wanted == f"hatchling=={importlib.metadata.version('hatchling')}"
