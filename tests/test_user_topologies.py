"""A topology in a user's own file: registered, built, or refused with file and line."""

from __future__ import annotations

import os
import sys

import pytest

from lab.errors import RequestError
from lab.topologies import families
from lab.topologies.checks import checked

DOORWAY = '''"""Two paths behind one shared link."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from controller.units import bps_from_mbps
from lab.topologies.parallel_paths import Rate
from lab.topologies.topology import Link, Node, Topology


class Params(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    door_mbps: Rate = 15


def build(params: Params, rate_scale: float = 1.0) -> Topology:
    nodes = (Node("ue1", "user"), *(Node(s, "switch") for s in ("s1", "s2")), Node("srv1", "server"))
    door = Link("door", "s1", "s2", bps_from_mbps(params.door_mbps * rate_scale))
    return Topology("doorway", nodes, (door, Link("a", "s2", "ue1"), Link("b", "s1", "srv1")))
'''


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Write a file; afterwards the table of topologies is restored."""
    monkeypatch.setattr(families, "TOPOLOGIES", dict(families.TOPOLOGIES))
    before = set(sys.modules)

    def write(text: str, name: str = "doorway.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o644)
        return path

    yield write
    for name in set(sys.modules) - before:
        if name.startswith("user_file_"):
            del sys.modules[name]


def refused(path) -> str:
    before = dict(families.TOPOLOGIES)
    with pytest.raises(RequestError) as caught:
        families.register(path)
    assert before == families.TOPOLOGIES
    return str(caught.value)


def test_a_users_file_adds_a_kind_of_network(file):
    path = file(DOORWAY)
    assert families.register(path) == "doorway"
    family = families.TOPOLOGIES["doorway"]
    topology = checked(family.build(family.Params(door_mbps=8), 0.5))
    assert topology.links[0].rate_bps == 4_000_000
    assert not families.has_positions(family)
    assert list(path.parent.iterdir()) == [path]  # no bytecode file beside it


def test_the_same_file_may_change_and_be_registered_once_more(file):
    families.register(file(DOORWAY))
    families.register(file(DOORWAY.replace("= 15", "= 20")))
    assert families.TOPOLOGIES["doorway"].Params().door_mbps == 20


def test_a_kind_with_positions_takes_a_seed(file):
    text = DOORWAY.replace("\n\nclass", "\nPOSITIONS = True\n\n\nclass")
    assert "build must take (params, rate_scale, seed)" in refused(file(text))
    families.register(file(text.replace("rate_scale: float = 1.0", "rate_scale: float, seed: int")))
    assert families.has_positions(families.TOPOLOGIES["doorway"])


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("import nothing_of_this_name\n", "line 1: ModuleNotFoundError: No module named"),
        ("x = 1\n\ndef build(:\n", "line 3: SyntaxError: invalid syntax"),
        ("def f():\n    return 1 / 0\n\nf()\n", "line 2: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\n", "line 2: SystemExit: 3"),
        ("", "it has no class Params(BaseModel): add one, with model_config"),
        (DOORWAY.replace('extra="forbid", ', ""), "Params accepts unknown keys"),
        (DOORWAY.replace("def build", "def make"), "it has no function build(params, rate_scale)"),
        (
            DOORWAY.replace(", rate_scale: float = 1.0", ""),
            ", line 17: build must take (params, rate_scale): too many positional arguments",
        ),
    ],
    ids=["import", "syntax", "run", "exit", "empty", "extra", "build", "signature"],
)
def test_an_error_names_file_and_line(file, text, wrong):
    path = file(text)
    said = refused(path)
    assert str(path) in said
    assert wrong in said


def test_a_names_of_built_in_kinds_and_of_other_files_are_refused(file):
    assert "'campus' is a built-in kind: rename the file" in refused(file(DOORWAY, "campus.py"))
    families.register(file(DOORWAY))
    assert "is called 'doorway' too: rename one" in refused(file(DOORWAY, "other/doorway.py"))


def test_only_python_files_with_a_usable_name_are_imported(file, tmp_path):
    assert "there is no such file" in refused(tmp_path / "missing.py")
    assert "a Python file ends in .py" in refused(file(DOORWAY, "doorway.txt"))
    assert "the name must be letters, digits and '_'" in refused(file(DOORWAY, "door-way.py"))


def test_root_runs_no_file_that_others_can_change(file, monkeypatch):
    path = file(DOORWAY)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", str(path.stat().st_uid))
    path.chmod(0o664)
    assert "a file that others may write. Try: chmod go-w" in refused(path)
    path.chmod(0o644)
    families.register(path)


def test_root_runs_no_file_of_another_user(file):
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    path = file(DOORWAY)
    os.chown(path, 12345, 12345)
    assert "root does not run a file of another user. Try: sudo chown root" in refused(path)
