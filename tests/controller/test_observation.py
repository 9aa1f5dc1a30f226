"""What a strategy reads from an observation; what is not measured or not known has a value, too."""

from __future__ import annotations

from controller.observation import Arc, Association, Observation, Subflow
from controller.paths import TCP, Flow

FIRST = Subflow("c", 2, "ue1", "wifi1", "10.0.0.1:5001", "10.1.0.1:40001")
SECOND = Subflow("d", 1, "ue2", "wifi1", "10.0.0.1:5001", "10.1.0.2:40000")
THIRD = Subflow("c", 1, "ue1", "lte1", "10.0.0.1:5001", "10.2.0.1:40000")
PLACES = tuple(
    Association(user, ap, 10**6, addresses=(f"{user}-{ap}", f"{user}-{ap}-b"))
    for user, ap in (("ue2", "wifi1"), ("ue1", "wifi1"), ("ue1", "lte1"))
)
SEEN = Observation(0, associations=PLACES, subflows=(FIRST, SECOND, THIRD))


def test_a_subflow_is_known_by_its_connection_and_number():
    assert FIRST.key == ("c", 2)
    assert SEEN.subflow(("c", 1)) is THIRD
    assert SEEN.subflow(("d", 2)) is None
    assert SEEN.connections() == {"c": (THIRD, FIRST), "d": (SECOND,)}
    assert list(SEEN.connections()) == ["c", "d"]


def test_a_subflow_has_the_ends_of_its_packets():
    assert FIRST.ends == ("10.0.0.1", "10.1.0.1")
    assert FIRST.flow == Flow("10.0.0.1", "10.1.0.1", TCP, 5001, 40001)
    six = Subflow("c", 1, "ue1", "", "fd00::1:80", "fd00::2:81")
    assert (six.ends, six.flow.destination_port) == (("fd00::1", "fd00::2"), 81)


def test_associations_are_found_by_user_and_by_access_point_in_order():
    assert [each.ap for each in SEEN.of_user("ue1")] == ["lte1", "wifi1"]
    assert [each.user for each in SEEN.at("wifi1")] == ["ue1", "ue2"]
    assert (SEEN.of_user("ue9"), SEEN.at("lte9")) == ((), ())


def test_a_user_without_a_tier_counts_as_tier_1():
    seen = Observation(0, associations=PLACES, tiers={("ue1", "wifi1"): 2, ("ue2", "lte1"): 2})
    assert seen.addresses("wifi1", tier=2) == {"ue1-wifi1", "ue1-wifi1-b"}
    assert seen.addresses("wifi1", tier=1) == {"ue2-wifi1", "ue2-wifi1-b"}
    assert seen.addresses("lte1", tier=2) == frozenset()


def test_what_nobody_has_measured_or_changed_has_no_effect():
    assert (FIRST.tier, FIRST.path, FIRST.backup) == (1, (), False)
    measured = ("expected_bps", "rate_bps", "sent_packets", "lost_packets", "device_loss")
    assert {getattr(FIRST, name) for name in (*measured, "retransmitted_packets")} == {None}
    arc = Arc("l", "a", "b", 10**6)
    assert (arc.used_bps, arc.delay_s, arc.jitter_s, arc.loss) == (0, 0, 0, 0)
    assert (PLACES[0].weight, PLACES[0].rssi_dbm) == (1, None)
    nothing = Observation(0)
    assert (nothing.connections(), nothing.addresses("wifi1", tier=1)) == ({}, frozenset())
    assert (nothing.rate_scale, nothing.receive_buffer_bytes) == (1, 4_000_000)
