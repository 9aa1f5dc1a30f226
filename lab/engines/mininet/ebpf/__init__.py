"""Provide congestion control laws as eBPF programs for an unmodified kernel.

A law computes how the congestion window of a subflow grows and shrinks. The law NAME is known to
the kernel as the congestion control `bpf_NAME`.

law.h               the input of a law (its view) and shared arithmetic; compiles for user space too
lia.c olia.c ...    one law each
expected.h          limits windows to expected rates (`multipath.expected_by: window`)
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

LAWS = ("lia", "olia", "balia", "wvegas")
IN_KERNEL = ("reno", "cubic")
SOURCES = Path(__file__).parent
PREFIX = "bpf_"
KERNEL_NAME_MAX = 15  # TCP_CA_NAME_MAX (linux/tcp.h) without the closing zero
NAME_MAX = KERNEL_NAME_MAX - len(PREFIX)


@dataclass(frozen=True)
class UserLaw:
    """Describe a congestion control law that a user has written in the C file `path` (absolute)."""

    name: str
    path: Path


_registered: dict[str, UserLaw] = {}


def user_law(path: Path) -> UserLaw:
    """Return the law NAME for the C file `path`, whose file name is NAME.c. The file is not read.

    Raises `RequestError` if the file does not exist, or if NAME is the name of a built-in law, is
    too long for the kernel, or has other characters than a-z, 0-9 and _.
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
    """Make a user's law available under its name, until this process ends.

    Raises `RequestError` if another file has already been registered under this name.
    """
    known = _registered.setdefault(law.name, law)
    if known.path != law.path:
        raise RequestError(
            f"use the congestion control {law.path}: '{law.name}' is already {known.path}. "
            "Rename one of them"
        )


def registered() -> tuple[str, ...]:
    """Return the names of the users' laws that are registered in this process."""
    return tuple(_registered)


def law_sources(by_window: bool = False) -> dict[str, Path]:
    """Return the C file of each built-in law and of each registered law, by the law's name.

    With `by_window`, laws limit windows to expected rates. Then reno and cubic are laws too,
    because the kernel's own reno and cubic do not know expected rates.
    """
    names = (*LAWS, *IN_KERNEL) if by_window else LAWS
    built_in = {law: SOURCES / f"{law}.c" for law in names}
    return built_in | {name: law.path for name, law in _registered.items()}


def kernel_name(cc: str, by_window: bool = False) -> str:
    """Return the name that the kernel uses for the congestion control `cc` of a scenario.

    This is `bpf_NAME` for a law, and `cc` itself for a congestion control that is part of the
    kernel, such as cubic. With `by_window`, every congestion control is a law (see `law_sources`).
    """
    return PREFIX + cc if cc in law_sources(by_window) else cc


def our_name(kernel_cc: str) -> str:
    """Return the name that scenarios use for the kernel's `kernel_cc`: `bpf_lia` becomes `lia`."""
    plain = kernel_cc.removeprefix(PREFIX)
    return plain if plain in law_sources(by_window=True) else kernel_cc
