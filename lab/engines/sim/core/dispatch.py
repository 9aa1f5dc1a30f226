"""Call the functions of a subflow's congestion control law.

`LAWS` is the only table of laws; each is a module with some of these functions, where `f` is the
subflow:

    on_ack(w, f, acked, now_ns)        let the window grow: `acked` more segments were acknowledged
                                       outside of recovery and slow start, and it was full
    on_loss(w, f, now_ns)              set SSTHRESH, and CWND to it: a loss event, at most one per
                                       window (default: Reno's)
    on_round(w, f, rtt_ns, samples)    a round trip outside of recovery is over, and the window was
                                       full at its end; `rtt_ns` is the mean of its samples
                                       (default: S-MPTCP's flow control)
    in_slow_start(w, f, now_ns)        an acknowledgement has arrived: slow start may have to end

A law keeps its own state in LAW_1 to LAW_6 of the subflow's row of `w.window`, and finds the
connection's other subflows with `laws.siblings`. The functions below have one branch for each law
that has them. Their source is generated from the table, so the compiler sees direct calls: it
cannot call through a table, and a chain of branches costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from lab.engines.sim.core import expected_rate
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import MARKED, jit
from lab.engines.sim.core.laws import balia, cubic, lia, olia, reno, wvegas

LAWS: dict[str, ModuleType] = {
    "reno": reno,
    "cubic": cubic,
    "lia": lia,
    "olia": olia,
    "balia": balia,
    "wvegas": wvegas,
}
BUILT_IN = frozenset(LAWS)
HOOKS: dict[str, tuple[str, ModuleType | None]] = {  # parameters; the module with the default
    "on_ack": ("w, f, acked, now_ns", None),
    "on_loss": ("w, f, now_ns", reno),
    "on_round": ("w, f, rtt_ns, samples", expected_rate),
    "in_slow_start": ("w, f, now_ns", None),
}

on_ack: Callable[[at.World, int, int, int], None]
on_loss: Callable[[at.World, int, int], None]
on_round: Callable[[at.World, int, int, int], None]
in_slow_start: Callable[[at.World, int, int], None]


def number(name: str) -> int:
    """Return the value of a subflow's field LAW for a law."""
    return list(LAWS).index(name)


def register(name: str, law: ModuleType) -> None:
    """Add a law, or replace the one with this name."""
    LAWS[name] = law
    define()


def source() -> str:
    """Return the source of the functions of `HOOKS` for the laws of the table."""
    lines = []
    for hook, (parameters, default) in HOOKS.items():
        lines += ["", "", "@jit", f"def {hook}({parameters}):", "    law = w.row[f + at.LAW]"]
        branch = "if"
        for n, (name, law) in enumerate(LAWS.items()):
            if hasattr(law, hook):
                lines += [
                    f"    {branch} law == {n}:  # {name}",
                    f"        law_{n}.{hook}({parameters})",
                ]
                branch = "elif"
        if default is not None:
            lines += [
                "    else:",
                f"        {default.__name__.split('.')[-1]}.{hook}({parameters})",
            ]
    return "\n".join(lines) + "\n"


def define(filename: str = "<generated calls of congestion control laws>") -> None:
    """Define the functions of `HOOKS`; the compiler's cache needs a `filename` that exists."""
    module = globals()
    MARKED.difference_update(module[hook] for hook in HOOKS if hook in module)
    module.update({f"law_{n}": law for n, law in enumerate(LAWS.values())}, at=at, jit=jit)
    exec(compile(source(), filename, "exec"), module)


define()
