"""A user's topology that fails, and the files that it reads: named in `Params`, or opened by it."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import zipfile
from pathlib import Path

import pytest
import yaml
from users_files import TOPOLOGY, _only_built_in, lab, refused

from dashboard import exports
from lab.batch import virtual_machine
from lab.batch.job import Job
from lab.batch.repeat import repeat
from lab.errors import RequestError
from lab.run.engine import Options
from lab.scenario import loading
from lab.scenario.loading import experiment

__all__ = ["_only_built_in"]

READING = (
    TOPOLOGY.replace("from pydantic", "from pathlib import Path\n\nfrom pydantic", 1)
    .replace(
        "mbps: float = 5.0",
        "rates: Path\n    more: tuple[Path, ...] = ()\n    other: Path | None = None",
    )
    .replace("params.mbps", "float(params.rates.read_text())")
)


def scenario(folder: Path, text: str, **params: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "doorway.py").write_text(text)
    topology = {"file": "doorway.py", **params}
    content = {"name": "mine", "title": "T", "topology": topology, "duration_s": 1}
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(content | {"traffic": [{"user": "ue1"}]}))
    return path


@pytest.fixture
def path(tmp_path):
    """A scenario whose topology names the file rates.txt in a folder below."""
    found = scenario(tmp_path / "my", READING, rates="traces/rates.txt")
    (found.parent / "traces").mkdir()
    (found.parent / "traces" / "rates.txt").write_text("6")
    return found


@pytest.fixture
def run(path, tmp_path):
    done = lab("run", path, "--out", tmp_path / "run", "--quiet")
    assert done.exit_code == 0, done.output
    return tmp_path / "run"


# Exceptions


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("    nodes =", "    nothing.at_all\n    nodes =", "line 16: NameError: name 'nothing'"),
        ("    nodes =", "    {}['a']\n    nodes =", "line 16: KeyError: 'a'"),
        ("    nodes =", "    raise SystemExit\n    nodes =", "line 16: SystemExit: no message"),
        ("    nodes =", "    build(params, 1)\n    nodes =", "RecursionError"),
        ("    nodes =", "    return None\n    nodes =", "build returned null, and not a Topology"),
        ('"s2", "ue1"', '"s2", None', "link 'a' ends at 'None'"),
        ("bps_from_mbps(params.mbps * rate_scale)", "'fast'", "line 14: TypeError: "),
        ('Node("ue1", "user")', "7", "AttributeError: 'int' object has no attribute"),
    ],
)
def test_an_exception_in_build_is_one_line_with_file_and_line(old, new, wrong, tmp_path):
    assert old in TOPOLOGY
    path = scenario(tmp_path / "my", TOPOLOGY.replace(old, new))
    for argv in (("check", path), ("run", path, "--out", tmp_path / "run")):
        done = lab(*argv)
        assert done.exit_code == 2, done.output
        assert wrong in done.output
        assert done.output.startswith("error: mine.yaml: topology")
        assert len(done.output.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_an_exception_in_a_check_of_params_is_one_line(tmp_path):
    check = "    mbps: float = 5.0\n\n    @field_validator('mbps')\n    def ok(cls, mbps):\n        return {}[mbps]\n"
    text = TOPOLOGY.replace("    mbps: float = 5.0\n", check)
    text = text.replace("ConfigDict", "ConfigDict, field_validator", 1)
    said = refused("check", scenario(tmp_path / "my", text, mbps=3.0))
    assert "doorway.py, line 15: KeyError: 3.0" in said


# Files that `Params` names


def test_a_file_that_params_names_is_in_the_run_its_result_and_its_zip(path, run):
    digest = hashlib.sha256(b"6").hexdigest()
    manifest = json.loads((run / "manifest.json").read_text())
    (row,) = manifest["inputs"]
    assert row == {
        "name": "rates.txt",
        "path": str(path.parent / "traces" / "rates.txt"),
        "sha256": digest,
    }
    result = json.loads((run / "result.json").read_text())
    assert result["inputs"]["rates.txt"] == digest
    made = zipfile.ZipFile(io.BytesIO(b"".join(exports.as_zip(run))))
    assert made.read("run/inputs/rates.txt") == b"6"
    assert "traces" not in (run / "scenario.yaml").read_text()


def test_a_run_is_repeated_elsewhere_with_its_own_copy(path, run, tmp_path):
    moved = tmp_path / "elsewhere"
    shutil.move(run, moved)
    (path.parent / "traces" / "rates.txt").unlink()
    assert repeat(moved) == ("result.json",)  # which has the name of the folder


def test_an_edited_input_is_another_experiment(path, run):
    before = json.loads((run / "manifest.json").read_text())["experiment"]
    now = loading.load(str(path), may_run_code=True)
    assert experiment(now, "sim") == before
    (path.parent / "traces" / "rates.txt").write_text("7")
    assert experiment(loading.load(str(path), may_run_code=True), "sim") != before
    assert now.network.links[0].rate_bps == 6_000_000


def test_parameters_of_a_users_topology_count_whatever_their_names(tmp_path):
    """`notes` and `read_from` are for people only in the lab's own kind nodes_and_links."""
    text = TOPOLOGY.replace(
        "mbps: float = 5.0", 'mbps: float = 5.0\n    notes: str = ""\n    read_from: int = 0'
    )
    seen = set()
    for n, params in enumerate(({}, {"notes": "slow"}, {"read_from": 3})):
        path = scenario(tmp_path / "my", text, **params)
        done = lab("run", path, "--out", tmp_path / f"run{n}", "--quiet")
        assert done.exit_code == 0, done.output
        assert "network:" not in (tmp_path / f"run{n}" / "log.txt").read_text()
        manifest = json.loads((tmp_path / f"run{n}" / "manifest.json").read_text())
        scenario_of = yaml.safe_load((tmp_path / f"run{n}" / "scenario.yaml").read_text())
        assert scenario_of["topology"].items() >= params.items()
        seen.add(manifest["experiment"])
    assert len(seen) == 3


def test_a_run_without_its_input_says_which_one_is_missing(path, run):
    (run / "inputs" / "rates.txt").unlink()
    (path.parent / "traces" / "rates.txt").unlink()
    said = refused("check", run)
    assert f"there is no file {run}/rates.txt, nor a copy of it in inputs/" in said
    assert f"That run read {path.parent}/traces/rates.txt, which is not on this machine" in said
    assert "its folder has no copy" in said


@pytest.mark.parametrize(
    ("params", "wrong"),
    [
        ({"rates": "none.txt"}, "there is no file"),
        ({"rates": "traces"}, "there is no file"),
        ({"rates": 7}, "topology.rates: "),
        ({}, "topology.rates: is missing. Add it"),
        ({"rates": "traces/rates.txt", "more": ["none.txt"]}, "there is no file"),
        ({"rates": "traces/rates.txt", "other": "none.txt"}, "there is no file"),
        ({"rates": "traces/rates.txt", "other": "rates.txt"}, "two files are called rates.txt"),
        # reading its beginning fails, also for root
        ({"rates": "traces/rates.txt", "other": "/proc/self/mem"}, "/proc/self/mem: Input/output"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(params, wrong, path):
    (path.parent / "rates.txt").write_text("6")
    said = refused("check", scenario(path.parent, READING, **params))
    assert wrong in said
    assert said.startswith("error: mine.yaml: topology")


def test_files_in_lists_and_optional_ones_count_too(path):
    for name in ("a.csv", "b.csv", "c.csv"):
        (path.parent / name).write_text(name)
    keys = {"rates": "traces/rates.txt", "more": ["a.csv", "b.csv"], "other": "c.csv"}
    loaded = loading.load(str(scenario(path.parent, READING, **keys)), may_run_code=True)
    names = {Path(each).name for each in loaded.inputs}
    assert {"a.csv", "b.csv", "c.csv", "rates.txt"} <= names


def test_a_scenario_of_somebody_else_reads_no_file_outside_its_folder(path, tmp_path):
    (tmp_path / "secret.txt").write_text("8")
    outside = scenario(path.parent, READING, rates="../secret.txt")
    assert lab("check", outside).exit_code == 0  # it is named on the command line
    raw = yaml.safe_load(outside.read_text())
    raw["topology"] = {"kind": "doorway", "rates": "../secret.txt"}
    outside.write_text(yaml.safe_dump(raw))
    with pytest.raises(RequestError, match="outside of the scenario's folder"):
        loading.load(str(outside))
    (path.parent / "link.txt").symlink_to(tmp_path / "secret.txt")
    raw["topology"]["rates"] = "link.txt"
    outside.write_text(yaml.safe_dump(raw))
    with pytest.raises(RequestError, match="outside of the scenario's folder"):
        loading.load(str(outside))


def test_with_code_that_an_option_names_the_scenario_may_name_any_file(path, tmp_path):
    other = scenario(tmp_path / "other", "", rates="../my/traces/rates.txt")
    done = lab("check", other, "--set", f"topology.file={path.with_name('doorway.py')}")
    assert done.exit_code == 0, done.output


def test_the_virtual_machine_gets_the_file(path, tmp_path):
    loaded = loading.load(str(path), may_run_code=True)
    folder = tmp_path / "run"
    folder.mkdir()
    argv = virtual_machine.argv_inside(Job(loaded, "mininet", Options(1.0)), folder)
    (path.parent / "traces" / "rates.txt").unlink()
    inside = loading.load(argv[argv.index("run") + 1], may_run_code=True)
    assert experiment(inside, "mininet") == experiment(loaded, "mininet")


# Files that its code opens


def test_a_file_that_build_opens_is_kept_and_missed(tmp_path):
    text = TOPOLOGY.replace("from pydantic", "from pathlib import Path\n\nfrom pydantic", 1)
    text = text.replace("params.mbps", 'float(Path(__file__).with_name("rates.txt").read_text())')
    path = scenario(tmp_path / "my", text)
    (path.parent / "rates.txt").write_text("6")
    run = tmp_path / "run"
    assert lab("run", path, "--out", run, "--quiet").exit_code == 0
    assert (run / "inputs" / "rates.txt").read_text() == "6"
    (path.parent / "rates.txt").unlink()
    said = refused("check", run)
    assert "doorway.py, line 19: FileNotFoundError: " in said
    assert f"That run read {path.parent}/rates.txt, which is not on this machine" in said
    assert f"a copy is {run}/inputs/rates.txt. As a parameter of type Path, it would be" in said


@pytest.mark.parametrize(
    ("reads", "wrong"),
    [
        ("subprocess.run(['cat', 'rates.txt'])", "it starts a program"),
        ("subprocess.check_output('cat rates.txt', shell=True)", "it starts a program"),
        ("os.system('true')", "it starts a program"),
        ("socket.create_connection(('127.0.0.1', 9))", "it connects to another program"),
        ("sqlite3.connect('rates.db')", "it opens a database"),
    ],
)
def test_what_no_digest_shows_is_refused_with_file_and_line(reads, wrong, tmp_path):
    module = reads.partition(".")[0]
    text = TOPOLOGY.replace("    nodes =", f"    {reads}\n    nodes =", 1)
    path = scenario(tmp_path / "my", f"import {module}\n{text}")
    with pytest.raises(RequestError, match=rf"doorway.py, line \d+: .*{wrong}.*a file, and read"):
        loading.load(str(path), may_run_code=True)


def test_packages_may_do_so(tmp_path):
    """Some start programs while they are imported, to learn what the machine is."""
    package = tmp_path / "site" / "asking"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import subprocess\nsubprocess.run(['true'])\n")
    line = f"    import sys; sys.path.append({str(package.parent)!r}); import asking\n    nodes ="
    path = scenario(tmp_path / "my", TOPOLOGY.replace("    nodes =", line, 1))
    loading.load(str(path), may_run_code=True)
