"""The targets of a scenario: the parameters that can be changed while a run goes on.

Such a change is called a flip. These are the names of the targets:

strategy                    the strategy of the controller
strategy.PARAMETER          one parameter of the strategy
link.ID.rate_mbps           also delay_ms, loss and up
link.ID.down.rate_mbps      the rate of one direction: down leads to the users, up away from them
link.ID.queue               the kind of the queue: fifo, codel, fq_codel or red
link.ID.queue.packets       its size; link.ID.down.queue and .packets are of one direction
cell.AP.USER.rate_mbps      a user's radio rate at an access point while nobody else sends there
cell.AP.USER.down.rate_mbps the rate of one direction, towards the user or (up) away from it
cell.AP.tier1_mbps          a limit on all Tier 1 traffic of an access point; null: no limit
iface.HOST.NAME.up          whether an interface of a user or a server has its addresses
endpoint.USER.NAME          what subflows these addresses open: subflow, backup, or none
user.ID.demand_mbps         the total rate of all connections of a user; null: no limit
user.ID.position            where a user stands, [x_m, y_m]; null: it walks as the scenario says
cc                          the congestion control of open and of later connections

Tier 1 is the traffic over a user's primary access point (MP-SDN).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from controller.units import (
    STOPPED_BPS,
    bps_from_mbps,
    fraction_from_ppm,
    mbps_from_bps,
    ms_from_ns,
    ns_from_ms,
    ppm_from_fraction,
)
from lab import extensions
from lab.errors import RequestError, show, unknown
from lab.radio import dcf
from lab.radio.cell import BOTH_WAYS, Cell, Station, Towards
from lab.radio.mobility import Place
from lab.scenario import schema
from lab.scenario.interfaces import SetEndpoint, SetInterfaceUp, role_of, switchable
from lab.scenario.movement import placeable, with_place
from lab.scenario.schema import Scenario, StrategyChoice
from lab.scenario.traffic import SELF_PACED
from lab.topologies import queues
from lab.topologies.checks import checked_loss
from lab.topologies.topology import (
    BOTH,
    Direction,
    Directions,
    Link,
    down_directions,
    link_delay_ns,
)

# Changes that an engine can make to a running network
#
# Their numbers are integers as they are on the wire (bit/s, ns, millionths). `change` makes them
# from the name of a target and a value in scenario units.


@dataclass(frozen=True)
class SetLinkRate:
    """Set the rate of a link, in both directions or in some of them."""

    link: str
    rate_bps: int
    sides: Directions = BOTH


@dataclass(frozen=True)
class SetLinkDelay:
    """Set the one-way delay of a link, in both directions or in some of them."""

    link: str
    delay_ns: int
    sides: Directions = BOTH


@dataclass(frozen=True)
class SetLinkLoss:
    """Set the loss of a link, in lost packets per million.

    The loss acts in each direction that carries data, or in `sides`. A direction that carries only
    acknowledgements stays as it is.
    """

    link: str
    loss_ppm: int
    sides: Directions | None = None


@dataclass(frozen=True)
class SetLinkUp:
    """Cut a link (`up` is False) or repair it. A link that was cut carries no packets."""

    link: str
    up: bool


@dataclass(frozen=True)
class SetLinkQueue:
    """Set the size of a link's queue, its kind, or both, in both directions or in some of them.
    None stays as it is.

    Packets that wait stay, unless the kind is another one or red: then they are dropped. If more
    wait than a smaller queue holds, codel and fq_codel drop the oldest.
    """

    link: str
    packets: int | None = None
    kind: queues.Kind | None = None
    sides: Directions = BOTH


@dataclass(frozen=True)
class SetStationRate:
    """Set the radio rate that `user` reaches at the access point `ap` while nobody else sends
    there, in both directions or in one."""

    ap: str
    user: str
    rate_bps: int
    ways: frozenset[Towards] = BOTH_WAYS


@dataclass(frozen=True)
class SetTier1Demand:
    """Limit the total rate of the users whose primary access point is `ap`. None removes the
    limit."""

    ap: str
    rate_bps: int | None


@dataclass(frozen=True)
class SetDemand:
    """Set the total rate at which the connections of a user write. None means no limit."""

    user: str
    rate_bps: int | None


@dataclass(frozen=True)
class SetPlace:
    """Put a user at a place [m], where it stays. None lets it walk as the scenario says."""

    user: str
    place: Place | None


@dataclass(frozen=True)
class SetCongestionControl:
    """Use the congestion control `name` for all open and later connections."""

    name: str


@dataclass(frozen=True)
class SetStrategy:
    """Replace the strategy of the controller; the new one makes the next decision.

    `params` has all parameters of the new strategy.
    """

    name: str
    params: Mapping[str, Any]


@dataclass(frozen=True)
class SetStrategyParameter:
    """Set a parameter of the controller's strategy. It is used from the next decision on."""

    key: str
    value: Any


LinkChange = SetLinkRate | SetLinkDelay | SetLinkLoss | SetLinkUp | SetLinkQueue
Change = (
    LinkChange
    | SetStationRate
    | SetTier1Demand
    | SetInterfaceUp
    | SetEndpoint
    | SetDemand
    | SetPlace
    | SetCongestionControl
    | SetStrategy
    | SetStrategyParameter
)


Kind = Literal["number", "switch", "name", "parameter", "place"]
MAX_MBPS = 10_000
MIN_MBPS = 0.001
MAX_DELAY_MS = 5_000
MAX_QUEUE_PACKETS = 10_000
MAX_M = 100_000  # of a place in a network without an area


@dataclass(frozen=True)
class Target:
    """A parameter that can be changed while a run goes on.

    `value` is the parameter's value at the start of the run. A rate is that of the scenario file,
    not the one on the wire. A place is a list of x and y in m, and each has the two bounds. If
    `nullable` is True, the value can also be None. `words` say what a symbol stands for.
    """

    name: str
    kind: Kind
    value: Any
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    nullable: bool = False
    choices: tuple[str, ...] = ()
    help: str = ""
    words: str = ""

    def row(self) -> dict[str, Any]:
        return asdict(self) | {"choices": list(self.choices)}


def targets(scenario: Scenario) -> dict[str, Target]:
    """Return all parameters of a scenario that can be changed while it runs, by name. Values that
    follow a trace are not among them."""
    rows = [
        *_strategy(scenario),
        *_network(scenario),
        *_interfaces(scenario),
        *_users(scenario),
        *_places(scenario),
        _cc(scenario),
    ]
    traced = _traced(scenario)
    return {row.name: row for row in rows if row.name not in traced}


def _traced(scenario: Scenario) -> set[str]:
    """Return the targets that follow a trace. The rate of a direction does if it has none of its
    own, and a value of a link does if one of its directions follows a trace."""
    network = scenario.network
    found = {name for each in network.traces for name in each.targets}
    of_links = {name.replace(f".{way}.", ".") for name in found for way in ("up", "down")}
    down = down_directions(network) if found else {}
    found |= {
        f"{each.target}.{way}.rate_mbps"
        for each in network.traces
        for way in ("up", "down")
        if each.target.startswith("cell.") and each.target.count(".") == 2
    }
    for link in network.links:
        if link.id in down and f"link.{link.id}.rate_mbps" in found:
            found |= {
                f"link.{link.id}.{way}.rate_mbps"
                for way in ("up", "down")
                if link.own(side_of(down[link.id], way)).rate_bps is None
            }
    return found | of_links


def check_flip(scenario: Scenario, target: str, value: Any) -> Any:
    """Check that the parameter `target` can be set to `value` during a run, and return the value in
    a standard form.

    In this form, a strategy has all its parameters, a number is a float, and a place is a list of
    two. Raise `RequestError`
    if there is no such parameter or the value is not allowed. The message says what is allowed.
    """
    known = targets(scenario)
    if target not in known:
        raise RequestError(_no_place(scenario, target, known) or f"target {unknown(target, known)}")
    row = known[target]
    if target == "strategy":
        return _checked_strategy(scenario, value)
    if row.kind == "parameter":
        key = target.partition(".")[2]
        return schema.checked_strategy_params(
            scenario.strategy.name, scenario.strategy.params | {key: value}, "flip", "strategy"
        )[key]
    if row.kind == "switch":
        if not isinstance(value, bool):
            raise RequestError(f"{target}: {show(value)} is neither true nor false")
        return value
    if row.kind == "name":
        if value not in row.choices:
            raise RequestError(f"{target}: {unknown(value, row.choices)}")
        return _checked_queue(scenario, target, value)
    if row.kind == "place":
        return _checked_place(row, value)
    return _checked_queue(scenario, target, _checked_number(row, value))


def after(scenario: Scenario, target: str, value: Any) -> Scenario:
    """Return the scenario as it is after the parameter `target` was set to `value`.

    Only the strategy with its parameters, queues, and users that were put somewhere are updated,
    because the checks of later changes depend on nothing else.
    """
    if target == "strategy":
        return scenario.model_copy(update={"strategy": StrategyChoice(**value)})
    if target.startswith("strategy."):
        params = scenario.strategy.params | {target.partition(".")[2]: value}
        return scenario.model_copy(
            update={"strategy": StrategyChoice(name=scenario.strategy.name, params=params)}
        )
    if queued := _queued(scenario, target, value):
        links = tuple(queued if each.id == queued.id else each for each in scenario.network.links)
        return scenario.with_network(replace(scenario.network, links=links))
    if target.endswith(".position") and scenario.mobility is None:
        user = target.split(".")[1]
        return scenario.with_network(with_place(scenario.network, user, (value[0], value[1])))
    return scenario


def is_replaced(name: str, target: str) -> bool:
    """Return whether a change of `target` also sets the parameter `name` anew."""
    match target.split("."):
        case ["strategy"]:
            return name.startswith("strategy.")
        case ["user", user, "position"]:
            return name.startswith("cell.") and user in name.split(".")
        case ["cell", ap, user, "rate_mbps"]:
            return name.startswith(f"cell.{ap}.{user}.")
        case ["link", link, *_] if "queue" in target.split("."):
            return name.startswith(f"link.{link}.") and "queue" in name.split(".")
    return False


def change(scenario: Scenario, target: str, value: Any) -> Change:
    """Return the change that an engine must make to set the parameter `target` to `value`.

    `value` must come from `check_flip`. Rates are multiplied by the scenario's `rate_scale`.
    """

    def wire_bps(mbps: float | None) -> int | None:
        return None if mbps is None else bps_from_mbps(mbps * scenario.rate_scale)

    def capacity_bps(mbps: float) -> int:
        return max(STOPPED_BPS, bps_from_mbps(mbps * scenario.rate_scale))

    def one(link: str, way: str) -> Directions:
        return frozenset((side_of(down_directions(scenario.network)[link], way),))

    match target.split("."):
        case ["strategy"]:
            return SetStrategy(value["name"], value["params"])
        case ["strategy", key]:
            return SetStrategyParameter(key, value)
        case ["link", link, "rate_mbps"]:
            return SetLinkRate(link, capacity_bps(value))
        case ["link", link, "up" | "down" as way, "rate_mbps"]:
            return SetLinkRate(link, capacity_bps(value), one(link, way))
        case ["link", link, "delay_ms"]:
            return SetLinkDelay(link, ns_from_ms(value))
        case ["link", link, "loss"]:
            return SetLinkLoss(link, ppm_from_fraction(value))
        case ["link", link, "up"]:
            return SetLinkUp(link, value)
        case ["link", link, "queue"]:
            return SetLinkQueue(link, kind=value)
        case ["link", link, "queue", "packets"]:
            return SetLinkQueue(link, packets=value)
        case ["link", link, "up" | "down" as way, "queue"]:
            return SetLinkQueue(link, kind=value, sides=one(link, way))
        case ["link", link, "up" | "down" as way, "queue", "packets"]:
            return SetLinkQueue(link, packets=value, sides=one(link, way))
        case ["cell", ap, "tier1_mbps"]:
            return SetTier1Demand(ap, wire_bps(value))
        case ["cell", ap, user, "rate_mbps"]:
            return SetStationRate(ap, user, capacity_bps(value))
        case ["cell", ap, user, "up" | "down" as towards, "rate_mbps"]:
            return SetStationRate(ap, user, capacity_bps(value), way_of(towards))
        case ["iface", user, name, "up"]:
            return SetInterfaceUp(user, name, value)
        case ["endpoint", user, name]:
            return SetEndpoint(user, name, value)
        case ["user", user, "demand_mbps"]:
            return SetDemand(user, wire_bps(value))
        case ["user", user, "position"]:
            return SetPlace(user, None if value is None else (value[0], value[1]))
        case ["cc"]:
            return SetCongestionControl(value)
    raise RequestError(f"target {unknown(target, targets(scenario))}")


def way_of(towards: str) -> frozenset[Towards]:
    return frozenset(each for each in BOTH_WAYS if each == towards)


def side_of(down: Direction, way: str) -> Direction:
    """Return the direction "up" or "down" of a link of which `down` leads to the users."""
    if way == "down":
        return down
    return "ba" if down == "ab" else "ab"


def _strategy(scenario: Scenario) -> list[Target]:
    name, params = scenario.strategy.name, scenario.strategy.params
    rows = [
        Target(
            "strategy",
            "name",
            name,
            choices=tuple(sorted(schema.strategies())),
            help="which strategy decides",
        )
    ]
    for each in schema.described_strategy(name):
        rows.append(
            Target(
                f"strategy.{each['name']}",
                "parameter",
                params[each["name"]],
                each["unit"],
                each["minimum"],
                each["maximum"],
                choices=tuple(str(choice) for choice in each["choices"] or ()),
                help=each["help"],
                words=each.get("words", ""),
            )
        )
    return rows


def _rate(
    name: str,
    bps: int,
    scale: float,
    help: str,
    least_mbps: float = 0,
    most_mbps: float = MAX_MBPS,
) -> Target:
    return Target(
        name,
        "number",
        round(mbps_from_bps(bps) / scale, 6),
        "Mb/s",
        least_mbps,
        most_mbps,
        help=help if least_mbps else f"{help}; 0: nothing leaves, and what waits stays",
    )


def _tier1(name: str) -> Target:
    help = "what all Tier 1 of the access point asks for, held by a meter; null: unlimited"
    return Target(name, "number", None, "Mb/s", MIN_MBPS, MAX_MBPS, nullable=True, help=help)


def _network(scenario: Scenario) -> list[Target]:
    topology, scale = scenario.network, scenario.rate_scale
    down = down_directions(topology)
    rows = []
    for link in topology.links:
        name = f"link.{link.id}"
        if link.rate_bps is not None:
            forward = max(link.loss_ppm, link.loss_back_ppm)
            delay_ns, jitter_ns = link_delay_ns(link, topology.cells)
            of_cell_ns = delay_ns - link.delay_ns
            rows += [
                _rate(f"{name}.rate_mbps", link.rate_bps, scale, "in both directions"),
                *_directions(link, down.get(link.id), scale),
                Target(
                    f"{name}.delay_ms",
                    "number",
                    ms_from_ns(link.delay_ns),
                    "ms",
                    ms_from_ns(max(0, jitter_ns - of_cell_ns)),
                    MAX_DELAY_MS,
                    help="one way",
                ),
                Target(
                    f"{name}.loss",
                    "number",
                    fraction_from_ppm(forward),
                    "fraction",
                    0,
                    1,
                    help="in the data direction",
                ),
            ]
            rows += _queues(link, down.get(link.id)) if link in topology.sampled_links else []
        rows.append(Target(f"{name}.up", "switch", True, help="false: the link carries nothing"))
    for cell in topology.cells:
        if cell.radio:
            rows.append(_tier1(f"cell.{cell.ap}.tier1_mbps"))
        if cell.air == "wmediumd" or (scenario.mobility and cell.radio):
            continue  # the position of a user determines the radio rate
        most_mbps = math.floor(dcf.fastest_mbps(cell.standard)) if cell.air == "dcf" else MAX_MBPS
        for station in cell.stations:
            rows += _station(cell, station, scale, most_mbps)
    return rows


def _station(cell: Cell, station: Station, scale: float, most_mbps: float) -> Iterator[Target]:
    """Yield the rates of a station: of both directions, and of each."""
    ways = {"": "", ".down": " towards the user", ".up": " away from the user"}
    for name, help in ways.items():
        yield _rate(
            f"cell.{cell.ap}.{station.user}{name}.rate_mbps",
            station.way(name.removeprefix(".") or "down").rate_bps,
            scale,
            f"the station's rate{help} when alone",
            MIN_MBPS if cell.kind == "wifi" else 0,
            most_mbps,
        )


def _directions(link: Link, down: Direction | None, scale: float) -> list[Target]:
    """Return the rates of both directions of a link, of which `down` leads to the users."""
    if down is None:
        return []
    found = []
    for way, help in (("down", "towards the users"), ("up", "away from the users")):
        rate_bps = link.way(side_of(down, way)).rate_bps or 0
        found.append(_rate(f"link.{link.id}.{way}.rate_mbps", rate_bps, scale, help))
    return found


def _queues(link: Link, down: Direction | None) -> list[Target]:
    """Return the queue of a link, and that of each direction; `down` leads to the users."""
    found = _queue(f"link.{link.id}", link, "in both directions")
    if down is not None:
        for way, help in (("down", "towards the users"), ("up", "away from the users")):
            found += _queue(f"link.{link.id}.{way}", link.way(side_of(down, way)), help)
    return found


def _queue(name: str, link: Link, help: str) -> list[Target]:
    return [
        Target(
            f"{name}.queue",
            "name",
            link.discipline.kind,
            choices=get_args(queues.Kind),
            help=f"{help}; another kind begins with an empty queue",
        ),
        Target(
            f"{name}.queue.packets",
            "number",
            link.queue_packets,
            "packets",
            1,
            MAX_QUEUE_PACKETS,
            help=f"size of the queue, {help}",
        ),
    ]


def with_queue(link: Link, change: SetLinkQueue) -> Link:
    """Return the link with another queue in the directions of a change."""
    sides = change.sides
    if change.packets is not None:
        link = link.changed(sides, queue_packets=change.packets)
    if change.kind is not None and sides == BOTH:
        link = link.changed(sides, discipline=queues.of_kind(link.discipline, change.kind))
    elif change.kind is not None:
        for side in sides:
            own = queues.of_kind(link.way(side).discipline, change.kind)
            link = link.changed(frozenset((side,)), discipline=own)
    return link


def _queued(scenario: Scenario, target: str, value: Any) -> Link | None:
    """Return the link whose queue a change sets, as it is then; None for another target."""
    match target.split("."):
        case ["link", link, *more] if "queue" in more:
            change_ = change(scenario, target, value)
            assert isinstance(change_, SetLinkQueue)
            (before,) = (each for each in scenario.network.links if each.id == link)
            return with_queue(before, change_)
    return None


def _checked_queue(scenario: Scenario, target: str, value: Any) -> Any:
    """Raise `RequestError` if a link cannot have the queue that `value` sets."""
    link = _queued(scenario, target, value)
    for way in [link.way("ab"), link.way("ba")] if link else []:
        if way.discipline.kind == "red":
            try:
                queues.red(way.discipline, way.queue_packets)
            except ValueError as error:
                raise RequestError(f"{target}: {error}") from error
    return value


def _interfaces(scenario: Scenario) -> list[Target]:
    help = "false: its address is removed, and its subflows end; true: new ones are opened"
    of_endpoint = "backup: used while no other subflow can send; none: no subflow"
    rows = []
    for (host, name), each in switchable(scenario).items():
        rows.append(
            Target(f"iface.{host}.{name}.up", "switch", True, help=f"at {each.link}; {help}")
        )
        if host in scenario.network.users:
            rows.append(
                Target(
                    f"endpoint.{host}.{name}",
                    "name",
                    role_of(scenario.multipath, each, "subflow"),
                    choices=get_args(schema.RoleOfUser),
                    help=f"at {each.link}; {of_endpoint}",
                )
            )
    return rows


def _users(scenario: Scenario) -> list[Target]:
    limits = {flow.user: flow.rate_mbps for flow in scenario.traffic if flow.kind not in SELF_PACED}
    help = "all connections of the user together; null: unlimited"
    return [
        Target(
            f"user.{user}.demand_mbps",
            "number",
            limit,
            "Mb/s",
            MIN_MBPS,
            MAX_MBPS,
            nullable=True,
            help=help,
        )
        for user, limit in limits.items()
    ]


def _places(scenario: Scenario) -> list[Target]:
    area_m, walks = scenario.network.area_m, scenario.mobility is not None
    help = "x and y, where the user stands from then on; its radio rates and access point follow"
    return [
        Target(
            f"user.{user}.position",
            "place",
            None if walks else list(place),
            "m",
            0 if area_m else -MAX_M,
            area_m or MAX_M,
            nullable=walks,
            help=help + ("; null: it walks as the scenario says" if walks else ""),
        )
        for user, place in placeable(scenario.network).items()
    ]


def _no_place(scenario: Scenario, target: str, known: Mapping[str, Target]) -> str:
    """Return why the position of a user cannot be set and what can, or "" for any other target."""
    match target.split("."):
        case ["user", user, "position"] if user in scenario.network.users:
            pass
        case _:
            return ""
    traced = [
        each.target for each in scenario.network.traces if user in each.target.split(".")[2:3]
    ]
    if traced:
        return (
            f"target {target}: the rate of {traced[0]} follows a trace, not a place. Leave it out"
        )
    rates = [
        name
        for name in known
        if (name.startswith("cell.") and name.endswith(f".{user}.rate_mbps"))
        or name == f"user.{user}.demand_mbps"
    ]
    instead = f", or set {rates[0]}" if rates else ""
    return (
        f"target {target}: the radios of this network have no places. Choose one that has: "
        f"topology.kind: wireless_set{instead}"
    )


def _cc(scenario: Scenario) -> Target:
    return Target(
        "cc",
        "name",
        scenario.multipath.cc,
        choices=tuple(extensions.congestion_controls()),
        help="of open and of later connections",
        words="congestion control (cc)",
    )


def _checked_strategy(scenario: Scenario, value: Any) -> dict[str, Any]:
    """Return {"name": ..., "params": ...} with all parameters of a strategy, checked and with
    defaults.

    `value` is the name of the strategy, or a mapping with these two keys.
    """
    choice = schema.checked_strategy({"name": value} if isinstance(value, str) else value, "flip")
    schema.check_strategy_fits(choice.name, scenario.network, "flip")
    return {"name": choice.name, "params": choice.params}


def _checked_place(row: Target, value: Any) -> list[float] | None:
    if value is None and row.nullable:
        return None
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    if not is_pair or not all(_is_finite(each) for each in value):
        raise RequestError(
            f"{row.name}: {show(value)} is no position: write x and y in m, such as [12, 40]"
        )
    assert row.minimum is not None
    assert row.maximum is not None
    for name, each in zip("xy", value, strict=True):
        if not row.minimum <= each <= row.maximum:
            raise RequestError(
                f"{row.name}: {name} is {each:g} m, outside the area: "
                f"write {row.minimum:g} to {row.maximum:g}"
            )
    return [float(each) for each in value]


def _is_finite(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)


def _checked_number(row: Target, value: Any) -> float | None:
    if value is None and row.nullable:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        raise RequestError(
            f"{row.name}: {show(value)} is not a number" + (f" in {row.unit}" if row.unit else "")
        )
    assert row.minimum is not None
    assert row.maximum is not None
    if not row.minimum <= value <= row.maximum:
        percent = (
            f": write {value / 100:g} for {value:g} %"
            if row.name.endswith(".loss") and 1 < value <= 100
            else ""
        )
        raise RequestError(
            f"{row.name}: {value:g} is not within {row.minimum:g} to {row.maximum:g}"
            f" {row.unit}{percent}".rstrip()
        )
    if row.unit == "packets":
        if value != int(value):
            raise RequestError(f"{row.name}: {value:g} is not a whole number of packets")
        return int(value)
    if row.unit == "fraction":
        try:
            return checked_loss(float(value))
        except ValueError as error:
            raise RequestError(f"{row.name}: {error}") from error
    return float(value)
