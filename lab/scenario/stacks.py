"""Define the two implementations of Multipath TCP that the simulator can take after.

- `linux`: upstream Linux 6.12 (net/mptcp/protocol.c): its packet scheduler; a subflow may hold up
  to 64 kB of data that it cannot send yet. No penalisation.
- `paper`: the multipath-tcp.org kernel of the papers, v0.86 to v0.95 (2013 to 2019, Linux 3.5 to
  4.19): the lowest round-trip time first (mptcp_sched.c); while the receive window is full,
  opportunistic retransmission and penalisation (mptcp_rcv_buf_optimization; Raiciu et al., NSDI
  2012, sections 4.2 and 4.3).

Both have the same initial window of 10 segments (TCP_INIT_CWND since Linux 2.6.39, RFC 6928), the
same least RTO of 200 ms above the smoothed round-trip time (TCP_RTO_MIN), and the same bound of the
automatic buffers (tcp_rmem and tcp_wmem: 6 and 4 MB). These are therefore no part of a stack; the
receive buffer is `receive_buffer_kb`. The multipath-tcp.org kernel puts 1428 bytes of data into a
frame, upstream Linux 1420; the simulator always uses 1420.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Stack:
    """Hold the settings of a stack. The fields have the names of keys of `multipath`."""

    scheduler: str
    penalisation: bool

    def added_to(self, name: str, multipath: Any) -> Any:
        """Return `multipath`, the part of a scenario file, with the settings of this stack.

        `name` is the name of the stack. Raise `ValueError` if `multipath` has another value of a
        setting.
        """
        settings = asdict(self)
        for key, value in settings.items():
            if multipath.get(key, value) != value:
                shown = str(value).lower()
                raise ValueError(f"stack '{name}' has {key} {shown}: leave out {key} or stack")
        return {**multipath, **settings}


STACKS = {"paper": Stack("lowest_rtt", True), "linux": Stack("linux", False)}


def named(scheduler: str, penalisation: bool) -> str | None:
    """Return the name of the stack that has these settings, or None for another combination."""
    found = Stack(scheduler, penalisation)
    return next((name for name, stack in STACKS.items() if stack == found), None)


def with_stack(name: str, multipath: Any) -> Any:
    """Return `multipath`, the part of a scenario file, with another stack. The file's own values of
    settings that belong to a stack are dropped."""
    kept = multipath if isinstance(multipath, dict) else {}
    own = Stack.__dataclass_fields__
    return {**{key: value for key, value in kept.items() if key not in own}, "stack": name}
