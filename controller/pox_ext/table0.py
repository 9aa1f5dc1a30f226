"""Compute the messages that change table 0 of a switch from its installed to its desired state.

Every address of a multipath user has an entry per direction of its data, so that the data is
counted under every strategy. The strategy limits Tier 2: entries of Tier 2 addresses send the data
through a meter. If Tier 1 is limited too, its data passes a second meter. The messages are ordered
so that no entry ever names a missing meter.
"""

from __future__ import annotations

import struct
from collections.abc import Container
from dataclasses import dataclass, replace

from controller.pox_ext import openflow13_messages as openflow13
from controller.pox_ext.openflow13_messages import Data, FlowEntry, kbps


@dataclass(frozen=True)
class Table0:
    """Hold the content of table 0 of a switch and the rates of its meters.

    `Data` is an address and a direction. `counted` have an entry under every strategy. `metered`
    pass the meter of Tier 2, whose rate is `rate_bps`. `limited` pass the meter of Tier 1, whose
    rate is `tier1_bps`. A rate is None if there is no such meter. `default` is True if the default
    entry exists, which sends all other packets to table 1.
    """

    counted: frozenset[Data] = frozenset()
    metered: frozenset[Data] = frozenset()
    rate_bps: int | None = None
    default: bool = True
    limited: frozenset[Data] = frozenset()
    tier1_bps: int | None = None

    @property
    def entries(self) -> frozenset[Data]:
        return self.counted | self.metered | self.limited

    def meter(self, data: Data) -> int | None:
        """Return the number of the meter that `data` passes, None if it passes no meter."""
        if data in self.metered:
            return openflow13.TIER_2_METER
        return openflow13.TIER_1_METER if data in self.limited else None


def read(flows: list[FlowEntry], rate_bps: int | None, tier1_bps: int | None = None) -> Table0:
    """Convert the entries that a switch reports for table 0 to a `Table0`.

    `rate_bps` and `tier1_bps` are the rates of the switch's meters for Tier 2 and Tier 1; a rate is
    None if there is no such meter.
    """
    counted = frozenset(each.data for each in flows if each.data)
    metered, limited = (
        frozenset(each.data for each in flows if each.data and each.meter == meter)
        for meter in (openflow13.TIER_2_METER, openflow13.TIER_1_METER)
    )
    return Table0(
        counted,
        metered,
        rate_bps,
        any(each.data is None and each.priority == 0 for each in flows),
        limited,
        tier1_bps,
    )


def handed_over(old: Table0, new: Table0, addresses: Container[str]) -> tuple[Table0, Table0]:
    """Return table 0 of two switches, `old` and `new`, after a station has moved to `new`.

    `addresses` are the addresses of the station. Its data that passed the meter of Tier 2 at `old`
    pass this meter at `new`, if there is one.
    """
    moved = frozenset(data for data in old.metered if data.address in addresses)
    come = moved if new.rate_bps is not None else frozenset()
    return replace(old, metered=old.metered - moved), replace(new, metered=new.metered | come)


def changes(installed: Table0, desired: Table0) -> list[bytes]:
    """Return the messages that change table 0 and the meter from `installed` to `desired`.

    The list is empty if nothing needs to change.
    """
    messages = (
        [openflow13.send_to_paths(None, meter=None)]
        if desired.default and not installed.default
        else []
    )
    rates = (
        (openflow13.TIER_2_METER, installed.rate_bps, desired.rate_bps),
        (openflow13.TIER_1_METER, installed.tier1_bps, desired.tier1_bps),
    )
    for meter, installed_bps, desired_bps in rates:
        if desired_bps is not None:
            messages += _meter(meter, installed_bps, desired_bps)
    for data in sorted(desired.entries):
        if data not in installed.entries or desired.meter(data) != installed.meter(data):
            messages.append(openflow13.send_to_paths(data, desired.meter(data)))
    messages += [
        openflow13.delete_entry(data) for data in sorted(installed.entries - desired.entries)
    ]
    for meter, installed_bps, desired_bps in rates:
        if desired_bps is None and installed_bps is not None:
            messages.append(openflow13.meter_mod(openflow13.METER_DELETE, meter=meter))
    return messages


def _meter(meter: int, installed_bps: int | None, desired_bps: int) -> list[bytes]:
    if installed_bps is None:
        return [openflow13.meter_mod(openflow13.METER_ADD, desired_bps, meter)]
    if kbps(installed_bps) != kbps(desired_bps):
        return [openflow13.meter_mod(openflow13.METER_MODIFY, desired_bps, meter)]
    return []


def resets_counters(installed: Table0, desired: Table0) -> bool:
    """Return whether the messages of `changes(installed, desired)` reset the Tier 2 meter.

    They do if they add, modify or delete this meter. Its counters then begin at 0.
    """
    rates = [
        None if table.rate_bps is None else kbps(table.rate_bps) for table in (installed, desired)
    ]
    return rates[0] != rates[1]


def described(message: bytes) -> str:
    """Return a text that says what `message`, one of the messages of `changes`, does."""
    if message[1] == openflow13.METER_MOD:
        command, _, meter = struct.unpack_from("!HHL", message, 8)
        if command == openflow13.METER_DELETE:
            return f"delete its meter {meter}"
        rate_kbps = struct.unpack_from("!L", message, 20)[0]
        verb = "add" if command == openflow13.METER_ADD else "modify"
        return f"{verb} its meter {meter} with {rate_kbps} kb/s"
    length = struct.unpack_from("!H", message, 50)[0]
    data = openflow13.data_of(message[52 : 48 + length])
    verb = "delete" if message[25] == openflow13.FLOW_DELETE_STRICT else "write"
    entry = f"for data {data.direction} of {data.address}" if data else "for all other packets"
    return f"{verb} the entry of table 0 {entry}"
