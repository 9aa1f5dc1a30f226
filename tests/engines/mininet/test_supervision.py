"""Programs that end during a run are noticed."""

import subprocess

import pytest

from lab.engines.mininet.supervision import Supervision
from lab.run.report import MptcpVerdict


class Pox:
    ended = False

    def restart_if_ended(self):
        return self.ended


@pytest.fixture
def hostapd(tmp_path):
    process = subprocess.Popen(["sleep", "60"])
    (tmp_path / "wifi1.pid").write_text(f"{process.pid}\n")
    yield process
    process.kill()
    process.wait()


def test_a_run_whose_access_point_ended_is_not_verified(hostapd, tmp_path):
    warnings = []
    watched = Supervision(Pox(), None, {"wifi1": tmp_path / "wifi1.pid"}, warnings.append)
    watched.check()
    good = MptcpVerdict(True, joins=2)
    assert (warnings, watched.qualified(good)) == ([], good)
    hostapd.kill()
    hostapd.wait()
    watched.check()
    watched.check()
    assert len(warnings) == 1
    assert "wifi1 has ended (hostapd)" in warnings[0]
    verdict = watched.qualified(good)
    assert (verdict.verified, verdict.joins) == (False, 2)
    assert verdict.why == "hostapd of wifi1 ended during the run"
    plain = MptcpVerdict(False, why="ue2-1 is plain TCP")
    assert watched.qualified(plain) == plain
    assert watched.qualified(MptcpVerdict(None)).verified is None


def test_a_restart_of_pox_is_reported():
    pox, warnings = Pox(), []
    watched = Supervision(pox, None, {}, warnings.append)
    watched.check()
    pox.ended = True
    watched.check()
    assert warnings == ["POX had ended; it was restarted. See pox/log.txt"]
