"""Read YAML text within limits, and write it. Errors quote the wrong line and say what to write.

All YAML goes through this module: scenario files, `--set`, and the scenarios in run folders.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import yaml
from yaml.constructor import ConstructorError

from controller.bounded_json import LARGEST_INTEGER
from lab import plain_file
from lab.errors import RequestError, show

MOST_BYTES = 512 * 1024
MOST_DEPTH = 64  # of nested lists and mappings
# JSON and people write 1e-05. YAML 1.1, which PyYAML reads, asks for a dot and a sign: 1.0e-05.
EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")
MOST_VALUES = 100_000  # with every alias replaced by what it stands for
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
    """A YAML loader for plain data within the limits of this module.

    It refuses a mapping that has the same key twice, a key that is a list or a mapping, a value
    that contains itself through an alias, a number with too many digits, and text that is not
    UTF-8.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._sizes: dict[int, int] = {}  # id of each complete node -> number of values in it

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._depth += 1
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        mark, is_alias = event.start_mark, isinstance(event, yaml.AliasEvent)
        if self._depth > MOST_DEPTH:
            raise _refused(f"it is nested deeper than {MOST_DEPTH} levels", mark)
        node = cast("yaml.Node", super().compose_node(parent, index))
        self._depth -= 1
        if is_alias and id(node) not in self._sizes:
            raise _refused("an alias is inside of the value that it stands for", mark)
        if not is_alias:
            size = 1 + sum(self._sizes[id(each)] for each in _inside(node))
            if size > MOST_VALUES:
                raise _refused(f"its aliases stand for more than {MOST_VALUES} values", mark)
            self._sizes[id(node)] = size
        return node

    def construct_scalar(self, node: Any) -> Any:
        value = super().construct_scalar(node)
        if isinstance(value, str) and not _is_text(value):
            raise _refused("a character cannot be written as UTF-8", node.start_mark)
        return value

    def construct_yaml_int(self, node: Any) -> Any:
        value = super().construct_yaml_int(node) if len(node.value) < 100 else LARGEST_INTEGER
        if abs(value) >= LARGEST_INTEGER:
            raise _refused(f"the number {show(node.value)} has too many digits", node.start_mark)
        return value

    def construct_no_data(self, node: yaml.Node) -> Any:
        kind = node.tag.rpartition(":")[2]
        raise _refused(f"a {kind} is not allowed. Put text in quotes", node.start_mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _refused("a key must be a word", key.start_mark)
            if key.value in keys:
                raise _refused(f"key {show(key.value)} is written twice", key.start_mark)
            keys.add(key.value)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Puts text that `_Loader` would read as a number in quotes."""


for _class in (_Loader, _Dumper):
    _class.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT, list("-+.0123456789"))
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
for _tag in ("timestamp", "binary", "omap", "pairs", "set"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _Loader.construct_no_data)


def _refused(problem: str, mark: Any) -> ConstructorError:
    return ConstructorError(None, None, problem, mark)


def _inside(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def parse(text: str, source: str) -> Any:
    """Return the data in a YAML text. Raise `RequestError` if the text is not valid YAML.

    The error message begins with `source`, the name of the file or of the command-line option.
    """
    if len(text) > MOST_BYTES:
        raise RequestError(f"{source}: is longer than {MOST_BYTES} characters")
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - it is a SafeLoader
    except yaml.MarkedYAMLError as error:
        raise RequestError(f"{source}: {_not_yaml(text, error)}") from error
    except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, TypeError) as error:
        what = str(error).partition("\n")[0]
        raise RequestError(f"{source}: is not YAML: {what}") from error


def text_of(value: Any, one_line: bool = False) -> str:
    """Return YAML text that `parse` reads as `value`."""
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=one_line,
        width=10**6 if one_line else None,
    )
    return text.removesuffix("\n").removesuffix("\n...") if one_line else text


def _not_yaml(text: str, error: yaml.MarkedYAMLError) -> str:
    """Return an error message that quotes the wrong line and suggests a correction."""
    problem, mark = str(error.problem), error.problem_mark
    assert mark is not None  # a SafeLoader always says where
    number = mark.line
    lines = text.split("\n")
    line = lines[number].strip()[:80] if number < len(lines) else ""
    cure = next(
        (cure for text, cure in YAML_CURES if text in problem),
        f"{problem}. Check indentation, brackets and quotes there",
    )
    return f"line {number + 1} ('{line}'): {cure}" if line else f"line {number + 1}: {cure}"


def read(path: Path) -> dict[str, Any]:
    """Return the content of a YAML file. Raise `RequestError` if it is not a mapping or cannot be
    read."""
    try:
        raw = parse(_text(path), path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"read {path}: {getattr(error, 'strerror', None) or error}") from error
    if not isinstance(raw, dict):
        raise RequestError(
            f"{path.name}: holds no keys. Write 'name: ...', 'topology: ...', 'traffic: ...'"
        )
    return raw


def _text(path: Path) -> str:
    return plain_file.read(path, most_bytes=4 * MOST_BYTES + 1, follow=True).decode()
