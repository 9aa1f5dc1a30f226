"""Call the functions of a subflow's congestion control law.

`LAWS` is the only table of laws. A law is a module with some of the functions below. They change
the congestion window CWND of subflow `f` in the tables `w` (see `layout`):

    on_ack(w, f, acked, now_ns)        let the window grow. `acked` more segments were acknowledged,
                                       the sender is neither in fast recovery nor in slow start,
                                       and it had used the whole window
    on_loss(w, f, now_ns)              set SSTHRESH, and CWND to SSTHRESH. Called at a loss event,
                                       at most once per window (default: Reno's)
    on_round(w, f, rtt_ns, samples)    end a round trip. Called outside of loss recovery, if the
                                       window was fully used; `rtt_ns` is the mean of `samples` RTT
                                       samples (default: S-MPTCP's flow control, `expected_rate`)
    in_slow_start(w, f, now_ns)        set SSTHRESH to CWND if slow start has to end. Called for
                                       each acknowledgement that may let the window grow

A law keeps its own state in the fields LAW_1 to LAW_6 of the subflow in the floating-point table.
It finds all subflows of the connection with `laws.siblings`.

The functions of this module with the names above call the law of the subflow. Their source is
generated from `LAWS`, with one branch for each law: the compiler cannot call a function that it
gets from a table, but it sees the direct calls in these branches, which cost nothing.
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
    """Return the position of law `name` in `LAWS`, which a subflow's field LAW holds."""
    return list(LAWS).index(name)


def register(name: str, law: ModuleType) -> None:
    """Add module `law` to `LAWS`, in place of a law with the same name, and define the functions of
    `HOOKS` anew."""
    LAWS[name] = law
    define()


def source() -> str:
    """Return Python source that defines each function named in `HOOKS`. It calls the function of
    the same name of the law of subflow `f`, or the default in `HOOKS` if the law has none."""
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
    """Define the functions named in `HOOKS` in this module, for the laws that are in `LAWS` now.

    Tracebacks show `filename` as their source file. To let the compiler cache the functions, write
    the result of `source()` into this file first. With the default, they are not cached.
    """
    module = globals()
    MARKED.difference_update(module[hook] for hook in HOOKS if hook in module)
    module.update({f"law_{n}": law for n, law in enumerate(LAWS.values())}, at=at, jit=jit)
    exec(compile(source(), filename, "exec"), module)  # noqa: S102 - code of the lab or of the user who starts it


define()
