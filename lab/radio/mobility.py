"""Movement of users between random points (Johnson and Maltz 1996; MP-SDN, section VI-D), or along
given ones.

A random walker goes to a random point at a random speed, waits there, and goes on to the next one.
The simulator and the emulation use the same random numbers.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


def uniform(seed: int, *names: object) -> float:
    """Return a random number, 0 <= number < 1, that depends only on the seed and the names.

    So the number for one name does not change when numbers for other names are added.
    """
    digest = hashlib.sha256("/".join(map(str, (seed, *names))).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


Place = tuple[float, float]  # x and y in m
Point = tuple[float, float, float]  # time in s since the start of the run, x and y in m


@dataclass(frozen=True)
class Leg:
    """One walk of a user, at constant speed from `origin` to `target`, and the pause after it.

    The user walks from `begins_s` to `arrives_s` and waits at `target` until `leaves_s`. Times are
    in seconds since the start of the run.
    """

    number: int
    begins_s: float
    arrives_s: float
    leaves_s: float
    origin: Place
    target: Place

    def at(self, t_s: float) -> Place:
        """Return the user's position, x and y [m], at time `t_s`.

        After the walk, this is `target`.
        """
        took_s = self.arrives_s - self.begins_s
        done = 1.0 if t_s >= self.arrives_s or took_s <= 0 else (t_s - self.begins_s) / took_s
        return (
            self.origin[0] + done * (self.target[0] - self.origin[0]),
            self.origin[1] + done * (self.target[1] - self.origin[1]),
        )


class Walker:
    """A user that walks in a square with sides of `area_m`.

    `speeds_mps` is the lowest and the highest speed [m/s]. `pause_s` is the pause after each walk.
    `seed` and `user` determine all random points and speeds.
    """

    def __init__(
        self,
        user: str,
        seed: int,
        origin: Place,
        area_m: float,
        speeds_mps: tuple[float, float],
        pause_s: float,
    ) -> None:
        self.user, self.seed, self.area_m, self.speeds_mps, self.pause_s = (
            user,
            seed,
            area_m,
            speeds_mps,
            pause_s,
        )
        self.leg = Leg(0, 0.0, 0.0, 0.0, origin, origin)

    def at(self, t_s: float) -> Place:
        """Return the user's position, x and y [m], at time `t_s` since the start of the run.

        `t_s` must not be smaller than in an earlier call.
        """
        while t_s >= self.leg.leaves_s:
            self.leg = self._next(self.leg)
        return self.leg.at(t_s)

    def _next(self, last: Leg) -> Leg:
        number, begins_s = last.number + 1, last.leaves_s
        x, y, fast = (
            uniform(self.seed, self.user, "leg", number, name) for name in ("x", "y", "speed")
        )
        target = (x * self.area_m, y * self.area_m)
        slowest, fastest = self.speeds_mps
        arrives_s = begins_s + max(
            1e-3, distance_m(last.target, target) / (slowest + fast * (fastest - slowest))
        )
        return Leg(number, begins_s, arrives_s, arrives_s + self.pause_s, last.target, target)


@dataclass(frozen=True)
class Replay:
    """A user that walks along points, which are sorted by time."""

    user: str
    points: Sequence[Point]

    def at(self, t_s: float) -> Place:
        """Return the user's position, x and y [m], at time `t_s` since the start of the run."""
        n = bisect_right(self.points, t_s, key=lambda point: point[0])
        if n in (0, len(self.points)):
            return self.points[max(0, n - 1)][1:]
        (begin_s, *origin), (end_s, *target) = self.points[n - 1], self.points[n]
        done = (t_s - begin_s) / (end_s - begin_s)
        x_m, y_m = (a + done * (b - a) for a, b in zip(origin, target, strict=True))
        return x_m, y_m


def distance_m(a: Place, b: Place) -> float:
    return math.hypot(a[0] - b[0], a[1] - b[1])
