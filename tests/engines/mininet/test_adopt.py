"""`adopt`: what it refuses before anything starts, and how it sets hosts up."""

import socket
import sys
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from engines.mininet.test_adopted_description import described, two_paths

from controller.errors import ControllerError
from lab.cli.commands import cli
from lab.engines.mininet.adopt import script, takeover
from lab.engines.mininet.adopt.takeover import endpoint_lines, ip_lines
from lab.engines.mininet.machine.ledger import Ledger
from lab.errors import RequestError


def test_each_address_has_a_table_of_its_own():
    lines = ip_lines(described(two_paths()).of("h1"))
    assert "route replace default dev h1-eth1 table 102" in lines
    assert "rule add from 10.0.1.1 table 102" in lines
    assert lines[-1] == "route replace default dev h1-eth0 src 10.0.0.1 metric 4000"


def test_a_user_opens_subflows_and_a_server_announces_further_addresses():
    found = described(two_paths())
    assert endpoint_lines(found, "h1")[2:] == [
        "mptcp endpoint add 10.0.0.1 dev h1-eth0 subflow",
        "mptcp endpoint add 10.0.1.1 dev h1-eth1 subflow",
    ]
    assert not endpoint_lines(found, "h2")[2:]


def test_a_server_with_two_addresses_announces_the_second_and_users_use_both():
    net = two_paths()
    net.link(net.hosts[1], net.switches[2], "10.0.1.2")
    found = described(net, servers=["h2"])
    assert endpoint_lines(found, "h2")[2:] == ["mptcp endpoint add 10.0.1.2 dev h2-eth1 signal"]
    assert endpoint_lines(found, "h1")[-1].endswith("dev h1-eth1 subflow fullmesh")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("net.start()", "never says when its network is complete"),
        ("net.adopt(\n", "line 1"),
        (b"\xff", "Name a Python file"),
        (None, "Name a Python file"),
    ],
)
def test_a_script_that_cannot_be_adopted_is_refused_before_it_starts(tmp_path, text, says):
    file = tmp_path / "net.py"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = CliRunner().invoke(cli, ["adopt", str(file)])
    assert done.exit_code == 2
    assert says in done.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--strategy", "loss_awar"], "loss_aware"),
        (["--strategy", "loss_aware", "--params", '{"gama_wifi": 1}'], "gamma_wifi"),
        (["--stratgy", "none"], "No such option"),
        (["--params", "[1]"], "no JSON object"),
        (["--params", "{"], "Write"),
    ],
)
def test_a_wrong_strategy_is_refused_before_the_script_starts(tmp_path, words, says):
    file = tmp_path / "net.py"
    file.write_text("raise SystemExit(9)\nCLI(net)\n")
    done = CliRunner().invoke(cli, ["adopt", *words, str(file)])
    assert done.exit_code == 2
    assert says in done.output


def test_a_folder_of_an_earlier_pox_is_refused(tmp_path):
    (tmp_path / "pox").mkdir()
    file = tmp_path / "net.py"
    file.write_text("CLI(net)\n")
    done = CliRunner().invoke(cli, ["adopt", "--out", str(tmp_path), str(file)])
    assert done.exit_code == 2
    assert "Choose another --out" in done.output


def test_a_strategy_keeps_only_the_parameters_that_were_given():
    chosen = takeover.checked_strategy("loss_aware", {"gamma_wifi": 0.02})
    assert chosen.params == {"gamma_wifi": 0.02}
    with pytest.raises(ControllerError):
        takeover.checked_strategy("loss_aware", {"gamma_wifi": 2})


def test_another_controller_on_the_port_is_named(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setattr(takeover.open_vswitch, "OPENFLOW_PORTS", (port,))
        with pytest.raises(RequestError, match=f"another controller listens on port {port}"):
            takeover.check_ports()


class Base:
    def __init__(self):
        self.done = []

    def build(self):
        self.done.append("build")

    def stop(self):
        self.done.append("stop")

    def addController(self, name, controller=None, **options):
        self.done.append((name, controller, options))


class Prompt:
    def __init__(self, net, script=None):
        net.done.append("prompt" if script is None else f"prompt of {script}")


@pytest.fixture
def hooked(monkeypatch, tmp_path):
    """Hooks in classes that stand for Mininet's; `taken` lists the networks taken over."""
    taken = []

    class Adopted:
        def __init__(self, net, *_):
            net.done.append("adopted")
            taken.append(self)

        def close(self):
            taken.append("closed")

    monkeypatch.setattr(script.nodes, "NETWORKS", (Base,))
    monkeypatch.setattr(script.nodes, "PROMPT", Prompt)
    monkeypatch.setattr(takeover, "Adopted", Adopted)
    monkeypatch.setattr(takeover, "record", lambda *_: None)
    hooks = script._Hooks(takeover.checked_strategy("none", {}), None, tmp_path)
    return hooks, taken


def test_a_network_is_taken_over_once_and_let_go_before_it_stops(hooked):
    hooks, taken = hooked
    with hooks.in_place():
        net = Base()
        net.build()
        net.adopt()
        Prompt(net)
        assert len(taken) == 1
        net.stop()
    assert net.done == ["build", "adopted", "prompt", "stop"]
    assert taken[1:] == ["closed"]


def test_a_prompt_can_run_a_file(hooked, tmp_path):
    hooks, _ = hooked
    hooks.typed = tmp_path / "typed"
    with hooks.in_place():
        net = Base()
        Prompt(net)
        net.stop()
    assert net.done == ["adopted", f"prompt of {tmp_path / 'typed'}", "stop"]


def test_the_controllers_of_a_script_are_never_started(hooked):
    hooks, _ = hooked
    with hooks.in_place():
        net = Base()
        net.addController("c0", "a class whose program is not installed")
    assert net.done[0][1] is script.nodes.PoxComesLater
    assert not hasattr(Base, "adopt")
    Base().stop()


def test_a_script_that_fails_says_so(hooked, tmp_path):
    hooks, taken = hooked
    file = tmp_path / "net.py"
    file.write_text("raise ValueError('no such host')\nCLI(net)\n")
    before = list(sys.argv)
    with hooks.in_place(), pytest.raises(script.LabError, match="raised ValueError: no such host"):
        script._execute(file, ("-x",), hooks)
    assert sys.argv == before
    assert not taken


def test_a_script_that_never_hands_its_network_over_says_so(hooked, tmp_path):
    hooks, _ = hooked
    file = tmp_path / "net.py"
    file.write_text("if False:\n    CLI(net)\n")
    with hooks.in_place(), pytest.raises(RequestError, match="before it handed"):
        script._execute(file, (), hooks)


NETEM = {"kind": "netem", "handle": "2:", "root": True, "options": {"limit": 1000}}


def test_the_queue_at_a_radio_is_the_netem_of_mininet_wifi():
    limited = {**NETEM, "options": {"rate": {"rate": 6_750_000}}}
    inner = {"kind": "pfifo", "handle": "10:", "parent": "2:1", "options": {"limit": 1000}}
    assert takeover.radio_queue([limited, inner]) == takeover.RadioQueue(2, 54.0)


@pytest.mark.parametrize("shown", [[], [NETEM], [{"kind": "mq", "handle": "0:", "root": True}]])
def test_a_radio_without_a_rate_has_no_queue(shown):
    assert takeover.radio_queue(shown) is None


def test_what_a_script_has_made_is_recorded_for_the_clean_up(tmp_path):
    net = two_paths()
    for pid, host in enumerate(net.hosts, 900_000_000):
        host.pid = pid
    ledger = Ledger(tmp_path / "ledger")
    takeover.record(ledger, net)
    entries = ledger.entries()
    assert [each["pid"] for each in entries if each["kind"] == "process"] == [
        900_000_000,
        900_000_001,
    ]
    assert entries[-1] == {"kind": "bridges", "names": ["s1", "s2", "s3", "s4"]}
    names = {each["name"] for each in entries if each["kind"] == "interface"}
    assert {"s1-eth1", "s2-eth1", "s4-eth1"} <= names
    assert not any(name.startswith("h") for name in names)  # they end with their hosts


class Radio:
    """A radio of Mininet-WiFi whose qdisc Open vSwitch has removed."""

    name = "ap1-wlan1"

    def __init__(self):
        self.rate = None

    def set_tc_ap(self):
        self.rate = 6_750_000


def test_a_radio_gets_back_the_rate_that_open_vswitch_has_removed(monkeypatch):
    radio = Radio()
    monkeypatch.setattr(
        takeover, "_root_qdisc", lambda _: [{**NETEM, "options": {"rate": {"rate": radio.rate}}}]
    )
    adopted = takeover.Adopted.__new__(takeover.Adopted)
    adopted.net = SimpleNamespace(aps=[SimpleNamespace(wintfs={0: radio})])
    adopted._restore_rates()
    assert radio.rate == 6_750_000
    radio.set_tc_ap = None  # a rate that is there is left alone
    adopted._restore_rates()


def test_a_station_is_associated_by_iw(monkeypatch):
    connected, asked = [], []

    def run(argv, doing):
        return "Connected to 02:00:00:00:00:01" if asked else "Not connected."

    monkeypatch.setattr(takeover.shell, "run", run)
    monkeypatch.setattr(takeover.shell, "succeeds", asked.append)
    monkeypatch.setattr(takeover.time, "sleep", connected.append)
    ap = SimpleNamespace(ssid="home", mac="02:00:00:00:00:01")
    radio = SimpleNamespace(name="sta1-wlan0", associatedTo=ap)
    assert takeover._is_associated(7, radio)
    assert asked[0][-3:] == ["connect", "home", "02:00:00:00:00:01"]
