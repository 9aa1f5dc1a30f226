"""A Python file of a user is run, or refused with its place; nothing of a refused one is left."""

from __future__ import annotations

import sys

import pytest

from controller.errors import UserFileRefused
from controller.user_file import PREFIX, described, import_file, line_of, stem

GOOD, BAD = "VALUE = 1\n", "VALUE = 2\n\nunknown\n"


@pytest.fixture(autouse=True)
def modules(monkeypatch):
    """Modules of users are forgotten before and after the test."""
    others = {name: each for name, each in sys.modules.items() if not name.startswith(PREFIX)}
    monkeypatch.setattr(sys, "modules", others)


@pytest.fixture
def file(tmp_path):
    def write(text, name="mine.py"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def test_each_import_runs_the_file_anew_and_writes_nothing_beside_it(file, tmp_path):
    path = file(GOOD)
    first = import_file(path)
    file("VALUE = 3\n")
    assert (first.VALUE, import_file(path).VALUE) == (1, 3)
    assert import_file(path, b"VALUE = 4").VALUE == 4
    assert sys.modules[PREFIX + "mine"].VALUE == 4
    assert [each.name for each in tmp_path.iterdir()] == ["mine.py"]


@pytest.mark.parametrize("name", ["my-network.py", "2nd.py", "my.network.py", "a b.py", ".py"])
def test_a_name_that_is_no_name_of_python_is_refused_unless_another_is_given(file, name):
    path = file(GOOD, name)
    with pytest.raises(UserFileRefused, match="the name must be letters, digits and '_'"):
        import_file(path)
    assert import_file(path, name="another").VALUE == 1


@pytest.mark.parametrize(
    "text", [BAD, "def\n", "raise SystemExit(3)\n", "\0", "\ud800".encode("utf-8", "surrogatepass")]
)
def test_a_file_that_fails_leaves_no_module(file, text):
    path = file("")
    source = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(UserFileRefused, match=f"import {path}"):
        import_file(path, source)
    assert PREFIX + "mine" not in sys.modules


def test_a_file_that_fails_leaves_the_module_of_an_earlier_import(file):
    before = import_file(file(GOOD))
    with pytest.raises(UserFileRefused, match="line 3: NameError: name 'unknown' is not defined"):
        import_file(file(BAD))
    assert sys.modules[PREFIX + "mine"] is before


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UserFileRefused, match=r"mine\.py: FileNotFoundError"):
        import_file(str(tmp_path / "mine.py"))


@pytest.mark.parametrize("path", ["a/b/mine.py", "mine.py", "C:\\a\\mine.py", "mine"])
def test_a_stem_is_the_name_without_folder_and_ending(path):
    assert stem(path) == "mine"


def test_the_innermost_line_of_the_file_is_named():
    code = compile("def inner():\n    raise KeyError\ndef outer():\n    inner()\n", "my.py", "exec")
    names = {}
    exec(code, names)
    with pytest.raises(KeyError) as caught:
        names["outer"]()
    assert line_of(caught.value, "my.py") == 2
    assert line_of(caught.value, "another.py") is None
    assert described(caught.value, "my.py") == "my.py, line 2: KeyError: no message"
    assert described(caught.value, "another.py", 9) == "another.py, line 9: KeyError: no message"
    assert described(ValueError("one\ntwo"), "my.py") == "my.py: ValueError: one"


def test_the_line_of_a_syntax_error_is_that_of_its_own_file():
    error = SyntaxError("invalid", ("my.py", 7, 1, "def"))
    assert (line_of(error, "my.py"), line_of(error, "another.py")) == (7, None)
    assert described(error, "my.py") == "my.py, line 7: SyntaxError: invalid"
