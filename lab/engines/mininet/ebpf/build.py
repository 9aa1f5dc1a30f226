"""Compile the laws for a kernel, from the types the kernel publishes (BTF). Needs clang and bpftool, and no root.

1) the types become C declarations, vmlinux.h   2) clang compiles a law against them
3) CACHE/bpf/LAW-DIGEST.o keeps it: the digest is over the laws' sources and the kernel's types, so nothing goes stale
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable
from pathlib import Path

from lab.engines.mininet.ebpf import LAWS, SOURCES, kernel_name
from lab.engines.mininet.machine import shell, upstreams
from lab.errors import CommandFailed, MachineLacks

RUNNING = Path("/sys/kernel/btf/vmlinux")
NEEDED = {  # names among a kernel's types: what they are for
    "mptcp_subflow_context": "Multipath TCP",
    "bpf_struct_ops_tcp_congestion_ops": "congestion control as eBPF",
    "bpf_struct_ops_link": "eBPF that ends with its holder",
    "bpf_rdonly_cast": "eBPF that reads the kernel's types",
}


def lacking(types: Path = RUNNING) -> list[str]:
    """What the kernel with these types lacks for coupled laws; all of it if it publishes none."""
    try:
        published = types.read_bytes()
    except OSError:
        return ["published types (BTF)"]
    return [why for name, why in NEEDED.items() if b"\0" + name.encode() + b"\0" not in published]


def require(wanted: Iterable[str], types: Path = RUNNING) -> dict[str, Path]:
    """The compiled program of each law among `wanted`; congestion controls the kernel has itself need none.

    Raises `MachineLacks` if the kernel cannot run them, or they cannot be compiled.
    """
    laws = [cc for cc in LAWS if cc in set(wanted)]
    missing = lacking(types) if laws else []
    if missing:
        raise MachineLacks(
            f"run {', '.join(laws)}: the kernel with the types {types} lacks {', '.join(missing)}. "
            "Try: ./run_lab.sh setup-emulation, and then the same command with --vm"
        )
    return {law: program(law, types) for law in laws}


def program(law: str, types: Path = RUNNING) -> Path:
    """A law compiled for the kernel with these types, from the cache if it was compiled before."""
    target = upstreams.cache() / "bpf" / f"{law}-{_digest(types)}.o"
    if not target.exists():
        try:
            _compile(law, types, target)
        except (CommandFailed, OSError) as problem:
            raise MachineLacks(
                f"compile {kernel_name(law)}: {problem}. Try: ./run_lab.sh setup-emulation"
            ) from problem
    return target


def _digest(types: Path) -> str:
    digest = hashlib.sha256(types.read_bytes())
    for source in sorted(SOURCES.glob("*.[ch]")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _compile(law: str, types: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="types-", dir=target.parent) as folder:
        declarations = shell.run(
            ["bpftool", "btf", "dump", "file", str(types), "format", "c"], "read the kernel's types"
        )
        Path(folder, "vmlinux.h").write_text(declarations)  # 1
        draft = Path(folder, target.name)
        argv = [
            "clang",
            "-O2",
            "-g",
            "-target",
            "bpf",
            f"-I{folder}",
            "-c",
            str(SOURCES / f"{law}.c"),
            "-o",
            str(draft),
        ]
        shell.run(argv, f"compile {kernel_name(law)}")  # 2
        draft.rename(target)  # 3
