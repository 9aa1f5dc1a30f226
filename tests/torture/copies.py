"""A copy of the lab, in which a change is made and tests run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from torture.known import code_of, file_of
from torture.operators import Mutant

TESTS = "not emulation and not long and not oracle and not browser"
MOST_TESTS_S = 120.0  # of one change; how long its tests took when they were recorded
KILLED, TIMED_OUT, SURVIVED, UNREACHED = "killed", "timed out", "survived", "reached by no test"
PASSED, FAILED, NOTHING_RAN, LATE = 0, 1, 5, -signal.SIGALRM  # exit codes of pytest


def by_folder(files: Iterable[str]) -> list[list[str]]:
    """Files of different folders of tests may each import their own `conftest`."""
    found: dict[str, list[str]] = {}
    for file in files:
        found.setdefault("/".join(file.split("/")[1:-1][:1]), []).append(file)
    return list(found.values())


class Copy:
    def __init__(self, original: Path, folder: Path) -> None:
        """Copy the lab `original` as it is now. `folder` is empty."""
        self.root, self._folder = folder / "lab", folder
        argv = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(argv, cwd=original, capture_output=True, text=True, check=True)
        for name in filter(lambda name: (original / name).is_file(), names.stdout.splitlines()):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(original / name, self.root / name)
        self.code = code_of(self.root)
        self._log = folder / "log"
        self._written = 0
        self._passing: set[str] = set()  # without a change
        self._failing: set[str] = set()  # without a change

    def record(self, files: list[str], table: str) -> None:
        """Run these files of tests; `table` is the plugin's MUTATE_RECORD."""
        for those in by_folder(files):
            code = self._pytest(["-m", TESTS, *those], {"MUTATE_RECORD": table}, None)
            if code not in (PASSED, FAILED, NOTHING_RAN):
                log = self._log.read_text()[-2000:]
                raise SystemExit(f"record what the tests in {those[0]} reach: pytest ended\n{log}")

    def verdict(self, mutant: Mutant, seconds: Mapping[str, float]) -> tuple[str, str]:
        """Run tests with this change: `seconds` says which, and how long each took without it.
        Return what came of it, and the test that failed."""
        limits_s = self._limits_s(seconds)
        if not limits_s:
            return UNREACHED, ""
        code, test = self._changed(mutant, limits_s)
        if code < 0:  # the machine may have been busy, or somebody else has ended it
            code, test = self._changed(mutant, limits_s)
        if code < 0:
            return TIMED_OUT, ""
        if code == PASSED:
            return SURVIVED, ""
        again = {test: limits_s[test]} if test else limits_s
        if test in self._passing or self._run(again)[0] == PASSED:
            self._passing.add(test)
            return KILLED, test
        self._failing |= again.keys()
        return self.verdict(mutant, seconds)

    def _limits_s(self, seconds: Mapping[str, float]) -> dict[str, float]:
        chosen, total_s = {}, 0.0
        for test, took_s in seconds.items():
            total_s += took_s
            if chosen and total_s > MOST_TESTS_S:
                break
            if test not in self._failing:
                chosen[test] = 5 * took_s + 5
        return chosen

    def _changed(self, mutant: Mutant, limits_s: Mapping[str, float]) -> tuple[int, str]:
        path = self.root / mutant.path
        source, before = path.read_bytes(), path.stat()
        try:
            path.write_bytes(mutant.of(source))
            self._written += 1  # Python compiles a file again if its time or size differs
            os.utime(path, (self._written, self._written))
            return self._run(limits_s)
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def _run(self, limits_s: Mapping[str, float]) -> tuple[int, str]:
        """Run these tests in this order, folder by folder, until one fails. Return pytest's exit
        code, which is `LATE` if one takes longer than its limit, and the test that failed if it was
        one."""
        order, failed = self._folder / "order.json", self._folder / "failed"
        order.write_text(json.dumps(limits_s))
        failed.unlink(missing_ok=True)
        variables = {"MUTATE_TESTS": str(order), "MUTATE_FAILED": str(failed)}
        for files in by_folder(dict.fromkeys(map(file_of, limits_s))):
            most_s = sum(limit_s for test, limit_s in limits_s.items() if file_of(test) in files)
            code = self._pytest(["-x", *files], variables, most_s + 60)
            if code not in (PASSED, NOTHING_RAN):
                return code, failed.read_text() if failed.exists() else ""
        return PASSED, ""

    def _pytest(self, words: list[str], variables: dict[str, str], timeout_s: float | None) -> int:
        """Run pytest, and end all that it has started."""
        plugins = ["-p", "no:cacheprovider", "-p", "torture.reached_plugin"]
        here = Path(__file__).resolve().parents[1]
        environment = os.environ | {
            "PYTHONPATH": f"{self.root}:{self.root / 'tests'}:{here}",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "CI": "true",  # hypothesis draws the same examples each time
            **variables,
        }
        with self._log.open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pytest", "-q", "--tb=line", *plugins, *words],
                cwd=self.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                return process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                return LATE
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
