"""What the networks and the traffic of scenarios consist of, and which engines have it."""

from __future__ import annotations

from lab.scenario.catalogue import Row, topology_rows
from lab.scenario.engine_table import ENGINES

ONLY = {("air", "wmediumd"): ["mininet"]}  # all others are in every engine
AIRS = {
    "cell": "a WiFi channel on which each frame takes its mean airtime, as in MP-SDN",
    "dcf": "a WiFi channel on which stations contend access by access, as in 802.11; the default",
    "wmediumd": "a program that models 802.11 frame by frame (topology.air of wifi_lte)",
}
LINKS = {
    "rate_mbps": "of each direction; without it, nothing limits the link",
    "delay_ms": "one way",
    "jitter_ms": "uniform around the delay; packets keep their order",
    "loss": "of packets in the direction of data, independent or in bursts",
    "loss_both": "of packets in both directions",
    "reorder": "packets that skip the delay, and so overtake others",
    "duplicate": "packets that arrive twice",
    "trace": "a file that rate, delay and loss follow",
    "queue": "which packets are dropped",
    "up": "what the direction away from the users has of its own, a trace too",
    "down": "what the direction towards the users has of its own, a trace too",
}
STATIONS = {
    "wifi_mbps": "the rate of a station that is alone in its cell",
    "wifi_trace": "a file that this rate follows",
    "wifi_up": "rate or trace of the direction away from the user; wifi_down is the other one",
    "lte_mbps": "the rate of a bearer that is alone in its cell",
    "lte_trace": "a file that this rate follows",
    "lte_up": "rate, trace, delay, loss and queue of this direction; lte_down is the other one",
    "lte_queue": "which packets are dropped, in both directions",
}
QUEUES = {
    "fifo": "drops what arrives while it is full",
    "codel": "drops while all packets of an interval waited too long (RFC 8289)",
    "fq_codel": "the same, with a queue for each flow (RFC 8290)",
    "red": "drops the more often, the longer it has been; with mark_packets a step, for dctcp",
}
TRACES = {
    "mahimahi": "a line for each packet that can be delivered, its time in ms",
    "csv": "columns t_s and any of rate_mbps, delay_ms and loss",
}
OWN_FILE = "A topology in a Python file of your own. Write 'topology: {file: FILE.py, ...}'."


def rows() -> list[Row]:
    """Return one row per kind of network, model of the air, key of a link or a station, kind of
    queue and format of a trace."""
    networks = {str(each["kind"]): str(each["help"]) for each in topology_rows()}
    found = {
        "network": networks | {"file": OWN_FILE},
        "air": AIRS,
        "link": LINKS,
        "station": STATIONS,
        "queue": QUEUES,
        "trace": TRACES,
    }
    return [
        {"part": part, "kind": kind, "engines": ONLY.get((part, kind), list(ENGINES)), "help": text}
        for part, kinds in found.items()
        for kind, text in kinds.items()
    ]


TRAFFIC = {
    "bulk": "as much as the connection carries",
    "file": "a file of volume_mb",
    "rate": "what an application writes at rate_mbps",
    "on_off": "the same, in random periods with pauses",
    "udp": "datagrams at rate_mbps, whether or not they arrive",
    "workload": "many files of random sizes at random times, over a connection each",
    "rpc": "requests, and answers of one size",
    "web": "pages of many objects over several connections",
    "video": "chunks of a video that adapts its bitrate",
    "call": "voice over UDP in both directions over one interface",
}


def traffic_rows() -> list[Row]:
    """Return one row per kind of traffic."""
    return [
        {"part": "traffic", "kind": kind, "engines": list(ENGINES), "help": text}
        for kind, text in TRAFFIC.items()
    ]
