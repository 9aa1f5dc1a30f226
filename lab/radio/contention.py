"""Collisions on a WiFi cell: how often a frame is sent, and how often it is given up (Bianchi's saturation model). Pure.

Contenders are the nodes that hold a frame for the air, the access point among them. Between whole numbers of them the
model is read as it stands: p = 1 - (1 - tau)^(n - 1).
"""

from __future__ import annotations

from functools import lru_cache

from controller.tiers import collision_probability

RETRY_LIMIT = 7  # attempts for a frame (dot11ShortRetryLimit, IEEE 802.11-2016, section 10.3.4.4)
STEPS = 10  # contenders are told apart by tenths


@lru_cache(maxsize=1024)
def _collides(tenths: int) -> float:
    return 0.0 if tenths <= STEPS else collision_probability(tenths / STEPS)


def collision(contenders: float) -> float:
    """The probability p that a transmission collides."""
    return _collides(round(contenders * STEPS))


def transmissions(contenders: float) -> float:
    """How often a frame is sent on average, k, at most `RETRY_LIMIT` times: (1 - p^limit) / (1 - p)."""
    p = collision(contenders)
    return (1 - p**RETRY_LIMIT) / (1 - p)


def given_up(contenders: float) -> float:
    """The fraction of frames that are lost because every attempt collided."""
    return collision(contenders) ** RETRY_LIMIT
