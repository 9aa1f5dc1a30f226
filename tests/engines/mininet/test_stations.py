"""Changes of stations reach the cell and the AP agent."""

from types import SimpleNamespace

import pytest

from lab.engines.mininet.emulated_network import Stations
from lab.radio.cell import Station
from lab.topologies import wireless_set
from lab.topologies.topology import wire


class Sent:
    """Records the changes that reach the links and the AP agent."""

    def __init__(self, topology):
        self.log = []

        def note(name):
            return lambda *change: self.log.append((name, *change))

        links = SimpleNamespace(set_station=note("cell"), remove_station=note("left"))
        self.stations = Stations(topology, wire(topology), links)
        self.stations.agent = SimpleNamespace(set_station=note("agent"), hand_over=note("moved"))


@pytest.fixture
def moving():
    return Sent(wireless_set.build(wireless_set.Params(users=6, multipath_percent=100)))


def test_a_new_rate_reaches_the_cell_and_the_agent_once(load_testbed):
    sent = Sent(load_testbed().network)
    assert (sent.stations.count("wifi1"), sent.stations.count("lte1")) == (3, 3)
    sent.stations.set_rate("wifi1", "ue3", 2_000_000)
    sent.stations.set_rate("wifi1", "ue3", 2_000_000)
    slow = Station("ue3", 2_000_000)
    assert sent.log == [("cell", "wifi1", "10.1.0.3", slow), ("agent", "wifi1", slow)]


def test_a_user_is_in_no_cell_until_it_is_associated(moving):
    stations = moving.stations
    old = next(ap for ap, user in stations.stations if user == "ue1" and ap != "lte1")
    new = "wifi3" if old != "wifi3" else "wifi1"
    before = stations.count(new)
    address = stations.interface("ue1", old).address
    stations.hand_over("ue1", old, new, Station("ue1", 5_000_000))
    stations.set_station(new, Station("ue1", 6_000_000))
    assert moving.log == [("left", old, address)]
    assert stations.count(new) == before + 1
    moved = stations.interface("ue1", new)
    assert (moved.address, moved.name, moved.port) == (address, "ue1-wlan0", f"{new}-wlan1")
    stations.associated("ue1", old, new)
    latest = Station("ue1", 6_000_000)
    assert moving.log[1:] == [("cell", new, address, latest), ("moved", old, new, latest)]


def test_a_user_that_moves_on_before_it_is_associated_leaves_its_cell_once(moving):
    stations = moving.stations
    old = next(ap for ap, user in stations.stations if user == "ue1" and ap != "lte1")
    others = [ap for ap in ("wifi1", "wifi2", "wifi3") if ap != old]
    stations.hand_over("ue1", old, others[0], Station("ue1", 5_000_000))
    stations.hand_over("ue1", others[0], others[1], Station("ue1", 5_000_000))
    assert [entry[0] for entry in moving.log] == ["left"]
