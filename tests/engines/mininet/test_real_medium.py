"""wmediumd as the medium: its configuration, its socket, the limits of windows, the cell's report."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from lab.engines import registry
from lab.engines.mininet.kernel.netlink import Scheduler
from lab.engines.mininet.machine import upstreams
from lab.engines.mininet.network import real_medium
from lab.engines.mininet.network.real_medium import RealMedium
from lab.engines.mininet.programs import ap_agent, medium_cell
from lab.engines.mininet.programs.access_points import AccessPoint, Station
from lab.engines.mininet.programs.medium_cell import StationCounters
from lab.errors import LabError, MachineLacks, RequestError
from lab.radio import wmediumd
from lab.run.engine import Options
from lab.scenario.loading import load
from lab.scenario.overrides import Overrides
from lab.topologies.topology import wire

DUMP = """Station 02:00:00:00:00:01 (on wifi1-wlan1)
	inactive time:	4 ms
	rx bytes:	{rx_bytes}
	rx packets:	{rx_packets}
	tx bytes:	{tx_bytes}
	tx packets:	{tx_packets}
	tx retries:	{tx_retries}
	tx failed:	3
	rx drop misc:	12
	signal:  	-83 dBm
	signal avg:	-83 dBm
	tx bitrate:	12.0 MBit/s
	rx bitrate:	6.0 MBit/s
	rx duration:	0 us
	authorized:	yes
Station 02:00:00:00:00:02 (on wifi1-wlan1)
	rx bytes:	0
	rx packets:	0
	tx bytes:	0
	tx packets:	0
	tx retries:	0
"""
NONE = {"rx_bytes": 0, "rx_packets": 0, "tx_bytes": 0, "tx_packets": 0, "tx_retries": 0}


def scenario(*settings):
    settings = ("topology.air=wmediumd", "rate_scale=0.25", *settings)
    return load("testbed_wifi_lte", Overrides(settings=settings))


@pytest.fixture
def medium(tmp_path, monkeypatch):
    """The medium of the testbed, without radios; the ledger is a list."""

    class Ledger(list):
        def record(self, kind, **fields):
            self.append((kind, fields))

    address = tmp_path / "net" / "wifi1-wlan1" / "address"
    address.parent.mkdir(parents=True)
    address.write_text("02:00:00:00:99:00\n")
    monkeypatch.setattr(real_medium, "NET", tmp_path / "net")
    network = scenario().network
    made = RealMedium(network.cells, wire(network), Ledger(), tmp_path / "log")
    made.tmp_path = tmp_path
    yield made
    made.stop()


def program(medium, monkeypatch, text):
    """Put a Python script in the place of wmediumd."""
    path = medium.tmp_path / "wmediumd"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    monkeypatch.setattr(upstreams, "wmediumd", lambda: path)


def test_the_stations_have_the_rates_that_their_places_give():
    cell = scenario().network.cell("wifi1")
    assert cell.air == "wmediumd"
    assert {each.user: each.rate_bps for each in cell.stations} == {
        "ue1": wmediumd.rate_bps(12),
        "ue2": wmediumd.rate_bps(12),
        "ue3": wmediumd.rate_bps(6),
    }


def test_without_the_setting_nothing_changes():
    cells = load("testbed_wifi_lte", Overrides()).network.cells
    assert {cell.air for cell in cells} == {"cell"}
    assert cells[0].stations[0].rate_bps == 42_000_000


def test_more_than_five_stations_are_refused():
    users = ", ".join(f"{{id: u{n}, wifi_mbps: 20}}" for n in range(6))
    with pytest.raises(RequestError, match="at most 5 WiFi stations, not 6"):
        scenario(f"topology.users=[{users}]", "topology.multipath=[]", "traffic=[{user: all}]")


def test_the_simulator_refuses_it_in_one_sentence():
    with pytest.raises(RequestError, match=r"wmediumd is a program of the emulation\. Choose"):
        registry.admit("sim", scenario(), Options())


def test_without_wmediumd_the_command_to_type_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(upstreams, "wmediumd", lambda: tmp_path / "none")
    with pytest.raises(MachineLacks, match=r"Try: .*\./run_lab\.sh setup-emulation"):
        registry.admit("mininet", scenario(), Options(1.0))


def test_wmediumd_gets_every_radio_with_its_place(medium, monkeypatch):
    program(
        medium,
        monkeypatch,
        "import socket, time\ns = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)\n"
        "print('started', flush=True)\ntime.sleep(60)\n",
    )
    medium.start(medium.tmp_path)
    ((kind, entry),) = medium._ledger
    text = next(medium.tmp_path.glob("*_wmediumd.cfg")).read_text()
    assert kind == "daemon"
    assert entry["program"] == "wmediumd"
    macs = [medium._wiring.at(user, "wifi1").mac for user in ("ue1", "ue2", "ue3")]
    ids = ", ".join(f'"{mac}"' for mac in ("02:00:00:00:99:00", *macs))
    assert f"ids = [{ids}]; enable_interference = true" in text
    assert "positions = ((0.00, 0.00, 0.0), (" in text
    assert "tx_powers = (15.0, 15.0, 15.0, 15.0)" in text


def test_a_wmediumd_that_ends_at_once_is_an_error_with_its_last_words(medium, monkeypatch):
    program(medium, monkeypatch, "print('no hwsim here')")
    with pytest.raises(LabError, match="start wmediumd: no hwsim here"):
        medium.start(medium.tmp_path)


def test_hostapd_offers_only_the_rates_of_the_stations(medium):
    assert medium.hostapd_lines("wifi1") == "supported_rates=60 120,basic_rates=60"


def test_windows_are_limited_on_paths_over_wifi_only(medium):
    # 90 packets, which hwsim can follow, for three stations
    assert list(medium.window_lines("srv1")) == [
        "route replace 10.1.0.0/24 dev srv1-eth1 table 1 cwnd lock 30"
    ]
    lines = list(medium.window_lines("ue3"))
    table = [each.link for each in medium._wiring.of("ue3")].index("wifi1") + 1
    assert lines == [f"route replace 10.0.0.0/8 dev ue3-wlan0 table {table} cwnd lock 30"]


def test_a_short_queue_limits_the_windows_further(medium):
    cell = replace(medium._cells[0], queue_packets=12)
    assert real_medium.window_packets(cell) == 4


def test_the_receive_buffers_of_another_process_are_enlarged():
    code = (
        "import socket, sys\ns = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)\n"
        "before = s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)\nprint('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "print(s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) > before)"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as process:
        process.stdout.readline()
        assert real_medium.enlarge_socket_buffer(process.pid) == 1
        assert process.communicate("\n")[0] == "True\n"
    assert real_medium.enlarge_socket_buffer(process.pid) == 0


def test_the_counters_of_each_station_are_read():
    found = medium_cell.parse(DUMP.format(**NONE | {"tx_bytes": 3000, "tx_packets": 2}))
    assert found["02:00:00:00:00:01"] == StationCounters(0, 0, 3000, 2, 0, 12.0, 6.0, -83.0)
    assert found["02:00:00:00:00:02"] == StationCounters()


def test_the_medium_is_busy_with_frames_repetitions_and_answers():
    before = StationCounters(tx_mbps=12.0, rx_mbps=6.0)
    now = replace(before, tx_bytes=15_000, tx_packets=10, tx_retries=5)
    assert medium_cell.busy_us(before, now) == 15 * wmediumd.frame_us(12)
    now = replace(now, rx_bytes=520, rx_packets=10)
    expected = 15 * wmediumd.frame_us(12) + 10 * wmediumd.frame_us(6, 66)
    assert medium_cell.busy_us(before, now) == expected


def cell_of(monkeypatch, *dumps):
    """The cell of an access point whose `iw` answers with these texts, one after the other."""
    answers = iter(dumps)

    monkeypatch.setattr(medium_cell.shell, "run", lambda *_: next(answers))
    stations = {
        "ue1": Station(10_000_000, 1.0, "", mac="02:00:00:00:00:01"),
        "ue9": Station(4_000_000, 1.0, "", mac="02:00:00:00:00:09"),
    }
    ap = AccessPoint("wmediumd", "wifi1-wlan1", stations)
    scheduler = Scheduler()
    try:
        return ap_agent.make_cell("wifi1", ap, scheduler)
    finally:
        scheduler.close()


def test_the_occupancy_is_the_busy_share_of_the_time_between_two_readings(monkeypatch):
    later = NONE | {"tx_bytes": 1500 * 250, "tx_packets": 250}
    cell = cell_of(monkeypatch, DUMP.format(**NONE), DUMP.format(**later))
    assert cell.queues == []
    assert cell.poll({}, 0.1).mac_occupancy == 0.0
    reports = [cell.poll({}, 0.1) for _ in range(5)]
    share = 250 * wmediumd.frame_us(12) / 0.5e6
    assert [each.mac_occupancy for each in reports] == pytest.approx([0, 0, 0, 0, share])


def test_a_full_medium_is_no_more_than_full(monkeypatch):
    later = NONE | {"tx_bytes": 1500 * 2500, "tx_packets": 2500}
    cell = cell_of(monkeypatch, DUMP.format(**NONE), DUMP.format(**later))
    cell.poll({}, 0.5)
    assert cell.poll({}, 0.5).mac_occupancy == 1.0


def test_stations_report_their_rate_and_signal_and_who_is_missing(monkeypatch):
    report = cell_of(monkeypatch, DUMP.format(**NONE)).poll({}, 0.1)
    assert report.stations["ue1"].rate_mbps == pytest.approx(wmediumd.rate_bps(12) / 1e6)
    assert report.stations["ue1"].rssi_dbm == -83
    assert not report.stations["ue9"].associated
