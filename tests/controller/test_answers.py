"""POX answers every message of the runner with the message's number."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from controller import topology
from controller.control import Control
from controller.pox_ext.run_folder import RunFolder, Unreadable

NETWORK = {
    "switches": {"s1": {"dpid": 1}, "s2": {"dpid": 2}},
    "aps": {},
    "multipath": [],
    "hosts": {},
    "trunks": [
        {"link": "wire", "a": "s1", "a_port": "s1-s2", "b": "s2", "b_port": "s2-s1", "rate_mbps": 8}
    ],
    "rate_scale": 0.5,
}


@pytest.fixture
def told(tmp_path, pox):
    """Put (kind, value) messages into the inbox of a session without switches; return the
    answers."""
    nexus = SimpleNamespace(addListeners=lambda _: None, getConnection=lambda _: None)
    folder = RunFolder(tmp_path)
    network = topology.read(json.dumps(NETWORK))
    made = pox.session.Session(network, Control("none"), folder, nexus, lambda _: None)

    def tell(*messages):
        for seq, (kind, value) in enumerate(messages, 1):
            text = json.dumps({"seq": seq, "kind": kind, "value": value})
            (tmp_path / "inbox" / f"{seq:06d}.json").write_text(text)
        made.tick()
        lines = (tmp_path / "decisions.jsonl").read_text().splitlines()
        return [each for each in map(json.loads, lines) if each["kind"] in ("flip", "warning")]

    yield tell
    folder.close()


def test_a_change_is_answered_as_applied_or_as_refused_and_why(told):
    answers = told(
        ("params", {"interval_s": 0.5}),
        ("params", {"interval_s": -1}),
        ("strategy", {"name": "nothing"}),
        ("link", {"link": "wire", "rate_mbps": 4}),
        ("tier1", {"ap": "lte9", "mbps": 1}),
        ("nonsense", {}),
    )
    assert [(each["seq"], each["state"], each["ok"]) for each in answers] == [
        (1, "applied", True),
        (2, "refused", False),
        (3, "refused", False),
        (4, "applied", True),
        (5, "refused", False),
        (6, "refused", False),
    ]
    assert answers[0]["value"] == {"interval_s": 0.5}
    assert "greater than" in answers[1]["why"]
    assert "choose from disjoint" in answers[2]["why"]
    assert answers[3]["value"] == {"link": "wire", "rate_mbps": 8.0}  # in scenario units
    assert "choose from none" in answers[4]["why"]
    assert answers[5]["why"].startswith("inbox/000006.json: ")


def test_a_file_whose_name_is_no_number_has_no_number_in_its_answer(tmp_path):
    folder = RunFolder(tmp_path)
    (tmp_path / "inbox" / "12.json").write_text("{")
    (tmp_path / "inbox" / "x.json").write_text("{")
    found = list(folder.messages())
    assert all(isinstance(each, Unreadable) for each in found)
    assert [each.seq for each in found] == [12, None]
    folder.close()
