"""Collisions in a WiFi cell: how often frames are transmitted and lost (Bianchi's model).

A contender is a node with a frame to send; the access point can be one too. The model assumes
saturation: every contender always has a frame to send. For n contenders, p = 1 - (1 - tau)^(n - 1),
where p is the probability that a transmission collides, and tau the probability that a contender
transmits in a slot. n is a mean over time, so it need not be an integer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from controller.tiers import collision_probability
from lab.radio.wifi import CW_MIN

RETRY_LIMIT = 7  # attempts for a frame (dot11ShortRetryLimit, IEEE 802.11-2016, section 10.3.4.4)
STEPS = 10  # the number of contenders is rounded to tenths
SMOOTHING = 0.1  # the weight of one measurement in the mean number of contenders


def smoothed(contenders: float, sending: int) -> float:
    """Return the mean number of contenders after one more measurement.

    `contenders` is the mean before. `sending` is the number of nodes that have a frame to send now.
    There are ten measurements per second.
    """
    return contenders + SMOOTHING * (sending - contenders)


@lru_cache(maxsize=1024)
def _cached_probability(tenths: int) -> float:
    return 0.0 if tenths <= STEPS else collision_probability(tenths / STEPS)


def collision(contenders: float) -> float:
    """Return the probability that a transmission collides.

    `contenders` is the mean number of nodes that have a frame to send.
    """
    return _cached_probability(round(contenders * STEPS))


def transmissions(contenders: float) -> float:
    """Return how many times a frame is transmitted on average until it arrives or is dropped.

    This is (1 - p^limit) / (1 - p), where p is the probability of a collision and limit is
    `RETRY_LIMIT`. `contenders` is the mean number of nodes that have a frame to send.
    """
    p = collision(contenders)
    return (1 - p**RETRY_LIMIT) / (1 - p)


def abandoned(contenders: float) -> float:
    """Return the fraction of frames that are lost because all their transmissions collided."""
    return collision(contenders) ** RETRY_LIMIT


def loss(contenders: float, other_loss_ppm: int) -> float:
    """Return the fraction of frames that are lost, by collisions or by other causes.

    `contenders` is the mean number of nodes that have a frame to send. `other_loss_ppm` is the loss
    by other causes alone, in millionths.
    """
    return 1 - (1 - other_loss_ppm / 1e6) * (1 - abandoned(contenders))


@dataclass(frozen=True)
class Means:
    """What precedes a successful transmission, on average, for a number of contenders.

    - `idle_slots`, `collisions`: how many
    - `abandoned`: the fraction of frames that are lost because all their transmissions collided
    """

    idle_slots: float
    collisions: float
    abandoned: float


@lru_cache(maxsize=512)
def means(contenders: int) -> Means:
    """Return the means for `contenders` nodes, at least 1, that always have a frame to send.

    A slot is idle if nobody transmits in it. The shortest of all backoffs ends the silence, and
    frames that collide use the air at the same time.
    """
    p = collision(contenders)
    tau = 1 - (1 - p) ** (1 / (contenders - 1)) if contenders > 1 else 2 / (CW_MIN + 2)
    idle = (1 - tau) ** contenders
    success = contenders * tau * (1 - tau) ** (contenders - 1)
    return Means(idle / success, (1 - idle - success) / success, abandoned(contenders))
