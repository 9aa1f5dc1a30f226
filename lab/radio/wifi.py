"""WiFi cells: airtime of frames, limit of the queue, and rates of 802.11a, g and n from the signal.

Both engines, the simulator and the emulation, give each cell a virtual clock: the time at which the
channel becomes free. Every frame advances this clock by its airtime. The values for the clock are
computed here. `lab/engines/mininet/network/wifi_cell.bpf.c` describes the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from lab.radio.cell import Cell, Station
from lab.radio.occupancy import MAC_SLOTS

FRAME_BYTES = 1514  # a full Ethernet frame

# Rates and frame times of 802.11a, g and n
#
# The weakest signal for each rate is the minimum sensitivity of the standard for 20 MHz (IEEE
# 802.11-2016, Table 17-18 for OFDM, Table 19-23 for HT with one stream). The time of a frame is
# the mean of one transmission without collision, acknowledgement included (sections 10.3.2 to
# 10.3.4):
#
#     DIFS + mean backoff + preamble + (MAC overhead + frame) / rate + SIFS + ACK
#
# In 802.11n, several frames are sent as one A-MPDU, as many as the MAC buffer holds. They share
# one DIFS, backoff, preamble, SIFS and ACK.


# added by 802.11: 26 of header, 8 of LLC and 4 of checksum, instead of Ethernet's 14
MAC_BYTES = 24
SERVICE_BITS = 22  # service field and tail
CW_MIN = 15  # slots; the mean backoff of a frame sent once is half of it
ACK_BITS = SERVICE_BITS + 14 * 8
SYMBOL_US = 4.0
OFDM = (
    (6.0, -82),
    (9.0, -81),
    (12.0, -79),
    (18.0, -77),
    (24.0, -74),
    (36.0, -70),
    (48.0, -66),
    (54.0, -65),
)
HT = (
    (6.5, -82),
    (13.0, -79),
    (19.5, -77),
    (26.0, -74),
    (39.0, -70),
    (52.0, -66),
    (58.5, -65),
    (65.0, -64),
)


@dataclass(frozen=True)
class Standard:
    """One 802.11 standard (a, g or n): its rates, and the parts of a frame's airtime [us].

    - `rates`: pairs of a rate [Mb/s] and the weakest signal [dBm] at which it can be used
    - `extension_us`: silence after every frame of 802.11g, so that receivers have as much time as
      in 802.11a
    - `aggregated`: number of frames in one A-MPDU
    """

    rates: tuple[tuple[float, int], ...]
    carrier_mhz: int
    sifs_us: float
    preamble_us: float
    extension_us: float = 0.0
    aggregated: int = 1
    slot_us: float = 9.0

    @property
    def difs_us(self) -> float:
        return self.sifs_us + 2 * self.slot_us

    def rate_mbps(self, rssi_dbm: float) -> float:
        """Return the fastest rate for a signal of this strength [Mb/s].

        If the signal is too weak for every rate, return the slowest rate.
        """
        return max(
            (mbps for mbps, needs_dbm in self.rates if rssi_dbm >= needs_dbm),
            default=self.rates[0][0],
        )

    def ack_us(self, rate_mbps: float) -> float:
        """Return the airtime of the ACK of a frame that was sent at `rate_mbps` [us].

        The ACK is sent at a basic rate (6, 12 or 24 Mb/s): the fastest that is not above
        `rate_mbps`, or 6 Mb/s if all are above.
        """
        basic = max(each for each in (6.0, 12.0, 24.0) if each <= max(rate_mbps, 6.0))
        return 20.0 + SYMBOL_US * ceil(ACK_BITS / (SYMBOL_US * basic)) + self.extension_us

    def fixed_us(self, rate_mbps: float) -> float:
        """Return the part of a frame's airtime that does not depend on the frame's length [us].

        `rate_mbps` is the rate at which the frame is sent.
        """
        access_us = self.difs_us + CW_MIN / 2 * self.slot_us
        answer_us = self.sifs_us + self.ack_us(rate_mbps) + self.extension_us
        header_us = (SERVICE_BITS + 8 * MAC_BYTES) / rate_mbps
        return (access_us + self.preamble_us + answer_us) / self.aggregated + header_us

    def frame_us(self, rate_mbps: float, size_bytes: int = FRAME_BYTES) -> float:
        """Return the airtime of an Ethernet frame, including DIFS, backoff and ACK [us]."""
        return self.fixed_us(rate_mbps) + 8 * size_bytes / rate_mbps


STANDARDS: dict[str, Standard] = {
    "11a": Standard(OFDM, 5180, 16.0, 20.0),
    "11g": Standard(OFDM, 2412, 10.0, 20.0, 6.0),
    "11n24": Standard(HT, 2412, 10.0, 36.0, 6.0, MAC_SLOTS),
    "11n5": Standard(HT, 5180, 16.0, 36.0, 0.0, MAC_SLOTS),
}


def price_ps(rate_bps: int, contention: float = 1.0) -> int:
    """Return the airtime of one byte at this rate [ps]: 8 k / rate (MP-SDN, eq (1)).

    k is `contention`, the mean number of transmissions of a packet.
    """
    return round(contention * 8 * 10**12 / rate_bps)


def fixed_ns(station: Station) -> int:
    """Return the part of a frame's airtime that does not depend on the frame's length [ns].

    The airtime of the bytes comes in addition (`byte_price_ps`).
    """
    return round(station.overhead * FRAME_BYTES * 8 * 1e9 / station.rate_bps)


def byte_price_ps(station: Station) -> int:
    """Return the airtime of one byte [ps]. Each frame also has a fixed airtime (`fixed_ns`)."""
    return round((1 - station.overhead) * 8 * 10**12 / station.rate_bps)


def limit_ns(cell: Cell) -> int:
    """Return the longest time that a packet may wait for the channel before it is dropped [ns].

    This is the airtime of a full queue of full frames at the best rate of the cell. It is 0 for a
    cell without stations.
    """
    if not cell.capacity_bps:
        return 0
    return round(cell.queue_packets * FRAME_BYTES * 8 * 1e9 / cell.capacity_bps)
