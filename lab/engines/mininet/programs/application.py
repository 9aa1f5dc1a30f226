"""Decide how much data an application with a limited rate writes, and when.

Both engines have this rule (lab/engines/sim/core/mptcp.py, `on_application`):

1) The application has a turn every 20 ms. In each turn, it may write as much data as its rate gives
   for the time since the last turn: the data that is due. The turns are at fixed times, so a late
   turn makes up for the delay, up to one second.
2) Data that TCP cannot send does not pile up. After its turn, an application is at most 16 segments
   ahead of TCP, or the data that was due in this turn if that is more. The application skips the
   rest, and never sends it later.

A datagram application has shorter turns, and skips nothing.
"""

from __future__ import annotations

import fcntl
import socket
import struct

TURN_S = 0.02
CATCH_UP_S = 1.0  # the longest delay that is made up for
UNSENT_BYTES = 16 * 1448  # 16 segments of TCP with time stamps
SIOCOUTQNSD = 0x894B  # linux/sockios.h: data written and not sent


class Application:
    """Keep the times of the turns of one application, and the fraction of a byte that is due."""

    def __init__(self, now_s: float, turn_s: float = TURN_S) -> None:
        """Set the first turn to the time `now_s`. In this turn, the data of one whole turn is due.

        `turn_s` is the time between two turns.
        """
        self._period_s, self._due_s = turn_s, now_s
        self._last_s, self._fraction = now_s - turn_s, 0.0

    def due_bytes(self, rate_bps: int, now_s: float) -> int:
        """Return how many bytes are due in the turn that takes place at `now_s`.

        This is the data that `rate_bps` gives for the time since the last turn, or for the last
        `CATCH_UP_S` seconds if that is less. Call this once per turn.
        """
        elapsed_s, self._last_s = min(CATCH_UP_S, now_s - self._last_s), now_s
        exact = self._fraction + rate_bps * elapsed_s / 8
        self._fraction = exact - int(exact)
        return int(exact)

    def restart(self, now_s: float) -> None:
        """Set the time of the last turn to `now_s`, so that no data is due for the time before."""
        self._last_s = now_s

    def wait_s(self, now_s: float) -> float:
        """Advance to the next turn; return the time from `now_s` until this turn, 0 if it is late.

        Call this once per turn.
        """
        self._due_s = max(self._due_s + self._period_s, now_s)
        return self._due_s - now_s


def writable_bytes(due: int, unsent: int) -> int:
    """Return how many of the `due` bytes an application writes in this turn.

    `unsent` is the number of bytes that it has written and TCP has not sent yet. The application
    skips the other bytes that are due (rule 2 at the top of this file).
    """
    return max(0, min(due, max(UNSENT_BYTES, due) - unsent))


def unsent_bytes(connection: socket.socket) -> int:
    """Return how many bytes the application has written that TCP or MPTCP has not sent yet.

    MPTCP has sent a byte when it has given the byte to a subflow. Return 0 if this kernel cannot
    say.
    """
    answer = bytearray(4)
    try:
        fcntl.ioctl(connection.fileno(), SIOCOUTQNSD, answer)
    except OSError:
        return 0
    return int(struct.unpack("@i", answer)[0])
