"""Compute how often collisions make a WiFi cell send or drop a frame (Bianchi's saturation model).

Pure.

Contenders are the nodes that have a frame to send, the access point included. Their mean number n
need not be whole: p = 1 - (1 - tau)^(n - 1) holds for any n.
"""

from __future__ import annotations

from functools import lru_cache

from controller.tiers import collision_probability

RETRY_LIMIT = 7  # attempts for a frame (dot11ShortRetryLimit, IEEE 802.11-2016, section 10.3.4.4)
STEPS = 10  # the number of contenders is rounded to tenths


@lru_cache(maxsize=1024)
def _cached_probability(tenths: int) -> float:
    return 0.0 if tenths <= STEPS else collision_probability(tenths / STEPS)


def collision(contenders: float) -> float:
    """Return the probability p that a transmission collides."""
    return _cached_probability(round(contenders * STEPS))


def transmissions(contenders: float) -> float:
    """Return k, the mean number of transmissions of a frame.

    It is (1 - p^limit) / (1 - p) for at most `RETRY_LIMIT` attempts.
    """
    p = collision(contenders)
    return (1 - p**RETRY_LIMIT) / (1 - p)


def abandoned(contenders: float) -> float:
    """Return the fraction of frames that are lost because every attempt collided."""
    return collision(contenders) ** RETRY_LIMIT
