"""An archive of runs: the same bytes each time, RO-Crate metadata, and nothing of this machine."""

from __future__ import annotations

import errno
import io
import json
import subprocess
import zipfile
from pathlib import Path
from urllib.parse import unquote

import pytest
from archived_runs import made
from command_line import lab  # noqa: F401 - a fixture
from run_edits import edit_run, seal
from users_files import STRATEGY, _only_built_in

from dashboard import exports
from lab.results.zips import packing, reading
from lab.run.manifest import ROOT
from lab.run.reading import MEASURED

__all__ = ["_only_built_in"]


@pytest.fixture
def grid(tmp_path):
    folder = tmp_path / "grid"
    for cc in ("lia", "olia"):
        made(folder / f"multipath.cc={cc}" / "none-1", cc=cc)
    return folder


def exported(lab, target, *folders):  # noqa: F811
    got = lab("export", *folders, "-o", target)
    assert got.exit_code == 0, got.stderr
    return got


def test_the_same_runs_give_the_same_bytes_with_right_digests(lab, grid, tmp_path):  # noqa: F811
    one, other, place = tmp_path / "one.zip", tmp_path / "other.zip", tmp_path / "unpacked"
    exported(lab, one, grid)
    exported(lab, other, grid)
    assert one.read_bytes() == other.read_bytes()
    place.mkdir()
    subprocess.run(["unzip", "-q", one, "-d", place], check=True)
    subprocess.run(["sha256sum", "-c", "--quiet", "--strict", "sha256sums"], cwd=place, check=True)
    listed = {each.split("  ")[1] for each in (place / "sha256sums").read_text().splitlines()}
    found = {str(each.relative_to(place)) for each in place.rglob("*") if each.is_file()}
    assert listed == found - {"sha256sums"}
    for run in grid.glob("*/*/"):
        for name in MEASURED:
            copy = place / run.relative_to(grid.parent) / name
            assert copy.read_bytes() == (run / name).read_bytes()
    assert (place / "locks" / "run.txt").read_bytes() == (ROOT / "locks" / "run.txt").read_bytes()
    (versions,) = json.loads((place / "versions.json").read_text())
    assert versions["python"]
    assert versions["numpy"]


def test_its_metadata_describes_every_entity_that_it_names(lab, grid, tmp_path):  # noqa: F811
    exported(lab, tmp_path / "a.zip", grid)
    archive = zipfile.ZipFile(tmp_path / "a.zip")
    graph = json.loads(archive.read("ro-crate-metadata.json"))["@graph"]
    known = {each["@id"]: each for each in graph}
    assert len(known) == len(graph)
    named = [
        each["@id"]
        for entity in graph
        for value in entity.values()
        for each in (value if isinstance(value, list) else [value])
        if isinstance(each, dict)
    ]
    assert set(named) - known.keys() == {"https://w3id.org/ro/crate/1.1"}
    for each in graph:
        if each["@type"] == "File":
            assert unquote(each["@id"]) in archive.namelist()
    actions = [each for each in graph if each["@type"] == "CreateAction"]
    assert len(actions) == 2
    for each in actions:
        assert known[each["instrument"]["@id"]]["@type"] == "SoftwareApplication"
        assert each["object"]["@id"].endswith("/scenario.yaml")
        assert {known[part["@id"]]["@type"] for part in each["result"]} == {"File"}
    root = known["./"]
    assert {"name", "description", "datePublished", "license", "hasPart"} <= root.keys()


def test_edited_and_unfinished_runs_are_named_and_left_out(lab, grid, tmp_path):  # noqa: F811
    edited, cut = sorted(grid.glob("*/*/"))
    edit_run(edited, throughput_mbps=99.0)
    with (edited / "samples.jsonl").open("a") as file:
        file.write('{"t": 9}\n')
    (cut / "result.json").unlink()
    got = lab("export", grid, "-o", tmp_path / "a.zip")
    assert got.exit_code == 2
    assert "changed after the run" in got.stderr
    assert "holds no result.json" in got.stderr
    assert not (tmp_path / "a.zip").exists()


@pytest.mark.parametrize(
    ("name", "says"), [("runs.tar", "must end in .zip"), ("old.zip", "is there already")]
)
def test_a_wrong_name_and_an_old_file_are_refused(lab, tmp_path, name, says):  # noqa: F811
    (tmp_path / "old.zip").write_text("mine")
    got = lab("export", tmp_path, "-o", tmp_path / name)
    assert got.exit_code == 2
    assert says in got.stderr
    assert (tmp_path / "old.zip").read_text() == "mine"


def test_a_full_disk_leaves_no_half_file(lab, grid, tmp_path, monkeypatch):  # noqa: F811
    def full(folders):
        yield b"PK"
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(packing, "archive", full)
    got = lab("export", grid, "-o", tmp_path / "made" / "a.zip")
    assert got.exit_code == 4
    assert "No space left" in got.stderr
    assert list((tmp_path / "made").iterdir()) == []


def test_no_path_of_this_machine_is_in_it(lab, tmp_path):  # noqa: F811
    own = tmp_path / "secret place" / "keep_all.py"
    own.parent.mkdir()
    own.write_text(STRATEGY)
    run = tmp_path / "run"
    got = lab(
        "run testbed_wifi_lte --engine fake --duration 1 --quiet --strategy", own, "--out", run
    )
    assert got.exit_code == 0, got.stderr
    with (run / "log.txt").open("a") as file:
        file.write(f'File "{ROOT}/lab/x.py" and {run}/log.txt and {Path.home()}/x\n')
    exported(lab, tmp_path / "a.zip", run)
    archive = zipfile.ZipFile(tmp_path / "a.zip")
    for name in archive.namelist():
        content = archive.read(name).decode()
        for place in (tmp_path, ROOT, Path.home()):
            assert f"{place}/" not in content, (name, place)
    (row,) = json.loads(archive.read("run/manifest.json"))["extensions"]
    assert row["path"] == "extensions/keep_all.py"
    assert archive.read("run/extensions/keep_all.py").decode() == STRATEGY


def test_a_run_whose_results_name_a_path_is_left_out(lab, grid, tmp_path):  # noqa: F811
    run = sorted(grid.glob("*/*/"))[0]
    (run / "note.json").write_text("{}")
    with (run / "events.jsonl").open("a") as file:
        file.write(json.dumps({"t": 1, "kind": "error", "error": f"{run}/log.txt"}) + "\n")
    seal(run)
    got = exported(lab, tmp_path / "a.zip", grid)
    assert "its events.jsonl names" in got.stderr
    assert not [
        each
        for each in zipfile.ZipFile(tmp_path / "a.zip").namelist()
        if "lia/" in each and "olia" not in each
    ]


def test_two_folders_of_one_name_are_refused(lab, grid, tmp_path):  # noqa: F811
    (tmp_path / "other").mkdir()
    subprocess.run(["cp", "-r", grid, tmp_path / "other" / "grid"], check=True)
    got = lab("export", grid, tmp_path / "other" / "grid", "-o", tmp_path / "a.zip")
    assert got.exit_code == 2
    assert "rename" in got.stderr


def test_the_archive_of_the_page_is_of_the_same_form(grid, tmp_path):
    run = sorted(grid.glob("*/*/"))[0]
    content = b"".join(exports.as_zip(run))
    path = tmp_path / "page.zip"
    path.write_bytes(content)
    assert "sha256sums" in zipfile.ZipFile(io.BytesIO(content)).namelist()
    (tmp_path / "place").mkdir()
    assert reading.unpack(path, tmp_path / "place").differing == ()
