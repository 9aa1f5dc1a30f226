"""Write the folder of a run.

    manifest.json  scenario.yaml  samples.jsonl  events.jsonl  inputs/
    commands.sh    log.txt        inbox/         result.json   extensions/

What was written stays readable after a crash of the process, a full disk or a power cut. To achieve
this, lines are appended and flushed one by one. JSON documents are written to a temporary file,
which is then renamed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from controller.strategy_names import base_name, folder_name
from lab import extensions, installed, plain_file, sudo
from lab.errors import LabError, RequestError
from lab.extensions import COPIES, Extension
from lab.frame import Frame
from lab.inputs import short_names
from lab.run.manifest import manifest
from lab.run.reading import (
    APPENDED,
    KEPT,
    RESULTS,
    SEAL,
    SEALED,
    digest,
    read_document,
    sealed,
)
from lab.scenario import yaml_text
from lab.scenario.files import INPUTS
from lab.scenario.loading import files_named, input_files, resolved, user_files
from lab.scenario.schema import Scenario

RUNS = installed.DATA / "runs"
TRACE = "  | "  # begins the lines of a traceback in log.txt
PRIVATE = 0o700  # mode of a run folder: only its owner reads it
RESERVE, RESERVED_BYTES = ".reserve", 1 << 18  # room for result.json if the disk gets full
REQUEST = "request.yaml"  # the scenario for a virtual machine
MOST_KEPT_BYTES = 1 << 24  # of a file that is copied into the folder of a run
BEFORE_THE_RUN = {"vm", INPUTS, REQUEST}  # may be in a run folder before the run writes into it
BEFORE_THE_MANIFEST = {*BEFORE_THE_RUN, RESERVE, "inbox", "scenario.yaml", ".manifest.json.new"}
LINES = ("samples.jsonl", "events.jsonl", "commands.sh", "log.txt")


class Recorder:
    """Writes the files of one run folder.

    If a write fails, a `LabError` is raised, and every later attempt to append raises the same
    error. The files that were written before stay valid.
    """

    def __init__(self, folder: Path, scenario: Scenario, engine: str) -> None:
        """Begin to record in `folder`, which must exist.

        If the folder has a manifest already, from a run whose process was lost, this manifest and
        the recorded lines are kept.
        """
        self.folder, self.scenario, self.engine = folder, scenario, engine
        self.run_id = folder.name
        self.flips: list[dict[str, Any]] = []  # changes made from outside during the run
        # the user's files that the run has used, and what these have read
        self.inputs = {**extensions.digests(user_files(scenario, engine)), **scenario.inputs}
        self.started, self._began = time.time(), time.monotonic()
        lost = (folder / "manifest.json").exists()
        self._manifest = (
            read_document(folder, "manifest.json")
            if lost
            else manifest(self.run_id, scenario, engine, self.started)
        )
        self.lanes: tuple[str, ...] = tuple(self._manifest.get("lanes", ()))  # of its race
        self._open: dict[str, TextIO] = {}
        self.broken: LabError | None = None
        self.on_log: Callable[[str], None] = lambda _: None  # called with every line of the log
        try:
            (folder / RESERVE).write_bytes(bytes(RESERVED_BYTES))  # first: see `never_began`
            (folder / "inbox").mkdir(exist_ok=True)
            write_scenario(folder / "scenario.yaml", scenario)
            _write_document(self.folder, "manifest.json", _pretty(self._manifest))
            self._copy(user_files(scenario, engine))
            keep_inputs(folder, input_files(scenario, engine))
            for name in LINES:
                (folder / name).touch()
            self._written = {
                name: hashlib.sha256(plain_file.read(folder / name)) for name in APPENDED
            }
        except OSError as error:
            raise self._failed("the first files", error) from error
        sudo.give_away(self.folder)

    def sample(self, frame: Frame) -> None:
        self._append("samples.jsonl", _line(frame.to_json()))

    def event(self, t: float, kind: str, **fields: Any) -> None:
        """Append an event to events.jsonl. `t` is in s since the start of the run."""
        self.events([(t, kind, fields)])

    def events(self, happened: Iterable[tuple[float, str, Mapping[str, Any]]]) -> None:
        """Append events to events.jsonl in one write.

        An event is (time, kind, fields); the time is in s since the start of the run.
        """
        self._append(
            "events.jsonl",
            "".join(
                _line({"t": round(t, 3), "kind": kind, **fields}) for t, kind, fields in happened
            ),
        )

    def command(self, argv: Sequence[str], t: float | None = None) -> None:
        """Append a command to commands.sh.

        `t` is in s since the recording began; None means now.
        """
        self.command_line(shlex.join(argv), t)

    def command_line(self, line: str, t: float | None = None) -> None:
        """Append a command line, whose words are already quoted for the shell, to commands.sh.

        `t` is in s since the recording began; None means now.
        """
        at = time.monotonic() - self._began if t is None else t
        first, newline, rest = line.partition("\n")
        self._append("commands.sh", f"{first}  # {at:.3f} s{newline}{rest}\n")

    def begin_commands(self, header: str) -> None:
        self._append("commands.sh", header)

    def log(self, text: str) -> None:
        """Append a text for the user to log.txt, with the time of day, and call `on_log` with the
        text."""
        self._append("log.txt", f"{datetime.now():%H:%M:%S} {text}\n")
        self.on_log(text)

    def trace(self, text: str) -> None:
        """Append a traceback, or what else is not shown while the run goes on, to log.txt.

        Its lines begin with `TRACE`, so that they can be told from texts for the user.
        """
        self._append("log.txt", textwrap.indent(text.rstrip(), TRACE) + "\n")

    def describe(self, **fields: Any) -> None:
        """Set fields of manifest.json.

        If the old and the new value of a field are dictionaries, they are merged.
        """
        for key, value in fields.items():
            present = self._manifest.get(key)
            merge = isinstance(present, dict) and isinstance(value, dict)
            self._manifest[key] = present | value if merge else value
        self._write("manifest.json", _pretty(self._manifest))

    def use(self, name: str) -> None:
        """Record that a change during the run selects the strategy or congestion control `name`.

        If a user's file defines it, the file is copied into the run folder and listed in
        manifest.json.
        """
        files = files_named({base_name(name)}, self.engine)
        kept = self._manifest.get("extensions", [])
        if added := [each for each in files if each.row() not in kept]:
            self._copy(added)
            self.inputs |= extensions.digests(added)
            self.describe(extensions=[*kept, *(each.row() for each in added)])

    def _copy(self, files: Iterable[Extension]) -> None:
        """Copy users' files into the run folder as a record. The lab never loads these copies."""
        for each in files:
            (self.folder / COPIES).mkdir(exist_ok=True)
            (self.folder / COPIES / each.path.name).write_bytes(each.source)

    def result(self, result: dict[str, Any]) -> None:
        """Write result.json, completely or not at all.

        Disk space that was reserved for it is released first, so that it fits on a full disk.
        """
        with suppress(OSError):
            (self.folder / RESERVE).unlink(missing_ok=True)
        self._write("result.json", _pretty(result))

    def check_unchanged(self) -> None:
        """Raise `LabError` if the samples or events are not those that were appended here."""
        for name, written in self._written.items():
            if digest(self.folder / name) != written.hexdigest():
                raise LabError(
                    f"conclude the run in {self.folder}: another program changed {name} while the "
                    "run went on, so nobody knows what was measured. Make the run again"
                )

    def close(self) -> None:
        """Close all files. Under sudo, the user who called sudo becomes the owner of the run
        folder."""
        for file in self._open.values():
            try:
                file.close()
            except OSError as error:
                self._failed("the last lines", error)
        self._open.clear()
        sudo.give_away(self.folder)

    def _append(self, name: str, text: str) -> None:
        if self.broken:
            raise self.broken
        try:
            if name not in self._open:
                self._open[name] = (self.folder / name).open(
                    "a", encoding="utf-8", errors="replace"
                )
            self._open[name].write(text)
            self._open[name].flush()
            if name in self._written:
                self._written[name].update(text.encode(errors="replace"))
        except OSError as error:
            raise self._failed(name, error) from error

    def _write(self, name: str, text: str) -> None:
        try:
            _write_document(self.folder, name, text)
        except OSError as error:
            raise self._failed(name, error) from error

    def _failed(self, what: str, error: OSError) -> LabError:
        self.broken = LabError(
            f"record {what} in {self.folder}: {error.strerror or error}. What was recorded before"
            " is kept. Free space or choose another folder with --out, then run again"
        )
        return self.broken


def _write_document(folder: Path, name: str, text: str) -> None:
    target, beside = folder / name, folder / f".{name}.new"
    with plain_file.create(beside) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    if owner := sudo.caller():
        os.chown(beside, *owner)
    beside.replace(target)


REMOVED = (*APPENDED, "commands.sh", "log.txt")  # by `keep_results`


def keep_results(folder: Path, result: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the samples and events of a run that has ended. Return the new content of result.json,
    which says so; its digests are those of the files that were removed.

    A run that is killed meanwhile has both, and is as good. Raise `LabError` if a file cannot be
    written.
    """
    rest = {key: value for key, value in result.items() if key not in (SEAL, *SEALED)}
    kept = sealed(rest | {KEPT: RESULTS}, folder)
    try:
        _write_document(folder, "result.json", _pretty(kept))
        for name in REMOVED:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise LabError(f"remove the samples in {folder}: {error.strerror or error}") from error
    with suppress(OSError):  # it holds the messages of a run that was changed by hand
        (folder / "inbox").rmdir()
    return kept


def write_scenario(path: Path, scenario: Scenario) -> None:
    """Write a scenario, defaults included, to a YAML file that the lab can load."""
    path.write_text(yaml_text.text_of(resolved(scenario)), encoding="utf-8")


def never_began(folder: Path, is_ours: bool = False) -> bool:
    """Return whether the process that made a run in `folder` was killed before the manifest was
    complete.

    `is_ours` says that nobody else writes into this folder. Otherwise the file `RESERVE`, which is
    written first, must be there, so that no file of somebody else is taken for one of a run.
    """
    names = {each.name for each in folder.iterdir()}
    if not is_ours:
        return RESERVE in names and names <= BEFORE_THE_MANIFEST
    try:
        read_document(folder, "manifest.json")
    except RequestError:
        return names <= {*BEFORE_THE_MANIFEST, "manifest.json", COPIES, *LINES}
    return False


def remove_run(folder: Path) -> None:
    """Remove a run folder.

    If the process is killed meanwhile, the rest is still a run of the same experiment, or one that
    `never_began`, or an empty folder.
    """
    _remove(folder, {each.name for each in folder.iterdir()})
    folder.rmdir()


def _remove(folder: Path, names: set[str]) -> None:
    order = {"manifest.json": 1, RESERVE: 2}
    for name in sorted(names, key=lambda name: order.get(name, 0)):
        plain_file.remove(folder / name)


def keep_inputs(folder: Path, files: Mapping[str, str]) -> None:
    """Copy files that a run has read into its folder, so that it can be repeated elsewhere.

    `files` maps paths to digests. Copies that are there already stay. A file is left out if it is
    gone, if it has changed since, or if it is larger than `MOST_KEPT_BYTES`.
    """
    for path, name in short_names(files).items():
        copy = folder / INPUTS / name
        if copy.exists():
            continue
        try:
            content = plain_file.read(Path(path), most_bytes=MOST_KEPT_BYTES + 1, follow=True)
        except OSError:
            continue
        if len(content) > MOST_KEPT_BYTES or hashlib.sha256(content).hexdigest() != files[path]:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)


def new_folder(scenario: Scenario, out: Path | None = None, runs: Path = RUNS) -> Path:
    """Create the folder of a new run and return its path.

    The folder is `out`, which must be new or empty, or have a run that never began. If `out` is
    None, a folder is created in `runs` and named after the time, scenario, strategy and seed. Raise
    `RequestError` if the folder cannot be created.
    """
    try:
        if out is not None:
            _check_free(out)
            return _made(out)
        name = f"{scenario.name}-{folder_name(scenario.strategy.name)}-{scenario.seed}"
        stem = f"{datetime.now():%Y%m%d-%H%M%S}-{name}"
        _made(runs)
        for n in range(1, 1000):
            folder = runs / (stem if n == 1 else f"{stem}-{n}")
            try:
                folder.mkdir(mode=PRIVATE)
            except FileExistsError:
                continue
            _give(folder)
            return folder
    except OSError as error:
        raise RequestError(
            f"make the run folder {error.filename}: {error.strerror}. Choose another with --out"
        ) from error
    raise LabError(f"make a run folder in {runs}: a thousand of this second are there already")


def _check_free(out: Path) -> None:
    """Raise `RequestError` if no run can be written into `out`. Remove what is left there of a run
    that never began."""
    if not out.exists():
        return
    names = {each.name for each in out.iterdir()} if out.is_dir() else {""}
    if names <= BEFORE_THE_RUN:
        return
    if not out.is_dir() or not never_began(out):
        raise RequestError(f"--out: {out} is there already and not empty. Choose another folder")
    _remove(out, names - BEFORE_THE_RUN)


def _made(folder: Path) -> Path:
    """Create a folder and its missing parents.

    Under sudo, the new folders belong to the user who called sudo.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=PRIVATE, exist_ok=True)
    for each in missing:
        _give(each)
    return folder


def _give(folder: Path) -> None:
    if owner := sudo.caller():
        os.chown(folder, *owner)


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry, separators=(",", ":"), ensure_ascii=False) + "\n"


def _pretty(document: dict[str, Any]) -> str:
    text = io.StringIO()  # `dumps` would keep each piece of an indented document for a while
    json.dump(document, text, indent=1, ensure_ascii=False)
    return text.getvalue() + "\n"
