"""Start traffic programs and send them commands; this machine takes the place of the hosts."""

import pytest

from lab.engines.mininet import traffic_processes as module
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.traffic_processes import TrafficProcesses
from lab.errors import LabError

ECHO = (
    "import json, sys\n"
    "for line in sys.stdin:\n"
    "    print(json.dumps(json.loads(line) | {'by': sys.argv[1]}), flush=True)"
)
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
        made.append(TrafficProcesses(Network(program), Ledger(tmp_path / "ledger"), ("a", "b")))
        return made[-1]

    yield start
    for each in made:
        each.stop()
        for program in each._programs.values():
            program.wait(5)


def test_each_host_answers_its_own_command(make):
    programs = make(ECHO)
    assert programs.send("a", do="x", n=1) == {"do": "x", "n": 1, "by": "a"}
    answers = programs.send_all({"a": {"do": "x"}, "b": {"do": "y"}})
    assert [(each["do"], each["by"]) for each in answers.values()] == [("x", "a"), ("y", "b")]


def test_every_process_is_in_the_ledger(make, tmp_path):
    programs = make(ECHO)
    assert [each["pid"] for each in Ledger(tmp_path / "ledger").entries()] == [
        each.pid for each in programs._programs.values()
    ]


def test_the_traffic_program_answers_and_its_errors_are_raised(make):
    programs = make()
    assert programs.send("a", do="status") == {"flows": {}}
    with pytest.raises(LabError, match="ask a to go: KeyError: 'none'"):
        programs.send("a", do="go", id="none")


def test_a_missing_answer_is_an_error(make, monkeypatch):
    monkeypatch.setattr(module, "ANSWER_TIMEOUT_S", 0.1)
    with pytest.raises(LabError, match=r"ask b to status: no answer in 0.1 s"):
        make(SILENT).send("b", do="status")


def test_a_program_that_has_ended_is_an_error(make):
    programs = make("pass")
    programs._programs["a"].wait(5)
    with pytest.raises(LabError, match="ask a to status: its traffic program has ended"):
        programs.send("a", do="status")
