"""Turn text and plain data into checked models.

An error names file, key, value and what to write. Keys of nested values are written
`topology.paths[1].loss`; entries of a list are counted from 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

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
YAML_CURES = (  # what its parser says, and what to do about it; the first that fits
    ("'\\t' that cannot start", "it begins with a tab. Indent with spaces"),
    (
        "mapping values are not allowed",
        "a ':' too many, or too much indentation. Put text that holds ': ' in quotes",
    ),
    ("could not find expected ':'", "a key without ':', there or above. Write 'key: value'"),
    (
        "but found '<scalar>'",
        "text goes on behind a quote. Put all of it in quotes, one inside it twice",
    ),
    (
        "expected <block end>",
        "wrong indentation. Start the keys of one mapping in the same column",
    ),
    ("expected ',' or ']'", "a ',' is missing, or a '[' not closed before it. Write [..., ...]"),
    (
        "expected ',' or '}'",
        "a ',' is missing, or a '{' not closed before it. Write {key: value, ...}",
    ),
    ("unexpected end of stream", "a quote is not closed. Write it at both ends"),
)
FRACTIONS = ("loss", "loss_both")
Model = TypeVar("Model", bound=BaseModel)
Loc = Sequence[str | int]


class _Loader(yaml.SafeLoader):
    """Load YAML, but refuse a key that is written twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be a word", key.start_mark
                )
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key '{key.value}' is written twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def parse(text: str, source: str) -> Any:
    """Return the plain data in YAML text; raise `RequestError` if it is not YAML."""
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        raise RequestError(f"{source}: {_not_yaml(text, error)}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise RequestError(f"{source}: is not YAML: {error}") from error


def _not_yaml(text: str, error: yaml.MarkedYAMLError) -> str:
    """Say where YAML cannot be read, quote that line, and suggest a correction."""
    problem = error.problem or error.context or "it cannot be read"
    if error.problem_mark is None:
        return problem
    number = error.problem_mark.line
    line = text.splitlines()[number].strip() if number < len(text.splitlines()) else ""
    cure = next(
        (cure for said, cure in YAML_CURES if said in problem),
        f"{problem}. Check indentation, brackets and quotes there",
    )
    return f"line {number + 1} ('{line}'): {cure}" if line else f"line {number + 1}: {cure}"


def read(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file."""
    try:
        raw = parse(path.read_text(encoding="utf-8"), path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"read {path}: {getattr(error, 'strerror', None) or error}") from error
    if not isinstance(raw, dict):
        raise RequestError(
            f"{path.name}: holds no keys. Write 'name: ...', 'topology: ...', 'traffic: ...'"
        )
    return raw


def override(raw: dict[str, Any], setting: str) -> None:
    """Apply one `key.path=value` to the data of a file; the value is typed as in YAML.

    A step into a list is a number from 1, or the `id` of one of its entries. `strategy.cth` stands
    for `strategy.params.cth`, as in a flip.
    """
    path, equals, text = setting.partition("=")
    steps = path.strip().split(".")
    if not equals or not all(steps):
        raise RequestError(f"--set {setting}: write key.path=value, such as topology.multipath=[]")
    if len(steps) == 2 and steps[0] == "strategy" and steps[1] not in ("name", "params"):
        steps.insert(1, "params")
    here: Any = raw
    for step in steps[:-1]:
        if isinstance(here, list):
            here = here[_position(here, step, setting)]
        elif isinstance(here, dict):
            if here.get(step) is None:
                here[step] = {}
            here = here[step]
        else:
            raise RequestError(f"--set {setting}: '{step}' is inside a plain value")
    value = parse(text, f"--set {path}")
    if isinstance(here, list):
        here[_position(here, steps[-1], setting)] = value
    elif isinstance(here, dict):
        here[steps[-1]] = value
    else:
        raise RequestError(f"--set {setting}: '{steps[-1]}' is inside a plain value")


def _position(entries: list[Any], step: str, setting: str) -> int:
    ids = [
        str(each["id"]) if isinstance(each, dict) and "id" in each else str(n)
        for n, each in enumerate(entries, 1)
    ]
    if step in ids:
        return ids.index(step)
    if step.isdigit() and 1 <= int(step) <= len(entries):
        return int(step) - 1
    raise RequestError(
        f"--set {setting}: no entry '{step}': choose from {', '.join(ids) or 'an empty list'}"
    )


def validate(model: type[Model], data: Any, source: str, *prefix: str | int) -> Model:
    """Return a checked instance of a model.

    Raise one `RequestError` with a line for every problem.
    """
    problems = [f"{source}: {where([*prefix, *loc])}: {text}" for loc, text in _unmeasurable(data)]
    if not problems:
        try:
            return model.model_validate(_tuples(data), strict=True)
        except ValidationError as error:
            problems = [_problem(model, dict(each), source, prefix) for each in error.errors()]
    raise RequestError("\n".join(dict.fromkeys(problems)))


def where(loc: Loc) -> str:
    """Return a place in a file as people write it."""
    text = ""
    for step in loc:
        text += f"[{step + 1}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def described(model: type[BaseModel]) -> list[dict[str, Any]]:
    """Return each key's name, type, unit, bounds, default and help.

    `paths[].loss` is a key of the entries of a list.
    """
    schema = model.model_json_schema()
    return list(_rows(schema, schema.get("$defs", {}), ""))


def _rows(schema: dict[str, Any], named: dict[str, Any], before: str) -> Iterator[dict[str, Any]]:
    for key, asked in schema.get("properties", {}).items():
        field = _resolved(asked, named)
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
    """Return a field with its reference resolved; an optional one as if it were required."""
    kinds = [each for each in field.get("anyOf", []) if each.get("type") != "null"]
    field = field | (kinds[0] if len(kinds) == 1 else {})
    return field | (named[field["$ref"].rpartition("/")[2]] if "$ref" in field else {})


def unit(key: str) -> str:
    """Return the unit that the last word of a key names, or an empty text."""
    return (
        "fraction from 0 to 1"
        if key in FRACTIONS
        else UNITS.get(key.rpartition("_")[2], "")
        if "_" in key
        else ""
    )


def _tuples(data: Any) -> Any:
    """Turn lists into tuples at every level, because strict frozen models hold tuples."""
    if isinstance(data, dict):
        return {key: _tuples(value) for key, value in data.items()}
    return tuple(_tuples(each) for each in data) if isinstance(data, (list, tuple)) else data


def _unmeasurable(data: Any, *loc: str | int) -> Iterator[tuple[Loc, str]]:
    """Yield each place with infinity, not-a-number, or a key that is not text."""
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
        known = sorted(_model_at(model, loc[:-1]).model_fields)
        outer = where([*prefix, *loc[:-1]])
        start = f"{source}: {outer}: " if outer else f"{source}: "
        return f"{start}unknown key '{key}'{nearest(key, known)}. Known keys: {', '.join(known) or 'none'}"
    if kind == "missing":
        return f"{source}: {place}: is missing. Add it"
    return (
        f"{source}: {place}: {_cure(kind, key, value, ctx, error['msg'])}"
        if place
        else f"{source}: {ctx.get('error', error['msg'])}"
    )


def _cure(kind: str, key: str, value: Any, ctx: dict[str, Any], message: str) -> str:
    """Return what is wrong with one value, and what to write."""
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
    limits = {"less_than_equal": ("le", "at most"), "less_than": ("lt", "less than"),
              "greater_than_equal": ("ge", "at least"), "greater_than": ("gt", "more than")}  # fmt: skip
    if kind in limits:
        name, words = limits[kind]
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
    """Return the model whose key is wrong, through fields, tuples and optional values."""
    for step in loc:
        if isinstance(step, str) and step in model.model_fields:
            model = _inner(model.model_fields[step].annotation) or model
    return model


def _inner(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _inner(arg))), None)
