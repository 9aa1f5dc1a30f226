"""wmediumd as the medium: who may use it, its configuration, its start, and what is not
measured."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from controller.agent_messages import ApReport
from lab.engines import registry
from lab.engines.mininet.commands.command_script import CommandScript
from lab.engines.mininet.kernel.netlink import Scheduler
from lab.engines.mininet.machine import upstreams
from lab.engines.mininet.network import real_medium
from lab.engines.mininet.network.real_medium import RealMedium
from lab.engines.mininet.programs import ap_agent
from lab.engines.mininet.programs.ap_agent import AccessPoint, Station
from lab.engines.mininet.traffic import probes
from lab.errors import LabError, MachineLacks, RequestError
from lab.radio import wmediumd
from lab.run.engine import Options
from lab.scenario import loading, targets
from lab.scenario.loading import Overrides, load
from lab.topologies.topology import wire

SMALL_BUFFER = "multipath.receive_buffer_kb=200"


def scenario(*settings, strategy=None):
    given = ("topology.air=wmediumd", "rate_scale=0.25", SMALL_BUFFER, *settings)
    return load("testbed_wifi_lte", Overrides(settings=given, strategy=strategy))


@pytest.fixture
def medium(tmp_path, monkeypatch):
    """The ledger of this medium is a list of (kind, fields)."""

    class Ledger(list):
        def record(self, kind, **fields):
            self.append((kind, fields))

    address = tmp_path / "net" / "wifi1-wlan1" / "address"
    address.parent.mkdir(parents=True)
    address.write_text("02:00:00:00:99:00\n")
    monkeypatch.setattr(real_medium, "NET", tmp_path / "net")
    network = scenario().network
    made = RealMedium(network.cells, wire(network), Ledger())
    yield made
    made.stop()


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Put a Python script in the place of wmediumd."""

    def put(text):
        path = tmp_path / "wmediumd"
        path.write_text(f"#!{sys.executable}\n{text}")
        path.chmod(0o755)
        monkeypatch.setattr(upstreams, "wmediumd", lambda: path)

    return put


def test_the_stations_have_the_rates_that_their_places_give():
    cell = scenario().network.cell("wifi1")
    assert {each.user: each.rate_bps for each in cell.stations} == {
        "ue1": wmediumd.rate_bps(12),
        "ue2": wmediumd.rate_bps(12),
        "ue3": wmediumd.rate_bps(6),
    }


def test_without_the_setting_the_medium_is_the_cell():
    cells = load("testbed_wifi_lte", Overrides()).network.cells
    assert not real_medium.is_used(cells)
    assert cells[0].stations[0].rate_bps == 42_000_000


def test_wmediumd_is_another_experiment():
    digest = {
        air: loading.experiment(scenario(f"topology.air={air}"), "mininet")
        for air in ("cell", "wmediumd")
    }
    assert digest["cell"] != digest["wmediumd"]


def test_more_than_five_stations_are_refused():
    users = ", ".join(f"{{id: u{n}, wifi_mbps: 20}}" for n in range(6))
    with pytest.raises(RequestError, match="at most 5 WiFi stations, not 6"):
        scenario(f"topology.users=[{users}]", "topology.multipath=[]", "traffic=[{user: all}]")


def test_the_rate_of_a_station_cannot_be_changed_but_that_of_lte_can():
    names = targets.targets(scenario())
    assert "cell.lte1.ue4.rate_mbps" in names
    assert not any(name.startswith("cell.wifi1.") for name in names)


def test_a_strategy_that_needs_the_occupancy_is_refused():
    with pytest.raises(RequestError, match=r"nothing measures that of wifi1\. Choose from"):
        scenario(strategy="meter_throttling")


def test_the_simulator_refuses_it():
    with pytest.raises(RequestError, match=r"wmediumd is a program of the emulation\. Choose"):
        registry.admit("sim", scenario(), Options())


def test_a_large_receive_buffer_is_refused(program):
    program("")
    registry.admit("mininet", scenario(), Options(1.0))
    with pytest.raises(RequestError, match="receive_buffer_kb 4000: the queue of wmediumd is unl"):
        registry.admit("mininet", scenario("multipath.receive_buffer_kb=4000"), Options(1.0))


def test_without_wmediumd_the_command_to_type_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(upstreams, "wmediumd", lambda: tmp_path / "none")
    with pytest.raises(MachineLacks, match=r"Try: .*\./run_lab\.sh setup-emulation"):
        registry.admit("mininet", scenario(), Options(1.0))


def test_wmediumd_gets_every_radio_and_the_signal_between_each_two(medium, program, tmp_path):
    program("import time\nprint('REGISTER SENT!', flush=True)\ntime.sleep(60)\n")
    medium.start(tmp_path)
    ((kind, entry),) = medium._ledger
    assert (kind, entry["program"]) == ("daemon", "wmediumd")
    text = next(tmp_path.glob("*_wmediumd.cfg")).read_text()
    macs = [medium._wiring.at(user, "wifi1").mac for user in ("ue1", "ue2", "ue3")]
    ids = ", ".join(f'"{mac}"' for mac in ("02:00:00:00:99:00", *macs))
    assert f"ids = [{ids}];" in text
    links = [tuple(map(int, each)) for each in re.findall(r"\((\d), (\d), (-?\d+)\)", text)]
    assert [each[:2] for each in links] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert [each[2] for each in links[:3]] == [8, 8, 5]  # 12, 12 and 6 Mb/s
    assert medium._process.poll() is None


def test_a_wmediumd_that_ends_at_once_is_an_error_with_its_last_words(medium, program, tmp_path):
    program("print('no hwsim here')")
    with pytest.raises(LabError, match="start wmediumd: it ended after 'no hwsim here'"):
        medium.start(tmp_path)


def test_hostapd_offers_only_the_rates_of_the_stations(medium):
    assert medium.hostapd_lines("wifi1") == "supported_rates=60 120,basic_rates=60"


def test_the_expected_round_trip_includes_the_process_of_wmediumd():
    figures = {
        air: probes.expected_figures(network, wire(network).at("ue1", "wifi1"), 0.25)
        for air in ("cell", "wmediumd")
        for network in [scenario(f"topology.air={air}").network]
    }
    assert figures["cell"].rtt_ms + 4 == pytest.approx(figures["wmediumd"].rtt_ms, abs=0.1)


def test_the_receive_buffer_of_another_process_is_enlarged():
    code = (
        "import socket, sys\ns = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)\n"
        "before = s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)\nprint('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "print(s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) > before)"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as process:
        process.stdout.readline()
        real_medium.enlarge_socket_buffer(process.pid)
        assert process.communicate("\n")[0] == "True\n"


def test_reports_on_its_access_point_have_no_occupancy():
    ap = AccessPoint("wmediumd", "wifi1-wlan1", {"ue1": Station(10_000_000, 1.0, "")})
    scheduler = Scheduler()
    cell = ap_agent.make_cell("wifi1", ap, scheduler)
    scheduler.close()
    report = ap_agent.mean([cell.poll({}, 0.1), cell.poll({}, 0.1)])
    datagram = ap_agent.encode("wifi1", 0, report, "key")
    read = ApReport.model_validate(json.loads(datagram[datagram.index(b"{") :]))
    assert read.occupancy({"ue1": 1}) is None
    assert read.stations["ue1"].rate_mbps == 10


def test_the_script_of_a_run_does_not_wait_for_its_end():
    (line,) = CommandScript(dict).lines(["/cache/wmediumd", "-c", "a.cfg"])
    assert line == "/cache/wmediumd -c a.cfg >/dev/null 2>&1 &"
