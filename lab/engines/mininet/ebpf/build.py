"""Compile laws for a kernel from the types that the kernel publishes (BTF).

Needs clang and bpftool, and no root.

1) bpftool writes the types as C declarations, vmlinux.h   2) clang compiles the law against them
3) CACHE/bpf/LAW-DIGEST.o keeps the result. The digest covers the law's source, the headers of this
   folder and the kernel's types, so a cached program is never stale.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

from lab.engines.mininet.ebpf import LAWS, SOURCES, kernel_name, law_sources
from lab.engines.mininet.machine import shell, upstreams
from lab.errors import CommandFailed, LabError, MachineLacks, RequestError

RUNNING = Path("/sys/kernel/btf/vmlinux")
NEEDED = {  # names among a kernel's types: the feature each stands for
    "mptcp_subflow_context": "Multipath TCP",
    "bpf_struct_ops_tcp_congestion_ops": "congestion control as eBPF",
    "bpf_struct_ops_link": "eBPF programs that end with the process that holds them",
    "bpf_rdonly_cast": "eBPF that reads the kernel's types",
}


def lacking(types: Path = RUNNING) -> list[str]:
    """List what the kernel with these types lacks for eBPF laws; everything if it has no types."""
    try:
        published = types.read_bytes()
    except OSError:
        return ["published types (BTF)"]
    return [why for name, why in NEEDED.items() if b"\0" + name.encode() + b"\0" not in published]


def require(wanted: Iterable[str], types: Path = RUNNING) -> dict[str, Path]:
    """Return the compiled program of each law among `wanted`.

    Congestion controls that the kernel has itself need no program. Raises `MachineLacks` if the
    kernel cannot run laws or the compiler is missing, `RequestError` if the C file of a user does
    not compile.
    """
    named = set(wanted)
    laws = [law for law in law_sources() if law in named]
    missing = lacking(types) if laws else []
    if missing:
        raise MachineLacks(
            f"run {', '.join(laws)}: the kernel with the types {types} lacks {', '.join(missing)}. "
            "Try: ./run_lab.sh setup-emulation, and then the same command with --vm"
        )
    return {law: program(law, types) for law in laws}


def program(law: str, types: Path = RUNNING) -> Path:
    """Return a law's program for the kernel with these types; compile it if it is not cached."""
    path = law_sources()[law]
    try:
        source = path.read_bytes()
        target = upstreams.cache() / "bpf" / f"{law}-{_digest(source, types)}.o"
        if not target.exists():
            _compile(law, source, types, target)
    except (CommandFailed, OSError) as problem:
        raise _not_compiled(law, problem) from problem
    return target


def _not_compiled(law: str, problem: CommandFailed | OSError) -> LabError:
    """Return the error for a law: an error of clang in a user's file is a wrong request."""
    if law in LAWS or isinstance(problem, OSError) or problem.argv[0] != "clang":
        return MachineLacks(
            f"compile {kernel_name(law)}: {problem}. Try: ./run_lab.sh setup-emulation"
        )
    return RequestError(f"compile {law_sources()[law]}:\n{problem.stderr}")


def _digest(source: bytes, types: Path) -> str:
    digest = hashlib.sha256(types.read_bytes())
    for header in sorted(SOURCES.glob("*.h")):
        digest.update(header.read_bytes())
    digest.update(source)
    return digest.hexdigest()[:16]


def _compile(law: str, source: bytes, types: Path, target: Path) -> None:
    """Compile a copy of the source; clang reports errors with the path of the original."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="types-", dir=target.parent) as folder:
        declarations = shell.run(
            ["bpftool", "btf", "dump", "file", str(types), "format", "c"], "read the kernel's types"
        )
        Path(folder, "vmlinux.h").write_text(declarations)  # 1
        copy, draft = Path(folder, f"{law}.c"), Path(folder, target.name)
        copy.write_bytes(f"#line 1 {json.dumps(str(law_sources()[law]))}\n".encode() + source)
        options = ["-O2", "-g", "-target", "bpf", f"-I{folder}", f"-I{SOURCES}"]
        argv = ["clang", *options, "-c", str(copy), "-o", str(draft)]
        shell.run(argv, f"compile {kernel_name(law)}")  # 2
        _check_registration(law, draft.read_bytes())
        draft.rename(target)  # 3


def _check_registration(law: str, program: bytes) -> None:
    """Refuse a program without the map that registers the law: libbpf finds it by this name."""
    name = kernel_name(law)
    if law not in LAWS and b"\0" + name.encode() + b"\0" not in program:
        raise RequestError(
            f"compile {law_sources()[law]}: it does not register '{name}'. "
            f"End the file with CONGESTION_CONTROL({name});"
        )
