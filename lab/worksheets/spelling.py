"""Write a check as text. `language.parse` reads the same check from this text."""

from __future__ import annotations

from lab.worksheets import expressions as at
from lab.worksheets.expressions import Expression


def spelled(tree: Expression) -> str:
    """Return the text of a check or of a part of it, with brackets around each operation."""
    match tree:
        case at.Number(value):
            return repr(value)
        case at.Sampled(fold, path, start_s, end_s, run):
            return f"{fold}({path}, {start_s:g}..{end_s:g}){_of(run)}"
        case at.Measured(path, run):
            return f"result({path}){_of(run)}"
        case at.Multipath(run):
            return f"multipath(){_of(run)}"
        case at.Occurrence(kind, where, run):
            fields = "".join(f", {field}={value}" for field, value in where)
            return f"event({kind}{fields}){_of(run)}"
        case at.Time(event):
            return f"time({spelled(event)})"
        case at.Count(event):
            return f"count({spelled(event)})"
        case at.Magnitude(inner):
            return f"abs({spelled(inner)})"
        case at.Arithmetic(symbol, left, right) | at.Comparison(symbol, left, right):
            return f"({spelled(left)} {symbol} {spelled(right)})"
        case at.Before(left, right):
            return f"({spelled(left)} before {spelled(right)})"
        case at.Not(inner):
            return f"not ({spelled(inner)})"
        case at.Both(left, right, either):
            return f"({spelled(left)} {'or' if either else 'and'} {spelled(right)})"


def _of(run: str) -> str:
    return f" of {run}" if run else ""
