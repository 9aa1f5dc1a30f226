"""Call the functions of a subflow's congestion control.

`LAWS` lists all congestion controls. Each one is a module with some of the functions below. The
functions change the congestion window `s.cwnd` of subflow `s` (see `state.Subflow`):

    on_ack(s, acked, now_ns)        let the window grow. `acked` more segments were acknowledged,
                                    the sender is neither in fast recovery nor in slow start, and
                                    it had used the whole window
    on_loss(s, now_ns)              set `s.ssthresh`, and `s.cwnd` to it. Called at a loss event, at
                                    most once per window (default: Reno's)
    on_round(s, rtt_ns, samples)    end a round trip. Called outside of loss recovery, if the
                                    window was fully used; `rtt_ns` is the mean of `samples` RTT
                                    samples (default: S-MPTCP's flow control, `expected_rate`)
    begin(s, now_ns)                called when the law takes over the subflow
    in_slow_start(s, now_ns)        set `s.ssthresh` to `s.cwnd` if slow start has to end. Called
                                    for each acknowledgement that may let the window grow

A congestion control that sets `s.is_rate_based` in `begin` (BBR) sets window and `s.pacing_rate`
itself. Of the functions above, only `begin` and `on_loss` are called, and these:

    on_sample(s, now_ns)            called for each acknowledgement, with a sample of the delivery
                                    rate in `s.delivery`
    on_restart(s, now_ns)           called when nothing is in flight and a new segment is to be sent
    on_timeout(s)                   called at each timeout
    on_undo(s)                      called when a recovery or a timeout is undone

A congestion control keeps its own state in `s.law` (see `state.LawState`). The subflows of its
connection `c = s.connection` are `c.subflows[0]` to `c.subflows[c.count - 1]`.

This module has functions with the names above. Each calls the function of the same name in the
congestion control of the subflow. Their source is generated from `LAWS`, with one branch for each
congestion control. The compiler could not call a function from a table, but it can call the
functions named in these branches, without any cost.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from lab.engines.sim.core import expected_rate
from lab.engines.sim.core.jit import MARKED, jit
from lab.engines.sim.core.laws import balia, bbr, cubic, dctcp, lia, olia, reno, wvegas
from lab.engines.sim.core.state import Subflow

LAWS: dict[str, ModuleType] = {
    "reno": reno,
    "cubic": cubic,
    "bbr": bbr,
    "dctcp": dctcp,
    "lia": lia,
    "olia": olia,
    "balia": balia,
    "wvegas": wvegas,
}
BUILT_IN = frozenset(LAWS)
HOOKS: dict[str, tuple[str, ModuleType | None]] = {  # parameters; the module with the default
    "on_ack": ("s, acked, now_ns", None),
    "on_loss": ("s, now_ns", reno),
    "on_round": ("s, rtt_ns, samples", expected_rate),
    "in_slow_start": ("s, now_ns", None),
    "begin": ("s, now_ns", None),
    "on_sample": ("s, now_ns", None),
    "on_restart": ("s, now_ns", None),
    "on_timeout": ("s", None),
    "on_undo": ("s", None),
}

on_ack: Callable[[Subflow, int, int], None]
on_loss: Callable[[Subflow, int], None]
on_round: Callable[[Subflow, int, int], None]
in_slow_start: Callable[[Subflow, int], None]
begin: Callable[[Subflow, int], None]
on_sample: Callable[[Subflow, int], None]
on_restart: Callable[[Subflow, int], None]
on_timeout: Callable[[Subflow], None]
on_undo: Callable[[Subflow], None]


def number(name: str) -> int:
    """Return the position of a congestion control in `LAWS`. The field
    `law_number` of a subflow holds it."""
    return list(LAWS).index(name)


def register(name: str, law: ModuleType) -> None:
    """Make the module `law` the congestion control `name`; it replaces an older one of this name.
    The functions named in `HOOKS` are then made again, with a branch for it."""
    LAWS[name] = law
    define()


def source() -> str:
    """Return Python source that defines each function named in `HOOKS`. Each calls the function of
    the same name in the congestion control of subflow `s`. If the congestion control has no such
    function, the default in `HOOKS` is called."""
    lines = []
    for hook, (parameters, default) in HOOKS.items():
        lines += ["", "", "@jit", f"def {hook}({parameters}):", "    law = s.law_number"]
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
    """Define the functions named in `HOOKS` in this module, for the congestion controls that are in
    `LAWS` now.

    Tracebacks show `filename` as the source file of the functions. The compiler can cache them only
    if the result of `source()` was written to this file before.
    """
    module = globals()
    MARKED.difference_update(module[hook] for hook in HOOKS if hook in module)
    module.update({f"law_{n}": law for n, law in enumerate(LAWS.values())}, jit=jit)
    exec(compile(source(), filename, "exec"), module)  # noqa: S102 - code of the lab or of the user who starts it


define()
