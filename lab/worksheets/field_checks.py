"""Check single values of a worksheet file. Each function returns the value or raises ValueError."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from lab.errors import LabError
from lab.worksheets import language


def parsed(text: str) -> str:
    """Return a condition in the language of checks after it was parsed."""
    try:
        language.parse(text)
    except LabError as error:
        raise ValueError(str(error)) from error
    return text


def parsed_number(value: float | int | str) -> float | int | str:
    """Return a number, or an expression for a number after it was parsed."""
    try:
        if isinstance(value, str):
            language.parse_number(value)
    except LabError as error:
        raise ValueError(str(error)) from error
    return value


def date_and_time(value: Any) -> Any:
    """Return a text in ISO 8601 as a date with a time; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError as error:
        raise ValueError("write a date and a time, such as '2027-01-31T18:00+01:00'") from error
