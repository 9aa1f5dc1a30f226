"""Load congestion control laws into the running kernel through libbpf. Needs root.

A law stays registered as long as a file descriptor of this process, the BPF link, is open. When the
process ends, for whatever reason, the kernel unregisters the law; it frees the program when the
last socket that uses the law is closed. So the ledger need not list laws, and nothing needs to be
cleaned up.

1) open the program, and request that its law is registered by a link
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
STRUCT_OPS = 44  # BPF_STRUCT_OPS among the attach types


class Laws:
    """Load congestion control laws into the kernel, and keep them registered until `close`."""

    def __init__(self) -> None:
        self._links: dict[str, int] = {}

    def load(self, *wanted: str) -> None:
        """Load those of these congestion controls that are laws and not loaded yet.

        The others, such as cubic, are part of the kernel. Raises `MachineLacks` if this kernel
        cannot run laws, `RequestError` if a user's C file does not compile, `LabError` if the
        kernel refuses a program.
        """
        for law, program in build.require(set(wanted) - set(self._links)).items():
            doing = f"load {kernel_name(law)} ({law_sources()[law]})"
            self._links[law] = _register(kernel_name(law), program, doing)

    def close(self) -> None:
        """Withdraw the laws from the kernel; a connection keeps its law until it ends."""
        for link in self._links.values():
            os.close(link)
        self._links.clear()


def _register(name: str, program: Path, doing: str) -> int:
    """Load a compiled program, register its law, and return the file descriptor of the link.

    `name` is the kernel's name of the law. The law is registered while the descriptor is open.
    """
    libbpf = Libbpf(doing)
    call = libbpf.call
    opened = call("bpf_object__open_file", os.fsencode(program), None)
    try:
        law = call("bpf_object__find_map_by_name", opened, name.encode())
        call("bpf_map__set_map_flags", law, BY_LINK)  # 1
        call("bpf_object__load", opened)  # 2
        link: int = call("bpf_link__fd", call("bpf_map__attach_struct_ops", law))  # 3
        if link == call("bpf_map__fd", law):  # no link was made
            link = call("bpf_link_create", link, 0, STRUCT_OPS, None)
        return link
    finally:
        call("bpf_object__close", opened)  # 4
        libbpf.close()
