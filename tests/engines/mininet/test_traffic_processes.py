"""The traffic programs of the hosts, here in the place of hosts: this machine."""

import pytest

from lab.engines.mininet import traffic_processes as module
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.traffic_processes import Hosts
from lab.errors import LabError

ECHO = "import json, sys\nfor line in sys.stdin: print(json.dumps(json.loads(line) | {'by': sys.argv[1]}), flush=True)"
SILENT = "import sys; sys.stdin.read()"


class Network:
    """Each host runs this program."""

    def __init__(self, program):
        self.program = program

    def inside(self, host, argv):
        return [argv[0], "-c", self.program, host] if self.program else argv


@pytest.fixture
def make(tmp_path):
    made = []

    def start(program=""):
        made.append(Hosts(Network(program), Ledger(tmp_path / "ledger"), ("a", "b")))
        return made[-1]

    yield start
    for each in made:
        each.stop()
        for program in each._programs.values():
            program.wait(5)


def test_each_answers_for_itself(make):
    hosts = make(ECHO)
    assert hosts.ask("a", do="x", n=1) == {"do": "x", "n": 1, "by": "a"}
    answers = hosts.ask_all({"a": {"do": "x"}, "b": {"do": "y"}})
    assert [(each["do"], each["by"]) for each in answers.values()] == [("x", "a"), ("y", "b")]


def test_they_are_written_down(make, tmp_path):
    hosts = make(ECHO)
    assert [each["pid"] for each in Ledger(tmp_path / "ledger").entries()] == [
        each.pid for each in hosts._programs.values()
    ]


def test_the_real_program_answers_and_its_errors_are_ours(make):
    hosts = make()
    assert hosts.ask("a", do="status") == {"flows": {}}
    with pytest.raises(LabError, match="ask a to go: KeyError: 'none'"):
        hosts.ask("a", do="go", id="none")


def test_no_answer_is_an_error(make, monkeypatch):
    monkeypatch.setattr(module, "ANSWER_TIMEOUT_S", 0.1)
    with pytest.raises(LabError, match=r"ask b to status: no answer in 0.1 s"):
        make(SILENT).ask("b", do="status")


def test_one_that_has_ended_is_an_error(make):
    hosts = make("pass")
    hosts._programs["a"].wait(5)
    with pytest.raises(LabError, match="ask a to status: its traffic program has ended"):
        hosts.ask("a", do="status")
