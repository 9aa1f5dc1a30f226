"""`verify`: digests first, then each simulated run again; and archives that somebody has made to do
harm."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import re
import stat
import struct
import zipfile

import pytest
from archived_runs import made
from command_line import lab, start  # noqa: F401 - a fixture
from users_files import STRATEGY

from lab import extensions
from lab.errors import RequestError
from lab.results.zips import names, packing, reading
from lab.results.zips.writing import Member, with_digests, zipped
from lab.run.reading import sealed
from lab.run.recorder import keep_results


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """The members of an archive of one run that was changed by hand."""
    folder = made(
        tmp_path_factory.mktemp("runs") / "run",
        {0.3: {"target": "link.path1.rate_mbps", "value": 4}},
    )
    whole = zipfile.ZipFile(io.BytesIO(b"".join(packing.archive([("run", folder)]))))
    return {each: whole.read(each) for each in whole.namelist() if each != names.SUMS}


def packed(path, members, digests=True):
    each = (Member(name, [text]) for name, text in members.items())
    path.write_bytes(b"".join(zipped(with_digests(each) if digests else each)))
    return path


def changed(content, name, old, new):
    assert old in content[name]
    return content | {name: content[name].replace(old, new, 1)}


def test_a_run_with_changes_by_hand_is_made_again(lab, content, tmp_path):  # noqa: F811
    got = lab("verify", packed(tmp_path / "a.zip", content), "--out", tmp_path / "kept")
    assert got.exit_code == 0, got.stderr
    assert "same: run\n" in got.stdout
    assert "1 same, 0 differs, 0 not repeated" in got.stdout
    again = tmp_path / "kept" / "again" / "run" / "samples.jsonl"
    assert again.read_bytes() == content["run/samples.jsonl"]


def test_a_run_without_samples_is_made_again_and_compared_by_its_digests(lab, tmp_path):  # noqa: F811
    run = made(tmp_path / "run")
    keep_results(run, json.loads((run / "result.json").read_text()))
    lab("export", run, "-o", tmp_path / "a.zip")
    whole = zipfile.ZipFile(tmp_path / "a.zip")
    assert "run/samples.jsonl" not in whole.namelist()
    got = lab("verify", tmp_path / "a.zip")
    assert (got.exit_code, "same: run\n" in got.stdout) == (0, True)
    content = {each: whole.read(each) for each in whole.namelist() if each != names.SUMS}
    result = json.loads(content["run/result.json"]) | {"samples_sha256": "0" * 64}
    del result["result_sha256"]
    keep_results(run, result)  # with a new seal
    sealed_again = json.loads((run / "result.json").read_text())
    assert sealed_again["samples_sha256"] != "0" * 64
    other = {"run/result.json": (run / "result.json").read_bytes()}
    got = lab("verify", packed(tmp_path / "b.zip", content | other))
    assert (got.exit_code, "result.json" in got.stderr) == (4, True), got.output


def test_a_renamed_run_folder_is_the_same_run(lab, content, tmp_path):  # noqa: F811
    moved = {name.replace("run/", "theirs/x=1/", 1): text for name, text in content.items()}
    got = lab("verify", packed(tmp_path / "a.zip", moved))
    assert got.exit_code == 0, got.stderr


def test_a_member_that_was_changed_or_added_is_named_before_any_run(lab, content, tmp_path):  # noqa: F811
    sums = b"".join(
        f"{hashlib.sha256(text).hexdigest()}  {name}\n".encode() for name, text in content.items()
    )
    edited = changed(content, "run/samples.jsonl", b'"mbps"', b'"MBPS"')
    path = packed(tmp_path / "a.zip", edited | {"new.txt": b"1", "sha256sums": sums}, digests=False)
    got = lab("verify", path)
    assert got.exit_code == 4
    assert "run/samples.jsonl: its digest differs" in got.stderr
    assert "new.txt: it was added later" in got.stderr
    assert "same" not in got.stdout.replace("0 same", "")


def test_an_edit_with_new_digests_everywhere_is_found_by_making_the_run_again(
    lab,  # noqa: F811
    content,
    tmp_path,
):
    found = re.search(rb'"path1":{"mbps":([0-9.]+)', content["run/samples.jsonl"])
    edited = changed(content, "run/samples.jsonl", found[0], found[0][: -len(found[1])] + b"9.875")
    folder = tmp_path / "edited"
    folder.mkdir()
    for name in ("scenario.yaml", "samples.jsonl", "events.jsonl"):
        (folder / name).write_bytes(edited[f"run/{name}"])
    result = json.loads(edited["run/result.json"]) | {"throughput_mbps": 42.5}
    edited["run/result.json"] = json.dumps(sealed(result, folder)).encode()
    got = lab("verify", packed(tmp_path / "a.zip", edited))
    assert got.exit_code == 4
    assert "samples.jsonl, line 1: link.path1.mbps: 9.875, now " in got.stderr
    assert "result.json, throughput_mbps: 42.5, now " in got.stderr


def test_other_versions_are_named(lab, content, tmp_path):  # noqa: F811
    manifest = json.loads(content["run/manifest.json"])
    manifest["versions"] |= {"python": "3.99.1", "lab": "0.3.9"}
    other = content | {"run/manifest.json": json.dumps(manifest).encode()}
    got = lab("verify", packed(tmp_path / "a.zip", other))
    assert got.exit_code == 0, got.stderr
    assert "python 3.99.1, here 3." in got.stdout
    assert "lab 0.3.9, here " in got.stdout


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("manifest.json", b'"engine": "sim"', b'"engine": "mininet"', "name two engines"),
        ("manifest.json", b'"experiment": "', b'"experiment": "0', "another experiment"),
        ("manifest.json", b'"extensions": []', b'"extensions": [{}]', "a file of it is wrong"),
        ("manifest.json", b'"engine": "sim"', b'"engine": "/etc"', "unknown"),
    ],
)
def test_a_run_that_cannot_be_made_again_is_named(lab, content, tmp_path, file, old, new, says):  # noqa: F811
    got = lab("verify", packed(tmp_path / "a.zip", changed(content, f"run/{file}", old, new)))
    assert got.exit_code == 3
    assert says in got.stderr
    assert "lab-verify-" not in got.stderr


# Code of somebody else


NUMBERS = itertools.count(1)  # a strategy's name can be used once in a process


@pytest.fixture
def with_code(tmp_path):
    """An archive of a run with a strategy that notes when it is loaded; its name, digest, note."""
    note, name = tmp_path / "it_ran", f"noting_{next(NUMBERS)}"
    own = tmp_path / "author" / f"{name}.py"
    own.parent.mkdir()
    text = STRATEGY.replace("keep_all", name)
    own.write_text(f"{text}\nimport pathlib\npathlib.Path({str(note)!r}).touch()\n")
    try:
        run = made(tmp_path / "run", strategy=extensions.strategy_name(str(own)))
    finally:
        extensions._registered.clear()
    packing.write(tmp_path / "code.zip", [("run", run)])
    note.unlink()
    return (
        tmp_path / "code.zip",
        own.name,
        extensions.Extension("strategy", name, own, own.read_bytes()).sha256,
        note,
    )


def elsewhere(*words):
    """`verify` in another process, as on another machine: its exit code and its messages."""
    process = start("verify", *words)
    _, said = process.communicate(timeout=120)
    return process.returncode, said


def test_code_in_an_archive_runs_only_if_its_digest_is_trusted(lab, with_code, monkeypatch):  # noqa: F811
    monkeypatch.setattr(extensions, "_trusted", set())
    path, name, digest, note = with_code
    got = lab("verify", path, extensions.TRUST, "0" * 64)
    assert got.exit_code == 3
    assert f"{name}. Unpack the archive and read the code first" in got.stderr
    assert f"{extensions.TRUST} {digest}, or copy it out" in got.stderr
    assert "author" not in got.stderr
    assert not note.exists()
    trusted = (extensions.TRUST, "1" * 64, extensions.TRUST, digest)
    assert elsewhere(path, *trusted) == (0, "")
    assert note.exists()


def test_other_code_under_a_trusted_digest_does_not_run(lab, with_code, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(extensions, "_trusted", set())
    path, name, digest, note = with_code
    whole = zipfile.ZipFile(path)
    members = {each: whole.read(each) for each in whole.namelist() if each != names.SUMS}
    members[f"run/extensions/{name}"] += b"\n# more\n"
    got = lab("verify", packed(tmp_path / "b.zip", members), extensions.TRUST, digest)
    assert got.exit_code == 3
    assert "is another file than manifest.json says" in got.stderr
    assert not note.exists()


# Archives that somebody has made to do harm

RUN = {"run/manifest.json": b"{}"}


def raw(path, entries, comment=b""):
    """Write an archive with the module of Python, which also writes what the lab never does."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (RUN | {names.SUMS: b""}).items():
            archive.writestr(name, text)
        for entry, text in entries:
            archive.writestr(entry, text)
        archive.comment = comment
    return path


def info(name, **fields):
    found = zipfile.ZipInfo("x")
    found.filename = name
    for key, value in fields.items():
        setattr(found, key, value)
    return found


def refused(path, tmp_path):
    place = tmp_path / "place"
    place.mkdir(exist_ok=True)
    with pytest.raises(RequestError) as caught:
        reading.unpack(path, place)
    assert not list(place.rglob("*")), "something was unpacked"
    return str(caught.value)


NAMES = (
    *("/etc/x", "../x", "run/../../x", "run/./x", "run//x", "run\\..\\x", "C:x", "run/x\n", "x/"),
    *("run/\x1b[2J", "run/\u202etxt", "run/x.", "run/x ", "run/" + "x" * 250, "y/" * 600 + "x"),
    *("", "run/nul\u2028", "run/a:b", "run/a*"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leaves_the_folder_or_misleads_is_refused(tmp_path, name):
    assert names.wrong(name)
    if name:
        refused(raw(tmp_path / "a.zip", [(info(name), b"1")]), tmp_path)


@pytest.mark.parametrize(
    "pair",
    [
        ("run/x", "run/x"),
        ("run/x", "run/X"),
        ("run/x", "RUN/y"),
        ("run/\u00e9", "run/e\u0301"),
        ("run/stra\u00dfe", "run/strasse"),
        ("run/x", "run/x/y"),
        ("RUN/Manifest.json", "z"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_names_of_one_file_are_refused(tmp_path, pair):
    said = refused(raw(tmp_path / "a.zip", [(each, b"1") for each in pair]), tmp_path)
    assert "twice" in said


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR])
def test_links_folders_and_devices_are_refused(tmp_path, kind):
    entry = info("run/x", external_attr=(kind | 0o777) << 16)
    assert "link" in refused(raw(tmp_path / "a.zip", [(entry, b"/etc/passwd")]), tmp_path)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    said = refused(raw(tmp_path / "a.zip", [("run/x", bytes(30 << 20))]), tmp_path)
    assert "times its size" in said


def test_too_many_members_are_refused_before_the_list_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MOST_MEMBERS", 3)
    path = raw(tmp_path / "a.zip", [("run/x", b""), ("run/y", b"")])
    assert "more than 3 members" in refused(path, tmp_path)


def test_more_than_the_disk_has_room_for_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MOST_BYTES", 1000)
    path = raw(tmp_path / "a.zip", [("run/x", bytes(1001))])
    assert "larger than" in refused(path, tmp_path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_of_packing_are_refused(tmp_path, method):
    path = raw(tmp_path / "a.zip", [])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("run/x", b"1" * 100, method)
    assert "deflate" in refused(path, tmp_path)


def central(path, name):
    """Where the entry for a member in the list at the end begins."""
    content = path.read_bytes()
    return bytearray(content), content.rindex(b"PK\1\2", 0, content.rindex(name) + 1)


@pytest.mark.parametrize(
    ("at", "form", "value", "says"),
    [
        (8, "<H", 1, "encrypted"),
        (8, "<H", 0x2000, "encrypted"),
        (20, "<L", 0xFFFFFF, "overlaps"),
        (24, "<L", 50, "larger|shorter|damaged"),
        (42, "<L", 0, "overlaps|damaged"),
        (42, "<L", 0xFFFFFFFF, "overlaps|damaged"),
        (24, "<L", 0xFFFFFFFF, "times|damaged"),
    ],
)
def test_a_list_that_lies_is_refused(tmp_path, at, form, value, says):
    path = raw(tmp_path / "a.zip", [("run/x", b"12345" * 20)])
    content, start = central(path, b"run/x")
    struct.pack_into(form, content, start + at, value)
    path.write_bytes(content)
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(RequestError, match=says):
        reading.unpack(path, place)


def test_other_bytes_around_it_and_a_cut_archive_are_refused(tmp_path):
    whole = raw(tmp_path / "a.zip", [("run/x", b"1")]).read_bytes()
    for wrong in (whole + b"x", b"x" + whole, whole[:-1], whole[: len(whole) // 2], b"", b"PK"):
        path = tmp_path / "b.zip"
        path.write_bytes(wrong)
        refused(path, tmp_path)
    refused(raw(tmp_path / "c.zip", [], comment=b"hello"), tmp_path)


@pytest.mark.parametrize("text", [b"x", b"0" * 64 + b"  ../x\n", b"0" * 64 + b"  a\n" * 2, b"\xff"])
def test_wrong_lines_of_digests_are_refused(tmp_path, text):
    path = packed(tmp_path / "a.zip", RUN | {names.SUMS: text}, digests=False)
    assert "sha256sums is damaged" in refused(path, tmp_path)


def test_what_is_no_archive_of_runs_has_exit_code_2(lab, tmp_path):  # noqa: F811
    (tmp_path / "text.zip").write_text("hello, this is no archive at all, really not")
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        archive.writestr("a.jpg", b"1")
    for each in ("text.zip", "photos.zip", "none.zip", "."):
        got = lab("verify", tmp_path / each)
        assert got.exit_code == 2, got.output
        assert got.stderr.count("\n") == 1
