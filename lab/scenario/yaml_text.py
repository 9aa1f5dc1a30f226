"""Read YAML text. Error messages quote the wrong line and say how to correct it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from lab.errors import RequestError

YAML_CURES = (  # part of the parser's message, and the correction; the first match counts
    ("'\\t' that cannot start", "it begins with a tab. Indent with spaces"),
    (
        "mapping values are not allowed",
        "one ':' too many, or too much indentation. Put text that holds ': ' in quotes",
    ),
    ("could not find expected ':'", "a key without ':', there or above. Write 'key: value'"),
    (
        "but found '<scalar>'",
        "text follows a closing quote. Put all of it in quotes; double a quote inside it",
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


class _Loader(yaml.SafeLoader):
    """Load YAML that holds plain data only. Refuse a mapping that has the same key twice, or a key
    that is a list or a mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be a word", key.start_mark
                )
            if key.value in keys:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key '{key.value}' is written twice", key.start_mark
                )
            keys.add(key.value)
        return super().construct_mapping(node, deep)


def parse(text: str, source: str) -> Any:
    """Return the data that a YAML text describes. Raise `RequestError` if the text is not valid
    YAML. The error message begins with `source`, the name of the file or option."""
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        raise RequestError(f"{source}: {_not_yaml(text, error)}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise RequestError(f"{source}: is not YAML: {error}") from error


def _not_yaml(text: str, error: yaml.MarkedYAMLError) -> str:
    """Return an error message for text that is not valid YAML. The message quotes the wrong line
    and suggests a correction."""
    problem = error.problem or error.context or "it cannot be read"
    if error.problem_mark is None:
        return problem
    number = error.problem_mark.line
    line = text.splitlines()[number].strip() if number < len(text.splitlines()) else ""
    cure = next(
        (cure for text, cure in YAML_CURES if text in problem),
        f"{problem}. Check indentation, brackets and quotes there",
    )
    return f"line {number + 1} ('{line}'): {cure}" if line else f"line {number + 1}: {cure}"


def read(path: Path) -> dict[str, Any]:
    """Return the content of a YAML file, which must be a mapping. Raise `RequestError` if the file
    cannot be read or holds something else."""
    try:
        raw = parse(path.read_text(encoding="utf-8"), path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"read {path}: {getattr(error, 'strerror', None) or error}") from error
    if not isinstance(raw, dict):
        raise RequestError(
            f"{path.name}: holds no keys. Write 'name: ...', 'topology: ...', 'traffic: ...'"
        )
    return raw
