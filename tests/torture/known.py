"""Which tests reach which lines, kept in a folder from one call of `torture mutate` to the next.

A file of tests is recorded again only if it has changed. The lines of the code that its record
names are carried over to the code as it is now, so a record may miss what a change has brought:
then fewer tests are tried. To record all again, remove the folder.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import json
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from torture import reached, reached_plugin
from torture.operators import Mutant

COMPLETE = "complete"  # a file in a folder of records: the name of the code that was recorded
WORD = re.compile(r"\w{4,}")
Code = Mapping[str, str]  # path: text


@dataclass(frozen=True)
class Known:
    """`seconds` of each test, the `words` of each file of tests, and for each line `FILE:NUMBER`
    the `tests` that reach it."""

    seconds: Mapping[str, float]
    tests: Mapping[str, set[str]]
    words: Mapping[str, set[str]]

    def reaching(self, mutant: Mutant, code: Code) -> dict[str, float]:
        """Return the tests that may notice this change, with their seconds: first those whose file
        has the name of the changed file, then those with most words of the line, then short ones.

        If the changed statement runs on import, a test may read what it assigns without running a
        line of the code, such as a default: so all tests in files with one of the names count.
        """
        names = mutant.names or ()
        lines = [f"{mutant.path}:{mutant.line}"]
        if mutant.names is not None:  # it runs on import, and lines with these names use it
            lines = [
                f"{path}:{number}"
                for path, text in code.items()
                for number, line in enumerate(text.splitlines(), 1)
                if path == str(mutant.path) or any(name in line for name in names)
            ]
        found: set[str] = set().union(*(self.tests.get(line, ()) for line in lines))
        found |= {each for each in self.seconds if not self.words[file_of(each)].isdisjoint(names)}
        words = WORD.findall(code[str(mutant.path)].splitlines()[mutant.line - 1])

        def place(test: str) -> tuple[bool, int, float, str]:
            file = file_of(test)
            known = sum(word in self.words[file] for word in set(words))
            return mutant.path.stem not in file, -known, self.seconds[test], test

        in_turn = sorted(found, key=place)
        return {test: self.seconds[test] for test in in_turn}


def file_of(test: str) -> str:
    return test.partition("::")[0]


def code_of(root: Path) -> dict[str, str]:
    """Return the code whose lines are recorded."""
    paths = (path for folder in reached.FOLDERS for path in sorted((root / folder).rglob("*.py")))
    return {str(path.relative_to(root)): path.read_text() for path in paths}


def known_lines(
    tree: Path, names: Iterable[str], cache: Path, run: Callable[[list[str], str], object]
) -> Known:
    """Record those files of tests (`names`, in the copy `tree` of the lab) that the cache lacks:
    `run` runs pytest with these words, and with this file for MUTATE_RECORD."""
    folders = {name: cache / "lines" / _digest(name, (tree / name).read_bytes()) for name in names}
    missing = {name: folder for name, folder in folders.items() if not (folder / COMPLETE).exists()}
    if missing:
        _record(tree, missing, cache, run)
    words = {name: set(WORD.findall((tree / name).read_text())) for name in folders}
    return Known(*_read(folders.values(), cache, code_of(tree)), words)


def _digest(name: str, content: bytes) -> str:
    return hashlib.sha256(name.encode() + content).hexdigest()[:20]


def _record(
    tree: Path,
    missing: Mapping[str, Path],
    cache: Path,
    run: Callable[[list[str], str], object],
) -> None:
    code = json.dumps(code_of(tree), sort_keys=True)
    kept = cache / "code" / _digest("", code.encode())
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(code)
    for folder in missing.values():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    table = cache / "recording.json"
    table.write_text(json.dumps({name: str(folder) for name, folder in missing.items()}))
    shutil.copy(reached.__file__, tree / "sitecustomize.py")
    run(list(missing), str(table))
    (tree / "sitecustomize.py").unlink()
    for folder in missing.values():
        (folder / COMPLETE).write_text(kept.name)


def _read(
    folders: Iterable[Path], cache: Path, now: Code
) -> tuple[dict[str, float], dict[str, set[str]]]:
    """Return the seconds of each test, and the tests that reach each line. Tests that failed are
    left out."""
    seconds: dict[str, float] = defaultdict(float)
    tests: dict[str, set[str]] = defaultdict(set)
    moved = functools.cache(lambda name: Moved(cache / "code" / name, now))
    for folder in folders:
        record, passed = folder / "tests.jsonl", {}
        for line in record.read_text().splitlines() if record.exists() else ():
            test, outcome, took_s = json.loads(line)
            seconds[test] += took_s
            passed[test] = outcome == "passed" and passed.get(test, True)
        lines_now = moved((folder / COMPLETE).read_text())
        for test in filter(passed.get, passed):
            for line in reached_plugin.lines_file(folder, test).read_text().splitlines():
                for each in lines_now(line):
                    tests[each].add(test)
    return seconds, tests


class Moved:
    """Where the lines of the recorded code are now. A changed passage takes the place of the
    passage that was there."""

    def __init__(self, recorded: Path, now: Code) -> None:
        self._before: Code = json.loads(recorded.read_text())
        self._now = now
        self._tables: dict[str, dict[str, tuple[str, ...]]] = {}

    def __call__(self, line: str) -> tuple[str, ...]:
        path, _, number = line.partition(":")
        if self._before.get(path) == self._now.get(path):
            return (sys.intern(line),)
        if path not in self._tables:
            self._tables[path] = self._table(path)
        return self._tables[path].get(number, ())

    def _table(self, path: str) -> dict[str, tuple[str, ...]]:
        before, now = (code.get(path, "").splitlines() for code in (self._before, self._now))
        table = {}
        for kind, i, i_end, j, j_end in difflib.SequenceMatcher(
            None, before, now, autojunk=False
        ).get_opcodes():
            for n in range(i_end - i):
                found = [j + n] if kind == "equal" else range(j, j_end)
                table[str(i + n + 1)] = tuple(sys.intern(f"{path}:{m + 1}") for m in found)
        return table
