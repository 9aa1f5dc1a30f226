"""Call the C library libbpf; if the kernel refuses a program, say why in the error."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from lab.errors import LabError, MachineLacks

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
    """Load the library libbpf, call its functions, and collect the warnings that it prints.

    `doing` says what the caller is doing; error messages begin with it. Raises `MachineLacks` if
    libbpf is not installed.
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
        """Call a function of libbpf, one of `FUNCTIONS`, and return its result.

        Raises `LabError` with the reason if the result is a null pointer or a negative number.
        """
        result = getattr(self._library, function)(*arguments)
        kind = FUNCTIONS[function][0]
        if (kind is POINTER and not result) or (kind is NUMBER and result < 0):
            why = os.strerror(ctypes.get_errno())
            raise LabError(f"{self._doing}: {function}: {why}.{verdict(self._warnings)}")
        return result

    def close(self) -> None:
        """Stop collecting the library's warnings."""
        self._library.libbpf_set_print(None)

    def _keep(self, level: int, form: bytes, arguments: int) -> int:
        text = POINTER()
        if level == WARNING and _libc.vasprintf(ctypes.byref(text), form, arguments) >= 0:
            self._warnings += ctypes.string_at(text).decode(errors="replace")
            _libc.free(text)
        return 0


def verdict(warnings: str) -> str:
    """Return a sentence that says at which source line, and why, the kernel refuses a program.

    `warnings` is the text that libbpf has printed. The sentence is taken from the log of the
    kernel's verifier in this text; it is empty if there is no such log.
    """
    _, found, rest = warnings.partition("-- BEGIN PROG LOAD LOG --\n")
    if not found:
        return ""
    log = rest.partition("-- END PROG LOAD LOG --")[0].splitlines()
    lines = [line for line in log if line and not line.startswith("processed ")]
    source = next((line.lstrip("; ") for line in reversed(lines) if line.startswith("; ")), "")
    return f" The kernel's verifier refuses the program at `{source}`: {lines[-1] if lines else ''}"
