"""Strategies, topologies, congestion controls, metrics and scenarios in users' files.

The name of a file (NAME) is the name of what the file defines:

    NAME.py     a class derived from `Strategy`: a strategy
    NAME.py     `Params` and `build`: a topology
    NAME.py     `on_ack` or `on_round`: a congestion control for the simulator
    NAME.py     `METRIC`: a metric
    NAME.c      the same congestion control for the kernel of the emulation, beside NAME.py
    NAME.yaml   a scenario

Such a file runs with the rights of the user who starts the lab. Its path comes from the command
line (`--strategy`, `--cc`, `--with`), from MULTIPATH_LAB_PATH, or from a scenario file named on the
command line. It never comes over HTTP, and never from a run folder.

A file is read once per command, when it is registered. All runs of the command use this content,
even if the file is edited meanwhile, so the digest in manifest.json is that of what ran.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from controller.errors import StrategyFailed, UserFileRefused
from controller.strategy_names import SEPARATOR, base_name
from controller.user_file import described as described_in
from controller.user_file import line_of
from lab import congestion, inputs, sudo, user_file
from lab.errors import RequestError
from lab.user_file import PYTHON, YAML, C, Kind, defined_in

PATH = "MULTIPATH_LAB_PATH"  # folders, separated by colons
COPIES = "extensions"  # the folder of a run that keeps copies; nothing is loaded from there
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class Extension:
    """A user's file that this process has registered.

    `name` is the file name without its ending. `source` is the content when the file was
    registered, which is what runs.
    """

    kind: Kind
    name: str
    path: Path
    source: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.source).hexdigest()

    @property
    def places(self) -> tuple[str, str]:
        """The two paths by which tracebacks can name the file: its own, and that of the copy that
        the simulator's compiler reads."""
        return str(self.path), str(copy_of(self.path, self.source))

    def row(self) -> dict[str, str]:
        """Return the entry for this file in the list `extensions` of manifest.json."""
        return {
            "kind": self.kind,
            "name": self.name,
            "path": str(self.path),
            "sha256": self.sha256,
        }


def copy_of(path: Path, source: bytes) -> Path:
    """Return the path of the copy of a congestion control that the simulator's compiler reads.

    The file name is that of `path`, and the folder is named by a digest of the `source`.
    """
    return sudo.user_cache() / "laws" / hashlib.sha256(source).hexdigest()[:16] / path.name


TRUST = "--trust-extensions"
_trusted: set[str] = set()  # SHA-256 of files that the user trusts, wherever they come from


def trust(digests: Iterable[str]) -> None:
    """Allow files with these SHA-256 digests to run, wherever they come from.

    Raise `RequestError` if one of `digests` is no SHA-256 digest.
    """
    for each in digests:
        if not re.fullmatch(r"[0-9a-f]{64}", each):
            raise RequestError(f"{TRUST} {each}: write a SHA-256 digest, which has 64 hex digits")
        _trusted.add(each)


def is_trusted(sha256: str) -> bool:
    return sha256 in _trusted


_registered: dict[tuple[str, str], Extension] = {}  # by name and ending
_read: dict[tuple[str, str], inputs.Digests] = {}  # the files that each one read when it was run


# Registered files


def registered() -> tuple[Extension, ...]:
    return tuple(_registered.values())


def restore(files: Iterable[Extension]) -> None:
    """Register, in this worker process, the files that the parent process has registered."""
    for each in files:
        _add(each)


def only(files: Collection[Extension]) -> None:
    """Register these files, and forget all others: a worker of a cluster makes runs for one command
    after another."""
    for key, each in list(_registered.items()):
        if each not in files:
            _forget(each)
            del _registered[key], _read[key]
    restore(files)


def digests(files: Iterable[Extension]) -> dict[str, str]:
    """Return the SHA-256 digests of users' files, by path.

    The files that their code read when it was registered are included.
    """
    found: dict[str, str] = {}
    for each in files:
        found |= {str(each.path): each.sha256, **_read.get((each.name, each.path.suffix), {})}
    return found


def strategy_file(name: str) -> Extension | None:
    """Return the file that defines a user's strategy; None for a built-in strategy."""
    return _file(base_name(name), PYTHON, "strategy")


def law_file(name: str, suffix: str) -> Extension | None:
    """Return the file that defines a user's congestion control, or None if there is no such file.

    `suffix` is ".py" for the simulator or ".c" for the emulation.
    """
    return _file(name, suffix, "cc")


def scenario_files() -> dict[str, Path]:
    return {each.name: each.path for each in registered() if each.kind == "scenario"}


def law_names(suffix: str = "") -> tuple[str, ...]:
    """Return the names of the users' congestion controls that have a file with this suffix.

    `suffix` is ".py" or ".c"; the empty string selects all.
    """
    found = (each for each in registered() if each.kind == "cc")
    return tuple(dict.fromkeys(each.name for each in found if each.path.suffix.endswith(suffix)))


def congestion_controls() -> dict[str, str]:
    """Map the name of each congestion control to a one-line help text, built-in ones first."""
    return congestion.BUILT_IN | {name: _law_help(name) for name in law_names()}


def missing_half(name: str, suffix: str) -> Path | None:
    """Return the path of the file that a user's congestion control lacks for one engine.

    `suffix` selects the engine: ".py" for the simulator, ".c" for the emulation. Return None if the
    file exists, or if `name` is not a user's congestion control.
    """
    if name not in law_names() or law_file(name, suffix):
        return None
    other = law_file(name, C if suffix == PYTHON else PYTHON)
    assert other is not None
    return other.path.with_suffix(suffix)


def described(error: Exception) -> str:
    """Return the type and the text of an exception.

    File and line are added if the exception was raised in a user's file.
    """
    if isinstance(error, StrategyFailed):
        return str(error)
    for each in registered():
        for place in each.places:
            if line_of(error, place):
                return described_in(error, place).replace(place, str(each.path))
    return f"{type(error).__name__}: {error}"


# Registration


MOST_FILES = 500  # of a folder


def add(path: Path) -> None:
    """Register a file, or all suitable files in a folder but not in its subfolders.

    A file is suitable if it defines a strategy, a topology, a congestion control, a metric or a
    scenario. Raise `RequestError` if `path` does not exist, if it is a file that is not suitable,
    or if a file contains an error. In the last case the message names file and line.
    """
    if not os.path.exists(path):  # also of a name that is too long for a file
        raise RequestError(f"--with {path}: there is no such file or folder")
    if not path.is_dir():
        kind = defined_in(path)
        if kind is None:
            raise RequestError(
                f"--with {path}: it defines nothing: no class derived from Strategy, no Params and "
                "build, no on_ack, no METRIC. See docs/extend.md"
            )
        _register(kind, path)
        return
    suitable = sorted(each for each in path.iterdir() if each.suffix in (PYTHON, C, YAML))
    if len(suitable) > MOST_FILES:
        raise RequestError(
            f"--with {path}: it holds {len(suitable)} files, and at most {MOST_FILES} are "
            "possible: name a folder of your lab files alone"
        )
    for each in suitable:
        if kind := defined_in(each):
            _register(kind, each)


def add_from_environment() -> None:
    """Register all suitable files in the folders that the environment variable MULTIPATH_LAB_PATH
    lists. The folders are separated by colons."""
    for folder in filter(None, os.environ.get(PATH, "").split(":")):
        add(Path(folder))


def is_path(text: str) -> bool:
    """Return whether the value of a command-line option is the path of a file and not a name."""
    return "/" in text or text.endswith((PYTHON, C))


def strategy_name(text: str) -> str:
    """Return the name of the strategy in `text`, the value of the option `--strategy`.

    `text` is a name or the path of a file; `/improved` may follow either. If it is a path, the file
    is registered.
    """
    path, slash, form = text.rpartition(SEPARATOR)
    if path.endswith(PYTHON):
        return _register("strategy", Path(path)) + slash + form
    named = not is_path(text) or _is_strategy(base_name(text))
    return text if named else _register("strategy", Path(text))


def cc_name(text: str) -> str:
    """Return the name of the congestion control in `text`, the value of the option `--cc`.

    `text` is a name or the path of a file. If it is a path, the file is registered, together with
    the file of the same congestion control for the other engine (.py or .c), if that exists.
    """
    return _register("cc", Path(text)) if is_path(text) else text


def add_topology(path: Path, refused: str = "") -> str:
    """Register the file of a topology. Return the name of the topology: the file name without
    `.py`.

    `refused` is a reason why the file must not run, or "". With a reason, `RequestError` is raised
    unless the user trusts the file by its digest.
    """
    return _register("topology", path, refused)


def readable(kind: Kind, path: Path, refused: str = "") -> Extension:
    """Return a code file that may run, with its content. It is not registered.

    Raise `RequestError` if its name does not end as files of this kind do, if it is missing, if it
    is `refused` and not trusted, or if others could change it while root runs it.
    """
    path = Path(os.path.abspath(path))
    endings = dict.fromkeys(get_args(Kind), (PYTHON,)) | {"cc": (PYTHON, C), "scenario": (YAML,)}
    if path.suffix not in endings[kind]:
        raise RequestError(
            f"use {path} as {kind}: its name must end in {' or '.join(endings[kind])}"
        )
    if not os.path.exists(path):
        raise RequestError(f"use {path} as {kind}: there is no such file")
    made = Extension(kind, path.stem, path, user_file.content(path))
    _check_trusted(made, refused or _copy_of_a_run(path))
    if kind != "scenario":
        user_file.check_rights(path)
    return made


def _register(kind: Kind, path: Path, refused: str = "") -> str:
    """Register one file and return the name of what it defines.

    For a congestion control, register both its .py and its .c file. Raise `RequestError` if the
    file cannot be used, or if it is `refused` and not trusted.
    """
    made = readable(kind, path, refused)
    path = made.path
    _check_name(kind, path)
    _add(made)
    other = path.with_suffix(C if path.suffix == PYTHON else PYTHON)
    if kind == "cc" and (made.name, other.suffix) not in _registered and other.is_file():
        _register("cc", other)
    return made.name


def _add(made: Extension) -> None:
    key = made.name, made.path.suffix
    if _registered.get(key) != made:
        inputs.watch(*made.places)
        with inputs.collected() as read:
            _define(made)
        _registered[key], _read[key] = made, read


def _define(made: Extension) -> None:
    """Load the file of a strategy, a topology or a metric, so that it can be used by its name.

    Files of other kinds need nothing here: the engines load congestion controls, and scenarios are
    read when they are used.
    """
    if made.kind == "strategy":
        from controller.strategies import from_file

        try:
            from_file.register(str(made.path), made.source)
        except UserFileRefused as error:
            raise RequestError(str(error)) from error
    elif made.kind == "topology":
        from lab.topologies import families

        families.register(made.path, made.source)
    elif made.kind == "metric":
        from lab import metrics

        metrics.register(made.path, made.source)


def _forget(file: Extension) -> None:
    """Undo `_define`."""
    if file.kind == "strategy":
        from controller.strategies import from_file

        from_file.forget(file.name)
    elif file.kind == "topology":
        from lab.topologies import families

        families.TOPOLOGIES.pop(file.name, None)
    elif file.kind == "metric":
        from lab import metrics

        metrics.forget(file.name)


def _check_name(kind: Kind, path: Path) -> None:
    doing = f"use {path} as {kind}"
    if not NAME.fullmatch(path.stem):
        raise RequestError(
            f"{doing}: '{path.stem}' cannot be a name: use a-z, 0-9 and _, beginning with a letter"
        )
    if kind == "cc" and path.stem in congestion.BUILT_IN:
        raise RequestError(f"{doing}: a built-in congestion control has this name: rename the file")
    for each in registered():
        same_thing = each.kind == kind and each.path.parent == path.parent
        both_code = "scenario" not in (kind, each.kind)
        if each.name == path.stem and not same_thing and (both_code or kind == each.kind):
            raise RequestError(f"{doing}: {each.path} has this name too: rename one")


def _copy_of_a_run(path: Path) -> str:
    """Return why a file must not run if it is a copy that a run has recorded, else ""."""
    is_copy = path.parent.name == COPIES and (path.parents[1] / "manifest.json").exists()
    return "it is the copy in a run folder, and nothing is loaded from there" if is_copy else ""


def _check_trusted(made: Extension, refused: str) -> None:
    if refused and not is_trusted(made.sha256):
        raise RequestError(
            f"use {made.path} as {made.kind}: {refused}. Read the file. Then give it by --with, or "
            f"type {TRUST} {made.sha256}"
        )


def _is_strategy(name: str) -> bool:
    from controller.strategies import STRATEGIES

    return name in STRATEGIES


def _file(name: str, suffix: str, kind: Kind) -> Extension | None:
    found = _registered.get((name, suffix))
    return found if found and found.kind == kind else None


def _law_help(name: str) -> str:
    """Return a one-line help text for a user's congestion control.

    It is the first line of the .py file's docstring. Without one, it is the first comment of the .c
    file.
    """
    return next(filter(None, _help_lines(name)), "of your own")


def _help_lines(name: str) -> Iterator[str]:
    if (python := _registered.get((name, PYTHON))) is not None:
        try:
            yield (ast.get_docstring(ast.parse(python.source)) or "").partition("\n")[0]
        except (SyntaxError, ValueError):
            return  # the engine reports the error with its line
    if (c := _registered.get((name, C))) is not None:
        for line in c.source.decode(errors="replace").splitlines():
            text = line.strip().lstrip("/*").rstrip("*/").strip()
            if text and not text.startswith("SPDX"):
                yield text if line.lstrip().startswith(("/", "*")) else ""
                return
