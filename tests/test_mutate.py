"""`torture mutate`: which changes of the code it makes, and which of them it says the tests miss."""

from __future__ import annotations

import ast
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from torture import __main__ as torture
from torture import mutate, operators

HERE = Path("lab/some.py")
CODE = '''
"""A text."""
LIMIT = 3


def is_small(number, text=""):
    if number < LIMIT and text != "big":
        return not text
    count(number + 1)
    if number > 9:
        raise ValueError(f"{number} is above {9 + 1}")
    print("it is large")
    return max(number, 1)
'''
TESTS = """
import subprocess, sys
from lab import some

def test_border():
    assert some.is_small(2) and not some.is_small(3, "a")

def test_in_another_process():
    code = "from lab import some; print(some.doubled(4))"
    assert subprocess.check_output([sys.executable, "-c", code]) == b"8\\n"
"""
LAB = """
MOST = 2


def is_small(number, text=""):
    return number <= MOST or text == "small"


def doubled(number):
    while number < 0:
        number += 1
    return number * 2


def nobody():
    return 7
"""


def texts(code, **wanted):
    found = operators.mutants(HERE, code)
    chosen = [each for each in found if all(getattr(each, k) == v for k, v in wanted.items())]
    return {code.encode()[each.start : each.end].decode() + " > " + each.text for each in chosen}


def test_each_kind_of_change_is_made():
    assert texts(CODE, trivial=False) == {
        "3 > 4",
        "number < LIMIT > (number <= LIMIT)",
        "number < LIMIT > (number >= LIMIT)",
        "number < LIMIT and text != \"big\" > (number < LIMIT or text != 'big')",
        'number < LIMIT and text != "big" > False',
        'number < LIMIT and text != "big" > True',
        "text != \"big\" > (text == 'big')",
        "\"big\" > 'bigx'",
        "not text > None",
        "not text > text",
        "count(number + 1) > pass",
        "number + 1 > (number - 1)",
        "1 > 2",
        "number > 9 > (number >= 9)",
        "number > 9 > (number <= 9)",
        "number > 9 > False",
        "number > 9 > True",
        "9 > 10",
        'raise ValueError(f"{number} is above {9 + 1}") > pass',
        "max(number, 1) > None",
        "max(number, 1) > min(number, 1)",
    }


def test_texts_for_people_are_trivial():
    trivial = texts(CODE, trivial=True)
    assert {text.partition(" > ")[0] for text in trivial} == {
        '"""A text."""',
        '""',
        'print("it is large")',
        '"it is large"',
    }


def test_what_runs_on_import_names_what_it_assigns():
    names = {each.text: each.names for each in operators.mutants(HERE, CODE)}
    assert names["4"] == ("LIMIT",)
    assert names["'x'"] == ("is_small",)
    assert names["10"] is None


def test_a_changed_file_is_other_code():
    for path in random.Random().sample(mutate.files(mutate.MUTATED), 5):
        source = (mutate.ROOT / path).read_bytes()
        before = ast.dump(ast.parse(source))
        for each in operators.mutants(path, source.decode()):
            changed = each.of(source)
            assert ast.dump(ast.parse(changed)) != before, mutate.difference(each)
            assert changed.count(b"\n", 0, each.start) == each.line - 1


def test_one_change_of_each_line_is_drawn_and_the_same_for_the_same_seed():
    found = operators.mutants(HERE, CODE)
    drawn = operators.draw(found, random.Random(5))
    assert {each.line for each in drawn} == {each.line for each in found}
    assert len({each.line for each in drawn}) == len(drawn)
    assert drawn == operators.draw(found, random.Random(5))
    assert drawn != operators.draw(found, random.Random(6))


@pytest.fixture
def small_lab(tmp_path, monkeypatch):
    root = tmp_path / "lab"
    for name, text in {"lab/some.py": LAB, "tests/test_some.py": TESTS}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "-q", root], check=True)
    monkeypatch.setattr(mutate, "ROOT", root)
    monkeypatch.setattr(mutate, "MUTATED", ("lab/*.py",))
    return root


@pytest.mark.whole
def test_what_the_tests_miss_is_printed(small_lab, tmp_path, monkeypatch, capsys):
    cache = tmp_path / "cache"
    argv = ["torture", "mutate", "--count", "99", "--seed", "3", "--cache", str(cache)]
    monkeypatch.setattr(sys, "argv", argv)
    assert torture.main() == 0
    out, errors = capsys.readouterr()
    verdicts = {
        LAB.splitlines()[int(number) - 1].strip(): what
        for what, number in re.findall(r"^\d+: (.*): lab/some.py:(\d+)$", errors, re.MULTILINE)
    }
    assert verdicts.pop("while number < 0:") != "killed"
    assert verdicts.pop('return number <= MOST or text == "small"') != "reached by no test"
    assert verdicts == {
        "MOST = 2": "killed",
        "number += 1": "reached by no test",
        "return number * 2": "killed",
        "return 7": "reached by no test",
    }
    assert "-    return 7\n+    return " in out
    assert (small_lab / "lab/some.py").read_text() == LAB
    assert (cache / "tree0/lab/some.py").read_text() == LAB


@pytest.mark.whole
def test_only_changed_files_of_tests_are_recorded_again(small_lab, tmp_path):
    def recorded():
        where = mutate.tree(tmp_path / "tree")
        return mutate.known_lines(where, tmp_path, 1, ["tests/test_*.py"])

    first = recorded()
    assert first.tests["lab/some.py:12"] == {"tests/test_some.py::test_in_another_process"}
    assert "lab/some.py:16" not in first.tests
    (small_lab / "tests/test_other.py").write_text(
        "from lab import some\n\ndef test_nobody():\n    assert some.nobody() == 7\n"
    )
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "lines").rglob("*.jsonl")}
    again = recorded()
    assert again.tests["lab/some.py:16"] == {"tests/test_other.py::test_nobody"}
    assert again.tests.keys() > first.tests.keys() - {"lab/some.py:16"}
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
