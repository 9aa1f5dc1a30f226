"""Small changes of Python code, each of which should make a test fail."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARED = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}
OF_NO_EFFECT = {"repr", "encoding", "daemon", "name", "ensure_ascii", "indent", "strict"}
SAYING = {"print", "log", "info", "debug", "warning", "cast", "TypeVar"}


@dataclass(frozen=True)
class Mutant:
    """`path` with the bytes from `start` to `end` replaced by `text`.

    `names` are what the changed statement assigns, if it runs when the file is imported: then other
    lines use it. A `trivial` change looks as if it changed nothing that a test should see.
    """

    path: Path
    line: int
    start: int
    end: int
    text: str
    trivial: bool = False
    names: tuple[str, ...] | None = None
    key: str = ""  # stays the same while other lines change

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"

    def of(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants(path: Path, text: str) -> list[Mutant]:
    """Return every change of this source that this file knows."""
    source, starts = text.encode(), [0]
    lines = source.splitlines(keepends=True)
    for line in lines:
        starts.append(starts[-1] + len(line))
    found, times = [], Counter[str]()
    for node, trivial, names in _nodes(ast.parse(source)):
        for old, new in _changes(node):
            start = starts[old.lineno - 1] + old.col_offset
            end = starts[old.end_lineno - 1] + old.end_col_offset
            code = ast.unparse(new)
            code = f"({code})" if isinstance(new, ast.expr) and not _is_atom(new) else code
            about = f"{path} {lines[old.lineno - 1].strip()!r} {source[start:end]!r} {code}"
            times[about] += 1
            key = hashlib.sha256(f"{about} {times[about]}".encode()).hexdigest()[:16]
            found.append(Mutant(path, old.lineno, start, end, code, trivial, names, key))
    return found


def draw(found: list[Mutant], seed: int) -> list[Mutant]:
    """Return one change of each line, in random order. Where the code changes, so does the draw;
    the others stay in it, in the same order."""

    def place(mutant: Mutant, what: str = "order") -> bytes:
        return hashlib.sha256(f"{what} {seed} {mutant.key}".encode()).digest()

    of_line: dict[tuple[Path, int], list[Mutant]] = {}
    for each in found:
        of_line.setdefault((each.path, each.line), []).append(each)
    chosen = (min(each, key=lambda each: place(each, "line")) for each in of_line.values())
    return sorted(chosen, key=place)


def _is_atom(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant | ast.Call | ast.Name)


def _nodes(
    node: ast.AST, trivial: bool = False, names: tuple[str, ...] | None = None
) -> Iterator[tuple[ast.AST, bool, tuple[str, ...] | None]]:
    """Yield the parts of `node`, with `trivial` and `names` of a change of it."""
    for key, value in ast.iter_fields(node):
        for each in value if isinstance(value, list) else [value]:
            if not isinstance(each, ast.AST) or key in ("annotation", "returns", "decorator_list"):
                continue
            if isinstance(each, ast.JoinedStr | ast.Assert) or _for_types(each):
                continue  # texts have no positions within them; assertions are for the type checker
            dull = trivial or isinstance(node, ast.Raise) or _says(each) or _is_text(each)
            inner = names
            if key == "body" and isinstance(node, ast.Module | ast.ClassDef):
                inner = _assigned(each)
            elif key == "body" and isinstance(node, ast.FunctionDef | ast.Lambda):
                inner = None
            yield each, dull, inner
            yield from _nodes(each, dull, inner)


def _assigned(node: ast.AST) -> tuple[str, ...]:
    """Return the names that a statement of a module or class defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return (node.name,)
    stored = (n for n in ast.walk(node) if isinstance(n, ast.Name))
    return tuple(n.id for n in stored if isinstance(n.ctx, ast.Store))


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def _says(node: ast.AST) -> bool:
    """Return whether a node only writes to a log or a terminal, or sets an option that changes no
    result."""
    if isinstance(node, ast.keyword):
        return node.arg in OF_NO_EFFECT
    if isinstance(node, ast.Expr):
        return _is_text(node.value) or _says(node.value)
    if isinstance(node, ast.Call):
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        return name in SAYING
    return False


def _is_text(node: ast.AST) -> bool:
    """Return True for a text for people."""
    text = node.value if isinstance(node, ast.Constant) else None
    return isinstance(text, str) and (" " in text or not text)


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield pairs of a part of the code and what takes its place."""
    if isinstance(test := getattr(node, "test", None), ast.expr):
        for always in {False, True} - {getattr(test, "value", None)}:
            yield test, ast.Constant(always)
    match node:
        case ast.Compare(left, [op], others):
            yield from ((node, ast.Compare(left, [new()], others)) for new in COMPARED[type(op)])
        case ast.BoolOp(op, values):
            yield node, ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), values)
        case ast.UnaryOp(ast.Not(), value):
            yield node, value
        case ast.BinOp(left, op, right) if type(op) in COMPUTED:
            yield node, ast.BinOp(left, COMPUTED[type(op)](), right)
        case ast.AugAssign(target, op, value) if type(op) in COMPUTED:
            yield node, ast.AugAssign(target, COMPUTED[type(op)](), value)
        case ast.Constant(bool() as value):
            yield node, ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield node, ast.Constant(value + 1)
        case ast.Constant(str() as value):
            yield node, ast.Constant(value + "x")
        case ast.Call(ast.Name(name), arguments, keywords) if name in SWAPPED:
            yield node, ast.Call(ast.Name(SWAPPED[name]), arguments, keywords)
        case ast.Expr(ast.Call()) | ast.Raise() | ast.Continue() | ast.Break():
            yield node, ast.Pass()
        case ast.Return(ast.expr() as value) if not _is_none(value):
            yield value, ast.Constant(None)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
