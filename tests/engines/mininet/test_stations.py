"""Stations of cells in the emulation: their changes reach the cell and the AP agent."""

from types import SimpleNamespace

from lab.engines.mininet.stations import Stations
from lab.radio.cell import Station
from lab.topologies.topology import wire


def test_a_new_rate_reaches_the_cell_and_the_agent_once(load):
    sent = []
    links = SimpleNamespace(set_station=lambda *change: sent.append(change))
    topology = load().network
    stations = Stations(topology, wire(topology), links)
    stations.agent = SimpleNamespace(set_station=lambda *change: sent.append(change))
    assert (stations.count("wifi1"), stations.count("lte1")) == (3, 3)
    stations.set_rate("wifi1", "ue3", 2_000_000)
    stations.set_rate("wifi1", "ue3", 2_000_000)
    slow = Station("ue3", 2_000_000)
    assert sent == [("wifi1", "10.1.0.3", slow), ("wifi1", slow)]
