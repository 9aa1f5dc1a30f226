"""Check plain data, such as the content of a scenario file, against pydantic models, and list the
keys of a model for the user.

An error message has the file, the key and the value, and says what to write. A nested key is
written like `topology.paths[1].loss`; list entries are counted from 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from lab.errors import RequestError, nearest, show, unknown

UNITS = {
    "mbps": "Mb/s",
    "ms": "ms",
    "s": "s",
    "mb": "MB",
    "kb": "kB",
    "m": "m",
    "mps": "m/s",
    "packets": "packets",
    "dbm": "dBm",
}
SHAPES = {
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "string_type": "text",
    "bool_type": "true or false",
}
LIMITS = {
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
}
FRACTIONS = ("loss", "loss_both")
Model = TypeVar("Model", bound=BaseModel)
Loc = Sequence[str | int]


def validate(model: type[Model], data: Any, source: str, *prefix: str | int) -> Model:
    """Check `data` and return it as an instance of `model`.

    Raise one `RequestError` with a line for each problem. Each line begins with `source` and the
    wrong key. `prefix` has the keys under which `data` is in the file; they are written before the
    key.
    """
    problems = [f"{source}: {where([*prefix, *loc])}: {text}" for loc, text in _unmeasurable(data)]
    if not problems:
        try:
            return model.model_validate(_tuples(data), strict=True)
        except ValidationError as error:
            problems = [_problem(model, dict(each), source, prefix) for each in error.errors()]
    raise RequestError("\n".join(dict.fromkeys(problems)))


def where(loc: Loc) -> str:
    """Format a sequence of keys and list indices as text such as `paths[1].loss`.

    List indices count from 0 in `loc` and from 1 in the text.
    """
    text = ""
    for step in loc:
        text += f"[{step + 1}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def described(model: type[BaseModel]) -> list[dict[str, Any]]:
    """Return one dictionary for each key of a model: the key's name, type, unit, bounds, choices,
    default and help text.

    Keys of list entries are included: `paths[].loss` is the key `loss` in each entry of the list
    `paths`.
    """
    return [dict(row) for row in _described(model)]


@cache
def _described(model: type[BaseModel]) -> list[dict[str, Any]]:
    schema = model.model_json_schema()
    return list(_rows(schema, schema.get("$defs", {}), ""))


def _rows(schema: dict[str, Any], named: dict[str, Any], before: str) -> Iterator[dict[str, Any]]:
    for key, entry in schema.get("properties", {}).items():
        field = _resolved(entry, named)
        yield {
            "name": before + key,
            "type": field.get("type", "text" if "enum" in field else "any"),
            "unit": field.get("unit", unit(key)),
            "minimum": field.get("minimum", field.get("exclusiveMinimum")),
            "maximum": field.get("maximum", field.get("exclusiveMaximum")),
            "choices": field.get("enum"),
            "default": field.get("default"),
            "help": field.get("description", ""),
        }
        if "items" in field:
            yield from _rows(_resolved(field["items"], named), named, f"{before}{key}[].")


def _resolved(field: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of a field with its `$ref` replaced by the definition in `named`.

    An optional field gets the schema of its type without null.
    """
    kinds = [each for each in field.get("anyOf", []) if each.get("type") != "null"]
    field = field | (kinds[0] if len(kinds) == 1 else {})
    return field | (named[field["$ref"].rpartition("/")[2]] if "$ref" in field else {})


def unit(key: str) -> str:
    """Return the unit in the last word of a key, such as "ms" for `delay_ms`, or ""."""
    return (
        "fraction from 0 to 1"
        if key in FRACTIONS
        else UNITS.get(key.rpartition("_")[2], "")
        if "_" in key
        else ""
    )


def _tuples(data: Any) -> Any:
    """Replace all lists in the data by tuples, because the frozen models accept only tuples."""
    if isinstance(data, dict):
        return {key: _tuples(value) for key, value in data.items()}
    return tuple(_tuples(each) for each in data) if isinstance(data, (list, tuple)) else data


def _unmeasurable(data: Any, *loc: str | int) -> Iterator[tuple[Loc, str]]:
    """Yield (location, message) for each number that is infinite or NaN, and each key that is not
    text.

    `loc` is the location of `data`.
    """
    if isinstance(data, float) and not math.isfinite(data):
        yield loc, f"{data} is not a number that can be measured"
    pairs = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, (list, tuple))
        else ()
    )
    for key, value in pairs:
        if isinstance(data, dict) and not isinstance(key, str):
            yield loc or ("top",), f"key {show(key)} is not a word: put it in quotes"
        else:
            yield from _unmeasurable(value, *loc, key)


def _problem(model: type[BaseModel], error: dict[str, Any], source: str, prefix: Loc) -> str:
    loc = [
        step for step in error["loc"] if isinstance(step, int) or not step.startswith("function-")
    ]
    kind, value, ctx = error["type"], error["input"], error.get("ctx", {})
    key = next((step for step in reversed(loc) if isinstance(step, str)), "")
    place = where([*prefix, *loc])
    if kind == "extra_forbidden":
        known = sorted(_fields(_model_at(model, loc[:-1])))
        outer = where([*prefix, *loc[:-1]])
        start = f"{source}: {outer}: " if outer else f"{source}: "
        return (
            f"{start}unknown key '{key}'{nearest(key, known)}. Known keys:"
            f" {', '.join(known) or 'none'}"
        )
    if kind == "missing":
        return f"{source}: {place}: is missing. Add it"
    return (
        f"{source}: {place}: {_cure(kind, key, value, ctx, error['msg'])}"
        if place
        else f"{source}: {ctx.get('error', error['msg'])}"
    )


def _cure(kind: str, key: str, value: Any, ctx: dict[str, Any], message: str) -> str:
    """Return the end of an error message: what is wrong with the value, and what to write
    instead."""
    if kind == "value_error":
        return str(ctx["error"])
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", ctx["expected"])
        return unknown(value, known)
    if key in FRACTIONS and isinstance(value, (int, float)) and not isinstance(value, bool):
        if 1 < value <= 100:
            return f"{value} is no fraction from 0 to 1: write {value / 100:g} for {value:g} %"
        return f"{value} is no fraction from 0 to 1"
    if kind.startswith(("float_", "int_")) or kind == "finite_number":
        number = re.match(r"\s*(-?\d+(\.\d+)?)", value) if isinstance(value, str) else None
        whole = "whole number" if kind.startswith("int_") else "number"
        asks = f"{show(value)} is not a {whole}" + (f" in {unit(key)}" if unit(key) else "")
        return f"{asks}: write {number[1]}" if number else asks
    if kind in LIMITS:
        name, words = LIMITS[kind]
        return f"{show(value)} is out of range: write {words} {ctx[name]:g} {unit(key)}".rstrip()
    if kind in SHAPES:
        return f"{show(value)} is not {SHAPES[kind]}"
    if kind in ("too_short", "too_long"):
        bound = (
            f"at least {ctx['min_length']}"
            if kind == "too_short"
            else f"at most {ctx['max_length']}"
        )
        return f"holds {ctx['actual_length']} entries: write {bound}"
    if kind == "string_pattern_mismatch":
        return f"{show(value)} does not fit {ctx['pattern']}"
    return f"{show(value)}: {message[0].lower()}{message[1:]}"


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel]:
    """Follow the keys `loc` from `model` through nested models, lists and optional values."""
    for step in loc:
        if isinstance(step, str) and step in _fields(model):
            model = _inner(_fields(model)[step].annotation) or model
    return model


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a model by the keys that they have in a file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _inner(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _inner(arg))), None)
