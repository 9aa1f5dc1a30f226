"""The times of a WiFi cell that is simulated access by access (`air: dcf`).

The rules are those of IEEE 802.11-2016: the distributed coordination function (DCF, section 10.3)
for 802.11a and g, EDCA with best effort (section 10.22.2) for 802.11n. The durations of frames are
in whole OFDM symbols (sections 17.4.3 and 19.4.3). `lab.engines.sim.core.dcf` decides who sends.

With a rate scale below 1, all these times are longer by the same factor, so that the shares of the
air stay the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from lab.errors import RequestError
from lab.radio import contention
from lab.radio.cell import Cell, Station
from lab.radio.wifi import FRAME_BYTES, SERVICE_BITS, STANDARDS, SYMBOL_US, Standard

CW_MAX = 1023  # slots; Table 17-21
LONGEST_PPDU_US = 5484.0  # aPPDUMaxTime, Table 19-25
BEST_EFFORT_SLOTS = 3  # AIFSN of best effort, Table 9-137; DCF waits for two slots after the SIFS
RX_START_US = 20.0  # until a receiver knows that an answer begins: aRxPHYStartDelay, Table 17-21
BLOCK_ACK_BYTES = 32  # compressed, section 9.3.1.9.3
FASTEST_PHY_MBPS = 600.0  # of 802.11n
SAME = 1e-4  # a rate this near to one of the standard's is that one


@dataclass(frozen=True)
class Times:
    """What all frames of a cell have in common.

    - `access_ns`: silence before the backoff is counted: DIFS, or AIFS in 802.11n
    - `timeout_ns`: how long a sender waits for an acknowledgement (section 10.3.2.9)
    - `preamble_ns`: preamble and header, and the signal extension of 802.11g
    - `mac_bytes`: what 802.11 adds to an Ethernet frame
    - `aggregated`: the most frames in one A-MPDU
    - `longest_ns`: of an A-MPDU
    """

    slot_ns: int
    access_ns: int
    timeout_ns: int
    preamble_ns: int
    symbol_ns: int
    longest_ns: int
    mac_bytes: int
    aggregated: int


def times(name: str, rate_scale: float) -> Times:
    """Return the times of a cell of this standard, a key of `STANDARDS`."""
    standard = STANDARDS[name]
    is_ht = standard.aggregated > 1
    slots = BEST_EFFORT_SLOTS if is_ht else 2

    def ns(us: float) -> int:
        return round(1000 * us / rate_scale)

    return Times(
        slot_ns=ns(standard.slot_us),
        access_ns=ns(standard.sifs_us + slots * standard.slot_us),
        timeout_ns=ns(standard.sifs_us + standard.slot_us + RX_START_US),
        preamble_ns=ns(standard.preamble_us + standard.extension_us),
        symbol_ns=ns(SYMBOL_US),
        longest_ns=ns(LONGEST_PPDU_US),
        # a header of 24 bytes, 26 in 802.11n; LLC and checksum; instead of Ethernet's header
        mac_bytes=(26 if is_ht else 24) + 8 + 4 - 14,
        aggregated=standard.aggregated,
    )


@lru_cache(maxsize=4096)
def phy_mbps(name: str, alone_mbps: float) -> float:
    """Return the PHY rate with which a lone station has the rate `alone_mbps`.

    It is the inverse of `Standard.frame_us`, which gives stations at known distances their rate.
    Some rates cannot be had, because a faster PHY rate lets the answer be faster too; then it is
    the PHY rate next to them.
    """
    standard = STANDARDS[name]
    frame_us = 8 * FRAME_BYTES / alone_mbps
    low, high = 1e-6, FASTEST_PHY_MBPS
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if standard.frame_us(middle) < frame_us else (middle, high)
    near = min((mbps for mbps, _ in standard.rates), key=lambda mbps: abs(mbps - high))
    return near if abs(near - high) < SAME * near else high


def fastest_mbps(name: str) -> float:
    """Return the highest rate that a lone station can have."""
    return 8 * FRAME_BYTES / STANDARDS[name].frame_us(FASTEST_PHY_MBPS)


def check(cells: Iterable[Cell], traces: Mapping[str, Iterable[float]]) -> None:
    """Raise `RequestError` if a station of these cells is faster than 802.11 can be.

    `traces` has the rates on the wire [bit/s] that a station takes during the run, by its target
    ("cell.wifi1.ue3").
    """
    for cell in cells:
        most_mbps = fastest_mbps(cell.standard) * cell.rate_scale
        for each in cell.stations if cell.air == "dcf" else ():
            name = f"cell.{cell.ap}.{each.user}"
            rates_bps: list[float] = [each.rate_bps, each.way("up").rate_bps]
            for target in (name, f"{name}.down", f"{name}.up"):
                rates_bps += traces.get(target, ())
            if max(rates_bps) > most_mbps * 1e6:
                raise RequestError(
                    f"a rate of {max(rates_bps) / 1e6:.6g} Mb/s of {each.user} at {cell.ap} with "
                    f"topology.air 'dcf': a lone station of {cell.standard} has at most "
                    f"{most_mbps:.1f} Mb/s. Choose a lower rate, or topology.air=cell"
                )


def symbol_microbits(phy_rate_mbps: float) -> int:
    """Return the number of bits in an OFDM symbol, in millionths."""
    return round(phy_rate_mbps * SYMBOL_US * 1e6)


def answer_ns(name: str, phy_rate_mbps: float, rate_scale: float, is_block: bool = False) -> int:
    """Return how long the air is taken after a frame: SIFS and the acknowledgement, or the block
    acknowledgement of an A-MPDU."""
    standard = STANDARDS[name]
    ack_us = standard.ack_us(phy_rate_mbps)
    if is_block:
        ack_us = _block_ack_us(standard, phy_rate_mbps)
    return round(1000 * (standard.sifs_us + ack_us) / rate_scale)


def frames(cell: Cell, station: Station) -> dict[str, int]:
    """Return what a station's rate decides about its frames, those from it or those to it."""
    mbps = phy_mbps(cell.standard, station.rate_bps / 1e6 / cell.rate_scale)
    answers_ns = (
        answer_ns(cell.standard, mbps, cell.rate_scale, is_block) for is_block in (False, True)
    )
    names = "answer_ns", "block_answer_ns"
    return {"symbol_microbits": symbol_microbits(mbps)} | dict(zip(names, answers_ns, strict=True))


def alone_ns(cell: Cell, station: Station, size_bytes: int) -> int:
    """Return the mean time until a frame has left, at a node that contends with nobody [ns].

    `station` has the rate of the frame's direction, and `size_bytes` counts the Ethernet frame.
    """
    own = times(cell.standard, cell.rate_scale)
    mbps = phy_mbps(cell.standard, station.rate_bps / 1e6 / cell.rate_scale)
    idle_ns = round(contention.means(1).idle_slots * own.slot_ns)
    return idle_ns + own.access_ns + frames_ns(own, mbps, 1, size_bytes)


def _block_ack_us(standard: Standard, phy_rate_mbps: float) -> float:
    basic = max(each for each in (6.0, 12.0, 24.0) if each <= max(phy_rate_mbps, 6.0))
    bits = SERVICE_BITS + 8 * BLOCK_ACK_BYTES
    return 20.0 + SYMBOL_US * ceil(bits / (SYMBOL_US * basic)) + standard.extension_us


def alone_mbps(name: str, phy_rate_mbps: float, size_bytes: int = FRAME_BYTES) -> float:
    """Return the rate of a lone station that sends Ethernet frames of this size without a pause: a
    closed form of what the simulator does, with whole symbols and full A-MPDUs."""
    own, standard = times(name, 1.0), STANDARDS[name]
    count, frame_ns = 1, frames_ns(own, phy_rate_mbps, 1, size_bytes)
    while count < own.aggregated:
        longer_ns = frames_ns(own, phy_rate_mbps, count + 1, size_bytes)
        if longer_ns > own.longest_ns:
            break
        count, frame_ns = count + 1, longer_ns
    backoff_ns = 7.5 * standard.slot_us * 1000
    taken_ns = own.access_ns + backoff_ns + frame_ns
    taken_ns += answer_ns(name, phy_rate_mbps, 1.0, is_block=count > 1)
    return count * 8 * size_bytes * 1000 / taken_ns


def frames_ns(own: Times, phy_rate_mbps: float, count: int, size_bytes: int) -> int:
    """Return the duration of a frame, or of an A-MPDU of `count` frames. In an A-MPDU each frame
    has a delimiter, and is filled up to words of 4 bytes (section 9.7)."""
    size = size_bytes + own.mac_bytes
    if count > 1:
        size = count * (4 + 4 * ceil(size / 4))
    bits = SERVICE_BITS + 8 * size
    symbols = -(-bits * 1_000_000 // symbol_microbits(phy_rate_mbps))
    return own.preamble_ns + symbols * own.symbol_ns
