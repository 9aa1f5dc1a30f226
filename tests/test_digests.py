"""Settings that came later do not change the digest of an experiment that does not use them, so that
runs of older versions are still found, continued and pooled."""

from __future__ import annotations

import pytest

from lab.scenario import loading
from lab.scenario.loading import Overrides

LINK = {"rate_mbps": 10, "delay_ms": 20, "up": {"rate_mbps": 2}}
PATHS = {"kind": "parallel_paths", "paths": [LINK, {"rate_mbps": 5, "loss": 0.01}]}
FLOWS = [{"user": "ue1"}, {"user": "ue1", "kind": "file", "volume_mb": 2, "start_s": 1}]
OWN = {
    "kind": "nodes_and_links",
    "users": [{"id": "a"}],
    "servers": ["b"],
    "switches": ["s"],
    "links": [{"a": "a", "b": "s", "rate_mbps": 3, "down": {"loss": 0.02}}, {"a": "s", "b": "b"}],
}
QUEUES = {  # as they were before `mark_packets`
    "kind": "parallel_paths",
    "paths": [
        {
            "rate_mbps": 5,
            "queue": {"kind": "codel", "packets": 90},
            "up": {"queue": {"kind": "red"}},
        }
    ],
}
CELLS = {
    "kind": "wifi_lte",
    "air": "cell",  # the default then
    "users": [{"id": "u1", "wifi_mbps": 20}],
    "multipath": [],
}
DIGESTS = {  # computed when the keys of directions were new
    "paths": (PATHS, FLOWS, "e2235181ab122980d625d8ee9285d1accaa194a327be639730562c33cedbaa09"),
    "tree": (
        {"kind": "fat_tree", "k": 2},
        [{"user": "all", "kind": "rate", "rate_mbps": 1}],
        "663c991817779842d2b1cb046ca4ade4ef115a7d68e202e21e550d43584a53ff",
    ),
    "cells": (
        CELLS,
        [{"user": "u1"}],
        "2c82cf2f8bf731241e98ea50c54dfb8b9161ea58b6641bd2a1f8f0888a2c4cc3",
    ),
    "queues": (
        QUEUES,
        [{"user": "ue1"}],
        "ef97e9343bb57009b0eb5c2cbf9288c885d62c0c9e4c47442540bca2da8ebb11",
    ),
    "own": (
        OWN,
        [{"user": "a", "kind": "on_off", "rate_mbps": 1}],
        "000ca1dce457bc56428144e64148a85dc1fef3697d1b89a84b84d70ff4ffe07f",
    ),
}


@pytest.mark.parametrize("name", DIGESTS)
def test_a_digest_stays_as_it_was(name):
    topology, traffic, digest = DIGESTS[name]
    document = {"name": name, "title": "t", "topology": topology, "traffic": traffic}
    scenario = loading.from_data(document | {"duration_s": 9, "seed": 3}, name, Overrides())
    assert loading.experiment(scenario, "sim") == digest


def test_the_digest_of_a_network_stays_as_it_was():
    document = {"name": "queues", "title": "t", "topology": QUEUES, "traffic": [{"user": "ue1"}]}
    network = loading.from_data(document, "queues", Overrides()).network
    digest = "7b17bc3a7404754e4c451374a5068e8a25fc0b336edafa2d8588ab4b49cbf4b4"
    assert network.sha256() == digest
