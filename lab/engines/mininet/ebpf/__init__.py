"""Congestion controls ("laws") as eBPF programs for an unmodified kernel.

A law says how the congestion window of a subflow grows and shrinks. The law NAME is known to the
kernel as the congestion control `bpf_NAME`. The expected rate of a subflow is the rate to which the
controller limits the subflow; a law can keep the congestion window within this limit.

law.h               the input of a law (all subflows of the connection) and shared arithmetic
lia.c olia.c ...    one law each
expected.h          limits windows to expected rates (`multipath.expected_by: window`)
coupled.h           registers a law as a congestion control of the kernel
build.py load.py    compile a law for a kernel; load it into the kernel

law.h and the laws also compile for user space. A user can write a law called NAME in a C file
NAME.c, as in lia.c. The file includes coupled.h, defines the functions `increase` and `after_loss`,
and ends with CONGESTION_CONTROL(bpf_NAME). It can include the headers of this folder and of libbpf,
but no other file of the user.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from lab.congestion import BUILT_IN
from lab.errors import RequestError

LAWS = ("lia", "olia", "balia", "wvegas")
IN_KERNEL = ("reno", "cubic")  # those of which the lab has versions with limits, too
SOURCES = Path(__file__).parent
PREFIX = "bpf_"
KERNEL_NAME_MAX = 15  # TCP_CA_NAME_MAX (linux/tcp.h) without the closing zero
NAME_MAX = KERNEL_NAME_MAX - len(PREFIX)


@dataclass(frozen=True)
class UserLaw:
    """A congestion control ("law") that a user has written.

    `path` is the absolute path of the C file. `source` is the content of the C file when the
    congestion control was registered.
    """

    name: str
    path: Path
    source: bytes


_registered: dict[str, UserLaw] = {}


def user_law(path: Path, source: bytes | None = None) -> UserLaw:
    """Return the congestion control ("law") in a user's C file; NAME.c defines the law NAME.

    `source` is the content of the file; if `source` is None, the file is read. Raises
    `RequestError` if the file does not exist or is no C file, or if NAME is built in, too long for
    the kernel, or not of the form [a-z][a-z0-9_]*.
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
    if name in BUILT_IN:
        raise RequestError(f"{doing}: '{name}' is built in. Rename the file")
    return UserLaw(name, path, path.read_bytes() if source is None else source)


def register(law: UserLaw) -> None:
    """Make a user's congestion control available under its name, until this process ends.

    It replaces a congestion control that was registered earlier for the same file. Raises
    `RequestError` if the name is already registered for another file.
    """
    known = _registered.get(law.name)
    if known is not None and known.path != law.path:
        raise RequestError(
            f"use the congestion control {law.path}: '{law.name}' is already {known.path}. "
            "Rename one of them"
        )
    _registered[law.name] = law


def registered() -> tuple[str, ...]:
    """Return the names of the users' congestion controls that this process has registered."""
    return tuple(_registered)


def law_sources(by_window: bool = False) -> dict[str, Path]:
    """Return the C files of all built-in and registered congestion controls, by name.

    `by_window` is True if congestion controls limit the congestion window of a subflow to the rate
    set by the controller (expected.h). The result then includes reno and cubic, because the
    kernel's own versions have no such limit.
    """
    names = (*LAWS, *IN_KERNEL) if by_window else LAWS
    built_in = {law: SOURCES / f"{law}.c" for law in names}
    return built_in | {name: law.path for name, law in _registered.items()}


def source(law: str, by_window: bool = False) -> bytes:
    """Return the C code of the congestion control `law`, a key of `law_sources(by_window)`."""
    own = _registered.get(law)
    return law_sources(by_window)[law].read_bytes() if own is None else own.source


def kernel_name(cc: str, by_window: bool = False) -> str:
    """Return the kernel's name for the congestion control `cc` of a scenario.

    The name is `bpf_CC` if the lab implements `cc` in eBPF, and `cc` itself if the kernel does.
    With `by_window` (see `law_sources`), the lab also implements reno and cubic.
    """
    return PREFIX + cc if cc in law_sources(by_window) else cc


def our_name(kernel_cc: str) -> str:
    """Return the name that scenarios use for a congestion control of the kernel.

    The prefix `bpf_` is removed if the congestion control is one of the lab's eBPF programs.
    """
    plain = kernel_cc.removeprefix(PREFIX)
    return plain if plain in law_sources(by_window=True) else kernel_cc
