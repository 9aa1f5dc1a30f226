"""Build five senders and five receivers, each on WiFi and LTE or on two WiFi cells.

Source: RAT study, section V, Setups I to III.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from controller.units import bps_from_mbps, ns_from_ms, ppm_from_fraction
from lab.radio.cell import Cell, Station, wifi_cell
from lab.radio.contention import transmissions
from lab.topologies.topology import Link, Node, Topology
from lab.topologies.wifi_lte import Delay

# The rate of each of five nodes that share a cell, in Mb/s. The study gives orderings only; these
# rates fit all of them.
WIFI_MBPS = {"11a": 4.5, "11g": 4.0, "11n24": 8.0, "11n5": 12.0}
WIFI_LOSS = {"11n24": 0.01}
LTE_MBPS = {1: 4.0, 2: 10.0, 3: 10.0}
LTE_RTT_MS = {1: 60.0, 2: 40.0, 3: 40.0}
SHARING = 5  # nodes that share a cell in these tables
CONTENDERS = SHARING + 1  # the access point is one too
FRAME_BYTES = 1514


class Params(BaseModel):
    """The parameters of a topology with `kind: rat_setup`.

    Each receiver has two interfaces.

    - `setup`: number of the setup in the RAT study
    - `wifi`: standard of all WiFi cells
    - `interfaces`: the interfaces that a receiver uses: both, only the first ("wifi"), or only the
      second ("lte", which is a WiFi interface too in Setups II and III)
    - `pairs`: number of senders, and also of receivers
    - `lte_rtt_ms`: None means the value of the setup
    - `wifi_loss`: fraction of frames that a WiFi cell loses although it retransmits; None means the
      value of the standard
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    setup: Literal[1, 2, 3] = 1
    wifi: Literal["11a", "11g", "11n24", "11n5"] = "11n5"
    interfaces: Literal["both", "wifi", "lte"] = "both"
    pairs: Annotated[int, Field(ge=1, le=20)] = 5
    wifi_rtt_ms: Delay = 5
    lte_rtt_ms: Delay | None = None
    wifi_loss: Annotated[float, Field(ge=0, le=0.5)] | None = None
    wifi_queue_packets: Annotated[int, Field(ge=100, le=10_000)] = 200
    lte_queue_kb: Annotated[float, Field(ge=150, le=100_000)] = 1000
    air: Literal["cell", "dcf"] = "dcf"


def build(params: Params, rate_scale: float = 1.0) -> Topology:
    """Return the network of one setup of the RAT study.

    Each sender srvN is behind a switch nN, which is a station of wifi1 and lte1. Each receiver ueN
    is a station of two cells and opens its connections over wifi2. The parameter `interfaces` can
    limit a receiver to one of its two cells.

                 ~ wifi1 ~~ s1 -- wifi2 ~               all setups
    srv1 -- n1 ~~                         ~~ ue1
                 ~ lte1 - - - - - - - - ~               Setup I: the same base station
                 ~ lte1 ~~ s2 -- wifi3 ~                Setup II: another WiFi cell
                 ~ lte1 ~~ s2 -- wifi3 ~                Setup III: wifi3 is on wifi2's channel
    """
    pairs = range(1, params.pairs + 1)
    second = "lte1" if params.setup == 1 else "wifi3"
    ends = {"both": ("wifi2", second), "wifi": ("wifi2",), "lte": (second,)}[params.interfaces]
    nodes = [Node(f"ue{n}", "user", ends[0], server=f"srv{n}") for n in pairs]
    nodes += [node for n in pairs for node in (Node(f"n{n}", "switch"), Node(f"srv{n}", "server"))]
    nodes += [
        Node("wifi1", "wifi"),
        Node("wifi2", "wifi"),
        Node("lte1", "lte"),
        Node("s1", "switch"),
    ]
    links = [link for n in pairs for link in _sender(n)]
    links += [Link("s1wifi1", "s1", "wifi1"), Link("s1wifi2", "s1", "wifi2")]
    if params.setup > 1:
        nodes += [Node("s2", "switch"), Node("wifi3", "wifi")]
        links += [Link("s2lte1", "s2", "lte1"), Link("s2wifi3", "s2", "wifi3")]
    multipath = tuple(f"ue{n}" for n in pairs) if len(ends) > 1 else ()
    return Topology(
        "rat_setup", tuple(nodes), tuple(links), tuple(_cells(params, ends, rate_scale)), multipath
    )


def _sender(n: int) -> list[Link]:
    return [
        Link(f"server{n}", f"n{n}", f"srv{n}"),
        Link(f"n{n}wifi1", f"n{n}", "wifi1"),
        Link(f"n{n}lte1", f"n{n}", "lte1"),
    ]


def _cells(params: Params, ends: tuple[str, ...], rate_scale: float) -> list[Cell]:
    """Return all cells of the setup. `ends` names the cells that the receivers use.

    `WIFI_MBPS` and `LTE_MBPS` are the rates of one node while five nodes share a cell. A cell is
    described by the rate of a node that is alone. In an LTE cell, this is five times `LTE_MBPS`. In
    a WiFi cell, five nodes also lose airtime to collisions, and a lone node does not. So its rate
    is five times `WIFI_MBPS`, times the mean number of transmissions of a frame among five nodes.
    """
    receivers, senders = (
        [f"{kind}{n}" for n in range(1, params.pairs + 1)] for kind in ("ue", "n")
    )
    wifi_bps = bps_from_mbps(
        rate_scale * SHARING * WIFI_MBPS[params.wifi] * transmissions(CONTENDERS)
    )
    lte_bps = bps_from_mbps(rate_scale * SHARING * LTE_MBPS[params.setup])
    rtt_ms = LTE_RTT_MS[params.setup] if params.lte_rtt_ms is None else params.lte_rtt_ms
    wifi_loss = WIFI_LOSS.get(params.wifi, 0.0) if params.wifi_loss is None else params.wifi_loss
    legs = 2 if params.setup == 1 else 1  # radio links of LTE on a path

    def wifi(ap: str, users: list[str], medium: str = "") -> Cell:
        stations = tuple(Station(user, wifi_bps) for user in users)
        delay_ns = ns_from_ms(params.wifi_rtt_ms / 4)
        return wifi_cell(
            ap,
            stations,
            params.wifi_queue_packets,
            delay_ns,
            loss_ppm=ppm_from_fraction(wifi_loss),
            medium=medium,
            air=params.air,
            standard=params.wifi,
            rate_scale=rate_scale,
        )

    def lte(users: list[str]) -> Cell:
        stations = tuple(
            Station(user, lte_bps, delay_ns=ns_from_ms(rtt_ms / 2 / legs)) for user in users
        )
        return Cell("lte1", "lte", stations, round(params.lte_queue_kb * 1000 / FRAME_BYTES))

    cells = [wifi("wifi1", senders), wifi("wifi2", receivers if "wifi2" in ends else [])]
    cells.append(lte([*senders, *(receivers if "lte1" in ends else [])]))
    if params.setup > 1:
        cells.append(
            wifi(
                "wifi3", receivers if "wifi3" in ends else [], "wifi2" if params.setup == 3 else ""
            )
        )
    return cells
