"""A worksheet, a run folder or a scenario file from somebody else runs no code, whatever the
command, unless the user trusts the digest of the file."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
import yaml
from users_files import TOPOLOGY, _only_built_in, lab, my

from lab import extensions
from lab.batch.repeat import repeat
from lab.errors import RequestError
from lab.scenario import loading
from lab.topologies import families
from lab.worksheets import loading as worksheets

__all__ = ["_only_built_in", "my"]

TRAP = "from pathlib import Path\nPath({marker!r}).touch()\n"
MININET = """
from mininet.topo import Topo


class One(Topo):
    def build(self):
        self.addLink(self.addHost("ue1"), self.addSwitch("s1"), bw=5)
        self.addLink(self.addHost("srv1"), "s1")
"""
CODE = {"file": TOPOLOGY, "mininet": MININET}
KEYS = {"file": "", "mininet": ", users: [ue1], servers: [srv1]"}  # of `topology`, beside the file
SHEET = """title: A lesson
goals: [Say what runs]
minutes: 5
steps:
  - run: {{id: first, scenario: {scenario}, duration_s: 2{more}}}
  - question: {{id: goal, ask: Which one, choice: [one, two], answer: two}}
solution:
  answers: {{goal: two}}
wrong:
  - name: the other one
    answers: {{goal: one}}
    fails: [goal]
"""
RULE = "only a scenario file that is named on the command line may name code"


@pytest.fixture(autouse=True)
def nobody_trusted(monkeypatch):
    monkeypatch.setattr(extensions, "_trusted", set())


@pytest.fixture
def marker(tmp_path):
    return tmp_path / "code_ran"


@pytest.fixture(params=CODE)
def key(request):
    """The key of `topology` that names a Python file."""
    return request.param


@pytest.fixture
def trap(tmp_path, marker, key):
    """A Python file that creates the file `marker` when it runs."""
    folder = tmp_path / "others"
    folder.mkdir()
    path = folder / "doorway.py"
    path.write_text(TRAP.format(marker=str(marker)) + CODE[key])
    return path


def scenario_beside(trap: Path, key: str, file: str = "doorway.py") -> Path:
    path = trap.with_name("theirs.yaml")
    path.write_text(
        f"name: theirs\ntitle: T\ntopology: {{{key}: {file}{KEYS[key]}}}\n"
        "traffic: [{user: ue1, kind: bulk}]\nduration_s: 1\n"
    )
    return path


@pytest.fixture
def sheets(trap, key):
    """Worksheets that name the file in a setting, as a choice, and by a scenario file."""
    settings = {
        "setting": ("two_paths", f", settings: {{topology.{key}: {trap}}}"),
        "topology": ("two_paths", f", settings: {{topology: {{{key}: {trap}{KEYS[key]}}}}}"),
        "variant": ("two_paths", f", settings: {{topology.{key}: {{variant: [{trap}, b.py]}}}}"),
        "choice": ("two_paths", f", choose: {{topology.{key}: {{choices: [{trap}, b.py]}}}}"),
        "scenario": (scenario_beside(trap, key), ""),
    }
    made = []
    for name, (scenario, more) in settings.items():
        path = trap.with_name(f"{name}.yaml")
        path.write_text(SHEET.format(scenario=scenario, more=more))
        made.append(path)
    return made


@pytest.fixture
def run(trap, tmp_path, key):
    """A run folder whose scenario was edited so that it names a file in the folder."""
    folder = tmp_path / "run"
    done = lab("run", "two_paths", "--duration", "1", "--out", folder, "--quiet")
    assert done.exit_code == 0, done.output
    shutil.copy(trap, folder)
    (folder / "extensions").mkdir()
    shutil.copy(trap, folder / "extensions")
    path = folder / "scenario.yaml"
    scenario = yaml.safe_load(path.read_text())
    topology = {key: "doorway.py"}
    if key == "mininet":
        topology |= {"users": ["ue1"], "servers": ["srv1"]}
    path.write_text(yaml.safe_dump(scenario | {"topology": topology, "try": []}))
    return folder


def refused_by_every(commands, marker):
    for argv in commands:
        done = lab(*argv)
        assert done.exit_code == 2, (argv, done.output)
        assert not marker.exists(), argv


def test_a_worksheet_names_no_code(sheets, marker, key):
    for sheet in sheets:
        refused_by_every(
            [("worksheet", "check", sheet), ("worksheet", "try", sheet)],
            marker,
        )
        with pytest.raises(RequestError, match=RULE if key == "file" else None):
            worksheets.load(str(sheet))
    assert not marker.exists()


def test_a_run_folder_names_no_code(run, marker, key):
    own = ("--with", run / "extensions") if key == "file" else ("--set", f"topology.{key}=x")
    commands = []
    for given in (run, run / "scenario.yaml"):
        commands += [
            ("run", given),
            ("check", given),
            ("list", "targets", given),
            ("export-script", given),
        ]
    commands += [("run", "two_paths", *own), ("check", "two_paths", *own)]
    refused_by_every(commands, marker)
    with pytest.raises(RequestError):
        repeat(run)
    with pytest.raises(RequestError):
        loading.load_recorded(run, "show the run")
    assert not marker.exists()


def test_a_run_folder_without_a_manifest_names_no_code_either(run, marker):
    (run / "manifest.json").unlink()
    refused_by_every([("run", run), ("check", run), ("list", "targets", run)], marker)


@pytest.mark.parametrize("file", ["../doorway.py", "{outside}", "link.py"])
def test_a_scenario_names_no_code_outside_its_folder(trap, tmp_path, marker, key, file):
    outside = tmp_path / "doorway.py"
    shutil.move(trap, outside)
    trap.with_name("link.py").symlink_to(outside)
    path = scenario_beside(trap, key, file.format(outside=outside))
    refused_by_every([("run", path), ("check", path), ("list", "targets", path)], marker)
    assert RULE in lab("check", path).output


def test_a_scenario_named_on_the_command_line_may_name_code_in_its_folder(trap, marker, key):
    (trap.parent / "below").mkdir()
    shutil.move(trap, trap.parent / "below")
    done = lab("check", scenario_beside(trap, key, "below/doorway.py"))
    assert done.exit_code == 0, done.output
    assert marker.exists()


def test_a_user_may_name_code_by_an_option(trap, marker, tmp_path, key):
    elsewhere = tmp_path / "elsewhere.yaml"
    elsewhere.write_text(scenario_beside(trap, key, "nothing.py").read_text())
    done = lab("check", elsewhere, "--set", f"topology.{key}={trap}")
    assert done.exit_code == 0, done.output
    assert marker.exists()


def test_a_folder_of_ones_own_may_have_the_name_of_a_runs_copies(trap, marker, key):
    if key == "file":
        folder = trap.parent.rename(trap.parent.with_name("extensions"))
        done = lab("check", "two_paths", "--with", folder)
        assert done.exit_code == 0, done.output
        assert marker.exists()


def test_code_with_a_trusted_digest_runs(run, marker, key):
    digest = hashlib.sha256((run / "doorway.py").read_bytes()).hexdigest()
    own = [("check", "two_paths", "--with", run / "extensions")] if key == "file" else []
    for argv in (("check", run), *own):
        marker.unlink(missing_ok=True)
        extensions._registered.clear()
        families.TOPOLOGIES.pop("doorway", None)
        extensions._trusted.clear()
        assert lab(*argv, "--trust-extensions", hashlib.sha256(b"other").hexdigest()).exit_code == 2
        assert not marker.exists()
        done = lab(*argv, "--trust-extensions", digest)
        assert done.exit_code == 0, done.output
        assert marker.exists()
    done = lab("check", "two_paths", "--trust-extensions", "abc")
    assert done.exit_code == 2
    assert "64 hex digits" in done.output


@pytest.mark.parametrize(
    "words",
    [
        ("check", "{}"),
        ("list", "targets", "{}"),
        ("export-script", "{}"),
        ("run", "two_paths", "--with", "{}"),
        ("run", "two_paths", "--strategy", "{}.py"),
        ("run", "two_paths", "--cc", "{}.py"),
        ("run", "two_paths", "--set", "topology.file={}.py"),
        ("compare", "{}"),
        ("worksheet", "check", "{}"),
        ("grade", "{}"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("name", ["a" * 3000, "a/" * 3000], ids=["name", "path"])
def test_a_name_that_is_too_long_for_a_file_is_refused(words, name):
    done = lab(*(each.format(name) for each in words))
    assert (done.exit_code, type(done.exception)) == (2, SystemExit)
