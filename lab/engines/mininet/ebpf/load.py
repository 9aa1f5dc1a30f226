"""Load congestion control laws into the running kernel through libbpf. Needs root.

A law stays registered as long as one file descriptor of this process, its BPF link, is open. When
the process ends, for whatever reason, the kernel unregisters the law. It frees the program when the
last socket that uses the law is closed. So no clean-up is needed.

1) open the program, and request that its law is registered by a link; laws that limit windows to
   expected rates share one map, which is pinned so that the host agent can write it
2) load the program: the kernel's verifier checks it
3) register the law; libbpf before 1.2 does not make the link, so it is made here
4) close everything but the link
"""

from __future__ import annotations

import os
from pathlib import Path

from lab.engines.mininet.ebpf import build, kernel_name, law_sources
from lab.engines.mininet.ebpf.libbpf import Libbpf

BY_LINK = 1 << 13  # BPF_F_LINK, linux/bpf.h
EXPECTED_RATES = b"expected_rates"  # in coupled.h
STRUCT_OPS = 44  # BPF_STRUCT_OPS among the attach types


class Laws:
    """Load congestion control laws into the kernel, and keep them registered until `close`."""

    def __init__(self, expected: Path | None = None) -> None:
        """Choose whether the laws limit windows to expected rates.

        They do if `expected` is not None. `expected` is then the path in a bpf file system where
        the map with the expected rate of each subflow is pinned.
        """
        self._links: dict[str, int] = {}
        self._expected = expected

    def load(self, *wanted: str) -> None:
        """Load each congestion control in `wanted` that is a law and is not loaded yet.

        The others, such as the kernel's own cubic, need no loading. Raises `MachineLacks` if this
        kernel cannot run laws, `RequestError` if a user's C file does not compile, `LabError` if
        the kernel refuses a program.
        """
        by_window = self._expected is not None
        missing = set(wanted) - set(self._links)
        for law, program in build.require(missing, by_window=by_window).items():
            name = kernel_name(law, by_window)
            doing = f"load {name} ({law_sources(by_window)[law]})"
            self._links[law] = _register(name, program, doing, self._expected)

    def close(self) -> None:
        """Remove all loaded laws; a connection that uses a law keeps it until its end."""
        for link in self._links.values():
            os.close(link)
        self._links.clear()


def _register(name: str, program: Path, doing: str, expected: Path | None) -> int:
    """Load a compiled program, register its law, and return the file descriptor of the BPF link.

    `name` is the kernel's name of the law, which is registered while the descriptor is open. If
    `expected` is not None, the map of expected rates is pinned at this path. If a map is pinned
    there already, the program uses that one.
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
