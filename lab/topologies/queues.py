"""Which packets the queue in front of a link drops. Programs of the hosts import this module, so it
needs no other package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["fifo", "codel", "fq_codel"]


@dataclass(frozen=True)
class Discipline:
    """Which packets a queue drops. `target_ms` and `interval_ms` are CoDel's (RFC 8289). If
    `is_marking` is True, it marks packets of senders with ECN instead (RFC 3168)."""

    kind: Kind = "fifo"
    is_marking: bool = False
    target_ms: float = 5
    interval_ms: float = 100


FIFO = Discipline()  # drops what arrives while it is full
