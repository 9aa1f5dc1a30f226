"""Programs that end during a run are noticed."""

import os
import subprocess

import pytest

from lab.engines.mininet.machine import open_vswitch
from lab.engines.mininet.supervision import Supervision, daemons
from lab.run.report import MptcpVerdict


class Program:
    ended = False

    def restart_if_ended(self):
        return self.ended


@pytest.fixture
def daemon(tmp_path, monkeypatch):
    """A process whose PID is in the files of wifi1's hostapd and of Open vSwitch."""
    process = subprocess.Popen(["sleep", "60"])
    for name in (f"mn{os.getpid()}_wifi1-wlan1.pid", "ovs-vswitchd.pid"):
        (tmp_path / name).write_text(f"{process.pid}\n")
    monkeypatch.setattr(open_vswitch, "PID_FILE", tmp_path / "ovs-vswitchd.pid")
    yield process
    process.kill()
    process.wait()


def test_a_run_whose_daemons_ended_is_not_verified(daemon, tmp_path):
    warnings = []
    watched = Supervision({}, daemons(tmp_path, ("wifi1",)), warnings.append)
    watched.check()
    good = MptcpVerdict(True, joins=2)
    assert (warnings, watched.qualified(good)) == ([], good)
    daemon.kill()
    daemon.wait()
    watched.check()
    watched.check()
    assert len(warnings) == 2
    assert "Open vSwitch has ended (ovs-vswitchd)" in warnings[0]
    assert "wifi1 has ended (hostapd)" in warnings[1]
    verdict = watched.qualified(good)
    assert (verdict.verified, verdict.joins) == (False, 2)
    assert verdict.why == "Open vSwitch, hostapd of wifi1 ended during the run"
    plain = MptcpVerdict(False, why="ue2-1 is plain TCP")
    assert watched.qualified(plain) == plain
    assert watched.qualified(MptcpVerdict(None)).verified is None


def test_daemons_that_ended_before_the_traffic_are_reported_too(daemon, tmp_path):
    daemon.kill()
    daemon.wait()
    (tmp_path / "ovs-vswitchd.pid").unlink()
    warnings = []
    watched = Supervision({}, daemons(tmp_path, ("wifi1",)), warnings.append)
    watched.check()
    assert len(warnings) == 2
    assert not watched.qualified(MptcpVerdict(True)).verified


def test_restarts_are_reported():
    pox, agent, warnings = Program(), Program(), []
    programs = {("POX", "pox/log.txt"): pox, ("the AP agent", "agents.log"): agent}
    watched = Supervision(programs, (), warnings.append)
    watched.check()
    pox.ended = agent.ended = True
    watched.check()
    assert warnings == [
        "POX had ended; it was restarted. See pox/log.txt",
        "the AP agent had ended; it was restarted. See agents.log",
    ]


def test_a_step_that_fails_says_which_program_has_ended(daemon, tmp_path):
    warnings, pox = [], Program()
    watched = Supervision({("POX", "pox/log.txt"): pox}, daemons(tmp_path, ()), warnings.append)
    with watched:
        pass
    assert warnings == []
    pox.ended = True
    with watched:  # it is restarted before the step
        assert len(warnings) == 1
        pox.ended = False

    def fail():
        with watched:
            daemon.kill()
            daemon.wait()
            raise TimeoutError

    with pytest.raises(TimeoutError):
        fail()
    assert [each.partition(" ended")[0] for each in warnings] == ["POX had", "Open vSwitch has"]
