"""Write a plain Python script that builds the network of a scenario on stock Mininet-WiFi.

The script needs none of the lab's code except the controller that runs in POX. The fixed part of
the script is in stock_script.txt.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from string import Template
from typing import Any

from controller import units
from lab import extensions
from lab.congestion import NEEDS_ECN
from lab.engines.mininet.kernel import congestion_modules
from lab.engines.mininet.kernel.path_manager import ENDPOINT_FLAGS
from lab.engines.mininet.machine import upstreams
from lab.engines.mininet.network import joins
from lab.errors import LabError, RequestError
from lab.radio.cell import Cell
from lab.scenario import engine_table
from lab.scenario.flows import scaled_traffic
from lab.scenario.interfaces import Interfaces
from lab.scenario.schema import Limits, Scenario
from lab.scenario.traffic import KINDS_OF_KEYS, SELF_PACED, Traffic
from lab.topologies.queues import FIFO
from lab.topologies.topology import (
    AS_THE_LINK,
    Interface,
    Link,
    Topology,
    Wiring,
    as_json,
    link_delay_ns,
    wire,
)

TEMPLATE = Path(__file__).with_name("stock_script.txt")
PROJECT = Path(__file__).resolve().parents[4]
CHANNELS = (1, 6, 11)
MAX_TC_MBPS = 1000  # Mininet shapes no link above this rate
KERNEL_CC = ("reno", "cubic", *congestion_modules.MODULES)  # root loads modules by using them


def script(scenario: Scenario) -> str:
    """Return the text of the script that builds the network of a scenario.

    Raises `RequestError` if stock Mininet-WiFi cannot build this network.
    """
    topology = scenario.network
    wiring = wire(topology)
    refuse(scenario, wiring)
    strategy = scenario.strategy
    params = json.dumps(dict(strategy.params))
    buffer_kb = scenario.multipath.receive_buffer_kb
    flows = scenario.data_flows
    description = as_json(topology, wiring, buffer_kb, scenario.rate_scale, flows)
    return Template(TEMPLATE.read_text()).substitute(
        title=scenario.title.replace('"', "'"),
        scenario=scenario.name,
        file=f"{scenario.name}.py",
        rate_scale=f"{scenario.rate_scale:g}",
        more="".join(f"\n- {line}" for line in _differences(scenario)),
        lab=PROJECT,
        pox=upstreams.folder("pox"),
        python=sys.executable,
        topology=_json_lines(description),
        strategy=strategy.name,
        params=params,
        strategy_file=_strategy_file(strategy.name),
        pox_command=f"python3 pox.py controller.pox_ext --topology=FILE --strategy={strategy.name}",
        nodes=_indented(_nodes(topology, wiring)),
        links=_indented(_links(topology, wiring)),
        interfaces=_indented(_interfaces(topology, wiring)),
        multipath=", ".join(f'"{user}"' for user in topology.multipath),
        endpoints=", ".join(
            f'"{each.name}": "{ENDPOINT_FLAGS.get(role, "")}"'
            for each, role in Interfaces(scenario).roles.items()
            if role != "subflow"
        ),
        server_of=", ".join(f'"{user}": "{topology.server_of(user)}"' for user in topology.users),
        associations=_indented(_associations(topology, wiring), 8),
        flows=_indented(_flows(scenario), 8),
    )


def refuse(scenario: Scenario, wiring: Wiring) -> None:
    """Raise `RequestError`, with the reason, if stock Mininet-WiFi cannot run the scenario."""
    topology, reason = scenario.network, _of_multipath(scenario)
    radios = [each.node for each in wiring.interfaces if "-wlan" in each.name]
    if topology.relays:
        reason = "its access points have hosts behind relays, which are radios of this lab's cells"
    elif any(flow.kind in SELF_PACED for flow in scenario.traffic):
        reason = "its traffic has a pace of its own, and iperf3 has not"
    elif scenario.mobility:
        reason = "its users walk, and their rates follow from this lab's radio model"
    elif any(link.ab != AS_THE_LINK or link.ba != AS_THE_LINK for link in topology.links):
        reason = "the directions of a link differ (up, down), and a link of Mininet has one shape"
    elif any(link.discipline != FIFO for link in topology.links):
        reason = "a link has another queue than fifo, which a link of Mininet cannot have"
    elif topology.bearers or any(
        station.up_bps is not None for cell in topology.cells for station in cell.stations
    ):
        reason = "a station has its own directions or queue, which Mininet-WiFi does not have"
    elif len(radios) > len(set(radios)):
        reason = "a user has two radios"
    elif any(len(wiring.of(server)) > 1 for server in topology.ids("server")):
        reason = "a server has several interfaces, which announce their addresses"
    elif joins.hosts_that_need_it(topology, wiring, scenario.multipath):
        most = joins.MAX_SUBFLOWS + 1
        reason = f"its users have more than {most} subflows, which need this lab's own path manager"
    if reason:
        engine = "sim" if reason == _of_multipath(scenario) else "mininet"
        raise RequestError(
            f"export-script {scenario.name}: {reason}. "
            f"Run it with ./run_lab.sh run {scenario.name} --engine {engine}"
        )


def _strategy_file(name: str) -> str:
    """Return the argument that names the file of a user's strategy, or "" for a built-in one."""
    own = extensions.strategy_file(name)
    return f", {f'--strategy_file={own.path}'!r}" if own else ""


def _of_multipath(scenario: Scenario) -> str:
    """Return which setting of Multipath TCP the kernel of the script does not have, or ""."""
    multipath = scenario.multipath
    for setting in ("stack", "scheduler", "penalisation"):
        try:
            engine_table.refuse("mininet", setting, getattr(multipath, setting))
        except LabError as error:
            return str(error).partition(". Choose")[0]
    return ""


# The keys of a scenario: those that the script carries, and those that it leaves out or replaces.
# The latter have a sentence that says so; it is "" if the scenario does not use the key.

CARRIED = {
    *("topology", "strategy", "rate_scale", "duration_s"),
    *("name", "title"),  # of the script
    *(
        "multipath.endpoints",
        "multipath.cc",
        "multipath.stack",
        "multipath.scheduler",
        "multipath.penalisation",
    ),
    *("traffic.user", "traffic.direction", "traffic.start_s", "traffic.parallel"),
    *("traffic.volume_mb", "traffic.rate_mbps", "traffic.cc"),
    *("traffic_direction", "traffic_parallel", "traffic_volume_mb"),  # already in `traffic`
    "slow_machine_rate_scale",  # already in `rate_scale`
    "mobility",  # refused
}
TEXTS = {"paper", "question", "expect", "minutes", "try"}  # for people
LEFT_OUT: dict[str, Callable[[Scenario], str]] = {
    "seed": lambda each: "The seed is left out: ports and times are the kernel's.",
    "sample_interval_s": lambda each: "No samples are taken; iperf3 reports what was measured.",
    "multipath.receive_buffer_kb": lambda each: (
        f"The receive buffer of {each.multipath.receive_buffer_kb} kB is left out: the kernel "
        "chooses its size."
    ),
    "multipath.server_enabled": lambda each: (
        "" if each.multipath.server_enabled else "The servers accept Multipath TCP here."
    ),
    "multipath.limits": lambda each: (
        "" if each.multipath.limits == Limits() else "The limits of subflows are left out."
    ),
    "multipath.ecn": lambda each: (
        "No host uses ECN here."
        if each.multipath.ecn or NEEDS_ECN.intersection(each.congestion_controls)
        else ""
    ),
    "multipath.expected_by": lambda each: (
        "Expected rates limit no congestion window." if each.multipath.by_window else ""
    ),
    "multipath.balia_decrease": lambda each: _variant(each, "balia", "balia_decrease"),
    "multipath.olia_metric": lambda each: _variant(each, "olia", "olia_metric"),
    "traffic.cc": lambda each: _replaced_laws(each),
    "traffic.kind": lambda each: (
        "Flows that pause and go on send all the time here."
        if any(flow.kind == "on_off" for flow in each.traffic)
        else ""
    ),
    # Traffic of the kinds that have these keys is refused.
    **{f"traffic.{key}": lambda _: "" for key in KINDS_OF_KEYS},
    "traffic.warm": lambda each: (
        "No connection is opened before its traffic starts."
        if any(flow.warm for flow in each.traffic)
        else ""
    ),
    "traffic.on_s": lambda each: "",  # of flows that pause
    "traffic.off_s": lambda each: "",
    "traffic.stop_s": lambda each: (
        "Files are transferred completely, whatever their stop_s."
        if any(flow.kind == "file" and flow.stop_s is not None for flow in each.traffic)
        else ""
    ),
    "events": lambda each: "The scenario's timed changes are left out." if each.events else "",
    "topology.trace": lambda each: (
        "Traces are left out: what they set keeps its first value." if each.network.traces else ""
    ),
    "topology.air": lambda each: (
        "The model of the WiFi channel is left out; the script limits the rates of the WiFi links."
        if any(cell.air != "cell" for cell in each.network.cells)
        else ""
    ),
    "topology.users.lte_weight": lambda each: _weights(each),
    "topology.rate_mbps": lambda each: (
        f"Links above {MAX_TC_MBPS} Mb/s have no limit: Mininet does not shape them."
        if any((link.rate_bps or 0) > MAX_TC_MBPS * 1_000_000 for link in each.network.links)
        else ""
    ),
}


def _differences(scenario: Scenario) -> Iterator[str]:
    """Yield a sentence for each part of the scenario that the script leaves out or replaces."""
    yield from filter(None, (said(scenario) for said in LEFT_OUT.values()))


def _replaced_laws(scenario: Scenario) -> str:
    laws = {each.cc or scenario.multipath.cc for each in scenario.traffic} - {*KERNEL_CC}
    names = ", ".join(sorted(laws))
    return (
        f"Congestion control {names} is eBPF of the lab; here the flows use reno." if laws else ""
    )


def _variant(scenario: Scenario, law: str, key: str) -> str:
    chosen = getattr(scenario.multipath, key)
    used = law in scenario.congestion_controls and chosen != "kernel"
    return f"The variant {key}: {chosen} is left out." if used else ""


def _weights(scenario: Scenario) -> str:
    stations = [one for cell in scenario.network.cells for one in cell.stations]
    named = ", ".join(f"{one.user} {one.weight:g}" for one in stations if one.weight != 1)
    return (
        f"The weights of LTE users ({named}) are left out: packets share one queue."
        if named
        else ""
    )


def _nodes(topology: Topology, wiring: Wiring) -> Iterator[str]:
    radios = {each.node: each for each in wiring.interfaces if each.name.endswith("-wlan0")}
    for number, ap in enumerate(topology.ids("wifi")):
        channel = CHANNELS[number % len(CHANNELS)]
        yield (
            f'net.addAccessPoint("{ap}", dpid="{wiring.dpid[ap]:016x}", ssid="lab-{ap}", mode="g", '
            f'channel="{channel}", position="{50 + 100 * number},50,0")'
        )
    for switch in topology.ids("lte", "switch"):
        comment = "  # an LTE base station" if switch in topology.ids("lte") else ""
        yield f'net.addSwitch("{switch}", dpid="{wiring.dpid[switch]:016x}"){comment}'
    for host in topology.ids("user", "server"):
        if host in radios:
            radio = radios[host]
            number = topology.ids("wifi").index(radio.switch)
            yield (
                f'net.addStation("{host}", mac="{radio.mac}", ip="{radio.address}/8", '
                f'position="{45 + 100 * number},50,0")'
            )
        else:
            yield f'net.addHost("{host}", ip=None)'


def _links(topology: Topology, wiring: Wiring) -> Iterator[str]:
    links = {link.id: link for link in topology.links}
    for trunk in wiring.trunks:
        link = links[trunk.link]
        ends = f'"{trunk.a}", "{trunk.b}"'
        names = f'intfName1="{trunk.a_port}", intfName2="{trunk.b_port}"'
        yield f"net.addLink({ends}, cls=TCLink, {names}{_shape(topology, link, trunk.a)})"
    for each in wiring.interfaces:
        if each.name.endswith("-wlan0"):
            continue
        ends = f'"{each.node}", "{each.switch}"'
        names = f'intfName1="{each.name}", intfName2="{each.port}", addr1="{each.mac}"'
        if each.link in links:
            shape = _shape(topology, links[each.link], each.node)
        else:
            shape = _bearer(topology.cell(each.link), each)
        yield f"net.addLink({ends}, cls=TCLink, {names}{shape})"


def _shape(topology: Topology, link: Link, first: str) -> str:
    """Return the `addLink` arguments for the rate, delay, loss and queue of a wired link.

    `first` is the node that is the first argument of `addLink`.
    """
    delay_ns, jitter_ns = link_delay_ns(link, topology.cells)
    rate_bps = link.rate_bps or _lte_capacity(topology, link)
    losses = [link.loss_ppm, link.loss_back_ppm]
    if first != link.a:
        losses.reverse()
    return _arguments(rate_bps, delay_ns, jitter_ns, losses, link.queue_packets)


def _lte_capacity(topology: Topology, link: Link) -> int | None:
    """Return the capacity [bit/s] of an LTE cell if `link` joins its base station to the core.

    The result is None for any other link, and if the cell has no limit.
    """
    found = [c.capacity_bps for c in topology.cells if c.kind == "lte" and c.ap in (link.a, link.b)]
    return found[0] if found else None


def _bearer(cell: Cell, each: Interface) -> str:
    """Return the `addLink` arguments that shape the link from a user to an LTE base station."""
    station = next(one for one in cell.stations if one.user == each.node)
    return _arguments(station.rate_bps, station.delay_ns, 0, [0, 0], cell.queue_packets)


def _arguments(
    rate_bps: int | None, delay_ns: int, jitter_ns: int, losses: list[int], queue_packets: int
) -> str:
    words = []
    rate_mbps = units.mbps_from_bps(rate_bps) if rate_bps else math.inf
    if rate_mbps <= MAX_TC_MBPS:
        words.append(f"bw={rate_mbps:g}")
    if delay_ns or jitter_ns:
        words.append(f'delay="{units.ms_from_ns(delay_ns):g}ms"')
    if jitter_ns:
        words.append(f'jitter="{units.ms_from_ns(jitter_ns):g}ms"')
    if losses[0] == losses[1] and losses[0]:
        words.append(f"loss={losses[0] / 1e4:g}")
    elif any(losses):
        words += [f"params{n}={{'loss': {ppm / 1e4:g}}}" for n, ppm in enumerate(losses, 1) if ppm]
    if words:
        words.append(f"max_queue_size={queue_packets}")
    return "".join(f", {word}" for word in words)


def _interfaces(topology: Topology, wiring: Wiring) -> Iterator[str]:
    for host in topology.ids("user", "server"):
        own = [(each.name, each.address, *each.further) for each in wiring.of(host)]
        rows = ", ".join(json.dumps(each) for each in own)
        yield f'"{host}": [{rows}],'


def _associations(topology: Topology, wiring: Wiring) -> Iterator[str]:
    for each in wiring.interfaces:
        if each.name.endswith("-wlan0"):
            yield f'associate(net, net["{each.node}"], net["{each.switch}"])'
    for cell in (cell for cell in topology.cells if cell.kind == "wifi"):
        stations = [
            (wiring.at(one.user, cell.ap).address, units.mbps_from_bps(one.rate_bps))
            for one in cell.stations
            if any(own.link == cell.ap for own in wiring.of(one.user))
        ]
        yield f'shape_air(net["{cell.ap}"], {cell.queue_packets}, {stations})'


def _flows(scenario: Scenario) -> Iterator[str]:
    for each in scaled_traffic(scenario):
        yield f'("{each.user}", {each.start_s:g}, "{" ".join(_iperf(each, scenario))}"),'


def _iperf(flow: Traffic, scenario: Scenario) -> Iterable[str]:
    """Return the options of the iperf3 client that reproduce a flow, such as duration and rate."""
    seconds = (flow.stop_s or scenario.duration_s) - flow.start_s
    size = f"-n {round(flow.volume_mb * 1e6 / flow.parallel)}" if flow.volume_mb else ""
    cc = flow.cc or scenario.multipath.cc
    options = [
        size or f"-t {seconds:g}",
        "-R" if flow.direction == "down" else "",
        f"-P {flow.parallel}" if flow.parallel > 1 else "",
        f"-b {flow.rate_mbps / flow.parallel:g}M" if flow.rate_mbps else "",
        "-u" if flow.kind == "udp" else f"-C {cc if cc in KERNEL_CC else 'reno'}",
    ]
    return [option for option in options if option]


def _json_lines(description: dict[str, Any]) -> str:
    """Format a dictionary as JSON, with one line for each key.

    If a value is an object or a list of objects, each of its members also gets a line.
    """
    parts = []
    for key, value in description.items():
        if isinstance(value, dict):
            rows = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in value.items()]
            text = "{\n" + ",\n".join(rows) + "}" if rows else "{}"
        elif value and isinstance(value, list) and isinstance(value[0], dict):
            text = "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in value) + "]"
        else:
            text = json.dumps(value)
        parts.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "}"


def _indented(lines: Iterable[str], blanks: int = 4) -> str:
    return "\n".join(" " * blanks + line for line in lines)
