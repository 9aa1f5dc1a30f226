"""One simulated WiFi cell whose stations have given PHY rates."""

from __future__ import annotations

import random
from typing import Literal

from lab.engines.sim.engine import SimEngine
from lab.radio.cell import Radio, Station, wifi_cell
from lab.radio.stations import best_bps, station
from lab.radio.wifi import STANDARDS
from lab.scenario import loading
from lab.topologies.topology import Link, Node, Topology

from .ns3_wifi_cases import Case, saturating_frames_per_s
from .simulated import Notes

QUEUE_PACKETS = 150  # the lab's default
NO_LIMIT = 10_000_000
WARM_S, MEASURED_S = 5.0, 20.0
UDP_PAYLOAD_BYTES, TCP_PAYLOAD_BYTES = 1472, 1448


Air = Literal["cell", "dcf"]


def member(case: Case, n: int) -> Station:
    """Station `n` of a case, at a distance at which the signal allows its PHY rate."""
    standard = STANDARDS[case.standard]
    radio = Radio(case.standard, standard.carrier_mhz, 16.0, 3.0)
    needed_dbm = dict(standard.rates)[case.rates_mbps[n]] + 0.5
    distance_m = 10 ** ((radio.rssi_dbm(1.0) - needed_dbm) / (10 * radio.exponent))
    return station(f"ue{n + 1}", radio, distance_m)


def topology(case: Case, queue_packets: int, air: Air) -> Topology:
    """A case's cell, with a server at its access point."""
    radio = Radio(case.standard, STANDARDS[case.standard].carrier_mhz, 16.0, 3.0)
    members = tuple(member(case, n) for n in range(len(case.rates_mbps)))
    nodes = (
        *(Node(each.user, "user", "wifi1") for each in members),
        Node("wifi1", "wifi"),
        Node("srv1", "server"),
    )
    best = best_bps(radio)
    cell = wifi_cell(
        "wifi1", members, queue_packets, 0, best_bps=best, air=air, standard=case.standard
    )
    return Topology("cell", nodes, (Link("server", "wifi1", "srv1"),), (cell,))


def simulate(case: Case, air: Air) -> list[float]:
    """Frames per second of each flow in the simulator; the case's number is the seed.

    With datagrams in one direction no queue is full, as in the ns-3 table: constant rates and full
    queues would give some flows more than others.
    """
    one_way = len(set(case.is_upload)) == 1 and not case.is_tcp
    rng = random.Random(f"simulated cell {case.number}")
    traffic = []
    offered = saturating_frames_per_s(case)
    for n, (up, frames_per_s) in enumerate(zip(case.is_upload, offered, strict=True), 1):
        flow = {"user": f"ue{n}", "direction": "up" if up else "down"}
        flow["start_s"] = round(rng.uniform(0, 0.3), 4)
        if not case.is_tcp:
            flow |= {"kind": "udp", "rate_mbps": round(frames_per_s * UDP_PAYLOAD_BYTES * 8e-6, 4)}
        traffic.append(flow)
    users = [{"id": flow["user"], "wifi_mbps": 1} for flow in traffic]
    data = {
        "name": "cell",
        "title": "One cell",
        "seed": case.number,
        "duration_s": WARM_S + MEASURED_S,
        "topology": {"kind": "wifi_lte", "users": users},  # replaced
        "traffic": traffic,
    }
    scenario = loading.from_data(data, "cell.yaml")
    network = topology(case, NO_LIMIT if one_way else QUEUE_PACKETS, air)
    engine = SimEngine()
    engine.open(scenario.with_network(network), Notes())
    engine.advance(WARM_S)
    frame = engine.advance(WARM_S + MEASURED_S)[0].to_json()
    engine.close()
    payload = TCP_PAYLOAD_BYTES if case.is_tcp else UDP_PAYLOAD_BYTES
    mbps = [frame["user"][flow["user"]]["mbps"] for flow in traffic]
    return [each * 1e6 / 8 / payload for each in mbps]
