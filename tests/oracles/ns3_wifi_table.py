"""Measure random WiFi cells with ns-3, and write the table for `test_wifi_cell.py`:

    python -m venv ns3 && ns3/bin/pip install ns3==3.44.post0
    ns3/bin/python tests/oracles/ns3_wifi_table.py tests/oracles/ns3_wifi.jsonl

1) an access point, and stations that all receive each other at -40 dBm: of frames that collide,
   none can be received
2) each station, and the access point for each station, sends at a fixed rate
3) flows of datagrams saturate their sender; flows of TCP (NewReno) have no limit
4) a case warms up, then the frames that each receiver gets are counted
The first line of the table says how it was made; each further line has one case. If the file exists,
only the cases that it lacks are added.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from pathlib import Path
from typing import Any

from ns3_wifi_cases import Case, cases, saturating_frames_per_s

VERSION = "3.44.post0"
PROCESSES = 2
WARM_S, WARM_TCP_S = 1.0, 4.0
MEASURED_S = 6.0
MEASURED_ALONE_S = 4.0  # with a single sender, nothing but its backoff is random
TCP_HEADERS = 52  # IP, TCP and timestamps
RECEIVED_DBM, POWER_DBM = -40.0, 16.0
QUEUE_PACKETS = 150
AMPDU_BYTES = 16 * 1544  # sixteen full frames, each with its delimiter and padding

# The access point sends to each station at a rate of its own. ns-3 has no such rate control, so
# this one looks a station's rate up in a table.
RATE_CONTROL = r"""
namespace cell {
class PerStation : public ns3::ConstantRateWifiManager {
 public:
  static ns3::TypeId GetTypeId() {
    static ns3::TypeId id = ns3::TypeId("cell::PerStation")
        .SetParent<ns3::ConstantRateWifiManager>().AddConstructor<PerStation>();
    return id;
  }
  static std::map<ns3::Mac48Address, std::string>& Modes() {
    static std::map<ns3::Mac48Address, std::string> modes;
    return modes;
  }
 private:
  ns3::WifiTxVector DoGetDataTxVector(ns3::WifiRemoteStation* station, ns3::MHz_u) override {
    ns3::WifiMode mode(Modes().at(station->m_state->m_address));
    auto kind = mode.GetModulationClass();
    return ns3::WifiTxVector(mode, GetDefaultTxPowerLevel(),
        ns3::GetPreambleForTransmission(kind, false), ns3::NanoSeconds(800), 1, 1, 0, 20,
        kind == ns3::WIFI_MOD_CLASS_HT);
  }
};
}
"""


def load_ns3() -> Any:
    """ns-3's namespace, with this file's rate control and defaults."""
    import cppyy
    from ns import ns

    if not hasattr(cppyy.gbl, "cell"):
        cppyy.cppdef(RATE_CONTROL)
        cppyy.gbl.cell.PerStation.GetTypeId()
        ns.Config.SetDefault("ns3::WifiMacQueue::MaxDelay", ns.TimeValue(ns.Seconds(1000)))
        for name in ("SndBufSize", "RcvBufSize"):
            ns.Config.SetDefault(f"ns3::TcpSocket::{name}", ns.UintegerValue(4_000_000))
        ns.Config.SetDefault("ns3::TcpSocket::SegmentSize", ns.UintegerValue(1448))
        reno = ns.TypeIdValue(ns.TypeId.LookupByName("ns3::TcpNewReno"))
        ns.Config.SetDefault("ns3::TcpL4Protocol::SocketType", reno)
    return ns


def mode(case: Case, rate_mbps: float) -> str:
    """ns-3's name of a PHY rate."""
    if case.standard == "11a":
        return f"OfdmRate{rate_mbps:g}Mbps"
    return f"HtMcs{(6.5, 13.0, 19.5, 26.0, 39.0, 52.0, 58.5, 65.0).index(rate_mbps)}"


class Cell:
    def __init__(self, ns: Any, case: Case) -> None:
        self.ns, self.case = ns, case
        # Waiting datagrams are never dropped, so that every flow has its share of a queue.
        packets = QUEUE_PACKETS if case.is_tcp else 10_000_000
        size = ns.QueueSizeValue(ns.QueueSize(f"{packets}p"))
        ns.Config.SetDefault("ns3::WifiMacQueue::MaxSize", size)
        self.nodes = ns.NodeContainer()
        self.nodes.Create(1 + len(case.rates_mbps))
        mobility = ns.MobilityHelper()
        mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel")
        mobility.Install(self.nodes)
        self.radios = self._radios()
        self._set_rates_of_the_access_point()

    def _radios(self) -> list[Any]:
        """Network devices: the access point's first, then those of the stations."""
        ns, case = self.ns, self.case
        channel = ns.YansWifiChannelHelper()
        channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel")
        rss = ns.DoubleValue(RECEIVED_DBM)
        channel.AddPropagationLoss("ns3::FixedRssLossModel", "Rss", rss)
        phy = ns.YansWifiPhyHelper()
        phy.SetChannel(channel.Create())
        phy.Set("ChannelSettings", ns.StringValue("{36, 20, BAND_5GHZ, 0}"))
        wifi, mac = ns.WifiHelper(), ns.WifiMacHelper()
        standard = {"11a": ns.WIFI_STANDARD_80211a, "11n5": ns.WIFI_STANDARD_80211n}
        wifi.SetStandard(standard[case.standard])
        common = ["Ssid", ns.SsidValue(ns.Ssid("cell")), "QosSupported"]
        common.append(ns.BooleanValue(case.standard == "11n5"))
        if case.standard == "11n5":
            common += ["BE_MaxAmpduSize", ns.UintegerValue(AMPDU_BYTES)]
        wifi.SetRemoteStationManager("cell::PerStation")
        mac.SetType("ns3::ApWifiMac", *common)
        radios = [wifi.Install(phy, mac, self.nodes.Get(0)).Get(0)]
        patient = ("MaxMissedBeacons", ns.UintegerValue(1_000_000))
        mac.SetType("ns3::StaWifiMac", *common, *patient)
        for n, rate in enumerate(case.rates_mbps, 1):
            name = ns.StringValue(mode(case, rate))
            wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", name)
            radios.append(wifi.Install(phy, mac, self.nodes.Get(n)).Get(0))
        return radios

    def _set_rates_of_the_access_point(self) -> None:
        import cppyy

        modes = cppyy.gbl.cell.PerStation.Modes()
        modes.clear()
        for radio, rate in zip(self.radios[1:], self.case.rates_mbps, strict=True):
            address = self.ns.Mac48Address.ConvertFrom(radio.GetAddress())
            modes[address] = mode(self.case, rate)

    def ends(self, n: int) -> tuple[int, int]:
        """Numbers of the nodes that send and receive the flow of station `n`, which counts from
        1."""
        return (n, 0) if self.case.is_upload[n - 1] else (0, n)

    def start_datagrams(self) -> list[Any]:
        """Start the flows of datagrams, and return their receivers."""
        ns, receivers = self.ns, []
        ns.PacketSocketHelper().Install(self.nodes)
        for n, frames_per_s in enumerate(saturating_frames_per_s(self.case), 1):
            sender, receiver = self.ends(n)
            there, here = ns.PacketSocketAddress(), ns.PacketSocketAddress()
            for address, node, peer in ((there, sender, receiver), (here, receiver, sender)):
                address.SetSingleDevice(self.radios[node].GetIfIndex())
                address.SetPhysicalAddress(self.radios[peer].GetAddress())
                address.SetProtocol(100 + n)
            source = ns.OnOffHelper("ns3::PacketSocketFactory", there.ConvertTo())
            bps = round(frames_per_s * 8 * self.case.ip_bytes)
            source.SetConstantRate(ns.DataRate(bps), self.case.ip_bytes)
            source.Install(self.nodes.Get(sender)).Start(ns.Seconds(0.5 + 0.001 * n))
            sink = ns.PacketSinkHelper("ns3::PacketSocketFactory", here.ConvertTo())
            receivers.append(sink.Install(self.nodes.Get(receiver)).Get(0))
        return receivers

    def start_tcp(self) -> list[Any]:
        """Start the TCP connections, and return their receivers."""
        ns, receivers = self.ns, []
        ns.InternetStackHelper().Install(self.nodes)
        addresses = ns.Ipv4AddressHelper()
        addresses.SetBase(ns.Ipv4Address("10.1.0.0"), ns.Ipv4Mask("255.255.255.0"))
        devices = ns.NetDeviceContainer()
        for radio in self.radios:
            devices.Add(radio)
        interfaces = addresses.Assign(devices)
        ns.TrafficControlHelper().Uninstall(devices)
        for n in range(1, len(self.radios)):
            sender, receiver = self.ends(n)
            port = 5000 + n
            there = ns.InetSocketAddress(interfaces.GetAddress(receiver), port).ConvertTo()
            here = ns.InetSocketAddress(ns.Ipv4Address.GetAny(), port).ConvertTo()
            source = ns.BulkSendHelper("ns3::TcpSocketFactory", there)
            source.Install(self.nodes.Get(sender)).Start(ns.Seconds(0.5 + 0.1 * n))
            sink = ns.PacketSinkHelper("ns3::TcpSocketFactory", here)
            receivers.append(sink.Install(self.nodes.Get(receiver)).Get(0))
        return receivers


def measure(case: Case) -> list[float]:
    """Full payloads per second that the receiver of each flow gets."""
    ns = load_ns3()
    ns.RngSeedManager.SetSeed(1)
    ns.RngSeedManager.SetRun(case.number)
    ns.RngSeedManager.ResetNextStreamIndex()
    ns.Mac48Address.ResetAllocationIndex()
    cell = Cell(ns, case)
    started = cell.start_tcp() if case.is_tcp else cell.start_datagrams()
    receivers = [each.GetObject[ns.PacketSink]() for each in started]
    ns.Simulator.Stop(ns.Seconds(WARM_TCP_S if case.is_tcp else WARM_S))
    ns.Simulator.Run()
    before = [each.GetTotalRx() for each in receivers]
    seconds = MEASURED_S if any(case.is_upload[1:]) or case.is_tcp else MEASURED_ALONE_S
    ns.Simulator.Stop(ns.Seconds(seconds))
    ns.Simulator.Run()
    payload = case.ip_bytes - (TCP_HEADERS if case.is_tcp else 0)
    counted = [
        (each.GetTotalRx() - first) / payload / seconds
        for each, first in zip(receivers, before, strict=True)
    ]
    ns.Simulator.Destroy()
    ns.Names.Clear()
    return counted


def row(case: Case) -> dict[str, Any]:
    return {
        "case": case.number,
        "group": case.group,
        "rates_mbps": case.rates_mbps,
        "is_upload": [int(each) for each in case.is_upload],
        "ip_bytes": case.ip_bytes,
        "frames_per_s": [round(each, 2) for each in measure(case)],
    }


def main(path: Path) -> None:
    """Measure all missing cases in two processes, and write the table."""
    head = {
        "made_by": "tests/oracles/ns3_wifi_table.py",
        "ns3": VERSION,
        "rng_seed": 1,
        "rng_run": "the number of the case",
        "measured_s": MEASURED_S,
        "measured_alone_s": MEASURED_ALONE_S,
    }
    if not path.exists():
        path.write_text(json.dumps(head) + "\n", encoding="utf-8")
    kept = path.read_text(encoding="utf-8").count("\n") - 1
    with path.open("a", encoding="utf-8") as table:
        spawned = multiprocessing.get_context("spawn")
        with spawned.Pool(PROCESSES) as pool:
            for each in pool.imap(row, cases()[kept:]):
                table.write(json.dumps(each) + "\n")
                table.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
