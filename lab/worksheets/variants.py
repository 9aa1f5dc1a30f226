"""Give each seat of a class its own seed and its own variant of a worksheet.

Both depend only on the class's secret, the seat and the worksheet. So anyone who has these three
can compute a student's variant again.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SEEDS = 100_000  # seeds are from 1 to this number


@dataclass(frozen=True)
class Seat:
    """Identify one seat: the class's secret, the seat's name and the worksheet's name."""

    secret: bytes
    name: str
    worksheet: str

    def number(self, purpose: str) -> int:
        """Return a number from 0 to 2^64 - 1 that looks random, but is the same at each call.

        It is made from HMAC-SHA-256 over the name of the seat, the worksheet and the `purpose`.
        """
        parts = [each.encode() for each in (self.name, self.worksheet, purpose)]
        message = b"".join(len(each).to_bytes(4, "big") + each for each in parts)
        return int.from_bytes(hmac.digest(self.secret, message, hashlib.sha256)[:8], "big")

    @property
    def seed(self) -> int:
        """Return the seed of this seat. All its runs have the same seed, so that two runs differ
        only in what was chosen differently."""
        return 1 + self.number("seed") % SEEDS

    def pick(self, key: str, variants: Sequence[Any]) -> Any:
        """Return this seat's value of a key: one of `variants`.

        A key has the same position in its list in all runs of the worksheet.
        """
        return variants[self.number(f"variant {key}") % len(variants)]
