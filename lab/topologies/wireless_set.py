"""Build three WiFi access points and one LTE base station in a square, with users at random places.

Source: MP-SDN, section III-B2 and Figure 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from controller.units import ns_from_ms
from lab.radio.cell import Cell, Radio, wifi_cell
from lab.radio.lte import BLOCKS
from lab.radio.mobility import Place, distance_m, uniform
from lab.radio.stations import best_bps, station
from lab.radio.wifi import STANDARDS
from lab.topologies.topology import Link, Node, Topology
from lab.topologies.wifi_lte import Delay

POSITIONS = True  # users have places, which the seed decides, and may move
FIGURE_4_M = 200.0  # side of the square of Figure 4, to which these places belong
PLACES: dict[str, Place] = {
    "wifi1": (100, 150),
    "wifi2": (50, 50),
    "wifi3": (150, 50),
    "lte1": (100, 100),
}
# The paper names no radio. It used ns-3, so these are ns-3's defaults: 802.11a, 40 mW, and a base
# station of 1 W. With these an access point carries about the 10 to 12 Mb/s that Figure 13 implies.
WIFI_DBM, LTE_DBM = 16.02, 30.0
LTE_MHZ = 2120


class Params(BaseModel):
    """The parameters of a topology with `kind: wireless_set`. Delays are one way.

    `wifi` is the standard of all WiFi cells. A user nearer than `wifi_near_m` to a WiFi access
    point opens connections over WiFi, any other user over LTE. `lte_mhz` is the bandwidth of the
    LTE cell.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    users: Annotated[int, Field(ge=1, le=100)] = 30
    area_m: Annotated[float, Field(ge=20, le=1000)] = 200
    multipath_percent: Annotated[float, Field(ge=0, le=100)] = 40
    wifi: Literal["11a", "11g", "11n24", "11n5"] = "11a"
    wifi_near_m: Annotated[float, Field(gt=0, le=1000)] = 50
    lte_mhz: Literal[5, 10, 20] = 10
    path_loss_exponent: Annotated[float, Field(ge=2, le=6)] = 3
    wifi_delay_ms: Delay = 5
    lte_delay_ms: Delay = 20
    lte_jitter_ms: Delay = 2
    wifi_queue_packets: Annotated[int, Field(ge=100, le=10_000)] = 150
    lte_queue_packets: Annotated[int, Field(ge=100, le=10_000)] = 200
    air: Literal["cell", "dcf"] = "dcf"


@dataclass(frozen=True)
class User:
    """A user at a position (`place`, x and y in m).

    `nearest` is the nearest WiFi access point. `uses` names the one or two access points that the
    user is connected to, possibly the LTE base station lte1. The user opens connections over the
    first one.
    """

    id: str
    place: Place
    nearest: str
    uses: tuple[str, ...]


def build(params: Params, rate_scale: float = 1.0, seed: int = 1) -> Topology:
    """Return a network with users at random places, on WiFi (~) or LTE (|).

    A user nearer than `wifi_near_m` to a WiFi access point opens connections over WiFi, any other
    user over LTE. A multipath user, here ue3, is on LTE and on the nearest WiFi access point, at
    any distance. WiFi cells are on different channels. Users are called ue1, ue2, and so on.

     ue1    ue2  ue3   ue4   ue5
      ~       ~  ~ |    |     ~
    wifi1    wifi2 +-- lte1  wifi3
        \\       \\       |     /
         +-------+- s1 -+----+
                    |
                   srv1
    """
    everyone = users(params, seed)
    places = _places(params)
    nodes = [Node(each.id, "user", each.uses[0], place_m=each.place) for each in everyone]
    nodes += [
        Node(ap, "lte" if ap == "lte1" else "wifi", place_m=place) for ap, place in places.items()
    ]
    nodes += [Node("s1", "switch"), Node("srv1", "server")]
    links = [Link("server", "s1", "srv1"), *(Link(f"to{ap}", "s1", ap) for ap in places)]
    cells = tuple(_cell(params, ap, everyone, rate_scale) for ap in places)
    multipath = tuple(each.id for each in everyone if len(each.uses) > 1)
    return Topology("wireless_set", tuple(nodes), tuple(links), cells, multipath, params.area_m)


def users(params: Params, seed: int) -> list[User]:
    """Return all users, at random positions that depend on `seed`.

    `multipath_percent` of the users, chosen at random, are multipath. With the same seed, a larger
    percentage keeps all multipath users of a smaller percentage and adds others.
    """
    names = [f"ue{n}" for n in range(1, params.users + 1)]
    order = sorted(names, key=lambda name: uniform(seed, name, "multipath"))
    multipath = order[: round(params.users * params.multipath_percent / 100)]
    return [_user(params, name, seed, name in multipath) for name in names]


def _user(params: Params, name: str, seed: int, multipath: bool) -> User:
    x, y = (round(params.area_m * uniform(seed, name, axis), 2) for axis in ("x", "y"))
    aps = {ap: distance_m((x, y), there) for ap, there in _places(params).items() if ap != "lte1"}
    nearest = min(aps, key=lambda ap: aps[ap])
    ordered = (nearest, "lte1") if aps[nearest] < params.wifi_near_m else ("lte1", nearest)
    return User(name, (x, y), nearest, ordered if multipath else ordered[:1])


def _places(params: Params) -> dict[str, Place]:
    """Return the positions (x and y in m) of the access points, in a square with the side
    `area_m`."""
    scale = params.area_m / FIGURE_4_M
    return {ap: (x * scale, y * scale) for ap, (x, y) in PLACES.items()}


def _cell(params: Params, ap: str, everyone: list[User], rate_scale: float) -> Cell:
    there = _places(params)[ap]
    radio = _radio(params, ap, rate_scale)
    stations = tuple(
        station(each.id, radio, distance_m(each.place, there))
        for each in everyone
        if ap in each.uses
    )
    kind, best = ("lte" if ap == "lte1" else "wifi"), best_bps(radio)
    if kind == "lte":
        delays = (ns_from_ms(params.lte_delay_ms), ns_from_ms(params.lte_jitter_ms))
        return Cell(
            ap, "lte", stations, params.lte_queue_packets, *delays, radio=radio, best_bps=best
        )
    delay_ns = ns_from_ms(params.wifi_delay_ms)
    return wifi_cell(
        ap,
        stations,
        params.wifi_queue_packets,
        delay_ns,
        radio=radio,
        best_bps=best,
        air=params.air,
        standard=params.wifi,
        rate_scale=rate_scale,
    )


def _radio(params: Params, ap: str, rate_scale: float) -> Radio:
    if ap == "lte1":
        return Radio(
            "lte", LTE_MHZ, LTE_DBM, params.path_loss_exponent, BLOCKS[params.lte_mhz], rate_scale
        )
    return Radio(
        params.wifi,
        STANDARDS[params.wifi].carrier_mhz,
        WIFI_DBM,
        params.path_loss_exponent,
        rate_scale=rate_scale,
    )
