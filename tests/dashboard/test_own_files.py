"""The page offers the files in the folders given by `--with`, by name."""

from __future__ import annotations

import json

import pytest
from users_files import SCENARIO, _only_built_in, my

from dashboard.runs import StartRequest, checked
from lab import extensions
from lab.errors import RequestError

__all__ = ["_only_built_in", "my"]


@pytest.fixture
def folder(my):
    text = SCENARIO.replace("file: doorway.py", "kind: doorway")
    (my / "doorway.yaml").write_text(text)
    extensions.add(my)
    return my


def test_forms_list_the_names(client, folder):
    def names(path):
        return {each["name"] for each in client.get(path).json}

    assert "keep_all" in names("/api/strategies")
    assert "doorway" in names("/api/scenarios")


def test_a_run_can_be_started_with_them(folder):
    scenario = checked(StartRequest(scenario="doorway", strategy="keep_all", cc="scalable"))
    assert (scenario.topology.kind, scenario.strategy.name) == ("doorway", "keep_all")


MININET = """from mininet.topo import Topo

class Pair(Topo):
    def build(self):
        for n in (1, 2):
            self.addLink(self.addHost(f"h{n}"), self.addSwitch(f"s{n}"))
        self.addLink("s1", "s2", bw=7)
"""
DRAWING = {
    "hosts": [{"number": "1", "opts": {}}, {"number": "2", "opts": {}}],
    "switches": [{"number": "1", "opts": {}}],
    "links": [
        {"src": "h1", "dest": "s1", "opts": {"bw": 7}},
        {"src": "h2", "dest": "s1", "opts": {}},
    ],
}


@pytest.mark.parametrize(("key", "file"), [("mininet", "nets/pair.py"), ("miniedit", "nets/p.mn")])
def test_a_network_of_another_program_is_drawn_and_run(client, my, key, file):
    (my / "nets").mkdir()
    (my / file).write_text(MININET if key == "mininet" else json.dumps(DRAWING))
    topology = f"{{{key}: {file}, users: [h1], servers: [h2]}}"
    (my / "pair.yaml").write_text(
        f"name: pair\ntitle: T\ntopology: {topology}\ntraffic: [{{user: h1}}]\nduration_s: 2\n"
    )
    extensions.add(my / "pair.yaml")
    rows = {each["name"]: each for each in client.get("/api/scenarios").json}
    assert "error" not in rows["pair"]
    drawing = client.get("/api/scenarios/pair/network").json["drawing"]
    assert {"h1", "h2", "s1"} <= {each["id"] for each in drawing["nodes"]}
    assert 7 in [each["rate_mbps"] for each in drawing["lines"]]
    assert client.get("/scenarios/pair").status_code == 200
    assert checked(StartRequest(scenario="pair")).network.users == ("h1",)
    for path in ("../" + file, "/etc/hosts.py"):
        with pytest.raises(RequestError, match="only names are accepted"):
            checked(StartRequest(scenario="pair", set={f"topology.{key}": path}))


def test_a_name_of_another_folder_is_unknown(client, folder):
    answer = client.post("/api/runs", json={"scenario": "two_paths", "strategy": "keep_none"})
    assert answer.status_code == 422
    assert "'keep_none' is unknown" in answer.json["error"]
