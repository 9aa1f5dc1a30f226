"""Losses in bursts. Programs of the hosts import this module, so it needs no other package."""

from __future__ import annotations

from dataclasses import dataclass

MILLION = 1_000_000


@dataclass(frozen=True)
class Bursts:
    """The model of Gilbert and Elliott: a link is in a good or a bad state, and each state loses a
    part of the packets. All values are in millionths of the packets.

    `begin_ppm` and `end_ppm` say how often a packet lets the bad state begin or end; a packet is
    lost as in the state that it finds, as with netem.
    """

    begin_ppm: int
    end_ppm: int
    good_ppm: int = 0
    bad_ppm: int = MILLION

    @property
    def mean_ppm(self) -> int:
        """The part of all packets that is lost in the long run."""
        lost = self.end_ppm * self.good_ppm + self.begin_ppm * self.bad_ppm
        return round(lost / (self.begin_ppm + self.end_ppm))
