"""The folder that holds all data of a class: settings, worksheets, list of students, events and
runs.

The folder has mode 700. Deleting it deletes all data of the class.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from controller.bounded_json import JsonRefused, parse_object
from lab import __version__, installed, plain_file
from lab.classroom import journal, roster, secrets
from lab.classroom.journal import Journal, Log
from lab.classroom.roster import Roster
from lab.errors import LabError, RequestError, show, unknown
from lab.scenario import schema
from lab.worksheets import loading
from lab.worksheets.planning import Seat
from lab.worksheets.schema import Worksheet

CLASSES = installed.DATA / "classes"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}", re.ASCII)
LOCK = ".lock"  # held while a class is served
SETTINGS, JOURNAL, ROSTER, WORKSHEETS, RUNS = (
    "class.json",
    "journal.jsonl",
    "roster.json",
    "worksheets",
    "runs",
)


class Settings(BaseModel):
    """The content of class.json.

    `code` is what students type to join. `secret` is a hexadecimal key from which the random seed
    and the exercise variant of each student are derived. `lab` is the version of the lab that made
    the class. `worksheets` maps the name of each worksheet to the SHA-256 digest of its copy in the
    folder. `digests` says that every line of the event log has digests; it is False in a class that
    an older version began.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    code: str
    secret: str
    instructor_key: str
    projector_key: str
    lab: str
    worksheets: dict[str, str]
    digests: bool = False


@dataclass(frozen=True)
class ClassFolder:
    """The files of a class as objects, except the event log and the runs."""

    path: Path
    settings: Settings
    worksheets: Mapping[str, Worksheet]
    roster: Roster | None

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def journal(self) -> Path:
        return self.path / JOURNAL

    @property
    def runs(self) -> Path:
        return self.path / RUNS

    def read_journal(self) -> Log:
        """Read the event log. Raise `RequestError` if the file cannot be read."""
        return journal.read(self.journal, not self.settings.digests)

    def open_journal(self, clock: Callable[[], float]) -> Journal:
        """Open the event log to append events, as `Journal` does."""
        return Journal(self.journal, clock, not self.settings.digests)

    def variant_of(self, seat: str, worksheet: str) -> Seat:
        """Return the object that gives the student at `seat` a random seed and an exercise variant
        for this worksheet."""
        return Seat(bytes.fromhex(self.settings.secret), seat, worksheet)


def names(classes: Path = CLASSES) -> list[str]:
    return sorted(path.parent.name for path in classes.glob(f"*/{SETTINGS}"))


def find(name: str, classes: Path = CLASSES) -> ClassFolder:
    """Read the folder of the class `name`.

    Raise `RequestError` if there is no class of this name, or if a file is damaged.
    """
    path = classes / checked(name)
    try:
        found = parse_object(plain_file.read(path / SETTINGS))
    except plain_file.MISSING as error:
        raise no_such_class(name, classes) from error
    except OSError as error:
        raise plain_file.failure(path / SETTINGS, error) from error
    except JsonRefused as error:
        raise RequestError(f"read {path / SETTINGS}: {error}") from error
    settings = schema.validate(Settings, found, str(path / SETTINGS))
    worksheets = {each: _worksheet(path, each, settings) for each in settings.worksheets}
    return ClassFolder(path, settings, worksheets, roster.from_json(path / ROSTER))


def make(
    name: str,
    worksheets: Iterable[str],
    of_students: Roster | None = None,
    classes: Path = CLASSES,
) -> ClassFolder:
    """Make the folder of a new class, with copies of the worksheets.

    `worksheets` are names of worksheets that come with the lab, or paths of files. Raise
    `RequestError` if a worksheet is not valid or the class exists already. Raise `LabError` if a
    file cannot be written.
    """
    path = classes / checked(name)
    sources = {Path(each).stem: _source(each) for each in worksheets}
    if (path / SETTINGS).exists():
        raise RequestError(f"class {show(name)} is there already")
    settings = Settings(
        name=name,
        code=secrets.join_code(),
        secret=secrets.key().encode().hex(),
        instructor_key=secrets.key(),
        projector_key=secrets.key(),
        lab=__version__,
        worksheets={stem: hashlib.sha256(text).hexdigest() for stem, text in sources.items()},
        digests=True,
    )
    try:
        classes.parent.mkdir(parents=True, exist_ok=True)
        for each in (classes, path, path / WORKSHEETS, path / RUNS):
            each.mkdir(mode=0o700, exist_ok=True)
        path.chmod(0o700)
        for stem, text in sources.items():
            _write(path / WORKSHEETS / f"{stem}.yaml", text.decode())
        if of_students is not None:
            _write(path / ROSTER, of_students.to_json())
        _write(path / SETTINGS, settings.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise LabError(f"make {path}: {error.strerror or error}") from error
    return find(name, classes)


def shipped(name: str) -> str:
    """Return the text of a worksheet that comes with the lab. Raise `RequestError` if there is
    none of this name."""
    if name not in loading.names():
        raise RequestError(f"worksheet {unknown(name, loading.names())}")
    return _source(name).decode()


def check_worksheet(name: str, text: str) -> Worksheet:
    """Return the worksheet in a text. Raise `RequestError` if it or its name cannot be used."""
    if not NAME.fullmatch(name):
        raise RequestError(f"worksheet {show(name)}: its name is to have small letters and digits")
    return loading.of_text(text, f"{name}.yaml")


def add_worksheet(folder: ClassFolder, name: str, text: str, sheet: Worksheet) -> ClassFolder:
    """Write the copy of a worksheet, and its digest into class.json. Return the folder with it.

    `sheet` is what `check_worksheet` returned for the text.

    Raise `LabError` if a file cannot be written.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()
    sheets = {**folder.settings.worksheets, name: digest}
    settings = folder.settings.model_copy(update={"worksheets": sheets})
    try:
        _write(folder.path / WORKSHEETS / f"{name}.yaml", text)
        _write(folder.path / SETTINGS, settings.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise LabError(f"add worksheet '{name}': {error.strerror or error}") from error
    return replace(folder, settings=settings, worksheets={**folder.worksheets, name: sheet})


def wipe(name: str, classes: Path = CLASSES) -> None:
    """Delete the folder of a class.

    Raise `RequestError` if there is no such class, and `LabError` if a file cannot be deleted.
    """
    path = classes / checked(name)
    if not path.is_dir() or path.is_symlink():
        raise no_such_class(name, classes)
    try:
        shutil.rmtree(path)
    except OSError as error:
        raise LabError(f"delete {path}: {error.strerror}. Check who owns it") from error


def no_such_class(name: str, classes: Path) -> RequestError:
    """Return an error that says that the class `name` does not exist, and which classes exist."""
    known = names(classes)
    choice = unknown(name, known) if known else f"{show(name)} is unknown: there is no class yet"
    return RequestError(f"class {choice}")


def checked(name: str) -> str:
    """Return `name` unchanged. Raise `RequestError` if a class cannot have this name, which is also
    the name of its folder."""
    if not NAME.fullmatch(name):
        raise RequestError(
            f"class {show(name)}: write at most 40 small letters, digits, '-' and '_'"
        )
    return name


def _source(worksheet: str) -> bytes:
    """Return the content of the file of a worksheet. Raise `RequestError` if the worksheet is not
    valid."""
    loading.load(worksheet)
    if not NAME.fullmatch(Path(worksheet).stem):
        raise RequestError(f"worksheet {worksheet}: its name is to have small letters and digits")
    try:
        return plain_file.read(loading.find(worksheet), follow=True)
    except OSError as error:
        raise plain_file.failure(Path(worksheet), error) from error


def _worksheet(path: Path, name: str, settings: Settings) -> Worksheet:
    """Load a worksheet from its copy in the folder of the class.

    Raise `RequestError` if the copy was changed after the class began.
    """
    copy = path / WORKSHEETS / f"{checked(name)}.yaml"
    try:
        digest = hashlib.sha256(plain_file.read(copy)).hexdigest()
    except OSError as error:
        raise plain_file.failure(copy, error) from error
    if digest != settings.worksheets[name]:
        raise RequestError(f"read {copy}: it was changed after the class began")
    return loading.load(str(copy))


def _write(path: Path, text: str) -> None:
    """Write a file with mode 600 so that a crash leaves either the whole new file or the old
    one."""
    beside = path.with_name(f".{path.name}.new")
    with plain_file.create(beside, 0o600) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
