"""Rates and frame times that can be worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.radio.cell import Radio, snr_db
from lab.radio.stations import best_bps, station
from lab.radio.wifi import STANDARDS, byte_price_ps, fixed_ns


def test_a_full_frame_of_802_11a_at_54_mbps():
    """34 DIFS + 67.5 backoff + 20 preamble + 214 / 54 overhead + 12112 / 54 frame + 16 SIFS + 28
    ACK = 393.8 us."""
    assert STANDARDS["11a"].frame_us(54.0) == pytest.approx(
        34 + 67.5 + 20 + 214 / 54 + 12112 / 54 + 16 + 28
    )
    assert 8 * 1514 / STANDARDS["11a"].frame_us(54.0) == pytest.approx(
        30.7, abs=0.1
    )  # the known ceiling of UDP


def test_802_11g_waits_less_and_extends_more():
    """DIFS and SIFS are 6 us shorter each; 6 us follow the frame and its acknowledgement."""
    assert STANDARDS["11g"].frame_us(54.0) == pytest.approx(STANDARDS["11a"].frame_us(54.0))


@pytest.mark.parametrize(("mbps", "us"), [(6, 44), (9, 44), (12, 32), (18, 32), (24, 28), (54, 28)])
def test_acknowledgements_are_sent_at_basic_rates(mbps, us):
    assert STANDARDS["11a"].ack_us(mbps) == us


def test_aggregation_shares_what_does_not_depend_on_length():
    """(28 DIFS + 67.5 backoff + 36 preamble + 6 + 10 SIFS + 34 ACK) / 16 + 214 / 65 + 12112 / 65 =
    201 us: 60 of 65 Mb/s."""
    assert STANDARDS["11n24"].frame_us(65.0) == pytest.approx(
        (28 + 67.5 + 36 + 6 + 10 + 34) / 16 + 12326 / 65
    )


@pytest.mark.parametrize(
    ("dbm", "mbps"), [(-60, 54), (-65, 54), (-65.1, 48), (-70, 36), (-74, 24), (-82, 6), (-95, 6)]
)
def test_the_rate_that_a_signal_allows(dbm, mbps):
    assert STANDARDS["11a"].rate_mbps(dbm) == mbps


def test_log_distance():
    """Free space at 1 m and 5180 MHz is 46.7 dB, so 16 dBm are -30.7 dBm there, and 30 dB less for
    every tenfold distance."""
    radio = Radio("11a", 5180, 16.0, 3.0)
    assert radio.rssi_dbm(1) == pytest.approx(-30.7, abs=0.1)
    assert radio.rssi_dbm(10) - radio.rssi_dbm(100) == pytest.approx(30)
    assert radio.rssi_dbm(0) == radio.rssi_dbm(1)


def test_noise_of_ten_megahertz():
    """-174 dBm/Hz, 69.5 dB for 9 MHz, 9 dB of receiver noise."""
    assert snr_db(-73.5, 9e6, 9.0) == pytest.approx(22.0, abs=0.1)


@given(st.floats(0, 500), st.sampled_from(sorted(STANDARDS)))
def test_a_full_frame_is_sent_at_the_stations_rate(distance_m, standard):
    one = station("ue1", Radio(standard, 5180, 16.0, 3.0), distance_m)
    took_ns = fixed_ns(one) + 1514 * byte_price_ps(one) / 1000
    assert took_ns == pytest.approx(1514 * 8e9 / one.rate_bps, rel=1e-4)
    assert 0 < one.overhead < 1


@given(st.floats(1, 400), st.floats(1, 400), st.sampled_from(["11a", "lte"]))
def test_a_nearer_station_is_never_slower(a_m, b_m, standard):
    radio = Radio(standard, 2120, 30.0, 3.0, blocks=50)
    near, far = (station("ue1", radio, each) for each in sorted((a_m, b_m)))
    assert near.rate_bps >= far.rate_bps
    assert near.weight >= far.weight
    assert near.rate_bps <= best_bps(radio)


def test_rate_scale_changes_the_rate_of_a_station_only():
    whole, half = (
        station("ue1", Radio("11a", 5180, 16.0, 3.0, rate_scale=scale), 30.0)
        for scale in (1.0, 0.5)
    )
    assert half.rate_bps == pytest.approx(whole.rate_bps / 2, abs=1)
    assert half.overhead == whole.overhead
