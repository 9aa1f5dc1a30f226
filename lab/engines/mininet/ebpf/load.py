"""Load congestion controls ("laws") into the running kernel through libbpf. Needs root.

A law stays registered as long as this process keeps a file descriptor, the law's BPF link, open.
When the process ends, for whatever reason, the kernel unregisters the law. It frees the program
when the last socket that uses the law is closed. So no clean-up is needed.

1) Open the program, and request that its law is registered by a link. Laws that limit windows to
   expected rates share a map, which is pinned so that the host agent can write it.
2) Load the program. The kernel's verifier checks it.
3) Register the law. libbpf before 1.2 makes no link, so it is made here.
4) Close everything but the link.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

from lab.engines.mininet.ebpf import build, kernel_name, law_sources
from lab.errors import LabError, MachineLacks

BY_LINK = 1 << 13  # BPF_F_LINK, linux/bpf.h
EXPECTED_RATES = b"expected_rates"  # in coupled.h
STRUCT_OPS = 44  # BPF_STRUCT_OPS among the attach types


class Laws:
    """Loads congestion controls into the kernel. They stay registered until `close`."""

    def __init__(self, expected: Path | None = None) -> None:
        """`expected` is the path of the pinned eBPF map with the expected rate of each subflow.

        The congestion controls limit the window of each subflow to this rate. If `expected` is
        None, they set no such limit.
        """
        self._links: dict[str, int] = {}
        self._expected = expected

    def load(self, *wanted: str) -> None:
        """Load those congestion controls in `wanted` that are eBPF programs and not loaded yet.

        Raises `MachineLacks` if this kernel cannot run such programs, `RequestError` if a user's C
        file does not compile, and `LabError` if the kernel refuses a program.
        """
        by_window = self._expected is not None
        missing = set(wanted) - set(self._links)
        for law, program in build.require(missing, by_window=by_window).items():
            name = kernel_name(law, by_window)
            doing = f"load {name} ({law_sources(by_window)[law]})"
            self._links[law] = _register(name, program, doing, self._expected)

    def close(self) -> None:
        """Unregister all loaded congestion controls.

        A connection that uses one of them keeps it until the connection ends.
        """
        for link in self._links.values():
            os.close(link)
        self._links.clear()


def _register(name: str, program: Path, doing: str, expected: Path | None) -> int:
    """Load a compiled program, register its congestion control, and return a file descriptor.

    The descriptor is a BPF link. The kernel knows the congestion control as `name` while the link
    is open. If `expected` is not None, the program uses the map of expected rates that is pinned at
    this path; the map is made and pinned if it does not exist.
    """
    libbpf = Libbpf(doing)
    call = libbpf.call
    opened = call("bpf_object__open_file", os.fsencode(program), None)
    try:
        law = call("bpf_object__find_map_by_name", opened, name.encode())
        call("bpf_map__set_map_flags", law, BY_LINK)  # 1
        if expected is not None:
            rates = call("bpf_object__find_map_by_name", opened, EXPECTED_RATES)
            call("bpf_map__set_pin_path", rates, os.fsencode(expected))
        call("bpf_object__load", opened)  # 2
        link: int = call("bpf_link__fd", call("bpf_map__attach_struct_ops", law))  # 3
        if link == call("bpf_map__fd", law):  # no link was made
            link = call("bpf_link_create", link, 0, STRUCT_OPS, None)
        return link
    finally:
        call("bpf_object__close", opened)  # 4
        libbpf.close()


LIBRARY = "libbpf.so.1"
POINTER, NUMBER = ctypes.c_void_p, ctypes.c_int
FUNCTIONS: dict[str, tuple[Any, ...]] = {  # of libbpf: the result's type, then the arguments' types
    "bpf_object__open_file": (POINTER, ctypes.c_char_p, POINTER),
    "bpf_object__find_map_by_name": (POINTER, POINTER, ctypes.c_char_p),
    "bpf_map__set_pin_path": (NUMBER, POINTER, ctypes.c_char_p),
    "bpf_map__set_map_flags": (NUMBER, POINTER, ctypes.c_uint32),
    "bpf_object__load": (NUMBER, POINTER),
    "bpf_map__attach_struct_ops": (POINTER, POINTER),
    "bpf_map__fd": (NUMBER, POINTER),
    "bpf_link__fd": (NUMBER, POINTER),
    "bpf_link_create": (NUMBER, NUMBER, NUMBER, NUMBER, POINTER),
    "bpf_object__close": (None, POINTER),
}
PRINT = ctypes.CFUNCTYPE(NUMBER, NUMBER, ctypes.c_char_p, POINTER)  # libbpf_print_fn_t
WARNING = 0  # LIBBPF_WARN
_libc = ctypes.CDLL(None)
_libc.vasprintf.argtypes = (ctypes.POINTER(POINTER), ctypes.c_char_p, POINTER)
_libc.free.argtypes = (POINTER,)


class Libbpf:
    """The library libbpf. Collects the warnings that libbpf prints.

    Error messages begin with `doing`. Raises `MachineLacks` if libbpf is not installed.
    """

    def __init__(self, doing: str) -> None:
        self._doing, self._warnings = doing, ""
        try:
            self._library = ctypes.CDLL(LIBRARY, use_errno=True)
        except OSError as problem:
            raise MachineLacks(f"{doing}: {problem}. Try: sudo apt install libbpf1") from problem
        for name, (result, *arguments) in FUNCTIONS.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        self._print = PRINT(self._keep)  # kept alive: libbpf stores only a pointer to it
        self._library.libbpf_set_print(self._print)

    def call(self, function: str, *arguments: Any) -> Any:
        """Call a function of libbpf, one of `FUNCTIONS`, and return the result of the function.

        Raises `LabError`, with the reason, if the result is a null pointer or a negative number.
        """
        result = getattr(self._library, function)(*arguments)
        kind = FUNCTIONS[function][0]
        if (kind is POINTER and not result) or (kind is NUMBER and result < 0):
            why = os.strerror(ctypes.get_errno())
            raise LabError(f"{self._doing}: {function}: {why}.{verdict(self._warnings)}")
        return result

    def close(self) -> None:
        """Stop collecting warnings."""
        self._library.libbpf_set_print(None)

    def _keep(self, level: int, form: bytes, arguments: int) -> int:
        text = POINTER()
        if level == WARNING and _libc.vasprintf(ctypes.byref(text), form, arguments) >= 0:
            self._warnings += ctypes.string_at(text).decode(errors="replace")
            _libc.free(text)
        return 0


def verdict(warnings: str) -> str:
    """Return a sentence that says why, and at which source line, the kernel refuses a program.

    `warnings` is the text that libbpf has printed. The sentence is made from the log of the
    kernel's verifier in this text. Without such a log, the result is "".
    """
    _, found, rest = warnings.partition("-- BEGIN PROG LOAD LOG --\n")
    if not found:
        return ""
    log = rest.partition("-- END PROG LOAD LOG --")[0].splitlines()
    lines = [line for line in log if line and not line.startswith("processed ")]
    source = next((line.lstrip("; ") for line in reversed(lines) if line.startswith("; ")), "")
    return f" The kernel's verifier refuses the program at `{source}`: {lines[-1] if lines else ''}"
