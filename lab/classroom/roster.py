"""The list of the students of a class (roster), read from a CSV file with one row for each student.

The column `name` is required, `pin` is optional. Other columns are kept for the table of grades.
PINs are hashed when the file is read.
"""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from controller.bounded_json import JsonRefused, parse_object
from lab import plain_file
from lab.classroom import secrets
from lab.errors import RequestError, show

MOST_BYTES = 2**20
MOST_ROWS = 1000
NAME_LENGTHS = range(1, 41)


@dataclass(frozen=True)
class Entry:
    """One student. `pin` is the hash of the PIN, or None. `columns` has the other columns of the
    row."""

    name: str
    pin: str | None
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Roster:
    """The students of a class. The keys of `entries` are names as `folded` returns them."""

    entries: Mapping[str, Entry]

    @property
    def has_pins(self) -> bool:
        return any(each.pin for each in self.entries.values())

    def find(self, name: str) -> Entry | None:
        """Return the student of this name, or None. Case and repeated spaces make no difference."""
        return self.entries.get(folded(name))

    def to_json(self) -> str:
        """Return the roster as the text of roster.json."""
        rows = [asdict(each) for each in self.entries.values()]
        return json.dumps({"rows": rows}, indent=1, ensure_ascii=False) + "\n"


def cleaned(name: str) -> str:
    """Return a name without repeated spaces.

    Raise `RequestError` if the name is empty, too long, has characters that cannot be printed, or a
    word with letters of several alphabets that look alike.
    """
    found = " ".join(unicodedata.normalize("NFKC", name).split())
    if len(found) not in NAME_LENGTHS or not found.isprintable():
        raise RequestError(
            f"a name has {NAME_LENGTHS[0]} to {NAME_LENGTHS[-1]} characters that can be printed"
        )
    for word in found.split():
        alphabets = {unicodedata.name(each, "").partition(" ")[0] for each in word}
        if len(mixed := sorted(alphabets & {*LOOK_ALIKE})) > 1:
            raise RequestError(
                f"a word of a name has letters of one alphabet: {show(word)} mixes "
                f"{' and '.join(each.capitalize() for each in mixed)}"
            )
    return found


def folded(name: str) -> str:
    """Return the form of a name that is used to compare names: single spaces, small letters."""
    return " ".join(unicodedata.normalize("NFKC", name).split()).casefold()


# Letters and digits that look like Latin ones, after Unicode's confusables.txt (UTS 39)
LOOK_ALIKE = ("LATIN", "CYRILLIC", "GREEK")
LATIN = str.maketrans(
    "АВЕЅІЈКМНОРСТУХԚԜаеѕіјорсухԛԝһԁӏ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαγικνορυ" + "01I|",
    "ABESlJKMHOPCTYXQWaesijopcyxqwhdl" + "ABEZHlKMNOPTYXaylkvopu" + "Olll",
)


def looks(name: str) -> str:
    """Return a form that is equal for names that look alike, such as one in Cyrillic letters."""
    return folded(unicodedata.normalize("NFKC", name).translate(LATIN))


def from_csv(path: Path) -> Roster:
    """Read a roster from a CSV file. The separator is a semicolon if the first line has one, else a
    comma.

    Raise `RequestError` if the file or a row cannot be used.
    """
    try:
        text = plain_file.read(path, 0, MOST_BYTES + 1, follow=True).decode("utf-8-sig")
    except OSError as error:
        raise plain_file.failure(path, error) from error
    except UnicodeDecodeError as error:
        raise RequestError(f"read {path}: it is not UTF-8. Export it as UTF-8") from error
    if len(text) > MOST_BYTES:
        raise RequestError(f"read {path}: it is larger than {MOST_BYTES} bytes")
    first = text.partition("\n")[0]
    reader = csv.DictReader(io.StringIO(text), delimiter=";" if ";" in first else ",")
    try:
        columns = [each.strip().casefold() for each in reader.fieldnames or ()]
        reader.fieldnames = columns
        rows = [{k: (v or "").strip() for k, v in row.items() if k} for row in reader]
    except csv.Error as error:
        raise RequestError(f"read {path}: line {reader.line_num + 1}: {error}") from error
    if "name" not in columns:
        raise RequestError(f"read {path}: the first line has no column 'name'")
    if len(set(columns)) < len(columns):
        raise RequestError(f"read {path}: two columns have the same name")
    return _checked(path, rows)


def _checked(path: Path, rows: list[dict[str, str]]) -> Roster:
    entries: dict[str, Entry] = {}
    for n, row in enumerate(rows, 2):
        try:
            name, pin = cleaned(row.pop("name")), row.pop("pin", "")
            stored = secrets.pin_hash(pin) if pin else None
        except RequestError as error:
            raise RequestError(f"read {path}: line {n}: {error}") from error
        if folded(name) in entries:
            raise RequestError(f"read {path}: line {n}: the name '{name}' is there twice")
        entries[folded(name)] = Entry(name, stored, row)
    if not 1 <= len(entries) <= MOST_ROWS:
        raise RequestError(f"read {path}: it has {len(entries)} students: 1 to {MOST_ROWS}")
    return Roster(entries)


def from_json(path: Path) -> Roster | None:
    """Read a roster from roster.json. Return None if there is no such file.

    Raise `RequestError` if the file is damaged.
    """
    try:
        rows = parse_object(plain_file.read(path))["rows"]
        entries = [Entry(row["name"], row["pin"], row["columns"]) for row in rows]
    except plain_file.MISSING:
        return None
    except (OSError, JsonRefused, KeyError, TypeError) as error:
        raise RequestError(f"read {path}: it is damaged: {error}") from error
    return Roster({folded(each.name): each for each in entries})
