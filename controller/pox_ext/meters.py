"""Manage table 0 and the meters of every access point's switch.

Table 0 sends all packets to table 1, where they are forwarded; on the way, some are counted or pass
a meter (a rate limit). The traffic of a multipath user over its primary access point is Tier 1, and
over its other access points Tier 2. One meter limits the rate of all Tier 2 traffic of an access
point together.

1) A bridge connects: read its table 0 and its meters, so that a restarted controller continues
   with the installed state.
2) Write the desired state. Before the first decision this is the installed state, plus entries
   that count the data of each address of a multipath user.
3) Entries that somebody deletes by hand are written again after `REPAIR_AFTER_S`. Until then the
   effect of the deletion can be observed.
4) The throughput of Tier 2 is the traffic that reached the meter minus what the meter dropped. A
   change of the rate resets these counters, so they are read just before and just after it.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from controller.command import ApCommand, Throttle
from controller.observation import Tiers
from controller.pox_ext import openflow13_messages as messages
from controller.pox_ext.counters import CounterRates
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.openflow13_messages import Data, FlowEntry, kbps
from controller.topology import Topology

if TYPE_CHECKING:  # it imports POX, which is missing in unit tests
    from controller.pox_ext.openflow13_channel import Channel

REPAIR_AFTER_S = 10.0
MIN_PERIOD_NS = 100_000_000  # over a shorter time, single bursts would dominate the rate


class Meters:
    """Reads and writes table 0 and the meters of every switch.

    At an access point, table 0 counts traffic and sends some of it through a meter (a rate limit).
    At any other switch, table 0 has a single entry, which sends all packets to table 1.
    """

    def __init__(self, network: Topology, hosts: Hosts, ready: Callable[[str], None]) -> None:
        """`ready(switch)` is called when table 0 of the switch is written.

        `network` has the users and the directions of their data, `hosts` their addresses. Table 0
        of an access point has an entry for each address and direction.
        """
        self._network, self._hosts, self._ready = network, hosts, ready
        self.channels: dict[str, Channel] = {}
        self._installed: dict[str, Table0] = {}
        self._desired: dict[str, Table0] = {}
        self._rates = CounterRates()
        self._differs_since_s: dict[str, float] = {}
        self._tier2_bps: dict[str, int | None] = {}
        self._by_data: dict[tuple[str, Data], int | None] = {}
        self._tier1_bps: dict[str, int | None] = {}
        self._tiers: Tiers = {}

    def connected(self, switch: str, channel: Channel) -> None:
        """Read table 0 and the meters of a connected switch, then write the desired state."""  # 1
        self.channels[switch], channel.name = channel, switch

        def with_meter(config: bytes | None) -> None:
            meters = (messages.TIER_2_METER, messages.TIER_1_METER)
            rates_bps = [messages.meter_rate_bps(config or b"", each) for each in meters]
            channel.request(
                messages.flow_stats_request(table=0),
                lambda body: self._take_over(switch, body or b"", *rates_bps),
            )

        channel.request(messages.meter_config_request(), with_meter)

    def lost(self, switch: str, channel: Channel) -> None:
        """Forget a closed connection to a switch; keep the desired state for a new connection."""
        if self.channels.get(switch) is channel:
            del self.channels[switch]
            self._installed.pop(switch, None)

    def limit_bps(self, switch: str) -> int | None:
        """Return the rate limit in bit/s for secondary traffic (Tier 2) at a switch.

        Return None if there is no limit.
        """
        installed = self._installed.get(switch)
        return installed.rate_bps if installed else None

    def tier2_bps(self, switch: str, addresses: Iterable[str]) -> int | None:
        """Return the throughput of secondary traffic (Tier 2) at a switch in bit/s.

        With a meter, it is the rate that passes the meter. Without one, it is the sum of the rates
        that table 0 has counted for `addresses`, which must be those in Tier 2. Return None if
        nothing was measured.
        """
        if self.limit_bps(switch) is not None:
            return self._tier2_bps.get(switch)
        rates = [self._by_data.get((switch, data)) for data in self._data(switch, addresses)]
        return sum(rate for rate in rates if rate is not None) if switch in self.channels else None

    def apply(self, command: ApCommand) -> None:
        installed = self._installed.get(command.ap, Table0())
        addresses = command.addresses if isinstance(command, Throttle) else frozenset()
        metered = frozenset(self._data(command.ap, addresses))
        rate_bps = command.rate_bps if isinstance(command, Throttle) else None
        counted = frozenset(self._counted(command.ap))
        self._desired[command.ap] = replace(
            installed,
            counted=counted,
            metered=metered,
            rate_bps=rate_bps,
            default=True,
            limited=frozenset(self._limited(command.ap)),
            tier1_bps=self._tier1_bps.get(command.ap),
        )
        self._apply_desired(command.ap)

    def limit_tier1(self, switch: str, rate_bps: int | None) -> None:
        """Limit the rate of all primary traffic (Tier 1) of an access point together.

        None removes the limit.
        """
        self._tier1_bps[switch] = rate_bps
        self.refresh(switch, self._tiers)

    def _limited(self, switch: str) -> Iterator[Data]:
        """Yield address and direction of the primary data (Tier 1) at an access point.

        Yield nothing if the rate of this data is not limited. A user without a known tier counts as
        Tier 1.
        """
        if self._tier1_bps.get(switch) is None:
            return
        for user in self._hosts.network.aps[switch].stations:
            if self._tiers.get((user, switch), 1) == 1:
                yield from self._data_of(user, switch)

    def _counted(self, switch: str) -> Iterator[Data]:
        """Yield address and direction of the data of all multipath users at an access point.

        Yield nothing at a switch that is no access point.
        """
        users = self._network.multipath if switch in self._network.aps else ()
        for user in users:
            yield from self._data_of(user, switch)

    def _data_of(self, user: str, switch: str) -> Iterator[Data]:
        for address in self._hosts.at(user, switch):
            for direction in self._network.data_directions(user):
                yield Data(address, direction)

    def _data(self, switch: str, addresses: Iterable[str]) -> Iterator[Data]:
        wanted = set(addresses)
        return (data for data in self._counted(switch) if data.address in wanted)

    def hand_over(self, addresses: Iterable[str], old: str, new: str) -> None:
        """Move the addresses of a station from table 0 of switch `old` to table 0 of `new`.

        Addresses that passed the meter of `old` pass the meter of `new`, if `new` has a meter.
        """
        if old not in self._desired or new not in self._desired:
            return
        states = handed_over(self._desired[old], self._desired[new], set(addresses))
        for switch, state in zip((old, new), states, strict=True):
            counted, limited = (
                frozenset(each) for each in (self._counted(switch), self._limited(switch))
            )
            self._desired[switch] = replace(state, counted=counted, limited=limited)
            self._apply_desired(switch)

    def read(self, switch: str, done: Callable[[], None]) -> None:
        """Request the counters of the meters and of table 0, and write missing entries again.

        `done()` is called when the last request is answered or has failed.
        """  # 3, 4
        channel, before = self.channels[switch], self._installed.get(switch)

        def with_flows(body: bytes | None, has_meters: tuple[bool, bool]) -> None:
            entries = messages.flows(body or b"")
            for entry in entries:
                if entry.data is not None:
                    key = (switch, entry.data)
                    self._by_data[key] = self._rates.rate_bps(key, time.monotonic_ns(), entry.bytes)
            is_unchanged = before is self._installed.get(switch)
            if body is not None and before is not None and is_unchanged:
                rates_bps = [
                    rate_bps if is_there else None
                    for rate_bps, is_there in zip(
                        (before.rate_bps, before.tier1_bps), has_meters, strict=True
                    )
                ]
                self._repair(switch, before, table0_of(entries, *rates_bps))
            done()

        def with_meter(body: bytes | None) -> None:
            count = messages.meter_count(body or b"")
            if count is not None:
                # The age of the meter is the clock, so replies that POX reads late are right too.
                self._tier2_bps[switch] = self._rates.rate_bps(
                    switch, count.age_ns, count.passed_bytes, MIN_PERIOD_NS
                )
            tier1 = messages.meter_count(body or b"", messages.TIER_1_METER)
            channel.request(
                messages.flow_stats_request(table=0),
                lambda flows: with_flows(flows, (count is not None, tier1 is not None)),
            )

        channel.request(messages.meter_stats_request(), with_meter)

    def _repair(self, switch: str, installed: Table0, found: Table0) -> None:
        """Write the desired state again if the switch has lost entries.

        `installed` is the state that the controller has written, and `found` the state that the
        switch reports. They must differ for `REPAIR_AFTER_S` before anything is written.
        """
        if (found.entries, replace(found, counted=installed.counted)) == (
            installed.entries,
            installed,
        ):
            self._differs_since_s.pop(switch, None)
        elif (
            time.monotonic() - self._differs_since_s.setdefault(switch, time.monotonic())
            >= REPAIR_AFTER_S
        ):
            del self._differs_since_s[switch]
            self._installed[switch] = found
            self._apply_desired(switch)

    def refresh(self, switch: str, tiers: Tiers) -> None:
        """Write the entries of table 0 for newly learned addresses and for changed tiers.

        `tiers` maps (user, access point) to 1 (primary) or 2 (secondary).
        """
        self._tiers = tiers
        if switch in self._installed and self._desired.get(switch):
            self._desired[switch] = replace(
                self._desired[switch],
                counted=frozenset(self._counted(switch)),
                limited=frozenset(self._limited(switch)),
                tier1_bps=self._tier1_bps.get(switch),
            )
            self._apply_desired(switch)

    def _take_over(
        self, switch: str, flows: bytes, rate_bps: int | None, tier1_bps: int | None
    ) -> None:
        installed = table0_of(messages.flows(flows), rate_bps, tier1_bps)
        self._installed[switch] = installed
        self._tier1_bps.setdefault(switch, tier1_bps)
        counted = frozenset(self._counted(switch))
        self._desired.setdefault(switch, replace(installed, counted=counted, default=True))  # 2
        self._apply_desired(switch, lambda: self._ready(switch))
        self._restart_count(switch)

    def _apply_desired(self, switch: str, done: Callable[[], None] = lambda: None) -> None:
        channel, installed, desired = (
            self.channels.get(switch),
            self._installed.get(switch),
            self._desired[switch],
        )
        if channel is None or installed is None:
            return  # the switch gets its entries when it connects
        for message in changes(installed, desired):
            channel.command(message, described)
        self._installed[switch] = desired
        channel.barrier(lambda reply: None if reply is None else done())
        if resets_counters(installed, desired):
            self._restart_count(switch)

    def _restart_count(self, switch: str) -> None:
        def start(body: bytes | None) -> None:
            count = messages.meter_count(body or b"")
            if count is None:
                self._rates.forget(switch)
            else:
                self._rates.restart(switch, count.age_ns, count.passed_bytes)

        self.channels[switch].request(messages.meter_stats_request(), start)


# Messages that change table 0 of a switch from its installed to its desired state
#
# Every address of a multipath user has an entry per direction of its data, so that the data is
# counted under every strategy. The strategy limits Tier 2: entries of Tier 2 addresses send the
# data through a meter. If Tier 1 is limited too, its data passes a second meter. The messages are
# ordered so that no entry ever names a missing meter.


@dataclass(frozen=True)
class Table0:
    """The entries of table 0 of a switch, and the rates of its two meters (rate limits).

    `counted` has the data that is counted under every strategy. The data in `metered` passes the
    meter for secondary traffic (Tier 2), which has the rate `rate_bps`. The data in `limited`
    passes the meter for primary traffic (Tier 1), which has the rate `tier1_bps`. A rate is None if
    the meter does not exist. `default` is True if there is an entry that sends all other packets to
    table 1.
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
        """Return the number of the meter that `data` passes, or None if it passes no meter."""
        if data in self.metered:
            return messages.TIER_2_METER
        return messages.TIER_1_METER if data in self.limited else None


def table0_of(flows: list[FlowEntry], rate_bps: int | None, tier1_bps: int | None = None) -> Table0:
    """Convert the flow entries that a switch reports for table 0.

    `rate_bps` and `tier1_bps` are the rates of the meters for secondary (Tier 2) and for primary
    traffic (Tier 1). A rate is None if the meter does not exist.
    """
    counted = frozenset(each.data for each in flows if each.data)
    metered, limited = (
        frozenset(each.data for each in flows if each.data and each.meter == meter)
        for meter in (messages.TIER_2_METER, messages.TIER_1_METER)
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
    """Return table 0 of both access points after a station has moved from `old` to `new`.

    `addresses` are those of the station. Its data that passed the meter for secondary traffic (Tier
    2) at `old` now passes the Tier 2 meter of `new`. If `new` has no such meter, the data passes
    none.
    """
    moved = frozenset(data for data in old.metered if data.address in addresses)
    come = moved if new.rate_bps is not None else frozenset()
    return replace(old, metered=old.metered - moved), replace(new, metered=new.metered | come)


def changes(installed: Table0, desired: Table0) -> list[bytes]:
    """Return the OpenFlow messages that change table 0 and the meters to the desired state."""
    wanted = (
        [messages.send_to_paths(None, meter=None)]
        if desired.default and not installed.default
        else []
    )
    rates = (
        (messages.TIER_2_METER, installed.rate_bps, desired.rate_bps),
        (messages.TIER_1_METER, installed.tier1_bps, desired.tier1_bps),
    )
    for meter, installed_bps, desired_bps in rates:
        if desired_bps is not None:
            wanted += _meter(meter, installed_bps, desired_bps)
    for data in sorted(desired.entries):
        if data not in installed.entries or desired.meter(data) != installed.meter(data):
            wanted.append(messages.send_to_paths(data, desired.meter(data)))
    wanted += [messages.delete_entry(data) for data in sorted(installed.entries - desired.entries)]
    for meter, installed_bps, desired_bps in rates:
        if desired_bps is None and installed_bps is not None:
            wanted.append(messages.meter_mod(messages.METER_DELETE, meter=meter))
    return wanted


def _meter(meter: int, installed_bps: int | None, desired_bps: int) -> list[bytes]:
    if installed_bps is None:
        return [messages.meter_mod(messages.METER_ADD, desired_bps, meter)]
    if kbps(installed_bps) != kbps(desired_bps):
        return [messages.meter_mod(messages.METER_MODIFY, desired_bps, meter)]
    return []


def resets_counters(installed: Table0, desired: Table0) -> bool:
    """Return whether `changes(installed, desired)` sets the counters of the Tier 2 meter to 0.

    This is the meter for secondary traffic. Adding, modifying or deleting it sets its counters to
    0.
    """
    rates = [
        None if table.rate_bps is None else kbps(table.rate_bps) for table in (installed, desired)
    ]
    return rates[0] != rates[1]


def described(message: bytes) -> str:
    """Return a text that says what a message of `changes` does, such as "delete its meter 1"."""
    if message[1] == messages.METER_MOD:
        command, _, meter = struct.unpack_from("!HHL", message, 8)
        if command == messages.METER_DELETE:
            return f"delete its meter {meter}"
        rate_kbps = struct.unpack_from("!L", message, 20)[0]
        verb = "add" if command == messages.METER_ADD else "modify"
        return f"{verb} its meter {meter} with {rate_kbps} kb/s"
    length = struct.unpack_from("!H", message, 50)[0]
    data = messages.data_of(message[52 : 48 + length])
    verb = "delete" if message[25] == messages.FLOW_DELETE_STRICT else "write"
    entry = f"for data {data.direction} of {data.address}" if data else "for all other packets"
    return f"{verb} the entry of table 0 {entry}"
