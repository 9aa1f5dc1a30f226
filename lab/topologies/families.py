"""The kinds of topology that a scenario can choose from. A user can add a kind, written in a file.

Each kind is a module with two parts: `Params` is a pydantic model of its parameters, and
`build(params, rate_scale)` returns a `Topology`. A module may also set `POSITIONS = True`. Its
users then have positions that depend on a seed, and its `build` also takes the argument `seed`.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType

from pydantic import BaseModel

from lab import user_file
from lab.errors import RequestError
from lab.topologies import (
    campus,
    collision,
    fat_tree,
    nodes_and_links,
    parallel_paths,
    pooling,
    rat_setup,
    shared_bottleneck,
    wifi_lte,
    wireless_set,
)

TOPOLOGIES: dict[str, ModuleType] = {
    "parallel_paths": parallel_paths,
    "shared_bottleneck": shared_bottleneck,
    "wifi_lte": wifi_lte,
    "pooling": pooling,
    "collision": collision,
    "fat_tree": fat_tree,
    "campus": campus,
    "wireless_set": wireless_set,
    "rat_setup": rat_setup,
    "nodes_and_links": nodes_and_links,
}
BUILT_IN = frozenset(TOPOLOGIES)
FORBID = "model_config = ConfigDict(extra='forbid', frozen=True)"


def register(path: Path, source: bytes | None = None) -> str:
    """Import a user's topology file, and add it to `TOPOLOGIES`. Return the name of the new kind of
    topology, which is the file name without `.py`. A file that is registered again is imported
    anew. If `source` is given, it is imported instead of what the file contains now.

    Raise `RequestError` if the name belongs to a built-in kind or to another registered file. Also
    raise it if running the file fails (the message names the line), or if the file lacks `Params`
    or `build`.
    """
    kind = path.stem
    if kind in BUILT_IN:
        raise RequestError(
            f"register topology {path}: '{kind}' is a built-in kind: rename the file"
        )
    registered = TOPOLOGIES.get(kind)
    if registered is not None and registered.__file__ != str(path.resolve()):
        raise RequestError(
            f"register topology {path}: {registered.__file__} is called '{kind}' too: rename one"
        )
    module = user_file.import_file(path.resolve(), source)
    check_family(module)
    TOPOLOGIES[kind] = module
    return kind


def check_family(module: ModuleType) -> None:
    """Raise `RequestError` if the module does not define a kind of topology; the message says what
    is missing."""
    doing = f"register topology {module.__file__}"
    params, build = getattr(module, "Params", None), getattr(module, "build", None)
    if not (isinstance(params, type) and issubclass(params, BaseModel)):
        raise RequestError(f"{doing}: it has no class Params(BaseModel): add one, with {FORBID}")
    if params.model_config.get("extra") != "forbid":
        raise RequestError(f"{doing}: Params accepts unknown keys: add {FORBID}")
    if not inspect.isfunction(build):
        raise RequestError(f"{doing}: it has no function build(params, rate_scale): add one")
    seed = {"seed": 1} if has_positions(module) else {}
    try:
        inspect.signature(build).bind(None, 1.0, **seed)
    except TypeError as error:
        wanted = ", ".join(("params", "rate_scale", *seed))
        line = build.__code__.co_firstlineno
        raise RequestError(f"{doing}, line {line}: build must take ({wanted}): {error}") from error


def has_positions(module: ModuleType) -> bool:
    """Return True if the users of this kind of topology have positions, which depend on a seed."""
    return bool(getattr(module, "POSITIONS", False))
