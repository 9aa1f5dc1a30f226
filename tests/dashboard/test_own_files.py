"""The page offers the files in the folders given by `--with`, by name."""

from __future__ import annotations

import pytest
from users_files import SCENARIO, _only_built_in, my

from dashboard.runs import StartRequest, checked
from lab import extensions

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


def test_a_name_of_another_folder_is_unknown(client, folder):
    answer = client.post("/api/runs", json={"scenario": "two_paths", "strategy": "keep_none"})
    assert answer.status_code == 422
    assert "'keep_none' is unknown" in answer.json["error"]
