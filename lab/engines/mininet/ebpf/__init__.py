"""Provide congestion control laws as eBPF programs for an unmodified kernel.

The kernel calls a law NAME `bpf_NAME`.

law.h               the view a law gets and the shared arithmetic; also compiles for user space
lia.c olia.c ...    one law each
coupled.h           registers a law as a congestion control of the kernel
build.py load.py    compile a law for a kernel; load it into the kernel

A user can write a law NAME in a C file NAME.c, in the manner of lia.c: it includes coupled.h,
defines `increase` and `after_loss`, and ends with CONGESTION_CONTROL(bpf_NAME). The file is
complete: it can include the headers of this folder and of libbpf, but no other file of the user.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from lab.errors import RequestError

LAWS = ("lia", "olia", "balia")
IN_KERNEL = ("reno", "cubic")
SOURCES = Path(__file__).parent
PREFIX = "bpf_"
KERNEL_NAME_MAX = 15  # TCP_CA_NAME_MAX (linux/tcp.h) without the closing zero
NAME_MAX = KERNEL_NAME_MAX - len(PREFIX)


@dataclass(frozen=True)
class UserLaw:
    """Describe a law in a C file of the user; `path` is absolute."""

    name: str
    path: Path


_registered: dict[str, UserLaw] = {}


def user_law(path: Path) -> UserLaw:
    """Return the law in a C file, named after the file.

    Raises `RequestError` if there is no such file, or if its name cannot name a congestion control.
    """
    path = Path(os.path.abspath(path))
    name, doing = path.stem, f"use the congestion control {path}"
    if path.suffix != ".c":
        raise RequestError(f"{doing}: it is not a C file. Write NAME.c")
    if not path.is_file():
        raise RequestError(f"{doing}: there is no such file")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise RequestError(
            f"{doing}: '{name}' cannot be a name. Use a-z, 0-9 and _, beginning with a letter"
        )
    if len(name) > NAME_MAX:
        raise RequestError(
            f"{doing}: '{name}' has {len(name)} characters, "
            f"and the kernel takes at most {NAME_MAX}. Rename the file"
        )
    if name in (*LAWS, *IN_KERNEL):
        raise RequestError(f"{doing}: '{name}' is built in. Rename the file")
    return UserLaw(name, path)


def register(law: UserLaw) -> None:
    """Make a law known under its name in this process, until it ends.

    Raises `RequestError` if another file is registered under this name.
    """
    known = _registered.setdefault(law.name, law)
    if known.path != law.path:
        raise RequestError(
            f"use the congestion control {law.path}: '{law.name}' is already {known.path}. "
            "Rename one of them"
        )


def registered() -> tuple[str, ...]:
    """Return the names of the registered laws."""
    return tuple(_registered)


def law_sources() -> dict[str, Path]:
    """Return the C file of each law by name: the built-in laws and the registered ones."""
    built_in = {law: SOURCES / f"{law}.c" for law in LAWS}
    return built_in | {name: law.path for name, law in _registered.items()}


def kernel_name(cc: str) -> str:
    """Return the kernel's name of a congestion control."""
    return PREFIX + cc if cc in law_sources() else cc


def our_name(kernel_cc: str) -> str:
    """Return the name that scenarios use for a congestion control of the kernel."""
    plain = kernel_cc.removeprefix(PREFIX)
    return plain if plain in law_sources() else kernel_cc
