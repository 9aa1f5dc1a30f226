"""Congestion controls that are modules of the kernel. A kernel may lack them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from lab.engines.mininet.machine import shell
from lab.errors import MachineLacks

MODULES = {"bbr": "tcp_bbr", "dctcp": "tcp_dctcp"}
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")  # loaded or built in
INDEXES = ("modules.dep", "modules.builtin")


def lacking(names: Collection[str]) -> list[str]:
    """Return the modules for the congestion controls in `names` that the running kernel lacks."""
    known = AVAILABLE.read_text().split() if AVAILABLE.exists() else []
    return [
        module
        for name, module in MODULES.items()
        if name in names
        and name not in known
        and not shell.succeeds(["modprobe", "--dry-run", "--quiet", module])
    ]


def lacking_in(folder: Path, names: Collection[str]) -> list[str]:
    """Return the modules for the congestion controls in `names` that another kernel lacks.

    `folder` is where the modules of this kernel are, with their indexes.
    """
    indexes = [folder / name for name in INDEXES]
    text = "\n".join(each.read_text() for each in indexes if each.exists())
    wanted = [module for name, module in MODULES.items() if name in names]
    return [module for module in wanted if f"/{module}.ko" not in text]


def check(lacked: list[str], where: str) -> None:
    """Raise `MachineLacks` if the kernel `where` lacks modules."""
    if lacked:
        ccs = [name for name, module in MODULES.items() if module in lacked]
        raise MachineLacks(
            f"use cc {', '.join(ccs)}: {where} lacks the module {', '.join(lacked)}. "
            "Choose another cc, or --engine sim"
        )


def load(names: Collection[str]) -> None:
    """Load the modules for the congestion controls in `names`. Needs root.

    Raises `MachineLacks` if the running kernel lacks one of them.
    """
    check(lacking(names), "this kernel")
    for name, module in MODULES.items():
        if name in names:
            shell.run(["modprobe", module], f"load the congestion control {name}")
