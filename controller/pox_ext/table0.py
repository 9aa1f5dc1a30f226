"""What table 0 of an access point's switch holds, and the messages from what is there to what should be.

Every address of a multipath user has an entry, so that its traffic is counted under every strategy; those of Tier 2 pass the
meter. Entries are changed in an order in which none ever names a meter that is not there.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.pox_ext import openflow13_messages as openflow13
from controller.pox_ext.openflow13_messages import FlowEntry, kbps


@dataclass(frozen=True)
class Table0:
    """Addresses that are counted, those of them that are metered, and the rate of the meter (None: no meter)."""

    counted: frozenset[str] = frozenset()
    metered: frozenset[str] = frozenset()
    rate_bps: int | None = None
    default: bool = True

    @property
    def addresses(self) -> frozenset[str]:
        return self.counted | self.metered


def read(flows: list[FlowEntry], rate_bps: int | None) -> Table0:
    """What a switch says it holds."""
    addresses = frozenset(each.address for each in flows if each.address)
    metered = frozenset(each.address for each in flows if each.address and each.metered)
    return Table0(
        addresses,
        metered,
        rate_bps,
        default=any(each.address is None and each.priority == 0 for each in flows),
    )


def changes(known: Table0, wanted: Table0) -> list[bytes]:
    """The messages that lead from `known` to `wanted`; none when nothing differs."""
    messages = (
        [openflow13.to_paths(None, metered=False)] if wanted.default and not known.default else []
    )
    if wanted.rate_bps is not None:
        messages += _meter(known.rate_bps, wanted.rate_bps)
    for address in sorted(wanted.addresses):
        metered = address in wanted.metered
        if address not in known.addresses or metered != (address in known.metered):
            messages.append(openflow13.to_paths(address, metered))
    messages += [
        openflow13.forget(address) for address in sorted(known.addresses - wanted.addresses)
    ]
    if wanted.rate_bps is None and known.rate_bps is not None:
        messages.append(openflow13.meter_mod(openflow13.METER_DELETE))
    return messages


def _meter(known_bps: int | None, wanted_bps: int) -> list[bytes]:
    if known_bps is None:
        return [openflow13.meter_mod(openflow13.METER_ADD, wanted_bps)]
    if kbps(known_bps) != kbps(wanted_bps):
        return [openflow13.meter_mod(openflow13.METER_MODIFY, wanted_bps)]
    return []


def touches_meter(known: Table0, wanted: Table0) -> bool:
    """Whether the change resets the meter's counters."""
    rates = [None if table.rate_bps is None else kbps(table.rate_bps) for table in (known, wanted)]
    return rates[0] != rates[1]
