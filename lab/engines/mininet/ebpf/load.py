"""Load laws into the running kernel, through libbpf. Needs root.

A law is registered by a link, and the link belongs to this process alone: it is pinned nowhere. When the process ends,
however it ends, the kernel takes the law out of its list, and frees programs and maps with the last socket under it.
So there is nothing to write down, and nothing to clean.

1) open the program and ask for registration by a link   2) load it, which is when the kernel's verifier looks at it
3) hand the law over; a libbpf before 1.2 does not make the link itself   4) keep the link, let go of all else
"""

from __future__ import annotations

import ctypes
import os
from functools import partial
from pathlib import Path
from typing import Any

from lab.engines.mininet.ebpf import build, kernel_name
from lab.errors import LabError, MachineLacks

LIBRARY = "libbpf.so.1"
BY_LINK = 1 << 13  # BPF_F_LINK, linux/bpf.h
STRUCT_OPS = 44  # BPF_STRUCT_OPS among the attach types


POINTER, NUMBER = ctypes.c_void_p, ctypes.c_int
FUNCTIONS: dict[str, tuple[Any, ...]] = {  # of libbpf: what each returns, and what it takes
    "bpf_object__open_file": (POINTER, ctypes.c_char_p, POINTER),
    "bpf_object__find_map_by_name": (POINTER, POINTER, ctypes.c_char_p),
    "bpf_map__set_map_flags": (NUMBER, POINTER, ctypes.c_uint32),
    "bpf_object__load": (NUMBER, POINTER),
    "bpf_map__attach_struct_ops": (POINTER, POINTER),
    "bpf_map__fd": (NUMBER, POINTER),
    "bpf_link__fd": (NUMBER, POINTER),
    "bpf_link_create": (NUMBER, NUMBER, NUMBER, NUMBER, POINTER),
    "bpf_object__close": (None, POINTER),
}


class Laws:
    """The laws this process has brought into the kernel."""

    def __init__(self) -> None:
        self._links: dict[str, int] = {}

    def bring(self, *wanted: str) -> None:
        """Make sure the kernel knows these congestion controls; those it has itself are left to it.

        Raises `MachineLacks` if this kernel cannot run a law, `LabError` if it refuses to load it.
        """
        for law, program in build.require(set(wanted) - set(self._links)).items():
            self._links[law] = _register(kernel_name(law), program)

    def close(self) -> None:
        """Take the laws out of the kernel again; connections that use one keep it to their end."""
        for link in self._links.values():
            os.close(link)
        self._links.clear()


def _register(name: str, program: Path) -> int:
    """The file descriptor of the link."""
    ask = partial(_ask, _library(), f"load {name} from {program}")
    opened = ask("bpf_object__open_file", os.fsencode(program), None)
    try:
        law = ask("bpf_object__find_map_by_name", opened, name.encode())
        ask("bpf_map__set_map_flags", law, BY_LINK)  # 1
        ask("bpf_object__load", opened)  # 2
        link: int = ask("bpf_link__fd", ask("bpf_map__attach_struct_ops", law))  # 3
        return (
            link
            if link != ask("bpf_map__fd", law)
            else int(ask("bpf_link_create", link, 0, STRUCT_OPS, None))
        )
    finally:
        ask("bpf_object__close", opened)  # 4


def _ask(libbpf: ctypes.CDLL, doing: str, function: str, *arguments: Any) -> Any:
    """Call a function of libbpf; those that give a pointer fail with none, the others with a negative number."""
    answer = getattr(libbpf, function)(*arguments)
    kind = FUNCTIONS[function][0]
    if (kind is POINTER and not answer) or (kind is NUMBER and answer < 0):
        why = os.strerror(ctypes.get_errno())
        raise LabError(
            f"{doing}: {function}: {why}. What the kernel says against it: bpftool struct_ops register FILE"
        )
    return answer


def _library() -> ctypes.CDLL:
    try:
        libbpf = ctypes.CDLL(LIBRARY, use_errno=True)
    except OSError as problem:
        raise MachineLacks(
            f"load a congestion control: {problem}. Try: sudo apt install libbpf1"
        ) from problem
    for name, (result, *arguments) in FUNCTIONS.items():
        function = getattr(libbpf, name)
        function.restype, function.argtypes = result, arguments
    return libbpf
