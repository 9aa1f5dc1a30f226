"""Coupled congestion control on an unmodified kernel: each law is an eBPF program, `bpf_NAME` to the kernel.

law.h               what a law sees, and the arithmetic the laws share; also compiles for user space
lia.c olia.c ...    one law each
coupled.h           a law as a congestion control of the kernel
build.py load.py    compile them for a kernel, load them into it
"""

from __future__ import annotations

from pathlib import Path

LAWS = ("lia", "olia", "balia")
SOURCES = Path(__file__).parent
PREFIX = "bpf_"


def kernel_name(cc: str) -> str:
    """What the kernel calls a congestion control."""
    return PREFIX + cc if cc in LAWS else cc


def our_name(kernel_cc: str) -> str:
    """What scenarios call it."""
    plain = kernel_cc.removeprefix(PREFIX)
    return plain if plain in LAWS else kernel_cc
