"""A user's own files become known by name, and files with errors are refused."""

from __future__ import annotations

import json
import os
import socket

import pytest
from users_files import (
    C_LAW,
    KNOWN,
    LAW,
    SCENARIO,
    STRATEGY,
    TOPOLOGY,
    _only_built_in,
    lab,
    my,
    refused,
)

from lab import extensions
from lab.engines import registry
from lab.engines.mininet import ebpf
from lab.errors import RequestError
from lab.run.engine import Options
from lab.scenario import loading
from lab.scenario.loading import Overrides

__all__ = ["_only_built_in", "my"]


# Files given by name


def test_a_folder_adds_its_files_by_what_they_define(my):
    extensions.add(my)
    found = {(each.kind, each.path.name) for each in extensions.registered()}
    assert found == {
        ("strategy", "keep_all.py"),
        ("topology", "doorway.py"),
        ("cc", "scalable.py"),
        ("cc", "scalable.c"),
        ("scenario", "doorway.yaml"),
    }  # plot.py defines nothing, and was not run
    assert extensions.strategy_file("keep_all").path == my / "keep_all.py"
    assert extensions.law_file("scalable", ".c").path == my / "scalable.c"
    assert extensions.strategy_file("none") is extensions.law_file("reno", ".c") is None


@pytest.mark.parametrize("text", ["import math\nRATE = math.pi\n", "# nothing\n", ""])
def test_a_file_that_is_named_must_define_something(tmp_path, text):
    (tmp_path / "plot.py").write_text(text)
    with pytest.raises(RequestError, match="it defines nothing"):
        extensions.add(tmp_path / "plot.py")
    extensions.add(tmp_path)  # of a folder, the other files are wanted
    assert extensions.registered() == ()


@pytest.mark.parametrize(
    ("listed", "row"),
    [
        ("strategies", "keep_all Keep what there is."),
        ("topologies", "doorway Connect a user by one link. mbps"),
        ("cc", "scalable Scalable TCP (Kelly, 2003). sim, mininet"),
        ("scenarios", "doorway One door"),
    ],
)
def test_the_lists_show_them(my, listed, row):
    done = lab("list", listed, "--with", my)
    assert row in " ".join(done.output.split()), done.output


def test_the_environment_names_folders_too(my, monkeypatch):
    monkeypatch.setenv("MULTIPATH_LAB_PATH", f"{my}:")
    assert "interval_s" in lab("list", "params", "keep_all").output
    assert "doorway: valid" in lab("check", "doorway").output


def test_check_says_which_files_it_has_imported(my):
    done = lab("check", my / "doorway.yaml", "--strategy", my / "keep_all.py")
    assert done.exit_code == 0, done.output
    assert f"imported {my / 'doorway.py'}: topology 'doorway'" in done.output
    assert f"imported {my / 'keep_all.py'}: strategy 'keep_all'" in done.output


def test_a_strategy_can_be_chosen_while_a_run_goes_on(my):
    extensions.add(my)
    known = lab("list", "targets", "two_paths", "--json").output
    by_name = {row["name"]: row for row in json.loads(known)}
    assert "keep_all" in by_name["strategy"]["choices"]
    assert "scalable" in by_name["cc"]["choices"]


# What an engine lacks


def test_the_missing_half_of_a_law_is_named(my):
    (my / "scalable.c").unlink()
    said = refused("run", "two_paths", "--engine", "mininet", "--cc", my / "scalable.py")
    assert f"cc 'scalable' on engine 'mininet': {my / 'scalable.c'} is missing" in said
    (my / "scalable.c").write_text(C_LAW)
    (my / "scalable.py").unlink()
    extensions._registered.clear()
    said = refused("run", "two_paths", "--cc", my / "scalable.c")
    assert f"cc 'scalable' on engine 'sim': {my / 'scalable.py'} is missing" in said


def test_the_emulation_gets_the_c_half(my):
    extensions.cc_name(str(my / "scalable.py"))
    scenario = loading.load("two_paths", Overrides(cc="scalable"))
    registry.admit("mininet", scenario, Options())
    assert ebpf.law_sources()["scalable"] == my / "scalable.c"


@pytest.mark.parametrize(("engine", "name"), [("sim", "scalable.py"), ("mininet", "scalable.c")])
def test_only_the_half_of_the_engine_belongs_to_the_experiment(my, engine, name):
    def used():
        extensions._registered.clear()
        extensions.add(my)
        scenario = loading.load("two_paths", Overrides(cc="scalable"))
        files = [each.path for each in loading.user_files(scenario, engine)]
        return files, loading.experiment(scenario, engine)

    first = used()
    assert first[0] == [my / name]
    for each in ("scalable.py", "scalable.c"):
        (my / each).write_bytes((my / each).read_bytes() + b"\n")
        assert (used() == first) == (each != name)
        first = used()


# Refused files


def test_an_error_in_a_file_names_file_and_line(my, tmp_path):
    for name, option in (("keep_all.py", "--strategy"), ("scalable.py", "--cc")):
        (my / name).write_text("x = 1\nimport nothing_of_this_name\n\ndef on_ack(): pass\n")
        out = tmp_path / "run"
        said = refused("run", "two_paths", option, my / name, "--out", out)
        assert f"{my / name}, line 2: ModuleNotFoundError" in said
        assert not out.exists()


def test_a_syntax_error_in_a_folder_names_file_and_line(my):
    (my / "plot.py").write_text("x = 1\ndef plot(:\n")
    said = refused("list", "cc", "--with", my)
    assert f"import {my / 'plot.py'}, line 2: SyntaxError" in said


@pytest.mark.parametrize(
    ("name", "text", "option"),
    [
        ("none.py", STRATEGY, "--strategy"),
        ("campus.py", TOPOLOGY, "--with"),
        ("cubic.py", LAW, "--cc"),
        ("wvegas.c", C_LAW, "--cc"),
        ("campus.yaml", SCENARIO, "--with"),
    ],
)
def test_a_built_in_name_is_refused(tmp_path, name, text, option):
    (tmp_path / name).write_text(text)
    assert "built-in" in refused("check", "two_paths", option, tmp_path / name)


def test_two_files_with_one_name_are_refused(my, tmp_path):
    other = tmp_path / "other"
    other.mkdir(0o755)
    (other / "keep_all.py").write_text(LAW)
    said = refused("check", "two_paths", "--with", my, "--cc", other / "keep_all.py")
    assert f"{my / 'keep_all.py'} has this name too: rename one" in said


def test_a_missing_file_is_refused(my):
    assert "there is no such file" in refused("run", "two_paths", "--strategy", my / "other.py")
    assert "there is no such file" in refused("run", "two_paths", "--cc", my / "other.c")
    assert "there is no such file" in refused("list", "cc", "--with", my / "other")


def test_a_path_of_a_topology_is_accepted_in_files_only(my):
    raw = {"name": "x", "title": "x", "topology": {"file": str(my / "doorway.py")}}
    with pytest.raises(RequestError, match="accepted only in a scenario file"):
        loading.from_data(raw | {"traffic": [{"user": "ue1"}]}, "x")


def test_root_runs_no_file_in_a_folder_that_others_can_change(my, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", str(my.stat().st_uid))
    my.chmod(0o775)
    for name in KNOWN:
        (my / name).chmod(0o644)
        said = refused("check", "two_paths", "--with", my / name)
        assert f"in a folder, {my}, that others may write. Try: chmod go-w {my}" in said
    my.chmod(0o755)
    extensions.add(my)


@pytest.mark.parametrize("option", ["--strategy", "--cc"])
def test_a_file_of_another_kind_is_refused_by_its_name(my, option):
    (my / "mine").write_text(STRATEGY)
    said = refused("check", "two_paths", option, my / "mine")
    assert f"use {my / 'mine'} as {option[2:]}: its name must end in .py" in said


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({".py": '"""Mine, of old.\n\nMore."""\n'}, "Mine, of old."),
        ({".py": '"""Mine."""\n', ".c": "/* Not this */\n"}, "Mine."),
        ({".py": "", ".c": "// SPDX-License-Identifier: X\n\n/*\n * In C.\n */\n"}, "In C."),
        ({".c": "/* In C. */\n"}, "In C."),
        ({".c": "#include <x.h>\n/* Too late */\n"}, "of your own"),
        ({".py": ""}, "of your own"),
        ({".c": ""}, "of your own"),
    ],
)
def test_the_help_of_a_law_is_its_docstring_or_its_first_comment(tmp_path, files, text):
    for ending, start in files.items():
        path = tmp_path / f"mine{ending}"
        path.write_text(start + ("def on_ack(): pass\n" if ending == ".py" else ""))
        extensions.add(path)
    assert extensions.congestion_controls()["mine"] == text


@pytest.mark.parametrize("name", ["mine.py", "mine.c", "mine.yaml"])
@pytest.mark.parametrize("made", ["a device", "a pipe", "a socket", "a large file"])
def test_what_is_no_plain_file_of_usual_size_is_refused_unread(my, name, made):
    path = my / name
    if made == "a device":
        path.symlink_to("/dev/zero")
    elif made == "a pipe":
        os.mkfifo(path)
    elif made == "a socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(os.path.relpath(path))
    else:
        path.write_bytes(b"# " * 600_000)
    for given in (path, my):
        with pytest.raises(
            RequestError,
            match=rf"{name}: it is (not a plain file|larger than 1 MiB)|No such device",
        ):
            extensions.add(given)


def test_a_folder_of_too_many_files_is_refused(my):
    for n in range(501):
        (my / f"law{n}.py").write_text("")
    with pytest.raises(RequestError, match="at most 500"):
        extensions.add(my)
