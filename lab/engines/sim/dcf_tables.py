"""Make the records of WiFi channels with DCF (`core.dcf`)."""

from __future__ import annotations

from dataclasses import asdict

from lab.engines.sim.core import dcf as core
from lab.engines.sim.core import state as at
from lab.engines.sim.memory import Objects
from lab.radio import dcf
from lab.radio.cell import Cell, Station


def air(make: Objects, w: at.World, cell: Cell) -> at.Air:
    """Return the channel of a cell."""
    own = asdict(dcf.times(cell.standard, cell.rate_scale))
    made = make.one(at.Air, first=w.no_contender, **own)
    made.access = make.one(at.Event, kind=at.ACCESS_DUE, air=made)
    return made


def contender(
    make: Objects, w: at.World, channel: at.Air, random: at.Stream, limit: int
) -> at.Contender:
    """Return a node of a channel, with a queue for `limit` packets."""
    return make.one(
        at.Contender,
        air=channel,
        next=w.no_contender,
        before=w.no_contender,
        random=random,
        first=w.no_packet,
        last=w.no_packet,
        limit=limit,
        window=core.CW_MIN,
    )


def frames(cell: Cell, station: Station) -> dict[str, int]:
    """Return the fields of a station's hops that depend on the station's rate."""
    alone_mbps = station.rate_bps / 1e6 / cell.rate_scale
    phy_mbps = dcf.phy_mbps(cell.standard, alone_mbps)
    answer_ns, block_answer_ns = (
        dcf.answer_ns(cell.standard, phy_mbps, cell.rate_scale, is_block)
        for is_block in (False, True)
    )
    return {
        "symbol_microbits": dcf.symbol_microbits(phy_mbps),
        "answer_ns": answer_ns,
        "block_answer_ns": block_answer_ns,
    }
