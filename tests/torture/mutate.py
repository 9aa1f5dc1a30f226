"""Do the tests notice small changes of the code? `./run_lab.sh torture mutate --count N --seed S`

First the tests run once, to record which lines each of them reaches. Then each change is made in a
copy of the lab, and the tests that reach its line run until one fails: those of the same subject
first, then the short ones. A test that fails without the change, too, does not count. Changes that
no test should see, as of a message, are counted as trivial and not tried.
"""

from __future__ import annotations

import argparse
import difflib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lab.sudo import user_cache
from torture import operators
from torture.copies import KILLED, SURVIVED, TIMED_OUT, UNREACHED, Copy
from torture.known import known_lines
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


def main(words: list[str]) -> int:
    given = arguments(words)
    chosen, skipped = drawn(files(given.files or MUTATED), given.seed, given.count)
    done = recorded(given.record)
    with tempfile.TemporaryDirectory(prefix="mutate-", ignore_cleanup_errors=True) as folder:
        copy = Copy(ROOT, Path(folder))
        names = map(str, files(given.tests or ["tests/**/test_*.py"]))
        known = known_lines(copy.root, names, given.cache, copy.record)
        for number, mutant in enumerate(chosen, 1):
            if mutant.key not in done:
                line = done[mutant.key] = tried(copy, mutant, known.reaching(mutant, copy.code))
                if given.record:
                    with given.record.open("a") as file:
                        file.write(json.dumps(line) + "\n")
            print(f"{number}: {done[mutant.key]['verdict']}: {mutant}", file=sys.stderr, flush=True)
    print(summary([done[each.key] for each in chosen], skipped))
    return 0


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run_lab.sh torture mutate", description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="changes to try (20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", action="append", metavar="PATTERN", help="of what to change")
    parser.add_argument("--tests", action="append", metavar="PATTERN", help="files of tests to use")
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="a line per change; the next call goes on"
    )
    parser.add_argument(
        "--cache",
        type=Path,
        metavar="FOLDER",
        default=user_cache() / "mutate",
        help="what the tests reach, for the next time (%(default)s)",
    )
    return parser.parse_args(words)


def files(patterns: Iterable[str]) -> list[Path]:
    return sorted({path.relative_to(ROOT) for each in patterns for path in ROOT.glob(each)})


def drawn(paths: Iterable[Path], seed: int, count: int) -> tuple[list[Mutant], int]:
    """Return `count` changes of these files that are not trivial, and how many trivial ones the
    same draw had."""
    found = [each for path in paths for each in operators.mutants(path, (ROOT / path).read_text())]
    in_turn = operators.draw(found, seed)
    chosen = [each for each in in_turn if not each.trivial][:count]
    return chosen, in_turn.index(chosen[-1]) + 1 - len(chosen)


def recorded(record: Path | None) -> dict[str, dict[str, Any]]:
    lines = record.read_text().splitlines() if record and record.exists() else ()
    return {line["key"]: line for line in map(json.loads, lines)}


def tried(copy: Copy, mutant: Mutant, tests: dict[str, float]) -> dict[str, Any]:
    """Return the line of the record: what the tests say about this change."""
    verdict, by = copy.verdict(mutant, tests)
    argv = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return {
        "key": mutant.key,
        "commit": commit.strip(),
        "verdict": verdict,
        "by": by,
        "tests": len(tests),
        "difference": difference(mutant),
    }


def summary(lines: list[dict[str, Any]], skipped: int) -> str:
    """Print what no test notices, with the share of what they notice at the end."""
    missed = [
        f"# {line['verdict']} ({line['tests']} tests reach it)\n{line['difference']}"
        for line in lines
        if line["verdict"] in (SURVIVED, UNREACHED)
    ]
    counts = Counter(line["verdict"] for line in lines)
    details = ", ".join(f"{what} {number}" for what, number in counts.most_common())
    share = (counts[KILLED] + counts[TIMED_OUT]) / len(lines)
    return "\n".join(
        [
            *missed,
            f"noticed {share:.0%} of {len(lines)}: {details}; trivial, not tried {skipped}",
        ]
    )


def difference(mutant: Mutant) -> str:
    before = (ROOT / mutant.path).read_bytes()
    lines = [text.decode().splitlines(keepends=True) for text in (before, mutant.of(before))]
    return "".join(difflib.unified_diff(*lines, str(mutant.path), str(mutant.path), n=2))
