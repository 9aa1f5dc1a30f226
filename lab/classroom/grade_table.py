"""Write the grades of a class as CSV, with the columns that Moodle and Canvas import.

Both find a student by a column of the roster. Of two people on one seat, each has a line of their
own with the same points.

- Moodle: First name, Last name, ID number, Email address, one column for each worksheet and one for
  their sum. Its import asks which column is which.
- Canvas: Student, ID, SIS User ID, SIS Login ID, Section, one column for each worksheet. The second
  line holds the points that can be had.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from lab.classroom.grades import Submission
from lab.classroom.roster import Roster, folded
from lab.worksheets.schema import Worksheet

COLUMNS = ("moodle", "canvas")
MOODLE = {  # column: words for it in a roster
    "First name": ("first name", "firstname", "given name"),
    "Last name": ("last name", "lastname", "surname", "family name"),
    "ID number": ("id number", "idnumber", "student id"),
    "Email address": ("email address", "email", "e-mail", "mail"),
}
CANVAS = {
    "Student": ("student", "name"),
    "ID": ("id", "canvas id"),
    "SIS User ID": ("sis user id", "student id", "id number", "idnumber"),
    "SIS Login ID": ("sis login id", "login", "username", "email", "e-mail", "email address"),
    "Section": ("section", "course"),
}
UNSAFE = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would take such a cell as a formula


def text(
    columns: str,
    worksheets: Mapping[str, Worksheet],
    handed_in: Sequence[Submission],
    people: Mapping[str, Sequence[str]],
    roster: Roster | None = None,
) -> str:
    """Return the grades as CSV. `columns` is one of `COLUMNS`; `people` holds the names on each
    seat. A worksheet that a seat did not open is an empty cell."""
    known = MOODLE if columns == "moodle" else CANVAS
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    titles = [each.title for each in worksheets.values()]
    totals = ["Total"] if columns == "moodle" else []
    table.writerow(_safe([*known, *titles, *totals]))
    if columns == "canvas":
        most = [str(each.points) for each in worksheets.values()]
        table.writerow(["    Points Possible", *[""] * (len(known) - 1), *most])
    points = {(each.seat, each.worksheet): each.points for each in handed_in}
    for seat, names in people.items():
        given = [points.get((seat, name)) for name in worksheets]
        cells = ["" if each is None else str(each) for each in given]
        total = [str(sum(each or 0 for each in given))] if totals else []
        for name in names:
            about = _about(known, name, roster)
            table.writerow([*_safe(about), *cells, *total])
    return out.getvalue()


def _about(known: Mapping[str, Sequence[str]], name: str, roster: Roster | None) -> list[str]:
    """Return the columns about a person: those of the roster, and the name where it has none."""
    found = {folded(key): value for key, value in _columns(name, roster).items()}
    cells = [
        next((found[folded(word)] for word in words if found.get(folded(word))), "")
        for words in known.values()
    ]
    if not any(cells[:2]):
        cells[0] = name
    return cells


def _columns(name: str, roster: Roster | None) -> Mapping[str, str]:
    entry = roster.find(name) if roster else None
    return {**entry.columns, "name": entry.name} if entry else {}


def _safe(cells: Sequence[str]) -> list[str]:
    """Return cells that a spreadsheet takes as text."""
    return [f"'{each}" if each.startswith(UNSAFE) else each for each in cells]
