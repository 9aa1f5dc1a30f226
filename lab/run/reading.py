"""Read the files of a run folder, even while another process writes them.

A line ends only with a newline character. JSON is parsed within the limits of
`controller.bounded_json`. Symbolic links are not followed (`lab.plain_file`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from controller.bounded_json import JsonRefused, parse_object
from lab import plain_file
from lab.errors import LabError, RequestError
from lab.frame import Frame
from lab.metrics import Metric, declared_in

# Forms of documents and lines
#
# A run folder can be damaged, edited by hand, or come from another machine. A document of another
# form is treated like a file that cannot be read.


Number = float | None
Table = dict[str, Any]
ProcessId = Annotated[int, Field(ge=1, lt=2**31)]
FIGURES = (bool, int, float, str, type(None))
INDEXED = "a document of index.json"
GROUPS = ("ap", "link", "user", "sf")


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", protected_namespaces=())


class _Host(_Form):
    time_dilation: Number = None


class _Manifest(_Form):
    version: int = Field(1, alias="schema")
    experiment: str | None = None
    scenario: str = ""
    strategy: str = ""
    params: Table | None = None
    cc: str | None = None
    engine: str = ""
    seed: int | None = None
    started: str = ""
    duration_s: Number = None
    rate_scale: Number = None
    speed: float | str | None = None
    pid: ProcessId | None = None
    pid_started: int | None = None
    boot_id: str | None = None
    extensions: list[Table] | None = None
    metrics: list[Table] | None = None
    versions: Table = {}
    host: _Host = _Host()


class _Ap(_Form):
    throughput_mbps: Number = None


class _User(_Form):
    kind: str = ""


class _Fairness(_Form):
    jain: Number = None


class _Mptcp(_Form):
    verified: bool | None = None
    joins: int | None = None
    fallbacks: int | None = None


class _Overload(_Form):
    reasons: list[str] = []


class _Flip(_Form):
    t: float
    target: str
    value: Any


class _Result(_Form):
    version: int = Field(1, alias="schema")
    status: str = "failed"
    error: str | None = None
    duration_s: Number = None
    time_dilation: Number = None
    throughput_mbps: Number = None
    tiers: dict[str, Number] | None = None
    aps: dict[str, _Ap] = {}
    users: dict[str, _User] = {}
    connections: list[Table] = []
    flips: list[_Flip] = []
    fairness: _Fairness = _Fairness()
    overloaded: bool | None = None
    overload: _Overload | None = None
    mptcp: _Mptcp | None = None


class _Note(_Form):
    tags: list[str] = []
    note: str = ""


class _Indexed(_Manifest, _Note):
    """A run in index.json. Every field is required, because lists of runs show all of them."""

    id: str
    stamp: list[int]
    status: str
    run_schema: int
    wire_rates: bool
    flips: list[_Flip]
    measured_s: Number
    throughput_mbps: Number
    tiers: dict[str, Number] | None
    aps: dict[str, Number] | None
    jain: Number
    overloaded: bool | None
    verified: bool | None
    error: str | None
    tags: list[str]
    note: str
    scenario: str
    strategy: str
    params: Table | None
    cc: str | None
    engine: str
    seed: int | None
    started: str
    duration_s: Number
    rate_scale: Number
    time_dilation: Number
    experiment: str | None


FORMS: dict[str, type[_Form]] = {
    "manifest.json": _Manifest,
    "result.json": _Result,
    "note.json": _Note,
    INDEXED: _Indexed,
}


def wrong(name: str, document: Table) -> str:
    """Return what is wrong with the content of the file `name`, or "" if nothing is wrong.

    An example is "users: Input should be a valid dictionary". Files that `FORMS` does not have are
    not checked.
    """
    try:
        if name in FORMS:
            FORMS[name].model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(str(step) for step in first['loc'])}: {first['msg']}"
    return ""


def is_frame(line: Table) -> bool:
    """Return whether a JSON object can be a line of samples.jsonl.

    It must have a time `t`. Its fields `ap`, `link`, `user` and `sf`, if present, must map names to
    samples.
    """
    return (
        _has_time(line)
        and all(
            isinstance(group, dict) and all(map(_has_figures, group.values()))
            for group in (line[name] for name in GROUPS if name in line)
        )
        and _has_figures(line.get("run", {}))
    )


def _has_figures(sample: Any) -> bool:
    return isinstance(sample, dict) and all(type(each) in FIGURES for each in sample.values())


def is_event(line: Table) -> bool:
    """Return whether a JSON object can be a line of events.jsonl.

    It must have a time `t`. Its field `kind`, if present, must be text.
    """
    return _has_time(line) and isinstance(line.get("kind", ""), str)


def _has_time(line: Table) -> bool:
    return type(line.get("t")) in (int, float)


# Digests
#
# The files in `MEASURED` hold no time of day and nothing about the machine, so the same simulation
# has the same digest on every machine. manifest.json and log.txt hold both, and do not count. A
# missing file counts as an empty one.


APPENDED = ("samples.jsonl", "events.jsonl")
SEALED = {f"{Path(name).stem}_sha256": name for name in ("scenario.yaml", *APPENDED)}
SEAL = "result_sha256"  # a digest of all other keys of result.json
KEPT = "kept"  # "results" in result.json: samples and events were removed at the end of the run
ALL, RESULTS = "all", "results"  # of `--keep`
WITH_DIGESTS = (0, 3)  # the first version of the lab that writes them
MEASURED = ("scenario.yaml", "samples.jsonl", "events.jsonl", "result.json")


def sealed(result: Table, folder: Path) -> Table:
    """Return `result` with the digests by which `changed` finds out that a file was edited later.

    Raise `LabError` if a file in the run folder cannot be read.
    """
    digests = {key: digest(folder / name) for key, name in SEALED.items()}
    whole = result | digests
    return whole | {SEAL: _seal(whole)}


def changed(folder: Path, result: Table) -> tuple[str, ...]:
    """Return the names of the files of a run that were edited after its end.

    Only result.json and the files in `SEALED` are checked. `result` is the content of result.json,
    or at most the error of a file that cannot be read (`documents.tolerant_document`).
    The answer is empty for a run whose manifest names a version of the lab before `WITH_DIGESTS`,
    because such a run has no digests. Raise `LabError` if a file cannot be read.
    """
    names = [
        name
        for key, name in SEALED.items()
        if key in result
        and result[key] != digest(folder / name)
        and not _removed(result, folder, name)
    ]
    has_digests = not result.keys().isdisjoint((SEAL, *SEALED)) or _had_digests(folder)
    is_there = bool(result.keys() - {"error"})
    is_edited = is_there and has_digests and result.get(SEAL) != _seal(result)
    return ("result.json", *names) if is_edited else tuple(names)


def has_results_only(result: Table) -> bool:
    """Return whether a run was made with `--keep results`."""
    return result.get(KEPT) == RESULTS


def _removed(result: Table, folder: Path, name: str) -> bool:
    return has_results_only(result) and name in APPENDED and not (folder / name).exists()


def refuse_results_only(folder: Path, doing: str) -> None:
    """Raise `RequestError` if a run has no samples and events, because of `--keep results`."""
    if has_results_only(read_document(folder, "result.json")):
        raise RequestError(
            f"{doing}: run {folder.name} was made with --keep results, so it has no samples and "
            "events. Run it again with --keep all"
        )


def _had_digests(folder: Path) -> bool:
    """Return whether the manifest of a run names a version of the lab that writes digests."""
    try:
        lab = str(read_document(folder, "manifest.json")["versions"]["lab"])
        return tuple(map(int, lab.split(".")[:2])) >= WITH_DIGESTS
    except (LabError, KeyError, TypeError, ValueError):
        return False


def changed_text(names: Sequence[str]) -> str:
    return f"{' and '.join(names)} changed after the run: its numbers are not those it measured"


def _seal(result: Table) -> str:
    rest = {key: value for key, value in result.items() if key != SEAL}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def run_digest(folder: Path) -> str:
    """Return the SHA-256 digest of a run as 64 hexadecimal digits.

    The digest covers the name, the length and the content of each file in `MEASURED`. A missing
    file counts as empty. Raise `LabError` if a file cannot be read.
    """
    whole = hashlib.sha256()
    for name in MEASURED:
        size = sum(map(len, _pieces(folder / name)))
        whole.update(f"{name} {size}\n".encode())
        for piece in _pieces(folder / name):
            whole.update(piece)
    return whole.hexdigest()


def differing_files(one: Path, other: Path) -> tuple[str, ...]:
    """Return the names of the files in `MEASURED` whose bytes differ between two run folders.

    A missing file counts as empty. Raise `LabError` if a file cannot be read.
    """
    return tuple(name for name in MEASURED if not _are_equal(one / name, other / name))


def _are_equal(one: Path, other: Path) -> bool:
    return all(mine == its for mine, its in zip_longest(_pieces(one), _pieces(other)))


KEPT_FROM_BYTES = 16 * 2**20  # digests of larger files are kept until the file changes


def size_of(path: Path) -> int:
    """Return the size of a file in bytes; a missing file counts as empty."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def digest(path: Path) -> str:
    """Return the SHA-256 digest of a file; a missing file counts as empty. Raise `LabError` if it
    cannot be read."""
    try:
        found = path.lstat()
    except OSError:
        return _digest(path)
    stamp = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return _known_digest(path, stamp) if found.st_size >= KEPT_FROM_BYTES else _digest(path)


@lru_cache(maxsize=256)
def _known_digest(path: Path, stamp: tuple[int, ...]) -> str:
    return _digest(path)


def _digest(path: Path) -> str:
    try:
        return plain_file.digest(path)
    except plain_file.MISSING:
        return hashlib.sha256(b"").hexdigest()
    except OSError as error:
        raise plain_file.failure(path, error) from error


PIECE = 1 << 20  # bytes


def _pieces(path: Path) -> Iterator[bytes]:
    """Yield the content of a file in pieces; nothing for a missing file."""
    try:
        with plain_file.opened(path) as file:
            while piece := file.read(PIECE):
                yield piece
    except plain_file.MISSING:
        return
    except OSError as error:
        raise plain_file.failure(path, error) from error


Line = dict[str, Any]


def read_frames(folder: Path) -> list[Frame]:
    """Return the samples in samples.jsonl as frames. An incomplete last line is ignored."""
    frames: list[Frame] = []
    for line in read_lines(folder / "samples.jsonl"):
        frame = Frame.from_json(line)
        frames.append(frame.sharing(frames[-1]) if frames else frame)
    return frames


def read_samples(folder: Path) -> list[Line]:
    """Return the objects in samples.jsonl. An incomplete last line is ignored."""
    return list(read_lines(folder / "samples.jsonl"))


def read_events(folder: Path) -> list[Line]:
    """Return the objects in events.jsonl. An incomplete last line is ignored."""
    return list(read_lines(folder / "events.jsonl"))


def readable_samples(folder: Path) -> Iterator[Line]:
    """Yield the samples of a run. Damaged lines are left out; without a file there are none."""
    return _readable(folder / "samples.jsonl", sample)


def readable_events(folder: Path) -> Iterator[Line]:
    """Yield the events of a run. Damaged lines are left out; without a file there are none."""
    return _readable(folder / "events.jsonl", event)


def sample(line: bytes) -> Line:
    """Parse a line of samples.jsonl. Raise `JsonRefused` if it is damaged."""
    return _of_form(line, is_frame)


def event(line: bytes) -> Line:
    """Parse a line of events.jsonl. Raise `JsonRefused` if it is damaged."""
    return _of_form(line, is_event)


LINES = {"samples.jsonl": sample, "events.jsonl": event}


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the object in each line of a JSON Lines file.

    A damaged last line is ignored, because it may be incomplete. Raise `RequestError` if the file
    cannot be read or another line is damaged.
    """
    damaged = ""
    try:
        for n, line in enumerate(plain_file.lines(path), 1):
            if damaged:
                raise RequestError(damaged)
            try:
                entry = LINES.get(path.name, parse_object)(line.rstrip(b"\n"))
            except JsonRefused as error:
                damaged = f"read {path}: line {n} is damaged: {error}"
                continue
            yield entry
    except OSError as error:
        raise plain_file.failure(path, error) from error


def split_lines(text: bytes) -> tuple[list[bytes], bytes]:
    """Return the complete lines without their newlines, and the bytes after the last newline."""
    *whole, rest = text.split(b"\n")
    return whole, rest


LAST_BYTES = 65_536  # enough for the last line of samples.jsonl


def last_sample(folder: Path) -> Line | None:
    """Return the sample in the last complete line of samples.jsonl, or None if there is none."""
    try:
        lines, _ = split_lines(plain_file.read(folder / "samples.jsonl", -LAST_BYTES))
        return sample(lines[-1]) if lines else None
    except (OSError, ValueError):
        return None


def last_readable(folder: Path) -> Line | None:
    """Return the last sample that is not damaged, or None if there is none."""
    found = last_sample(folder)
    if found is None:
        for each in readable_samples(folder):
            found = each
    return found


class Follower:
    """Reads the lines that another process appends to a file.

    A line is read as soon as its newline has been written.
    """

    def __init__(self, path: Path, parse: Callable[[bytes], Any] = parse_object) -> None:
        self.path, self._parse, self._offset = path, parse, 0

    def new(self) -> list[Any]:
        """Return the lines completed since the previous call, each converted by `parse`.

        Lines for which `parse` raises `ValueError` are left out. Return an empty list if the file
        does not exist. Raise `LabError` if the file cannot be read.
        """
        return list(self.each())

    def each(self) -> Iterator[Any]:
        """Yield what `new` returns, line by line: the file may be longer than the memory."""
        try:
            for line in plain_file.lines(self.path, self._offset):
                if not line.endswith(b"\n") and len(line) < plain_file.LONGEST_LINE:
                    return
                self._offset += len(line)
                try:
                    found = self._parse(line.removesuffix(b"\n"))
                except ValueError:
                    continue
                yield found
        except FileNotFoundError:
            return
        except OSError as error:
            raise plain_file.failure(self.path, error) from error


def text_of(line: bytes) -> str:
    """Decode UTF-8. Invalid bytes become replacement characters."""
    return line.decode(errors="replace")


def document(path: Path) -> Line:
    """Return the object in a JSON file of a run folder.

    Raise `OSError` if the file cannot be read. Raise `JsonRefused` if the file is damaged, or if
    its fields do not have the types that `FORMS` requires for its name.
    """
    found = parse_object(plain_file.read(path))
    if problem := wrong(path.name, found):
        raise JsonRefused(problem)
    return found


def read_document(folder: Path, name: str) -> Line:
    """Return the content of a JSON file in a run folder, such as manifest.json.

    Raise `RequestError` if the folder or the file is missing or damaged.
    """
    try:
        return document(folder / name)
    except FileNotFoundError as error:
        problem = f"it holds no {name}" if folder.exists() else "there is no such folder"
        raise RequestError(
            f"read {folder}: {problem}: give the folder of a finished run"
        ) from error
    except NotADirectoryError as error:
        raise RequestError(
            f"read {folder}: it is a file: give the folder of a finished run"
        ) from error
    except OSError as error:
        raise plain_file.failure(folder / name, error) from error
    except JsonRefused as error:
        raise RequestError(f"read {folder / name}: {error}") from error


def declared_metrics(folder: Path) -> tuple[Metric, ...]:
    """Return the metrics in users' files that the manifest of a run declares.

    Return () if the manifest cannot be read.
    """
    try:
        return declared_in(read_document(folder, "manifest.json"))
    except LabError:
        return ()


def _readable(path: Path, parse: Callable[[bytes], Line]) -> Iterator[Line]:
    try:
        yield from Follower(path, parse).each()
    except LabError as error:
        if not isinstance(error.__cause__, NotADirectoryError):
            raise


def _of_form(line: bytes, fits: Callable[[Line], bool]) -> Line:
    found = parse_object(line)
    if not fits(found):
        raise JsonRefused("it is no line of this file")
    return found
