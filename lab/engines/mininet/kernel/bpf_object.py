"""Compile eBPF programs from C, and cache each result under a digest of its source."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from lab.engines.mininet.machine import shell, upstreams


def compiled(source: Path, description: str) -> Path:
    """Return the path of the eBPF object file of the C file `source`; compile it if not cached.

    `description` names the program in error messages.
    """
    name = source.name.partition(".")[0]
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    target = upstreams.cache() / "bpf" / f"{name}-{digest}.o"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_suffix(f".{os.getpid()}")
        options = ["-O2", "-g", "-target", "bpf", *_include()]
        argv = ["clang", *options, "-c", str(source), "-o", str(draft)]
        shell.run(argv, f"compile {description}")
        draft.rename(target)
    return target


def _include() -> list[str]:
    """Return the compiler options with which clang's bpf target finds Debian's asm/types.h."""
    return [
        f"-I{folder}"
        for folder in Path("/usr/include").glob("*-linux-gnu")
        if (folder / "asm/types.h").exists()
    ]
