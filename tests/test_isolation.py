"""Python never runs code from the caller's folder, even if it has files with the names of
modules."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from machine import expect_emulation

ROOT = Path(__file__).resolve().parents[1]
DOOR = str(ROOT / "run_lab.sh")
MODULES = (
    *("click", "json", "yaml", "numpy", "numba", "flask", "waitress", "tinydb", "pydantic"),
    *("networkx", "plotly", "runpy", "pip", "sitecustomize", "usercustomize", "pox", "mininet"),
)
PACKAGES = ("lab", "controller", "dashboard", "vm", "pox_ext", "mn_wifi", "os_ken")
TRAP = "import os; open({witness!r}, 'a').write(__file__ + chr(10))\n"


@pytest.fixture
def traps(tmp_path):
    """A folder whose modules write their name into `sprung`, beside the folder, when they run."""
    folder = tmp_path / "traps of a student"
    folder.mkdir()
    trap = TRAP.format(witness=str(tmp_path / "sprung"))
    for name in MODULES:
        (folder / f"{name}.py").write_text(trap)
    for name in PACKAGES:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(trap)
        (folder / name / "__main__.py").write_text(trap)
    (folder / "trap.pth").write_text(trap)
    return folder


def caught(folder: Path, *argv: str, **variables: str) -> tuple[subprocess.CompletedProcess, str]:
    """The finished command, and which of the folder's modules it has run."""
    done = subprocess.run(
        argv, cwd=folder, env=os.environ | variables, capture_output=True, text=True, timeout=600
    )
    witness = folder.parent / "sprung"
    return done, witness.read_text() if witness.exists() else ""


@pytest.mark.parametrize(
    "words",
    [
        ["list", "scenarios"],
        ["check", "two_paths"],
        ["run", "two_paths", "--duration", "1", "--quiet", "--out", "run"],
        ["worksheet", "print", "coupled"],
        ["class", "--help"],
        ["audit", "--help"],
        ["doctor"],
    ],
    ids=" ".join,
)
def test_a_command_runs_nothing_from_the_folder_it_is_typed_in(traps, words):
    done, sprung = caught(traps, DOOR, *words, PYTHONPATH=str(traps))
    assert not sprung
    assert done.returncode in (0, 3), done.stderr  # 3: `doctor`, on a machine that lacks something


@pytest.mark.parametrize("path", ["{traps}:{lab}", "{lab}"])
def test_the_module_runs_nothing_from_there_either(traps, path):
    shutil.rmtree(
        traps / "lab"
    )  # Python itself imports a folder of this name before any of our code
    for each in ("runpy", "sitecustomize", "usercustomize"):
        (traps / f"{each}.py").unlink()  # and these
    done, sprung = caught(
        traps,
        sys.executable,
        "-m",
        "lab",
        "list",
        "strategies",
        PYTHONPATH=path.format(traps=traps, lab=ROOT),
    )
    assert done.returncode == 0, done.stderr
    assert not sprung


@pytest.mark.parametrize("named", ["{traps}", "{traps}/", "../{name}"])
def test_a_folder_that_pythonpath_names_is_kept_out(traps, named):
    shutil.rmtree(
        traps / "lab"
    )  # PYTHONPATH is set by the user on purpose here, so its folder `lab` would be taken
    for each in ("runpy", "sitecustomize", "usercustomize"):
        (traps / f"{each}.py").unlink()
    elsewhere = traps.parent / "elsewhere"
    elsewhere.mkdir()
    path = f"{named.format(traps=traps, name=traps.name)}:{ROOT}"
    argv = (sys.executable, "-m", "lab", "list", "strategies")
    done, sprung = caught(elsewhere, *argv, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    assert not sprung


def test_the_page_and_the_runs_it_starts_run_nothing_from_there(traps):
    server = subprocess.Popen(
        [DOOR, "up", "--no-browser", "--no-demo"],
        cwd=traps,
        env=os.environ | {"PYTHONPATH": str(traps), "MULTIPATH_LAB_FAST": "no"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        line = next(line for line in server.stdout if "http://" in line)
        url = next(word for word in line.split() if word.startswith("http://"))
        opened = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        opened.open(url).read()
        base = url.partition("/?")[0].rstrip("/")
        body = json.dumps({"scenario": "two_paths", "duration_s": 1}).encode()
        headers = {"Content-Type": "application/json", "Origin": base}
        request = urllib.request.Request(f"{base}/api/runs", body, headers)
        run = json.load(opened.open(request))["id"]
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if json.load(opened.open(f"{base}/api/runs/{run}"))["status"] == "complete":
                break
            time.sleep(0.3)
        else:
            pytest.fail(f"{run} did not end")
        opened.open(
            urllib.request.Request(f"{base}/api/runs/{run}", headers=headers, method="DELETE")
        )
    finally:
        os.killpg(server.pid, signal.SIGINT)
        server.wait(60)
        server.stdout.close()
    assert not (traps.parent / "sprung").exists()


@pytest.mark.emulation
def test_the_emulation_runs_nothing_from_there(traps):
    expect_emulation()
    words = ["run", "two_paths", "--engine", "mininet", "--vm", "--duration", "4"]
    words += ["--out", str(traps.parent / "run")]  # the VM takes no folder with a blank in its name
    done, sprung = caught(traps, DOOR, *words, PYTHONPATH=str(traps))
    assert done.returncode == 0, done.stderr
    assert not sprung


FROM_OUR_FOLDERS = {  # programs started in a folder of the lab or of POX
    "lab/batch/virtual_machine.py",
    "lab/engines/mininet/agents.py",
    "lab/engines/mininet/controller_client.py",
    "lab/engines/mininet/traffic/processes.py",
    "vm/guest.py",
    "vm/snapshot_image.py",
    "lab/engines/sim/compiler.py",
}


def test_python_is_started_by_one_function_or_in_a_folder_of_the_lab():
    found = set()
    for top in ("lab", "controller", "dashboard", "vm"):
        for path in (ROOT / top).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                words = [ast.unparse(each) for each in getattr(node, "elts", [])]
                if isinstance(node, ast.List) and "sys.executable" in words:
                    found.add(path.relative_to(ROOT).as_posix())
    assert found - {"lab/isolation.py"} == FROM_OUR_FOLDERS
