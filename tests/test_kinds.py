"""`list kinds` has every part that a network can have, and no other."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from users_files import lab

from lab.engines import registry
from lab.errors import RequestError
from lab.run.engine import Options
from lab.scenario import kinds, loading
from lab.scenario.loading import Overrides
from lab.scenario.traffic import Traffic
from lab.topologies.families import TOPOLOGIES
from lab.topologies.nodes_and_links import Wire
from lab.topologies.queues import Kind
from lab.topologies.wifi_lte import Params, User

NAMES = {"id", "a", "b", "queue_packets", "trace_bin_ms"}  # a name, or another form of a key
OF_USERS = {"near", "lte_weight", "wifi_down", "lte_down"}


def test_every_kind_is_listed():
    assert {*kinds.QUEUES} == {*get_args(Kind)}
    assert {*kinds.LINKS} == {*Wire.model_fields} - NAMES
    assert {*kinds.STATIONS} == {*User.model_fields} - NAMES - OF_USERS
    assert {*kinds.AIRS} == {*get_args(Params.model_fields["air"].annotation)}
    assert {*kinds.TRAFFIC} == {*get_args(Traffic.model_fields["kind"].annotation)}
    rows = json.loads(lab("list", "kinds", "--json").output)
    networks = {each["kind"] for each in rows if each["part"] == "network"}
    assert networks == {*TOPOLOGIES, "mininet", "miniedit", "graphml", "file"}
    assert all(each["help"] and each["engines"] for each in rows)


def test_a_kind_that_an_engine_lacks_is_refused_there():
    for (part, kind), engines in kinds.ONLY.items():
        settings = (f"topology.{part}={kind}", "topology.multipath=[ue2]")
        scenario = loading.load("testbed_wifi_lte", Overrides(settings=settings))
        for name in {"sim", "mininet"} - {*engines}:
            with pytest.raises(RequestError, match=kind):
                registry.admit(name, scenario, Options(1.0 if name == "mininet" else 0.0))
