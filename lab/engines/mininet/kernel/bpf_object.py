"""eBPF programs from C: compiled once, kept by the digest of their source."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from lab.engines.mininet.machine import shell, upstreams


def compiled(source: Path, what: str) -> Path:
    """The object of a source file, from the cache if this very source was compiled before."""
    name = source.name.partition(".")[0]
    target = (
        upstreams.cache()
        / "bpf"
        / f"{name}-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}.o"
    )
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_suffix(f".{os.getpid()}")
        shell.run(
            [
                "clang",
                "-O2",
                "-g",
                "-target",
                "bpf",
                *_include(),
                "-c",
                str(source),
                "-o",
                str(draft),
            ],
            f"compile {what}",
        )
        draft.rename(target)
    return target


def _include() -> list[str]:
    """Debian keeps asm/types.h under the machine's triplet, which clang's bpf target does not search."""
    return [
        f"-I{folder}"
        for folder in Path("/usr/include").glob("*-linux-gnu")
        if (folder / "asm/types.h").exists()
    ]
