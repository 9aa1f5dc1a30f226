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
from torture import copies, mutate, operators
from torture.copies import Copy
from torture.known import Known, known_lines

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
    drawn = operators.draw(found, 5)
    assert {each.line for each in drawn} == {each.line for each in found}
    assert len({each.line for each in drawn}) == len(drawn)
    assert drawn == operators.draw(found, 5)
    assert drawn != operators.draw(found, 6)


def test_a_draw_stays_the_same_where_the_code_does():
    """So that a campaign goes on after some of the code has changed."""
    other = CODE.replace("LIMIT = 3", "LIMIT = 4\n\n").replace('"big"', '"large"')
    keys = [
        [each.key for each in operators.draw(operators.mutants(HERE, code), 5)]
        for code in (CODE, other)
    ]
    assert len(set(keys[0])) == len(keys[0])
    common = set(keys[0]) & set(keys[1])
    assert len(common) == len(keys[0]) - 2  # the lines that have changed
    assert [key for key in keys[0] if key in common] == [key for key in keys[1] if key in common]


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


def campaign(tmp_path, monkeypatch, capsys, *words):
    """Return what the command prints, and for each line of LAB what came of its change."""
    argv = ["torture", "mutate", "--count", "99", "--seed", "3", "--cache", str(tmp_path / "cache")]
    monkeypatch.setattr(sys, "argv", [*argv, *words])
    assert torture.main() == 0
    out, errors = capsys.readouterr()
    return out, {
        LAB.splitlines()[int(number) - 1].strip(): what
        for what, number in re.findall(r"^\d+: (.*): lab/some.py:(\d+)$", errors, re.MULTILINE)
    }


@pytest.mark.long
def test_what_the_tests_miss_is_printed(small_lab, tmp_path, monkeypatch, capsys):
    out, verdicts = campaign(tmp_path, monkeypatch, capsys)
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


@pytest.mark.whole
def test_a_test_that_fails_anyway_notices_nothing(small_lab, tmp_path, monkeypatch, capsys):
    """It passed when it was recorded, and fails now."""
    (small_lab / "tests/test_some.py").write_text(
        "from pathlib import Path\nfrom lab import some\n\n"
        "def test_it():\n"
        "    some.nobody()\n"
        f"    assert not Path({str(tmp_path / 'appears')!r}).exists()\n"
    )
    (small_lab / "lab/some.py").write_text(LAB)
    where = Copy(small_lab, tmp_path / "copy")
    known_lines(where.root, ["tests/test_some.py"], tmp_path / "cache", where.record)
    (tmp_path / "appears").touch()
    _, verdicts = campaign(tmp_path, monkeypatch, capsys)
    assert verdicts["return 7"] == "reached by no test"


@pytest.mark.long
def test_a_campaign_goes_on_after_its_last_line(small_lab, tmp_path, monkeypatch, capsys):
    record = tmp_path / "record.jsonl"
    words = ["--record", str(record)]
    campaign(tmp_path, monkeypatch, capsys, *words, "--count", "2")
    first = record.read_text()
    whole, _ = campaign(tmp_path, monkeypatch, capsys, *words)
    assert record.read_text().startswith(first)
    assert len(first.splitlines()) == 2
    before = record.read_text()
    assert campaign(tmp_path, monkeypatch, capsys, *words)[0] == whole
    assert record.read_text() == before


def test_a_test_that_names_what_a_class_assigns_reaches_it():
    """It can read the value without running a line of the class's file."""
    seconds = {"tests/test_a.py::test_1": 0.1, "tests/test_b.py::test_2": 0.1}
    words = {"tests/test_a.py": {"assert", "LIMIT"}, "tests/test_b.py": {"assert"}}
    known = Known(seconds, {"lab/some.py:4": {"tests/test_b.py::test_2"}}, words)
    code = {"lab/some.py": "class Some:\n    LIMIT = 3\n    def one(self):\n        return 1\n"}
    of_line = {each.line: each for each in operators.mutants(HERE, code["lab/some.py"])}
    assert known.reaching(of_line[2], code).keys() == seconds.keys()
    assert list(known.reaching(of_line[4], code)) == ["tests/test_b.py::test_2"]


@pytest.mark.whole
def test_only_changed_files_of_tests_are_recorded_again(small_lab, tmp_path):
    """Lines of a record are carried over to the code as it is now."""
    numbers = iter(range(9))

    def recorded():
        copy = Copy(small_lab, tmp_path / f"copy{next(numbers)}")
        names = map(str, mutate.files(["tests/test_*.py"]))
        return known_lines(copy.root, names, tmp_path, copy.record)

    first = recorded()
    assert first.tests["lab/some.py:12"] == {"tests/test_some.py::test_in_another_process"}
    assert "lab/some.py:16" not in first.tests
    (small_lab / "tests/test_other.py").write_text(
        "from lab import some\n\ndef test_nobody():\n    assert some.nobody() == 7\n"
    )
    (small_lab / "lab/some.py").write_text(LAB.replace("    while", "    # a\n    while"))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "lines").rglob("*.jsonl")}
    again = recorded()
    assert again.tests["lab/some.py:13"] == {"tests/test_some.py::test_in_another_process"}
    assert again.tests["lab/some.py:17"] == {"tests/test_other.py::test_nobody"}
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())


@pytest.mark.whole
def test_what_the_first_test_waits_for_is_not_its_time(small_lab, tmp_path):
    (small_lab / "tests/test_some.py").write_text(
        "import time\nimport pytest\nfrom lab import some\n\n"
        "@pytest.fixture(scope='session', autouse=True)\n"
        "def compiled():\n    time.sleep(0.5)\n\n"
        "def test_nobody():\n    assert some.nobody() == 7\n"
    )
    copy = Copy(small_lab, tmp_path / "copy")
    known = known_lines(copy.root, ["tests/test_some.py"], tmp_path / "cache", copy.record)
    assert known.seconds["tests/test_some.py::test_nobody"] < 0.5


def test_lines_of_an_audit_hook_are_recorded(tmp_path):
    (tmp_path / "lab").mkdir()
    hook = (
        "import sys\n\n\ndef hear(event, _):\n    event = str(event)\n\n\nsys.addaudithook(hear)\n"
    )
    (tmp_path / "lab" / "hook.py").write_text(hook)
    lines = tmp_path / "lines"
    code = f"Recorder({str(tmp_path)!r}).begin({str(lines)!r})\nimport lab.hook\nopen('/dev/null')"
    subprocess.run(
        [sys.executable, "-P", "-c", f"from torture.reached import Recorder\n{code}"],
        env={"PYTHONPATH": f"{tmp_path}:{mutate.ROOT / 'tests'}"},
        check=True,
    )
    assert "lab/hook.py:5" in lines.read_text().splitlines()


def test_each_folder_of_tests_runs_alone():
    """Two of them have a `conftest` from which their tests import."""
    files = ["tests/a/test_1.py", "tests/test_2.py", "tests/b/test_3.py", "tests/a/c/test_4.py"]
    found = [[files[0], files[3]], [files[1]], [files[2]]]
    assert copies.by_folder(files) == found
