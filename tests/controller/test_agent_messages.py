"""Datagrams and inbox files are either valid or refused."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.agent_messages import (
    LinkFlip,
    ParamsFlip,
    StepsFlip,
    StrategyFlip,
    Tier1Limit,
    read_ap_report,
    read_inbox_message,
)
from controller.datagrams import seal
from controller.errors import MessageRefused

KEY = "secret"
REPORT = {
    "kind": "ap",
    "seq": 17,
    "ap": "wifi1",
    "mac_occupancy": 1.0,
    "backlog_packets": 88,
    "stations": {"ue1": {"rssi_dbm": -40}},
}


def test_a_report_is_read():
    report = read_ap_report(seal(REPORT, KEY), KEY)
    assert (report.ap, report.mac_occupancy, report.stations["ue1"].rssi_dbm) == ("wifi1", 1.0, -40)


def test_the_documented_inbox_messages_are_read():
    assert isinstance(
        read_inbox_message('{"seq": 3, "kind": "params", "value": {"cth": 0.3}}'), ParamsFlip
    )
    assert isinstance(
        read_inbox_message(
            '{"seq": 4, "kind": "strategy", "value": {"name": "none", "params": {}}}'
        ),
        StrategyFlip,
    )
    assert read_inbox_message(
        '{"seq": 5, "kind": "link", "value": {"link": "wifi", "up": false}}'
    ) == LinkFlip(kind="link", seq=5, value={"link": "wifi", "up": False})
    assert read_inbox_message('{"seq": 8, "kind": "steps", "value": {"held": true}}') == StepsFlip(
        kind="steps", seq=8, value={"held": True}
    )


def test_what_a_report_leaves_out_has_a_value():
    report = read_ap_report(seal({**REPORT, "seq": 0, "stations": {"ue1": {}}}, KEY), KEY)
    station = report.stations["ue1"]
    assert (report.seq, station.associated) == (0, True)
    assert (station.rssi_dbm, station.rate_mbps, station.mac_occupancy) == (None, None, None)


@pytest.mark.parametrize(
    ("queues", "tiers", "occupancy"),
    [
        ({}, {}, 0.5),
        ({"ue1": None, "ue2": None}, {}, 0.5),
        ({"ue1": 0.2, "ue2": 0.8, "ue3": None}, {}, 0.5),
        ({"ue1": 0.2, "ue2": 0.8}, {"ue1": 2}, 0.8),
        ({"ue1": 0.2, "ue2": 0.6}, {"ue1": 2, "ue2": 2}, 0.4),
        ({"ue1": 0.0}, {}, 0.0),
    ],
)
def test_the_occupancy_of_a_base_station_is_the_mean_of_its_queues_in_tier_1(
    queues, tiers, occupancy
):
    stations = {user: {"mac_occupancy": each} for user, each in queues.items()}
    report = {**REPORT, "mac_occupancy": 0.5, "stations": stations}
    assert read_ap_report(seal(report, KEY), KEY).occupancy(tiers) == pytest.approx(occupancy)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"mac_occupancy": 1.5}, "mac_occupancy"),
        ({"mac_occupancy": float("nan")}, "not a finite number"),
        ({"seq": 10**400}, "too many digits"),
        ({"ap": "\ud800"}, "UTF-8"),
        ({"ap": None}, "ap"),
        ({"extra": 1}, "extra"),
    ],
)
def test_an_invalid_report_is_refused_with_its_key(change, where):
    with pytest.raises(MessageRefused, match=where):
        read_ap_report(seal({**REPORT, **change}, KEY), KEY)


@given(st.binary(max_size=200))
def test_invalid_data_is_refused(data):
    with pytest.raises(MessageRefused):
        read_inbox_message(data)
    for datagram in (data, f"{KEY}\n".encode() + data):
        with pytest.raises(MessageRefused):
            read_ap_report(datagram, KEY)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"value":' * 2000, "1e400", '"\\ud800"'])
def test_messages_that_exceed_limits_are_refused(text):
    with pytest.raises(MessageRefused):
        read_inbox_message(text)
    with pytest.raises(MessageRefused):
        read_ap_report(f"{KEY}\n{text}".encode(), KEY)


@pytest.mark.parametrize(
    ("mbps", "limit_bps", "logged_mbps"), [(0.5, 500_000, 2.0), (None, None, None)]
)
def test_a_limit_of_primary_traffic_is_applied_and_logged_as_in_the_scenario(
    mbps, limit_bps, logged_mbps
):
    applied = []
    network = SimpleNamespace(aps={"wifi1": None, "lte1": None}, rate_scale=0.25)
    limit = lambda ap: Tier1Limit(ap=ap, mbps=mbps).limit(network, lambda *to: applied.append(to))  # noqa: E731
    assert limit("wifi1") == {"ap": "wifi1", "mbps": logged_mbps}
    assert applied == [("wifi1", limit_bps)]
    with pytest.raises(MessageRefused, match="choose from wifi1, lte1"):
        limit("wifi2")
    assert len(applied) == 1
