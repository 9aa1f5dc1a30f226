"""Times of a cell with `air: dcf`, worked out by hand, and PHY rates from the rates of stations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import RequestError
from lab.radio import dcf
from lab.radio.cell import Station, wifi_cell
from lab.radio.wifi import FRAME_BYTES, STANDARDS

PHY = [(name, mbps) for name, each in STANDARDS.items() for mbps, _ in each.rates]


def test_a_full_frame_of_802_11a_at_54_mbps():
    """24 + 8 + 1500 + 4 bytes and 22 bits are 12310 bits, 57 symbols of 216 bits."""
    own = dcf.times("11a", 1.0)
    assert dcf.frames_ns(own, 54.0, 1, FRAME_BYTES) == 20_000 + 57 * 4_000
    assert dcf.answer_ns("11a", 54.0, 1.0) == 16_000 + 28_000
    taken_us = 34 + 7.5 * 9 + 248 + 44
    assert dcf.alone_mbps("11a", 54.0) == pytest.approx(8 * 1514 / taken_us)


def test_an_aggregate_of_802_11n_at_65_mbps():
    """26 + 8 + 1500 + 4 bytes are 1540 in words; with a delimiter, 16 of them are 24704 bytes, 761
    symbols of 260 bits. AIFS is 43 us, a block acknowledgement 20 + 3 x 4 us."""
    own = dcf.times("11n5", 1.0)
    assert dcf.frames_ns(own, 65.0, 16, FRAME_BYTES) == 36_000 + 761 * 4_000
    assert dcf.answer_ns("11n5", 65.0, 1.0, is_block=True) == 16_000 + 32_000
    taken_us = 43 + 7.5 * 9 + 36 + 761 * 4 + 48
    assert dcf.alone_mbps("11n5", 65.0) == pytest.approx(16 * 8 * 1514 / taken_us)


@pytest.mark.parametrize(("phy_mbps", "frames"), [(6.5, 2), (13.0, 5), (26.0, 11), (65.0, 16)])
def test_an_aggregate_lasts_at_most_5484_us(phy_mbps, frames):
    own = dcf.times("11n5", 1.0)
    fits = [n for n in range(2, 17) if dcf.frames_ns(own, phy_mbps, n, 1514) <= own.longest_ns]
    assert max(fits) == frames
    with_it, alone = (dcf.alone_mbps("11n5", phy_mbps), 8 * 1514e3)
    own_ns = own.access_ns + 67_500 + dcf.frames_ns(own, phy_mbps, frames, 1514)
    own_ns += dcf.answer_ns("11n5", phy_mbps, 1.0, is_block=True)
    assert with_it == pytest.approx(frames * alone / own_ns)


@pytest.mark.parametrize(("name", "mbps"), PHY)
def test_a_station_at_a_known_distance_has_the_rate_of_the_standard(name, mbps):
    alone = 8 * FRAME_BYTES / STANDARDS[name].frame_us(mbps)
    assert dcf.phy_mbps(name, round(alone, 6)) == mbps


@given(st.sampled_from(sorted(STANDARDS)), st.floats(0.01, 60))
def test_a_lone_station_has_its_rate(name, mbps):
    """Up to the step of an acknowledgement's rate, of 12 us in a frame."""
    phy = dcf.phy_mbps(name, mbps)
    assert 8 * FRAME_BYTES / STANDARDS[name].frame_us(phy) == pytest.approx(mbps, rel=0.012)
    assert phy <= dcf.phy_mbps(name, mbps * 1.02)


@pytest.mark.parametrize("name", sorted(STANDARDS))
def test_a_rate_scale_stretches_all_times(name):
    whole, half = dcf.times(name, 1.0), dcf.times(name, 0.5)
    for field in ("slot_ns", "access_ns", "timeout_ns", "preamble_ns", "symbol_ns", "longest_ns"):
        assert getattr(half, field) == 2 * getattr(whole, field)
    assert dcf.answer_ns(name, 13.0, 0.5) == 2 * dcf.answer_ns(name, 13.0, 1.0)


def cell(mbps, air="dcf", rate_scale=1.0):
    station = Station("ue1", round(mbps * rate_scale * 1e6))
    return wifi_cell("wifi1", (station,), 100, 0, air=air, standard="11a", rate_scale=rate_scale)


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_faster_stations_than_802_11_can_have_are_refused(scale):
    most = dcf.fastest_mbps("11a")
    dcf.check([cell(0.99 * most, rate_scale=scale)], {})
    dcf.check([cell(1.01 * most, "cell", scale)], {})
    with pytest.raises(RequestError, match=r"of ue1 at wifi1 .* or topology\.air=cell"):
        dcf.check([cell(1.01 * most, rate_scale=scale)], {})
    with pytest.raises(RequestError, match="of ue1 at wifi1"):
        dcf.check([cell(1.0)], {"cell.wifi1.ue1": [2_000_000, round(1.01e6 * most)]})
