"""Compute the messages that change table 0 of a switch from its installed to its desired state.

The data of every address of a multipath user has an entry, so that it is counted under every
strategy. The entries of Tier 2 addresses, whose traffic the strategy limits, send it through the
meter. The messages are ordered so that no entry ever names a missing meter.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from controller.pox_ext import openflow13_messages as openflow13
from controller.pox_ext.openflow13_messages import Data, FlowEntry, kbps


@dataclass(frozen=True)
class Table0:
    """Hold the content of table 0 of a switch and the rate of its meter.

    `counted` are the data (an address and a direction) that have an entry. `metered` are the data
    that pass the meter. `rate_bps` is None if there is no meter. `default` is True if the default
    entry exists, which sends all other packets to table 1.
    """

    counted: frozenset[Data] = frozenset()
    metered: frozenset[Data] = frozenset()
    rate_bps: int | None = None
    default: bool = True

    @property
    def entries(self) -> frozenset[Data]:
        return self.counted | self.metered


def read(flows: list[FlowEntry], rate_bps: int | None) -> Table0:
    """Convert the entries of table 0 that a switch reports to a `Table0`.

    `rate_bps` is the rate of the switch's meter, None if it has no meter.
    """
    counted = frozenset(each.data for each in flows if each.data)
    metered = frozenset(each.data for each in flows if each.data and each.metered)
    return Table0(
        counted,
        metered,
        rate_bps,
        default=any(each.data is None and each.priority == 0 for each in flows),
    )


def changes(installed: Table0, desired: Table0) -> list[bytes]:
    """Return the messages that change table 0 and the meter from `installed` to `desired`.

    The list is empty if nothing needs to change.
    """
    messages = (
        [openflow13.send_to_paths(None, metered=False)]
        if desired.default and not installed.default
        else []
    )
    if desired.rate_bps is not None:
        messages += _meter(installed.rate_bps, desired.rate_bps)
    for data in sorted(desired.entries):
        metered = data in desired.metered
        if data not in installed.entries or metered != (data in installed.metered):
            messages.append(openflow13.send_to_paths(data, metered))
    messages += [
        openflow13.delete_entry(data) for data in sorted(installed.entries - desired.entries)
    ]
    if desired.rate_bps is None and installed.rate_bps is not None:
        messages.append(openflow13.meter_mod(openflow13.METER_DELETE))
    return messages


def _meter(installed_bps: int | None, desired_bps: int) -> list[bytes]:
    if installed_bps is None:
        return [openflow13.meter_mod(openflow13.METER_ADD, desired_bps)]
    if kbps(installed_bps) != kbps(desired_bps):
        return [openflow13.meter_mod(openflow13.METER_MODIFY, desired_bps)]
    return []


def resets_counters(installed: Table0, desired: Table0) -> bool:
    """Return whether the messages of `changes` make the switch reset the meter's counters."""
    rates = [
        None if table.rate_bps is None else kbps(table.rate_bps) for table in (installed, desired)
    ]
    return rates[0] != rates[1]


def described(message: bytes) -> str:
    """Return in words what one of the messages of `changes` does."""
    if message[1] == openflow13.METER_MOD:
        command = struct.unpack_from("!H", message, 8)[0]
        if command == openflow13.METER_DELETE:
            return "delete its meter"
        rate_kbps = struct.unpack_from("!L", message, 20)[0]
        verb = "add" if command == openflow13.METER_ADD else "modify"
        return f"{verb} its meter with {rate_kbps} kb/s"
    length = struct.unpack_from("!H", message, 50)[0]
    data = openflow13.data_of(message[52 : 48 + length])
    verb = "delete" if message[25] == openflow13.FLOW_DELETE_STRICT else "write"
    entry = f"for data {data.direction} of {data.address}" if data else "for all other packets"
    return f"{verb} the entry of table 0 {entry}"
