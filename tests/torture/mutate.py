"""Do the tests notice small changes of the code? `./run_lab.sh torture mutate --count N --seed S`

First the tests run once, to record which lines each of them reaches. Then each change is made in a
copy of the lab, and the tests that reach its line run until one fails: those of the same subject
first, then the short ones. Changes that no test should see, as of a message, are counted as
trivial and not tried.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import hashlib
import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from torture import operators, reached, reached_plugin
from torture.operators import Mutant

ROOT = Path(__file__).resolve().parents[2]
MUTATED = (
    "controller/**/*.py",
    "lab/results/*.py",
    "lab/classroom/*.py",
    "dashboard/classroom/*.py",
    "dashboard/base/*.py",
    "dashboard/guard.py",
    "lab/isolation.py",
    "lab/extensions.py",
    "lab/plain_file.py",
    "lab/user_file.py",
    "lab/inputs.py",
    "lab/scenario/*.py",
)
TESTS = "not emulation and not long and not oracle and not browser"
MOST_TESTS_S = 60.0  # of one change; how long its tests took without it
KILLED, TIMED_OUT, SURVIVED, UNREACHED = "killed", "timed out", "survived", "reached by no test"


@dataclass(frozen=True)
class Known:
    """`seconds` of each test, and for each line `FILE:NUMBER` the `tests` that reach it."""

    seconds: Mapping[str, float]
    tests: Mapping[str, set[str]]

    def reaching(self, mutant: Mutant, sources: Mapping[Path, str]) -> list[str]:
        """Return the tests that may notice this change, the most promising first."""
        lines = [f"{mutant.path}:{mutant.line}"]
        if mutant.names is not None:  # it runs on import, and lines with these names use it
            lines = [
                f"{path}:{number}"
                for path, text in sources.items()
                for number, line in enumerate(text.splitlines(), 1)
                if path == mutant.path or any(name in line for name in mutant.names)
            ]
        found: set[str] = set().union(*(self.tests.get(line, ()) for line in lines))
        return sorted(
            found,
            key=lambda test: (mutant.path.stem not in file_of(test), self.seconds[test], test),
        )


def main(words: list[str]) -> int:
    given = arguments(words)
    with contextlib.ExitStack() as stack:
        cache = given.cache or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        trees = [tree(cache / f"tree{n}") for n in range(given.jobs)]
        known = known_lines(trees[0], cache, given.jobs, given.tests or ["tests/**/test_*.py"])
        sources = {path: (ROOT / path).read_text() for path in files(given.files or MUTATED)}
        found = [each for path, text in sources.items() for each in operators.mutants(path, text)]
        drawn = operators.draw(found, random.Random(f"mutate/{given.seed}"))
        print(tried(drawn, given.count, known, sources, trees))
    return 0


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run_lab.sh torture mutate", description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="changes to try (20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="changes to try at a time (1)")
    parser.add_argument("--files", action="append", metavar="PATTERN", help="of what to change")
    parser.add_argument("--tests", action="append", metavar="PATTERN", help="files of tests to use")
    parser.add_argument(
        "--cache", type=Path, metavar="FOLDER", help="keep what the tests reach, for the next time"
    )
    return parser.parse_args(words)


def files(patterns: Iterable[str]) -> list[Path]:
    return sorted({path.relative_to(ROOT) for each in patterns for path in ROOT.glob(each)})


def file_of(test: str) -> str:
    return test.partition("::")[0]


def tree(folder: Path) -> Path:
    """Make `folder` a copy of the lab as it is now."""
    argv = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    shutil.rmtree(folder, ignore_errors=True)
    for name in filter(lambda name: (ROOT / name).is_file(), names.splitlines()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder


def known_lines(where: Path, cache: Path, jobs: int, patterns: Iterable[str]) -> Known:
    """Run in the copy `where` those tests of which the cache does not know what they reach."""
    names = map(str, files(patterns))
    folders = record_folders(where, cache, names)
    missing = {name: folder for name, folder in folders.items() if not Path(folder).exists()}
    if missing:
        for folder in missing.values():
            Path(folder).mkdir(parents=True)
        table = cache / "recording.json"
        table.write_text(json.dumps(missing))
        shutil.copy(reached.__file__, where / "sitecustomize.py")
        words = ["-m", TESTS, *missing, f"--numprocesses={jobs}", "--dist=loadfile"]
        pytest(where, words, {"MUTATE_RECORD": str(table)}, timeout_s=None)
        (where / "sitecustomize.py").unlink()
    return read(folders.values())


def record_folders(where: Path, cache: Path, names: Iterable[str]) -> dict[str, str]:
    """Return for each of these files of tests the folder of its records, which is named after a
    digest of the file and of all Python files that are not tests."""
    paths = [path for path in sorted(where.rglob("*.py")) if not path.name.startswith("test_")]
    code = hashlib.sha256(b"".join(path.read_bytes() for path in paths))
    folders = {}
    for name in names:
        digest = code.copy()
        digest.update(name.encode() + (where / name).read_bytes())
        folders[name] = str(cache / "lines" / digest.hexdigest()[:20])
    return folders


def read(folders: Iterable[str]) -> Known:
    """Read what the tests reach. Tests that fail without a change are left out."""
    seconds: dict[str, float] = defaultdict(float)
    tests: dict[str, set[str]] = defaultdict(set)
    for folder in folders:
        record, passed = Path(folder) / "tests.jsonl", {}
        for line in record.read_text().splitlines() if record.exists() else ():
            test, outcome, took_s = json.loads(line)
            seconds[test] += took_s
            passed[test] = outcome == "passed" and passed.get(test, True)
        for test in filter(passed.get, passed):
            for line in reached_plugin.lines_file(folder, test).read_text().splitlines():
                tests[sys.intern(line)].add(test)
    return Known(seconds, tests)


def tried(
    drawn: list[Mutant],
    count: int,
    known: Known,
    sources: Mapping[Path, str],
    trees: list[Path],
) -> str:
    """Try `count` of the drawn changes that are not trivial, and print those that no test notices.
    Return the counts as text."""
    chosen = [each for each in drawn if not each.trivial][:count]
    last = drawn.index(chosen[-1])
    counts = Counter({"trivial, not tried": last + 1 - len(chosen)})
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for each in trees:
        free.put(each)

    def attempt(mutant: Mutant) -> tuple[Mutant, str, int]:
        where = free.get()
        try:
            tests = known.reaching(mutant, sources)
            return mutant, verdict(where, mutant, tests, known.seconds), len(tests)
        finally:
            free.put(where)

    with ThreadPoolExecutor(len(trees)) as pool:
        for number, (mutant, what, tests) in enumerate(pool.map(attempt, chosen), 1):
            counts[what] += 1
            print(f"{number}: {what}: {mutant.path}:{mutant.line}", file=sys.stderr, flush=True)
            if what in (SURVIVED, UNREACHED):
                print(f"# {what} ({tests} tests reach it)\n{difference(mutant)}", flush=True)
    share = (counts[KILLED] + counts[TIMED_OUT]) / len(chosen)
    details = ", ".join(f"{what} {number}" for what, number in counts.most_common())
    return f"noticed {share:.0%} of {len(chosen)}: {details}"


def verdict(where: Path, mutant: Mutant, tests: list[str], seconds: Mapping[str, float]) -> str:
    """Run the tests in the copy `where` with this change."""
    chosen, total_s = {}, 0.0
    for test in tests:
        total_s += seconds[test]
        if chosen and total_s > MOST_TESTS_S:
            break
        chosen[test] = 5 * seconds[test] + 10
    if not chosen:
        return UNREACHED
    order = where.with_suffix(".json")
    order.write_text(json.dumps(chosen))
    source = (ROOT / mutant.path).read_bytes()
    try:
        (where / mutant.path).write_bytes(mutant.of(source))
        words = ["-x", "-p", "no:xdist", *dict.fromkeys(map(file_of, chosen))]
        code = pytest(where, words, {"MUTATE_TESTS": str(order)}, sum(chosen.values()) + 60)
    finally:
        (where / mutant.path).write_bytes(source)
    return {0: SURVIVED, -signal.SIGALRM: TIMED_OUT, None: TIMED_OUT}.get(code, KILLED)


def pytest(
    where: Path, words: list[str], variables: dict[str, str], timeout_s: float | None
) -> int | None:
    """Run pytest in the copy `where`, and end all that it started. Return None if it takes too
    long."""
    plugins = ["-p", "no:randomly", "-p", "no:cacheprovider", "-p", "torture.reached_plugin"]
    here = Path(__file__).resolve().parents[1]
    environment = os.environ | {
        "PYTHONPATH": f"{where}:{where / 'tests'}:{here}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "CI": "true",  # hypothesis draws the same examples each time
        **variables,
    }
    with where.with_suffix(".log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pytest", "-q", "--tb=line", *plugins, *words],
            cwd=where,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def difference(mutant: Mutant) -> str:
    before = (ROOT / mutant.path).read_bytes()
    lines = [text.decode().splitlines(keepends=True) for text in (before, mutant.of(before))]
    return "".join(difflib.unified_diff(*lines, str(mutant.path), str(mutant.path), n=2))
