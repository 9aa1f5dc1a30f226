"""The C code of the congestion control laws, compiled for this machine and called through
ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from lab.engines.mininet.ebpf import LAWS, SOURCES

SCALABLE = Path(__file__).parent / "emulation" / "scalable.c"  # a user's law
PACKET = 1 << 40
MAX_PATHS = 16


class LawPath(ctypes.Structure):
    _fields_ = [
        ("window", ctypes.c_uint32),
        ("rtt_us", ctypes.c_uint32),
        ("bytes", ctypes.c_uint64),
    ]


class View(ctypes.Structure):
    _fields_ = [("count", ctypes.c_uint32), ("path", LawPath * MAX_PATHS)]


class Round(ctypes.Structure):
    """`struct law_round` in law.h."""

    _fields_ = [
        ("rtt_us", ctypes.c_uint32),
        ("base_rtt_us", ctypes.c_uint32),
        ("samples", ctypes.c_uint32),
        ("window", ctypes.c_uint32),
        ("ssthresh", ctypes.c_uint32),
        ("fraction", ctypes.c_int64),
        ("memory", ctypes.c_uint64 * 3),
    ]


Paths = Sequence[tuple[float, float, float]]


class Law:
    """A path is (window [packets], RTT [s], bytes between losses); `own` is the index of the
    path."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.increase.restype = ctypes.c_int64

    def increase(self, paths: Paths, own: int) -> Fraction:
        """Change of the window per acknowledged packet [packets]."""
        return Fraction(self._library.increase(_view(paths, own)), PACKET)

    def after_loss(self, paths: Paths, own: int) -> int:
        """Window after a loss [packets]."""
        return self._library.after_loss(_view(paths, own))

    def on_round(self, paths: Paths, round_trip: Round) -> None:
        """End an RTT of the first path: `round_trip` is changed. The third number of each other
        path is the value in its memory that the law can read."""
        self._library.on_round(_view(paths, 0), ctypes.byref(round_trip))


def _view(paths: Paths, own: int) -> ctypes.Array:
    order = [paths[own], *(path for number, path in enumerate(paths) if number != own)]
    known = (LawPath(int(window), round(rtt * 1e6), int(count)) for window, rtt, count in order)
    return ctypes.byref(View(len(order), (LawPath * MAX_PATHS)(*known)))


@pytest.fixture(scope="session")
def laws(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Law]:
    compiler = shutil.which("clang") or shutil.which("gcc")
    if not compiler:
        pytest.skip("THE COUPLED LAWS ARE NOT TESTED: no C compiler. Type: sudo apt install clang")
    folder = tmp_path_factory.mktemp("laws")
    sources = {name: SOURCES / f"{name}.c" for name in LAWS} | {"scalable": SCALABLE}
    for name, source in sources.items():
        options = ["-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", f"-I{SOURCES}"]
        argv = [compiler, *options, "-shared", "-fPIC", source, "-o", folder / f"{name}.so"]
        subprocess.run(argv, check=True)
    return {name: Law(folder / f"{name}.so") for name in sources}
