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

from collections.abc import Mapping
from typing import Any

STACKS: Mapping[str, Mapping[str, Any]] = {
    "paper": {"scheduler": "lowest_rtt", "penalisation": True},
    "linux": {"scheduler": "linux", "penalisation": False},
}


def with_settings_of(stack: Any, multipath: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `multipath`, the part of a scenario file, with the settings of the stack `stack`.

    Raise `ValueError` if `multipath` has another value of such a setting. An unknown stack adds
    nothing: the schema refuses it.
    """
    settings = STACKS.get(stack, {})
    for key, value in settings.items():
        if multipath.get(key, value) != value:
            shown = str(value).lower()
            raise ValueError(f"stack '{stack}' has {key} {shown}: leave out {key} or stack")
    return {**multipath, **settings}


def named(multipath: Mapping[str, Any]) -> str | None:
    """Return the name of the stack that has these settings, or None for another combination."""
    for name, settings in STACKS.items():
        if all(multipath[key] == value for key, value in settings.items()):
            return name
    return None


def chosen(stack: str, multipath: Any) -> Mapping[str, Any]:
    """Return `multipath`, the part of a scenario file, with another stack. The file's own values of
    settings that belong to a stack are dropped."""
    kept = multipath if isinstance(multipath, dict) else {}
    settings = {key for each in STACKS.values() for key in each}
    return {**{key: value for key, value in kept.items() if key not in settings}, "stack": stack}
