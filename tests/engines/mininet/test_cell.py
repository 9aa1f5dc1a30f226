"""The WiFi cell: airtime per byte, length of the queue, layout of the program's map."""

import pytest

from lab.engines.mininet.kernel.cell_maps import LAYOUT
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network import packet_programs as module
from lab.radio.cell import Cell, Station
from lab.radio.wifi import limit_ns, price_ps


def test_airtime_per_byte():
    assert price_ps(8_000_000) == 1_000_000  # 1 us
    assert price_ps(8_000_000, contention=1.5) == 1_500_000


def test_three_stations_share_the_channel_by_eq_2():
    """MP-SDN eq (2): r = (54, 54, 6), k = 1 -> 4.9091 Mb/s each."""
    round_ps = sum(price_ps(rate) for rate in (54_000_000, 54_000_000, 6_000_000))
    assert 8e12 / round_ps == pytest.approx(4.9091e6, rel=1e-4)


def test_the_queue_counts_full_frames_at_the_best_rate():
    cell = Cell(
        "wifi1", "wifi", (Station("a", 12_112_000), Station("b", 1_000_000)), queue_packets=100
    )
    assert limit_ns(cell) == pytest.approx(100e6)


def test_a_cell_without_stations_has_no_queue():
    """As in rat_setup_1 if `topology.interfaces` is lte."""
    assert limit_ns(Cell("wifi1", "wifi", ())) == 0


def test_the_layout_matches_the_program():
    assert LAYOUT.size == 64  # a lock, padding and seven counters


def test_the_pins_are_unmounted_before_their_folder_is_removed(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(module, "PINS", tmp_path / "bpf")
    monkeypatch.setattr(shell, "run", lambda argv, doing: ran.append(argv[0]))
    ledger = Ledger(tmp_path / "ledger")
    module.mount_pins(ledger)
    assert ran == ["mount"]
    assert [each["kind"] for each in reversed(ledger.entries())] == ["mount", "folder"]
    assert ledger.undo_all() == []
    assert not (tmp_path / "bpf").exists()
