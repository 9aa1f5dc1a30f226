"""Strategies from files in real POX: those that fail, and those that cannot be loaded."""

from __future__ import annotations

import pytest
from userspace_bridges import eventually
from userspace_network import missing
from userspace_traffic import (
    FAST,
    TCP,
    download,
    start,
)

pytestmark = [pytest.mark.emulation, pytest.mark.skipif(bool(missing()), reason=missing())]


BROKEN = """\
from controller.strategies.base import Strategy


class Broken(Strategy):
    def decide(self, observation):
        return observation.nothing

    def withdraw(self, observation):
        return []
"""


def test_a_strategy_that_fails_is_reported_with_its_line_and_no_step_follows(network):
    file = network.folder / "broken.py"
    file.write_text(BROKEN)
    start(network, str(file))
    failed = eventually(lambda: network.lines("failed"), "say that the strategy failed")
    assert len(failed) == 1
    assert failed[0]["strategy"] == "broken"
    assert (failed[0]["file"], failed[0]["line"]) == (str(file), 6)
    assert f"failed in decide: {file}, line 6: AttributeError" in failed[0]["text"]
    download(network, TCP, "10.1.0.1")  # packets are still forwarded
    assert network.lines("observation") == []
    assert len(network.lines("failed")) == 1


def test_a_message_switches_to_a_strategy_from_a_file(network):
    start(network, "none")
    file = network.folder / "broken.py"
    file.write_text(BROKEN.replace("return observation.nothing", "nonsense ="))
    network.tell(1, "strategy", {"name": "broken", "params": FAST, "file": str(file)})
    (refusal,) = eventually(lambda: network.lines("flip"), "refuse a file with an error")
    assert (refusal["seq"], refusal["state"], refusal["ok"]) == (1, "refused", False)
    assert refusal["why"] == f"import {file}, line 6: SyntaxError: invalid syntax"
    file.write_text(BROKEN.replace("observation.nothing", "[]"))
    network.tell(2, "strategy", {"name": "broken", "params": FAST, "file": str(file)})
    eventually(lambda: len(network.lines("flip")) == 2, "switch")
    assert network.lines("flip")[1]["state"] == "applied"
    eventually(
        lambda: any(line["strategy"] == "broken" for line in network.lines("observation")),
        "decide with the strategy from the file",
    )


def test_a_file_that_cannot_be_used_ends_the_start_with_one_sentence(network):
    file = network.folder / "broken.py"
    file.write_text("import nothing_like_it")
    network.start_pox(str(file))
    assert network.pox.wait(10) == 2
    says = f"import {file}, line 1: ModuleNotFoundError: No module named 'nothing_like_it'"
    assert says in (network.folder / "pox.log").read_text()
