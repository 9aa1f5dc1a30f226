"""Mininet-WiFi's prompt on a built network: with a script, and in a terminal."""

import json
import os
import pty
import re
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from built_network import built, needs_nodes
from runner_manifest import write_manifest

from lab.engines.mininet.commands import exec_caller, execute
from lab.engines.mininet.programs import path_probe, traffic
from lab.run import inbox
from lab.topologies.topology import as_json

__all__ = ["built"]
pytestmark = needs_nodes
ROOT = Path(__file__).resolve().parents[3]
WITHIN_S = 20


@pytest.fixture
def run(built, tmp_path, monkeypatch):
    """The folder of a run whose network is built; ue1 is at (3, 4)."""
    from lab.engines.mininet.commands import prompt

    monkeypatch.setattr(execute, "SERVE_S", 0.02)
    folder = tmp_path / "run"
    (folder / "pox").mkdir(parents=True)
    description = as_json(built.topology, built.wiring)
    (folder / "pox" / "topology.json").write_text(json.dumps(description))

    write_manifest(folder)
    sample = {"user": {"ue1": {"x_m": 3.0, "y_m": 4.0}}}
    (folder / "samples.jsonl").write_text(json.dumps(sample) + "\n")

    def serve(windows, script):
        prompt.run(built.net, folder, windows, script)

    executor = execute.Executor(folder, built.inside, lambda _pid: None, serve)
    yield folder
    executor.close()


def entered(run: Path, *lines: str) -> str:
    """Output of the prompt for these lines, without a terminal."""
    argv = [sys.executable, "-m", "lab", "cli", str(run)]
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(
        argv, cwd=ROOT, input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_script_runs_the_commands_of_mininet(run):
    output = entered(
        run, "nodes", "ue1 getent ahostsv4 srv1", "links", "dump", "py ue1.position", "nonsense"
    )
    assert "available nodes are: \np1 p2 s1 srv1 ue1" in output
    assert "mininet-wifi> ue1 getent ahostsv4 srv1\n10.0.0.1" in output
    assert "ue1-eth1<->p1-eth1 (OK OK)" in output
    assert "<QuietHost ue1: ue1-eth1:10.16.0.1,ue1-eth2:10.17.0.1 pid=" in output
    assert "[3.0, 4.0, 0.0]" in output
    assert "Unknown command: nonsense" in output


def test_positions_and_associations_follow_the_run(tmp_path):
    from lab.engines.mininet.commands import prompt
    from lab.engines.mininet.network import network, nodes

    net = nodes.empty(tmp_path)
    for ap in ("wifi1", "wifi2"):
        net.addAccessPoint(ap)
    station = net.addStation("ue1", position="1,2,0")
    try:
        for ap in net.aps:
            air = {"name": f"{ap}-wlan1", "ssid": f"lab-{ap}", "channel": 6, "freq": 2.437}
            ap.wintfs[0] = type("Air", (), {**air, "associatedStations": []})
        radio = type("Radio", (), {"associatedTo": None})()
        radio.setConnected = lambda air: setattr(radio, "associatedTo", air)
        station.wintfs[0] = radio
        network.record_in_objects(net, "ue1", "wifi1")
        updates = prompt.Updates(net, tmp_path)
        updates.apply()
        assert station.position == [1.0, 2.0, 0.0]
        moved = {"user": {"ue1": {"x_m": 5.0, "y_m": 6.0}, "ue2": {"x_m": None}}}
        (tmp_path / "samples.jsonl").write_text(json.dumps(moved) + "\n")
        handover = {"kind": "handover", "user": "ue1", "from": "wifi1", "to": "wifi2"}
        (tmp_path / "events.jsonl").write_text(json.dumps(handover) + "\n")
        updates.apply()
        assert station.position == [5.0, 6.0, 0.0]
        assert (radio.associatedTo.name, radio.ssid) == ("wifi2-wlan1", "lab-wifi2")
    finally:
        for node in net.values():
            node.terminate()


def test_set_position_of_a_station_moves_the_user_of_the_run(tmp_path, monkeypatch, capsys):
    from lab.engines.mininet.commands import prompt
    from lab.engines.mininet.network import nodes

    class Typed:
        """In place of the prompt: a command that is entered at it."""

        def __init__(self, net, stdin):
            net.get("ue1").setPosition("12,40.5,0")

    (tmp_path / "pox").mkdir()
    (tmp_path / "pox" / "topology.json").write_text('{"trunks": [], "hosts": {}}')
    made = []
    monkeypatch.setattr(prompt.Flips, "make", lambda _, *change: made.append(change) or "moved")
    monkeypatch.setattr(prompt, "Prompt", Typed)
    silent = SimpleNamespace(getLogger=lambda _: SimpleNamespace(handlers=[]))
    monkeypatch.setattr(prompt, "logging", silent)  # its handlers keep their streams
    net = nodes.empty(tmp_path)
    net.addStation("ue1", position="1,2,0")
    try:
        prompt.run(net, tmp_path, tmp_path / "windows", None)
    finally:
        for node in net.values():
            node.terminate()
    assert made == [("user.ue1.position", [12.0, 40.5])]
    assert capsys.readouterr().out == "moved\n"


def test_iperf_has_a_port_on_which_no_program_of_the_lab_listens(run):
    output = entered(run, "py net.iperf.keywords")
    (port,) = re.findall(r"'port': (\d+)", output)
    assert int(port) not in (traffic.PORT, path_probe.PROBE_PORT)


def test_dpctl_shows_meters_unless_another_version_is_asked_for(capsys):
    from lab.engines.mininet.commands import prompt

    asked = []
    bridge = SimpleNamespace(name="s1", dpctl=lambda *words: asked.append(words) or "")
    typed = prompt.Prompt.__new__(prompt.Prompt)
    typed.mn = SimpleNamespace(switches=[bridge], aps=[])
    for line in ("dump-flows", "dump-flows -O OpenFlow10", "dump-flows --protocols=OpenFlow10", ""):
        typed.do_dpctl(line)
    assert asked == [
        ("dump-flows", "-O", "OpenFlow13"),
        ("dump-flows", "-O", "OpenFlow10"),
        ("dump-flows", "--protocols=OpenFlow10"),
    ]


class Inbox(threading.Thread):
    """Answers messages to a run as its runner does, and refuses changes of the link path2."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder, self.found, self.ended = folder, [], threading.Event()
        (folder / "inbox").mkdir()

    def run(self) -> None:
        while not self.ended.wait(0.02):
            for seq, message, problem in inbox.receive(self.folder):
                assert not problem
                self.found.append(message)
                refused = "path2" in message["target"]
                no, yes = {"state": "refused", "ok": False, "why": "no"}, {"state": "applied"}
                flip = {"t": 2.5, "kind": "flip", "seq": seq, **message}
                answer = no if refused else yes | {"ok": True}
                with (self.folder / "events.jsonl").open("a") as events:
                    for event in (flip | {"state": "sent"}, flip | answer):
                        events.write(json.dumps(event) + "\n")


@pytest.fixture
def runner(run):
    runner = Inbox(run)
    runner.start()
    yield runner
    runner.ended.set()
    runner.join()


def test_a_link_that_is_set_down_becomes_a_flip_of_the_run(run, runner):
    output = entered(run, "link p1 s1 down", "link s1 p1 up", "link p1 p2 down", "switch s1 stop")
    link = "link.path1.up"
    assert runner.found == [{"target": link, "value": False}, {"target": link, "value": True}]
    assert f"{link} = false, recorded at 2.5 s" in output
    assert "src and dst not connected: p1 p2" in output
    assert "a switch cannot be stopped during a run" in output


def test_a_link_that_the_run_refuses_to_set_down_says_why(run, runner):
    assert "refused: no" in entered(run, "link p2 s1 down")


def test_names_of_hosts_become_addresses_in_commands(run):
    assert "mininet-wifi> ue1 echo srv1\n10.0.0.1" in entered(run, "ue1 echo srv1")


def test_a_window_without_a_display_is_explained(run, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    output = entered(run, "xterm ue1", "xterm ue9")
    assert "no display or no xterm here. Type: ue1 bash" in output
    assert "node 'ue9' not in network" in output


def test_a_window_opens_where_the_prompt_was_started(run, tmp_path, monkeypatch):
    program, opened = tmp_path / "xterm", tmp_path / "opened"
    program.write_text(f'#!/bin/sh\necho "$@" >{opened}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":0")
    entered(run, "xterm ue1")
    deadline = time.monotonic() + WITHIN_S
    while not (opened.exists() and opened.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert re.search(r"-T ue1 -e .* -m lab exec \S+ ue1 -- bash", opened.read_text())


class Terminal:
    """A `lab` command in a pseudo-terminal."""

    def __init__(self, *arguments: str) -> None:
        pid, self.fd = pty.fork()
        if pid == 0:
            os.chdir(ROOT)
            os.execv(sys.executable, [sys.executable, "-m", "lab", *arguments])
        self.pid, self.shown = pid, ""

    def enter(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def until(self, pattern: str) -> None:
        """Read until the output matches, and forget the output up to there."""
        deadline = time.monotonic() + WITHIN_S
        while not (found := re.search(pattern, self.shown)):
            assert time.monotonic() < deadline, self.shown
            if select.select([self.fd], [], [], 0.1)[0]:
                self.shown += os.read(self.fd, 65536).decode()
        self.shown = self.shown[found.end() :]

    def status(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_the_prompt_in_a_terminal_runs_a_shell_and_passes_ctrl_c_on(run):
    terminal = Terminal("cli", str(run))
    terminal.until("mininet-wifi> ")
    terminal.enter("ue1 bash\n")
    terminal.until("ue1:.*# ")
    terminal.enter("stty size; tty; echo $((6*7)); ip -br address\n")
    terminal.until(r"(?s)\d+ \d+\r\n/dev/pts/\d+\r\n42\r\n.*10\.16\.0\.1")
    terminal.until("ue1:.*# ")
    terminal.enter("exit\n")
    terminal.until("mininet-wifi> ")
    terminal.enter("ue1 sleep 1000\n")
    time.sleep(1)
    terminal.enter("\x03")
    terminal.until("mininet-wifi> ")
    terminal.enter("exit\n")
    assert terminal.status() == 0


def test_exec_in_a_terminal_gives_the_command_one(run):
    terminal = Terminal("exec", str(run), "ue1", "--", "sh", "-c", "tty; exit 5")
    terminal.until("/dev/pts/")
    assert terminal.status() == 5


def test_the_prompt_ends_with_the_run(built, tmp_path):
    pids: list[int] = []
    executor = execute.Executor(
        tmp_path, built.inside, pids.append, lambda _windows, _script: time.sleep(100)
    )
    request = execute.Request(execute.PROMPT, [])
    (tmp_path / "exec" / "1.json").write_text(json.dumps(request.__dict__))
    deadline = time.monotonic() + WITHIN_S
    while not pids and time.monotonic() < deadline:
        time.sleep(0.05)
    executor.close()
    assert not Path(f"/proc/{pids[0]}").exists()


def test_a_run_that_does_not_serve_the_prompt_is_refused(tmp_path):
    with pytest.raises(exec_caller.RequestError, match="no emulation serves this run"):
        exec_caller.prompt("none", tmp_path)
