"""The files that a scenario file names: where they are looked for, and which of them may run."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from lab import plain_file
from lab.errors import RequestError, show

INPUTS = "inputs"  # the folder of a run with copies of the files that it has read
MOST_BYTES = 64 * 2**20  # of a file


@dataclass(frozen=True)
class Files:
    """The files that a scenario file may name. Paths are relative to `folder`.

    Code may be in the folder `inside` or below (nowhere if `inside` is None), or is trusted by its
    digest. Other files may be anywhere if `reads_anywhere`, else in `folder` or below. The folder
    of a run (`is_run`) has copies of them in its folder `inputs`.
    """

    folder: Path
    inside: Path | None
    reads_anywhere: bool
    is_run: bool = False

    def refused(self, path: Path) -> str:
        """Return why a code file must not run, or ""."""
        if self.inside is not None and path.resolve().is_relative_to(self.inside.resolve()):
            return ""
        return (
            "only a scenario file that is named on the command line may name code, in its own "
            "folder or below; worksheets and run folders may not"
        )

    def find(self, name: Any) -> Path:
        """Return the path of a file that is data. Raise `RequestError` if it must not be read, or
        if it is missing."""
        if not isinstance(name, str) or not name:
            raise RequestError(f"{show(name)} is not the path of a file")
        copy, path = self.folder / INPUTS / name, self.folder / name
        path = path if path.is_file() or not copy.is_file() else copy
        if not self.reads_anywhere and not path.resolve().is_relative_to(self.folder.resolve()):
            raise RequestError(
                f"'{name}' is outside of the scenario's folder: only a scenario file that is named "
                "on the command line may read such a file"
            )
        if not path.is_file():
            raise RequestError(f"there is no file {path}, nor a copy of it in {INPUTS}/")
        return path.absolute()

    def read(self, name: Any) -> tuple[Path, bytes]:
        """Return path and content of a file that is data. Raise `RequestError` as `find` does, and
        if the file is too large."""
        path = self.find(name)
        try:
            content = plain_file.read(path, most_bytes=MOST_BYTES + 1, follow=True)
        except OSError as error:
            raise RequestError(f"read {path}: {error.strerror or error}") from error
        if len(content) > MOST_BYTES:
            raise RequestError(f"read {path}: it is larger than {MOST_BYTES >> 20} MiB")
        return path, content


# Parameters of a topology that are files: fields of its `Params` with the type `Path`


def with_files(model: type[BaseModel], data: Any, find: Callable[[Any], Path]) -> Any:
    """Return `data`, the parameters of a topology, with a path for each text that names a file.

    These are the fields of type `Path` of `model`, also in lists and in models inside of it. `find`
    returns the path for a text.
    """
    if not isinstance(data, dict):
        return data
    types_of = {name: field.annotation for name, field in model.model_fields.items()}
    return {
        key: _with_files(types_of[key], value, find) if key in types_of else value
        for key, value in data.items()
    }


def _with_files(kind: Any, data: Any, find: Callable[[Any], Path]) -> Any:
    if isinstance(kind, type) and issubclass(kind, Path):
        return find(data) if isinstance(data, str) else data
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return with_files(kind, data, find)
    inner = typing.get_args(kind)
    if typing.get_origin(kind) in (typing.Union, types.UnionType, typing.Annotated):
        for each in inner:
            data = _with_files(each, data, find)
        return data
    if isinstance(data, dict) and len(inner) == 2:
        return {key: _with_files(inner[1], value, find) for key, value in data.items()}
    if isinstance(data, list | tuple) and inner:
        return [_with_files(inner[0], each, find) for each in data]
    return data


def named_in(params: Any) -> list[Path]:
    """Return the files that the checked parameters of a topology name."""
    if isinstance(params, Path):
        return [params]
    if isinstance(params, BaseModel):
        params = [getattr(params, name) for name in type(params).model_fields]
    values = params.values() if isinstance(params, dict) else params
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        return []
    return [path for each in values for path in named_in(each)]
