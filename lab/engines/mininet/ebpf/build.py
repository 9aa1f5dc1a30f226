"""Compile congestion controls ("laws") to eBPF, for a kernel that publishes its C types (BTF).

This needs the programs clang and bpftool, but not root.

1) bpftool writes the types of the kernel as C declarations into the file vmlinux.h.
2) clang compiles the law against these types.
3) The result is kept as CACHE/bpf/LAW-DIGEST.o. The digest covers the source of the law, the
   headers of this folder, the compiler options and the types. So the law is compiled again if one
   of them changes.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

from lab.engines.mininet import ebpf
from lab.engines.mininet.ebpf import IN_KERNEL, LAWS, PREFIX, SOURCES, law_sources
from lab.engines.mininet.machine import shell, upstreams
from lab.errors import CommandFailed, LabError, MachineLacks, RequestError

RUNNING = Path("/sys/kernel/btf/vmlinux")
BY_WINDOW = "-DEXPECTED_BY_WINDOW"
NEEDED = {  # a name among the kernel's types, and the feature that it shows
    "mptcp_subflow_context": "Multipath TCP",
    "bpf_struct_ops_tcp_congestion_ops": "congestion control as eBPF",
    "bpf_struct_ops_link": "eBPF programs that end with the process that holds them",
    "bpf_rdonly_cast": "eBPF that reads the kernel's types",
}


def lacking(types: Path = RUNNING) -> list[str]:
    """Return the features that a kernel lacks for congestion control in eBPF; [] if none.

    `types` is the file with the C types (BTF) of the kernel. If the file cannot be read, the only
    entry of the result is "published types (BTF)".
    """
    try:
        published = types.read_bytes()
    except OSError:
        return ["published types (BTF)"]
    return [why for name, why in NEEDED.items() if b"\0" + name.encode() + b"\0" not in published]


def require(
    wanted: Iterable[str], types: Path = RUNNING, by_window: bool = False
) -> dict[str, Path]:
    """Compile the congestion controls in `wanted`; return the paths of the eBPF programs, by name.

    `types` is the file with the C types (BTF) of the kernel that will run the programs. With
    `by_window`, each program limits the congestion window so that a subflow does not exceed the
    rate set by the controller (expected.h). Names that are not in `law_sources(by_window)` are left
    out: the kernel has these congestion controls itself.

    Raises `MachineLacks` if the kernel cannot run the programs or the compiler is missing, and
    `RequestError` if a user's C file does not compile.
    """
    named = set(wanted)
    laws = [law for law in law_sources(by_window) if law in named]
    missing = lacking(types) if laws else []
    if missing:
        raise MachineLacks(
            f"run {', '.join(laws)}: the kernel with the types {types} lacks {', '.join(missing)}. "
            "Try: ./run_lab.sh setup-emulation, and then the same command with --vm"
        )
    return {law: program(law, types, by_window) for law in laws}


def program(law: str, types: Path = RUNNING, by_window: bool = False) -> Path:
    """Return the path of the eBPF program of a congestion control.

    The C file is compiled if the program is not in the cache. `types` is the file with the C types
    (BTF) of the kernel that will run the program. With `by_window`, the program also limits the
    congestion window of a subflow to the rate that the controller has set for the subflow
    (expected.h). Raises the errors of `require`.
    """
    path = law_sources(by_window)[law]
    options = [BY_WINDOW] if by_window else []
    try:
        source = ebpf.source(law, by_window)
        digest = _digest(source + "".join(options).encode(), types)
        target = upstreams.cache() / "bpf" / f"{law}-{digest}.o"
        if not target.exists():
            _compile(law, path, source, options, types, target)
    except (CommandFailed, OSError) as problem:
        raise _not_compiled(law, problem) from problem
    return target


def _not_compiled(law: str, problem: CommandFailed | OSError) -> LabError:
    """Return the error to raise because compiling the congestion control `law` has failed.

    It is a `RequestError` if clang rejects a user's C file, otherwise a `MachineLacks`.
    """
    if law in (*LAWS, *IN_KERNEL) or isinstance(problem, OSError) or problem.argv[0] != "clang":
        return MachineLacks(f"compile {PREFIX}{law}: {problem}. Try: ./run_lab.sh setup-emulation")
    return RequestError(f"compile {law_sources()[law]}:\n{problem.stderr}")


def _digest(source: bytes, types: Path) -> str:
    digest = hashlib.sha256(types.read_bytes())
    for header in sorted(SOURCES.glob("*.h")):
        digest.update(header.read_bytes())
    digest.update(source)
    return digest.hexdigest()[:16]


def _compile(
    law: str, path: Path, source: bytes, defined: list[str], types: Path, target: Path
) -> None:
    """Compile `source`, the C code of the congestion control `law`, into the object file `target`.

    `path` is the C file that clang's error messages name. `defined` are further options of clang.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="types-", dir=target.parent) as folder:
        declarations = shell.run(
            ["bpftool", "btf", "dump", "file", str(types), "format", "c"], "read the kernel's types"
        )
        Path(folder, "vmlinux.h").write_text(declarations)  # 1
        copy, draft = Path(folder, f"{law}.c"), Path(folder, target.name)
        copy.write_bytes(f"#line 1 {json.dumps(str(path))}\n".encode() + source)
        options = ["-O2", "-g", "-target", "bpf", f"-I{folder}", f"-I{SOURCES}", *defined]
        argv = ["clang", *options, "-c", str(copy), "-o", str(draft)]
        shell.run(argv, f"compile {PREFIX}{law}")  # 2
        _check_registration(law, draft.read_bytes())
        draft.rename(target)  # 3


def _check_registration(law: str, program: bytes) -> None:
    """Raise `RequestError` if a user's compiled file does not register the congestion control.

    CONGESTION_CONTROL(bpf_NAME) defines a map called bpf_NAME, for which libbpf looks. So the
    object file must contain this name.
    """
    name = PREFIX + law
    if law not in LAWS and b"\0" + name.encode() + b"\0" not in program:
        raise RequestError(
            f"compile {law_sources()[law]}: it does not register '{name}'. "
            f"End the file with CONGESTION_CONTROL({name});"
        )
