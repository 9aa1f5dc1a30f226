"""The engines (emulation and simulator), and what each engine can run.

The table is plain data, so importing this module does not import the engines. The class of an
engine is imported by `lab.engines.registry`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lab import extensions, user_file
from lab.congestion import BUILT_IN
from lab.errors import MachineLacks, RequestError, unknown

# Stacks: the two implementations of Multipath TCP that the simulator can model
#
# - `linux`: upstream Linux 6.12 (net/mptcp/protocol.c): its packet scheduler; a subflow may hold
#   up to 64 kB of data that it cannot send yet. No penalisation.
# - `paper`: the multipath-tcp.org kernel of the papers, v0.86 to v0.95 (2013 to 2019, Linux 3.5 to
#   4.19): the lowest round-trip time first (mptcp_sched.c); while the receive window is full,
#   opportunistic retransmission (mptcp_rcv_buf_optimization) and penalisation (Raiciu et al., NSDI
#   2012, sections 4.2 and 4.3).
#
# Both have the same initial window of 10 segments (TCP_INIT_CWND since Linux 2.6.39, RFC 6928),
# the same minimum RTO of 200 ms above the smoothed RTT (TCP_RTO_MIN), and the same maximum of the
# automatic buffers (tcp_rmem and tcp_wmem: 6 and 4 MB). A stack therefore does not set these; the
# receive buffer is `receive_buffer_kb`. The multipath-tcp.org kernel puts 1428 bytes of
# data into a frame, upstream Linux 1420; the simulator always uses 1420.


@dataclass(frozen=True)
class Stack:
    """The settings that distinguish two implementations (stacks) of Multipath TCP.

    The fields are keys of `multipath` in a scenario file.
    """

    scheduler: str
    penalisation: bool

    def added_to(self, name: str, multipath: Any) -> Any:
        """Return the part `multipath` of a scenario file with the settings of this stack added.

        `name` is the name of the stack. Raise `ValueError` if the file has a different value for
        one of these settings.
        """
        settings = asdict(self)
        for key, value in settings.items():
            if multipath.get(key, value) != value:
                shown = str(value).lower()
                raise ValueError(f"stack '{name}' has {key} {shown}: leave out {key} or stack")
        return {**multipath, **settings}


STACKS = {"paper": Stack("lowest_rtt", True), "linux": Stack("linux", False)}


def named(scheduler: str, penalisation: bool) -> str | None:
    """Return the name of the Multipath TCP implementation (stack) with these settings, or None."""
    found = Stack(scheduler, penalisation)
    return next((name for name, stack in STACKS.items() if stack == found), None)


def with_stack(name: str, multipath: Any) -> Any:
    """Return the part `multipath` of a scenario file with `stack` set to `name`.

    Settings in the file that the stack determines are removed.
    """
    kept = multipath if isinstance(multipath, dict) else {}
    own = Stack.__dataclass_fields__
    return {**{key: value for key, value in kept.items() if key not in own}, "stack": name}


@dataclass(frozen=True)
class Entry:
    """An engine (the emulation or the simulator), and what it can run.

    - `path`: the import path of its class
    - `real_time`: the engine follows the wall clock, so its runs cannot be paused or sped up
    - `cc`: the built-in congestion controls that it can run
    - `law_suffix`: the file name suffix of users' own congestion controls for it
    - `variants`: the allowed values of the scenario's keys `balia_decrease` and `olia_metric`
    - `stacks`: the allowed values of the key `stack`; scenarios without it run on every engine
    - `schedulers`, `penalisation`: the allowed values of these keys
    - `lacks`: for each key, the reason why no other value is allowed
    """

    path: str
    cc: tuple[str, ...]
    schedulers: tuple[str, ...]
    lacks: Mapping[str, str]
    real_time: bool = True
    variants: tuple[str, ...] = ("kernel",)
    penalisation: tuple[bool, ...] = (False,)
    law_suffix: str = user_file.C
    stacks: tuple[str, ...] = ("linux",)


KERNEL_LACKS = {
    "cc": "it is neither in the kernel nor among the laws the lab loads into it",
    "scheduler": "the kernel has one packet scheduler",
    "balia_decrease": "eBPF has BALIA as the multipath-tcp.org kernel has it",
    "olia_metric": "eBPF has OLIA as the multipath-tcp.org kernel has it",
    "penalisation": "upstream Linux does not do it",
}
VARIANTS = ("balia_decrease", "olia_metric")
ENGINES: dict[str, Entry] = {
    "sim": Entry(
        "lab.engines.sim.engine:SimEngine",
        tuple(BUILT_IN),
        ("lowest_rtt", "linux", "round_robin", "redundant"),
        {},
        real_time=False,
        variants=("kernel", "draft"),
        penalisation=(False, True),
        law_suffix=user_file.PYTHON,
        stacks=tuple(STACKS),
    ),
    "mininet": Entry(
        "lab.engines.mininet.engine:MininetEngine",
        tuple(BUILT_IN),
        ("linux", "lowest_rtt"),  # both names mean the kernel's scheduler
        KERNEL_LACKS,
    ),
}


def entry(name: str) -> Entry:
    """Return the entry of the engine `name`.

    Raise `RequestError`, which lists the known engines, if there is no such engine.
    """
    if name not in ENGINES:
        raise RequestError(f"engine {unknown(name, sorted(ENGINES))}")
    return ENGINES[name]


def congestion_controls(name: str) -> tuple[str, ...]:
    """Return the congestion controls that the engine `name` can run.

    They are the built-in ones, and those for which a user registered a file for this engine.
    """
    engine = entry(name)
    return (*engine.cc, *extensions.law_names(engine.law_suffix))


def refuse(name: str, setting: str, value: Any) -> None:
    """Raise an error if the engine `name` cannot run a scenario with this value of a setting.

    `setting` is a key of `multipath` in the scenario file. Raise `RequestError` for the key
    `stack`, and for a user's congestion control without a file for this engine. Raise
    `MachineLacks` in all other cases.
    """
    engine = entry(name)
    if setting == "cc" and (missing := extensions.missing_half(value, engine.law_suffix)):
        raise RequestError(
            f"cc '{value}' on engine '{name}': {missing} is missing. Write it (docs/extend.md), or "
            "choose another engine"
        )
    if setting == "stack":
        if value not in (None, *engine.stacks):
            raise RequestError(
                f"stack '{value}' on engine '{name}': the emulation has the Multipath TCP of its "
                "kernel. Choose --stack linux, or --engine sim"
            )
        return
    able: tuple[Any, ...] = {
        "cc": congestion_controls(name),
        "scheduler": engine.schedulers,
        "penalisation": engine.penalisation,
    }.get(setting, engine.variants)
    if value not in able:
        requested, *known = (
            str(each).lower() if isinstance(each, bool) else each for each in (value, *able)
        )
        raise MachineLacks(
            f"{setting} '{requested}' on engine '{name}': {engine.lacks[setting]}. "
            f"Choose from: {', '.join(known)}"
        )
