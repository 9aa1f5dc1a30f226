"""From a topology to the lines that shape it, without a network."""

import pytest

from lab.engines.mininet.kernel.cell_maps import Clock
from lab.engines.mininet.kernel.netlink import Queue
from lab.engines.mininet.machine import shell
from lab.engines.mininet.network import links as module
from lab.engines.mininet.network import packet_programs
from lab.engines.mininet.network.links import Links
from lab.radio.cell import Station
from lab.scenario.targets import SetLinkDelay, SetLinkLoss, SetLinkQueue, SetLinkRate, SetLinkUp
from lab.topologies import parallel_paths, rat_setup, wireless_set
from lab.topologies.topology import Link, Node, Topology, wire


class Air:
    """A cell that records its rates."""

    def __init__(self, cell, _ledger):
        self.cell, self.pins, self.prices = cell, f"/pins/{cell.ap}", {}
        self.clock = Clock(0, 0, 0, 0, 0)

    def record(self):
        pass

    def sharing(self, cell):
        return self

    def set_station(self, address, station):
        self.prices[address] = station.rate_bps

    def read(self):
        return self.clock


class Network:
    def __init__(self):
        self.ran = []

    def pid(self, node):
        return 0

    def inside(self, node, argv):
        return argv

    def run(self, node, argv, doing, stdin=None):
        self.ran.append((node, stdin.splitlines() if stdin else [" ".join(argv[1:])]))


class Ledger:
    def __init__(self):
        self.recorded = []

    def record(self, kind, **what):
        self.recorded.append({"kind": kind, **what})


@pytest.fixture
def shaped(monkeypatch):
    """Shape a topology. `lines` has what the machine would have run, `later` what changes run."""
    lines = []
    monkeypatch.setattr(packet_programs, "RunningCell", Air)
    monkeypatch.setattr(
        shell,
        "run",
        lambda argv, doing, stdin=None: lines.extend(
            stdin.splitlines() if stdin else [" ".join(argv[1:])]
        ),
    )

    changed = []
    monkeypatch.setattr(module, "set_shape", lambda *end: changed.append(end))
    monkeypatch.setattr(
        shell, "journal_command", lambda argv, stdin="": lines.extend(stdin.splitlines())
    )

    def make(topology, direction="down"):
        flows = [(user, direction) for user in topology.users]
        links = Links(topology, wire(topology), Network(), Ledger(), flows)
        links.start()
        links.lines = lines[:]
        lines.clear()
        links.later, links.changed = lines, changed
        return links

    return make


def two_paths(**first):
    paths = (
        parallel_paths.Path(rate_mbps=20, delay_ms=10, **first),
        parallel_paths.Path(rate_mbps=12),
    )
    return parallel_paths.build(parallel_paths.Params(paths=paths))


def of(lines, device):
    return [line for line in lines if f" dev {device} " in line]


def netem(lines):
    (line,) = (line for line in lines if " netem " in line)
    return line


def rate(lines):
    """The rate of the one HTB class [bit/s]."""
    (line,) = (line for line in lines if " htb rate " in line)
    return int(line.split()[line.split().index("rate") + 1].removesuffix("bit"))


def test_a_path_is_shaped_in_both_directions_and_loses_in_one(shaped):
    links = shaped(two_paths(loss=0.01))
    down, up = of(links.lines, "s1-eth2"), of(links.lines, "p1-eth2")
    assert [rate(lines) for lines in (down, up)] == [20_000_000, 20_000_000]
    assert "delay 10605.6us loss 1% " in netem(down)  # 1514 bytes at 20 Mb/s take 0.6 ms
    assert "delay 10034.4us rate" in netem(up)  # and an acknowledgement 0.03 ms


def test_the_delay_of_an_access_point_is_on_its_wire(shaped, load_testbed):
    links = shaped(load_testbed().network)
    assert "delay 5000us rate" in netem(of(links.lines, "s1-eth2"))
    assert "delay 20000us 2000us" in netem(of(links.lines, "s1-eth3"))


def test_an_lte_users_uplink_has_a_queue_behind_its_switch_port(shaped, load_testbed):
    links = shaped(load_testbed().network)
    (bearer,) = (each for each in links.cells_of[1].stations if each.user == "ue4")
    port = links.wiring.at("ue4", "lte1").port
    device = f"{port}u"
    made = [line for line in links.lines if f" {device}" in line]
    assert made == [
        f"link add {device} up type ifb",
        f"qdisc replace dev {device} root handle 1: htb default 1",
        f"class replace dev {device} parent 1: classid 1:1 htb rate {bearer.rate_bps}bit "
        f"burst 23000 cburst 23000 quantum 1514",
        f"qdisc replace dev {device} parent 1:1 handle 10: pfifo limit 200",
        f"filter add dev {port} parent ffff: pref 2 matchall action mirred egress redirect "
        f"dev {device}",
    ]
    assert {"kind": "interface", "name": device} in links.ledger.recorded


def test_only_ports_of_hosts_are_prepared_for_arriving_packets_elsewhere(shaped):
    """A relay is a switch. Its packets come from hosts behind it, whose ports replace them."""
    links = shaped(rat_setup.build(rat_setup.Params()))
    prepared = {line.split()[3] for line in links.lines if line.endswith("handle ffff: ingress")}
    redirected = {line.split()[3] for line in links.lines if "mirred egress redirect" in line}
    of_users = {links.wiring.at(f"ue{n}", "lte1").port for n in range(1, 6)}
    assert redirected - prepared == of_users
    assert len(prepared) == 5


def test_each_port_of_a_host_replaces_packets_before_other_actions(monkeypatch):
    ran = []
    monkeypatch.setattr(shell, "run", lambda argv, doing, stdin=None: ran.append((argv, stdin)))
    monkeypatch.setattr(packet_programs, "port_program", lambda: "program.o")
    ledger = Ledger()
    packet_programs.replace_packets(["s1-eth1", "lte1-eth4"], ledger)
    assert ledger.recorded == [{"kind": "pin", "path": str(packet_programs.PORT_PIN)}]
    assert ran[0][0][:4] == ["bpftool", "prog", "load", "program.o"]
    assert ran[1][1].splitlines() == [
        line
        for port in ("s1-eth1", "lte1-eth4")
        for line in (
            f"qdisc add dev {port} handle ffff: ingress",
            f"filter add dev {port} parent ffff: pref 1 bpf da pinned {packet_programs.PORT_PIN}",
        )
    ]


def test_an_lte_user_has_a_queue_and_a_wifi_user_a_price(shaped, load_testbed):
    links = shaped(load_testbed().network)
    port = links.wiring.at("ue4", "lte1").port
    assert [line.split()[:2] for line in of(links.lines, port)] == [
        ["qdisc", "replace"],
        ["class", "replace"],
        ["qdisc", "replace"],
        ["filter", "add"],
    ]
    assert of(links.lines, port)[2].endswith("pfifo limit 200")
    assert links.cells["wifi1"].prices == {
        "10.1.0.1": 42_000_000,
        "10.1.0.2": 42_000_000,
        "10.1.0.3": 19_100_000,
    }
    assert [node for node, _ in links.network.ran] == ["ue1", "ue2", "ue3"]
    assert any("pinned /pins/wifi1/downlink" in line for line in of(links.lines, "wifi1-wlan1"))


def test_a_wire_without_a_shape_is_left_alone(shaped):
    assert not of(shaped(two_paths()).lines, "p1-eth1")


def test_the_wire_of_a_relay_has_a_queue_even_without_a_shape(shaped):
    """It has no delay and a rate of 1 Gb/s, so the traffic is the same."""
    links = shaped(rat_setup.build(rat_setup.Params(setup=1)))
    (own,) = (lines for node, lines in links.network.ran if node == "srv1")
    assert "delay 0us rate" in netem(own)
    assert own[0].endswith("rate 1000000000bit")
    radios = [trunk for trunk in links.wiring.trunks if trunk.radio]
    assert radios
    ports = [port for each in radios for port in (each.a_port, each.b_port)]
    assert not [line for port in ports for line in of(links.lines, port) if " htb " in line]


def test_the_wire_of_an_access_point_without_a_delay_has_a_queue(shaped, load_testbed):
    links = shaped(load_testbed("topology.wifi_delay_ms=0").network)
    wire = next(each for each in links.wiring.trunks if "wifi1" in (each.a, each.b))
    assert "delay 0us rate" in netem(of(links.lines, wire.a_port))
    assert rate(of(links.lines, wire.a_port)) == 1_000_000_000


def test_a_change_sets_the_whole_shape_and_keeps_the_queue(shaped):
    links = shaped(two_paths(loss=0.01))
    links.change(SetLinkRate("path1", 5_000_000))
    assert "delay 10605.6us loss 1% " in netem(of(links.later, "s1-eth2"))  # as before
    assert rate(of(links.later, "s1-eth2")) == 5_000_000
    links.later.clear()
    links.change(SetLinkDelay("path1", 40_000_000))
    changed = of(links.later, "s1-eth2")
    assert "delay 40605.6us loss 1% " in netem(changed)
    assert rate(changed) == 5_000_000
    assert not [line for line in changed if " root " in line or " pfifo " in line]
    assert [device for device, _ in links.changed] == ["s1-eth2", "p1-eth2"] * 2


def test_a_direction_has_a_rate_a_delay_and_a_queue_of_its_own(shaped):
    up = {"rate_mbps": 3, "delay_ms": 40, "queue": {"kind": "codel", "packets": 30}}
    links = shaped(two_paths(up=up))
    down, up = (of(links.lines, port) for port in ("s1-eth2", "p1-eth2"))
    assert (rate(down), rate(up)) == (20_000_000, 3_000_000)
    assert "delay 10605.6us " in netem(down)
    assert "delay 40229.333us " in netem(up)
    assert down[-1].endswith("pfifo limit 100")
    assert " codel limit 30 " in up[-1]
    shape = links.shape("path1")
    assert (shape["rate_mbps"], shape["rate_back_mbps"]) == (20, 3)
    assert (shape["delay_ms"], shape["delay_back_ms"]) == (10, 40)


def test_a_change_of_one_direction_leaves_the_other_one(shaped):
    links = shaped(two_paths())
    links.change(SetLinkRate("path1", 5_000_000, frozenset(("ba",))))
    assert rate(of(links.later, "s1-eth2")) == 20_000_000
    assert rate(of(links.later, "p1-eth2")) == 5_000_000
    links.later.clear()
    links.change(SetLinkRate("path1", 7_000_000))
    assert [rate(of(links.later, port)) for port in ("s1-eth2", "p1-eth2")] == [7_000_000] * 2


def test_a_changed_queue_keeps_its_kind_or_begins_anew(shaped):
    links = shaped(two_paths(up={"queue": {"kind": "fq_codel", "packets": 30}}))
    links.change(SetLinkQueue("path1", packets=50))
    place = "parent 30:1 handle 10:"
    down, up = (of(links.later, port) for port in ("s1-eth2", "p1-eth2"))
    assert down == [f"qdisc change dev s1-eth2 {place} pfifo limit 50"]
    assert [line.split(" flows ")[0] for line in up] == [
        f"qdisc change dev p1-eth2 {place} fq_codel limit 50 quantum 1514 memory_limit 1Gb target "
        "5ms interval 100ms ecn"
    ]
    links.later.clear()
    links.change(SetLinkQueue("path1", kind="fq_codel"))
    down, up = (of(links.later, port) for port in ("s1-eth2", "p1-eth2"))
    assert down[0] == f"qdisc del dev s1-eth2 {place}"
    assert down[1].startswith(f"qdisc add dev s1-eth2 {place} fq_codel limit 50 flows 1024 ")
    assert [line.split()[1] for line in up] == ["change"]


def test_the_queue_of_one_direction_leaves_that_of_the_other(shaped):
    links = shaped(two_paths())
    links.change(SetLinkQueue("path1", kind="red", sides=frozenset(("ba",))))
    assert of(links.later, "s1-eth2") == []
    assert [line.split()[1] for line in of(links.later, "p1-eth2")] == ["del", "add"]


def test_loss_acts_where_the_data_goes(shaped):
    links = shaped(two_paths(), "up")
    links.change(SetLinkLoss("path1", 50_000))
    assert "loss" not in netem(of(links.later, "s1-eth2"))
    assert "loss 5%" in netem(of(links.later, "p1-eth2"))


def test_a_link_goes_down_at_its_port(shaped):
    links = shaped(two_paths())
    links.change(SetLinkUp("path2", False))
    links.change(SetLinkUp("access1", True))
    assert links.later == ["link set s1-eth3 down", "link set p1-eth1 up"]


def test_a_host_link_is_shaped_at_both_ends(shaped):
    nodes = (Node("ue1", "user", "a"), Node("s1", "switch"), Node("srv1", "server"))
    links = shaped(
        Topology(
            "t", nodes, (Link("b", "s1", "srv1"), Link("a", "s1", "ue1", 10**7, loss_ppm=20_000))
        )
    )
    port = links.wiring.at("ue1", "a").port
    assert "loss 2% rate 10000000bit" in netem(of(links.lines, port))
    (node, lines) = links.network.ran[0]
    assert node == "ue1"
    assert "rate 10000000bit" in netem(lines)
    assert "loss" not in netem(lines)
    links.change(SetLinkRate("a", 4_000_000))
    assert "loss 2% rate 4000000bit" in netem(of(links.later, port))
    assert "rate 4000000bit" in netem(links.network.ran[-1][1])
    assert links.changed == []


def test_a_station_that_moves_is_priced_anew(shaped, load_testbed):
    links = shaped(load_testbed().network)
    links.set_station("wifi1", "10.1.0.3", Station("ue3", 2_000_000))
    links.set_station("lte1", "10.2.0.3", Station("ue3", 2_000_000))  # the AP agent sets this rate
    assert links.cells["wifi1"].prices["10.1.0.3"] == 2_000_000


def test_a_station_that_may_move_gets_the_programs_of_all_cells_it_may_enter(shaped):
    topology = wireless_set.build(wireless_set.Params(users=6, multipath_percent=100))
    links = shaped(topology)
    (lines,) = [lines for node, lines in links.network.ran if node == "ue1"]
    assert [line.split()[-1] for line in lines if "pinned" in line] == [
        f"/pins/wifi{n}/uplink" for n in (1, 2, 3)
    ]
    assert sum(len(cell.prices) for cell in links.cells.values()) == 6


def test_relays_are_stations_and_two_access_points_share_one_channel(shaped):
    links = shaped(rat_setup.build(rat_setup.Params(setup=3, pairs=2)))
    assert set(links.cells["wifi1"].prices) == {"10.0.0.1", "10.0.0.2"}
    assert links.cells["wifi3"] is links.cells["wifi2"]
    assert set(links.cells["wifi2"].prices) == {"10.1.0.1", "10.1.0.2", "10.3.0.1", "10.3.0.2"}
    attached = dict(links.network.ran)
    assert attached["n1"][-1].endswith("dev n1-wlan0 egress bpf da pinned /pins/wifi1/uplink")
    assert of(links.lines, "wifi3-wlan1")[-1].endswith("/pins/wifi2/downlink")


def test_a_relays_radio_associates_once_more_when_its_link_is_up(shaped, monkeypatch):
    links = shaped(rat_setup.build(rat_setup.Params(setup=1, pairs=1)))
    joined = []
    links.network.target = None
    monkeypatch.setattr(module, "associate", lambda radios, *_: joined.append([*radios]))
    links.change(SetLinkUp("n1wifi1", False))
    assert (links.later, joined) == (["link set n1-wlan0 down"], [])
    links.change(SetLinkUp("n1wifi1", True))
    assert joined == [[links.wiring.at("n1", "wifi1")]]


def test_a_bearer_with_a_delay_delays_before_its_queue(shaped):
    links = shaped(rat_setup.build(rat_setup.Params(setup=2, pairs=1, lte_rtt_ms=40)))
    for device in ("lte1-eth1", "lte1-eth1u"):
        queues = [line for line in of(links.lines, device) if "parent" in line and "qdisc" in line]
        assert "parent 1:1 handle 20: netem" in queues[0]
        assert "delay 20000us" in queues[0]
        assert "parent 20:1 handle 10: pfifo limit 661" in queues[1]


def test_packets_that_wait_longer_than_their_clock_says_are_late(shaped, load_testbed, monkeypatch):
    monkeypatch.setattr(module.time, "monotonic_ns", lambda: 1_000_000_000)
    links = shaped(load_testbed().network)
    cell = links.cells["wifi1"]

    def lag(waiting, next_free_ns):
        cell.clock = Clock(
            next_free_ns, 0, busy_ns=10_000_000, drops=0, sent=10
        )  # a packet takes 1 ms
        return links.lag_ms({(7, module.FQ): Queue(waiting, 0, 0, 0)}, {"wifi1": 7})

    assert lag(20, 1_020_000_000) == 0
    assert lag(20, 1_005_000_000) == 15
    assert lag(0, 1_005_000_000) == 0
