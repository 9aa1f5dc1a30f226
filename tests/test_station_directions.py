"""The keys of directions of WiFi stations and LTE bearers, and what the emulation makes of them."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest
import yaml

from lab.engines.mininet.export import script as export
from lab.engines.mininet.kernel import cell_maps
from lab.engines.mininet.machine import shell
from lab.engines.mininet.network import links
from lab.engines.mininet.programs import ap_agent
from lab.engines.mininet.traffic.probes import expected_figures
from lab.engines.sim.engine import SimEngine
from lab.errors import RequestError
from lab.radio.cell import Station
from lab.radio.wifi import byte_price_ps
from lab.run.traces import TracedChanges
from lab.scenario import loading, targets
from lab.scenario.targets import SetStationRate
from lab.topologies.alone import paths_alone
from lab.topologies.checks import checked
from lab.topologies.topology import Bearer, OneWay, wire

KINDS = ("wifi_lte", "campus")


def loaded(tmp_path, kind="wifi_lte", direction="down", **user):
    more = {"wired": []} if kind == "campus" else {}
    more |= {"air": user.pop("air")} if "air" in user else {}
    topology = {"kind": kind, "users": [{"id": "ue1", **user}], **more}
    traffic = [{"user": "ue1", "kind": "bulk", "direction": direction}]
    file = {"name": "own", "title": "Own", "topology": topology, "traffic": traffic}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(file))
    return loading.load(str(tmp_path / "own.yaml"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_direction_follows_a_trace_of_its_own(tmp_path, kind):
    for name, text in (("a", "0,9\n4,2\n8,2\n"), ("b", "0,1\n3,6\n6,6\n")):
        (tmp_path / f"{name}.csv").write_text(f"t_s,rate_mbps\n{text}")
    own = {"wifi_trace": "a.csv", "wifi_up": {"trace": "b.csv"}, "lte_mbps": 5}
    scenario = loaded(tmp_path, kind, **own, lte_down={"trace": "b.csv"}, near="lte")
    (station,) = scenario.network.cell("lte1").stations
    assert (station.rate_bps, station.up_bps) == (1_000_000, 5_000_000)
    scenario = loaded(tmp_path, kind, **own)
    names = ["cell.wifi1.ue1.down", "cell.wifi1.ue1.up"]
    assert sorted(each.target for each in scenario.network.traces) == names
    assert not [each for each in targets.targets(scenario) if each.startswith("cell.wifi1.ue1")]
    changes = TracedChanges(scenario)
    assert list(changes.take(3.5)) == [SetStationRate("wifi1", "ue1", 6_000_000, frozenset(["up"]))]
    assert list(changes.take(4)) == [SetStationRate("wifi1", "ue1", 2_000_000, frozenset(["down"]))]
    scenario = loaded(tmp_path, kind, wifi_trace="a.csv", wifi_up={"rate_mbps": 3})
    assert [each.target for each in scenario.network.traces] == names[:1]
    assert {each for each in targets.targets(scenario) if each.startswith("cell.wifi1.ue1")} == {
        "cell.wifi1.ue1.up.rate_mbps"
    }


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"wifi_up": {"queue": {"kind": "codel"}}}, "wifi_up.queue: it is known when a frame"),
        ({"wifi_down": {"queue_packets": 9}}, "write wifi_queue_packets"),
        ({"wifi_up": {"loss": 0.1}}, "write a lower rate_mbps"),
        ({"wifi_up": {"delay_ms": 1}}, "write wifi_delay_ms"),
        ({"lte_mbps": 5, "lte_up": {"reorder": 0.1}}, "lte_up.reorder: LTE delivers packets in"),
        ({"lte_mbps": 5, "lte_up": {"duplicate": 0.1}}, "delivers each packet once"),
        ({"lte_up": {"rate_mbps": 1}}, "lte_up: write lte_mbps, too"),
        ({"lte_queue": {"kind": "red"}}, "lte_queue: write lte_mbps, too"),
        ({"lte_mbps": 5, "lte_up": {"delay_ms": 19}}, "below lte_delay_ms 20.*: lower lte_delay"),
        ({"lte_mbps": 5, "lte_queue": {"kind": "red", "packets": 20}}, "red needs"),
        (
            {"lte_mbps": 5, "lte_up": {"trace": "all.csv"}},
            "lte_up.trace: a station has a rate only",
        ),
        ({"lte_mbps": 5, "lte_up": {"rate_mbps": 2, "trace": "rate.csv"}}, "has its own rate_mbps"),
        ({"wifi_up": {"rate_mbps": 900}, "air": "dcf"}, "has at most"),
        ({"wifi_up": {"trace": "rate.csv"}, "air": "wmediumd"}, "wifi_up: air 'wmediumd' keeps"),
        ({"lte_upp": {}}, "did you mean 'lte_up'"),
    ],
)
def test_what_a_radio_channel_does_not_have_is_refused(tmp_path, user, message):
    (tmp_path / "all.csv").write_text("t_s,rate_mbps,loss\n0,5,0\n1,4,0.1\n")
    (tmp_path / "rate.csv").write_text("t_s,rate_mbps\n0,5\n1,4\n")
    with pytest.raises(RequestError, match=message):
        SimEngine.check(loaded(tmp_path, **{"wifi_mbps": 5} | user))


@pytest.mark.parametrize("kind", KINDS)
def test_the_whole_file_of_a_run_is_the_same_experiment(tmp_path, kind):
    plain = loaded(tmp_path, kind, near="lte", lte_mbps=5)
    same = loaded(tmp_path, kind, near="lte", lte_mbps=5, lte_up=None)
    own = loaded(tmp_path, kind, near="lte", lte_mbps=5, lte_up={"rate_mbps": 2})
    digests = [loading.experiment(each, "sim") for each in (plain, same, own)]
    assert digests[0] == digests[1] != digests[2]
    (tmp_path / "whole.yaml").write_text(yaml.safe_dump(loading.resolved(own)))
    whole = loading.load(str(tmp_path / "whole.yaml"))
    assert loading.experiment(whole, "sim") == digests[2]
    assert whole.network == own.network
    assert len({each.network.sha256() for each in (plain, same, own)}) == 2


def test_the_emulation_shapes_each_direction_of_a_bearer(tmp_path, monkeypatch):
    monkeypatch.setattr(shell, "run", lambda *_arguments, **_options: None)
    user = {"near": "lte", "lte_mbps": 8, "lte_queue": {"kind": "codel", "packets": 90}}
    up = {"rate_mbps": 2, "delay_ms": 45, "loss": 0.01, "queue": {"kind": "fifo"}}
    scenario = loaded(tmp_path, **user, lte_up=up)
    network, wiring = scenario.network, wire(scenario.network)

    class Ledger:
        def record(self, *_arguments, **_values):
            pass

    port = wiring.at("ue1", "lte1").port
    lines = links.make_lte_queues(network.cell("lte1"), network, wiring, Ledger())
    down, up = (
        [line for line in lines if f"dev {device} " in line]
        for device in (port, links.uplink_device(port))
    )
    text = "\n".join(down)
    assert "rate 8000000bit" in text
    assert "parent 1:1 handle 10: codel limit 90 target 5ms" in text
    assert "netem" not in text
    text = "\n".join(up)
    assert "rate 2000000bit" in text
    assert "delay 25000us loss 1%" in text
    assert "parent 20:1 handle 10: pfifo limit 90" in text


def test_a_script_for_mininet_refuses_own_directions(tmp_path):
    with pytest.raises(RequestError, match="own directions or queue"):
        export.script(loaded(tmp_path, wifi_mbps=5, wifi_up={"rate_mbps": 3}))


def test_the_agent_divides_uploads_by_their_own_rate():
    class Scheduler:
        granted: dict = {}

        def index(self, device):
            return int(device)

        def set_rates(self, rates):
            self.granted |= rates

    scheduler = Scheduler()
    stations = {"a": ap_agent.Station(8_000_000, 1.0, "1", uplink_device="2", up_bps=2_000_000)}
    cell = ap_agent.LteCell(ap_agent.AccessPoint("lte", "", stations), scheduler)
    full = type("Queue", (), {"sent_bytes": 10**7, "backlog_packets": 50})()
    cell.poll(dict.fromkeys(cell.queues, full), 1.0)
    assert {device: rate for device, (rate, _) in scheduler.granted.items()} == {
        1: 8_000_000,
        2: 2_000_000,
    }
    ap_agent.apply_change(
        {"lte1": ap_agent.AccessPoint("lte", "", stations)},
        '{"ap": "lte1", "user": "a", "up_bps": 3000000}',
    )
    assert stations["a"].way_bps(True) == 3_000_000


def test_a_cell_has_the_airtime_of_each_direction(monkeypatch, tmp_path):
    class Map:
        values: dict = {}

        def __init__(self, *_arguments):
            pass

        def find(self, key):
            return self.values.get(key)

        def write(self, key, value):
            self.values[key] = value

    monkeypatch.setattr(cell_maps, "Map", Map)
    station = Station("ue1", 12_000_000, up_bps=3_000_000)
    cell_maps.CellMembers("wifi1", tmp_path).set("10.1.0.1", station)
    down_ps, _, up_ps, *_ = cell_maps.STATION.unpack(Map.values[socket.inet_aton("10.1.0.1")])
    assert (down_ps, up_ps) == tuple(byte_price_ps(station.way(each)) for each in ("down", "up"))
    assert up_ps == pytest.approx(4 * down_ps, rel=1e-6)


@pytest.mark.parametrize("near", ["wifi", "lte"])
def test_what_a_path_carries_alone_is_that_of_its_direction(tmp_path, near):
    own = {"rate_mbps": 2} | ({"delay_ms": 60} if near == "lte" else {})
    user = {"near": near, f"{near}_mbps": 8, f"{near}_up": own}
    network = loaded(tmp_path, **user).network
    rates = {way: paths_alone(network, "ue1", way)[0].rate_bps for way in ("down", "up")}
    assert rates == {"down": 8_000_000, "up": 2_000_000}
    (interface,) = wire(network).of("ue1")
    expected = expected_figures(network, interface, up=True)
    assert (expected.rate_mbps, expected.up_mbps) == (8, 2)
    if near == "lte":
        assert expected.rtt_ms == pytest.approx(80, abs=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bearers": (Bearer("wifi1", "ue1", "up", OneWay()),)}, "stations of LTE cells are ue1"),
        ({"bearers": (Bearer("lte1", "ue2", "up", OneWay()),)}, "bearer of 'ue2' at 'lte1'"),
    ],
)
def test_a_bearer_of_no_station_is_refused(tmp_path, change, message):
    network = loaded(tmp_path, near="lte", lte_mbps=5).network
    assert checked(network) is network
    with pytest.raises(RequestError, match=message):
        checked(replace(network, **change))


def test_a_rate_of_uploads_that_no_packet_fits_in_is_refused(tmp_path):
    network = loaded(tmp_path, near="lte", lte_mbps=5).network
    (cell,) = (each for each in network.cells if each.stations)
    slow = replace(cell, stations=(cell.stations[0].with_rate(50, ["up"]),))
    with pytest.raises(RequestError, match="less than"):
        checked(replace(network, cells=(slow,)))
