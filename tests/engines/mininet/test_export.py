"""`export-script`: plain scripts for stock Mininet-WiFi."""

import ast
import copy
import json
import re
import subprocess
import sys
from functools import cache, reduce
from pathlib import Path

import pytest
from users_files import STRATEGY, _only_built_in

from lab import extensions
from lab.engines.mininet.export import script as export
from lab.engines.mininet.export.script import script
from lab.errors import RequestError
from lab.scenario import loading
from lab.scenario.loading import Overrides
from lab.scenario.schema import Multipath, Scenario, described
from lab.scenario.traffic import Traffic
from lab.topologies.families import TOPOLOGIES
from lab.topologies.topology import wire

__all__ = ["_only_built_in"]

ROOT = Path(__file__).resolve().parents[3]
REFUSED = {
    "moving_users": "its users walk",
    "rat_setup_1": "behind relays",
    "rat_setup_2": "behind relays",
    "rat_setup_3": "behind relays",
    "fifteen_paths": "more than 9 subflows",
    "fifteen_lines": "more than 9 subflows",
    "call_and_download": "a pace of its own",
    "evening_at_home": "a pace of its own",
    "incast_on_a_fat_tree": "a pace of its own",
    "video_while_walking": "a pace of its own",
    "web_over_two_paths": "a pace of its own",
}
EXPRESSED = sorted(set(loading.names()) - set(REFUSED))


@cache
def exported(name: str, *settings: str) -> str:
    return script(loading.load(name, Overrides(settings=settings)))


def calls(text: str, method: str) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and (getattr(node.func, "attr", "") or getattr(node.func, "id", "")) == method
    ]


def literals(call: ast.Call) -> dict[str, object]:
    return {
        word.arg: word.value.value
        for word in call.keywords
        if word.arg and isinstance(word.value, ast.Constant)
    }


@pytest.mark.parametrize("name", EXPRESSED)
def test_every_node_and_every_wired_link_is_made_once(name):
    network, text = loading.load(name).network, exported(name)
    made = [
        call.args[0].value
        for method in ("addAccessPoint", "addSwitch", "addStation", "addHost")
        for call in calls(text, method)
    ]
    assert sorted(made) == sorted(node.id for node in network.nodes)
    wiring = wire(network)
    wired = [each for each in wiring.interfaces if "-wlan" not in each.name]
    assert len(calls(text, "addLink")) == len(wiring.trunks) + len(wired)
    stations = len(wiring.interfaces) - len(wired)
    assert len(calls(text, "associate")) == stations == len(calls(text, "addStation"))


@pytest.mark.parametrize("name", EXPRESSED)
def test_the_controller_gets_the_same_topology_file(name):
    text = exported(name)
    (description,) = (
        json.loads(call.args[0].value)
        for call in calls(text, "loads")
        if isinstance(call.args[0], ast.Constant)
    )
    assert {*description["switches"]} == {*loading.load(name).network.switches}
    assert description["multipath"] == list(loading.load(name).network.multipath)


@pytest.mark.parametrize("name", EXPRESSED)
def test_the_only_packages_are_mininet_and_the_standard_library(name):
    imported = {
        (node.module or "").split(".")[0] if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(ast.parse(exported(name)))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported - set(sys.stdlib_module_names) == {"mininet", "mn_wifi"}


@pytest.mark.parametrize(("name", "reason"), REFUSED.items())
def test_what_stock_mininet_wifi_cannot_express_is_refused_with_the_reason(name, reason):
    with pytest.raises(RequestError, match=reason):
        exported(name)


def test_rates_delays_losses_and_queues_are_those_of_the_scenario():
    by_port = {
        literals(call)["intfName2"]: literals(call)
        for call in calls(exported("uneven_paths", "rate_scale=0.5"), "addLink")
    }
    shaped = [each for each in by_port.values() if each.get("bw")]
    assert {each["bw"] for each in shaped} == {10, 6}
    assert {(each["delay"], each["max_queue_size"]) for each in shaped} == {
        ("10ms", 100),
        ("37ms", 150),
    }
    assert {each.get("jitter") for each in shaped} == {None, "3ms"}


def test_loss_is_in_percent_and_on_the_side_that_loses():
    text = exported("static_loss")
    scenario = loading.load("static_loss")
    lossy = [link for link in scenario.network.links if link.loss_ppm or link.loss_back_ppm]
    assert lossy
    losses = [literals(call)["loss"] for call in calls(text, "addLink") if "loss" in literals(call)]
    losses += [
        ast.literal_eval(word.value)["loss"]
        for call in calls(text, "addLink")
        for word in call.keywords
        if word.arg in ("params1", "params2")
    ]
    wanted = [ppm / 1e4 for link in lossy for ppm in {link.loss_ppm, link.loss_back_ppm} if ppm]
    assert sorted(losses) == sorted(wanted)


def test_flows_become_options_of_iperf3():
    settings = (
        "traffic=[{user: ue1, kind: rate, rate_mbps: 2, direction: up, start_s: 3, stop_s: 10}, "
        "{user: ue2, kind: file, volume_mb: 4, parallel: 2}]",
        "rate_scale=0.5",
    )
    text = exported("testbed_wifi_lte", *settings)
    assert '("ue1", 3, "-t 7 -b 1M -C reno"),' in text
    assert '("ue2", 0, "-n 1000000 -R -P 2 -C reno"),' in text


def test_a_script_with_dctcp_says_that_no_host_uses_ecn():
    text = exported("testbed_wifi_lte", "traffic.1.cc=dctcp")
    assert "-C dctcp" in text
    assert "No host uses ECN here." in text
    assert "No host uses ECN here." not in exported("testbed_wifi_lte")


def keys_of(model, prefix=""):
    """The keys of a scenario file, such as multipath.cc."""
    nested = {"multipath": Multipath, "traffic": Traffic}
    for name, field in model.model_fields.items():
        if name in nested and not prefix:
            yield from keys_of(nested[name], f"{name}.")
        else:
            yield prefix + (field.alias or name)


def test_every_key_of_a_scenario_is_carried_refused_or_named_when_it_is_left_out():
    known = export.CARRIED | export.TEXTS | set(export.LEFT_OUT)
    assert set(keys_of(Scenario)) - known == set()


OTHER = {
    "topology": {"kind": "wireless_set", "users": 5},
    "strategy": {"name": "none"},
    "rate_scale": 0.5,
    "duration_s": 17,
    "name": "other",
    "title": "Another title",
    "multipath.cc": "cubic",
    "multipath.endpoints": [{"host": "ue1", "interface": "wlan0", "flags": ["backup"]}],
    "multipath.stack": "paper",
    "multipath.scheduler": "redundant",
    "multipath.penalisation": True,
    "traffic.user": "ue2",
    "traffic.direction": "up",
    "traffic.start_s": 2,
    "traffic.parallel": 2,
    "traffic.volume_mb": 2,
    "traffic.rate_mbps": 1.5,
    "traffic.cc": "cubic",
    "traffic_direction": "up",
    "traffic_parallel": 3,
    "traffic_volume_mb": 3,
    "slow_machine_rate_scale": 0.25,
    "mobility": {"kind": "random_waypoint"},
}  # for each key of CARRIED, a value that `demand_swap` does not have


def script_or_refusal(scenario):
    try:
        return script(scenario)
    except RequestError as error:
        return str(error)


def for_mininet(text):
    """A script without its topology file, which only the controller reads."""
    return re.sub(r'^TOPOLOGY = .*?^"""', "", text, count=1, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("key", sorted(export.CARRIED))
def test_another_value_of_a_key_that_is_carried_is_another_script_or_refused(key):
    part, _, inner = key.partition(".")
    flow = {"user": "ue1", "kind": "bulk"}
    flow |= {"volume_mb": {"kind": "file", "volume_mb": 1}}.get(inner, {})
    flow |= {"rate_mbps": {"kind": "rate", "rate_mbps": 1}}.get(inner, {})
    raw = loading.read(loading.find("demand_swap")) | {"events": [], "try": [], "traffic": [flow]}
    value = OTHER[key]
    if inner:
        value = [flow | {inner: value}] if part == "traffic" else {inner: value}
    before, after = (
        loading.from_data(each, key, Overrides(slow_machine=True))
        for each in (raw, raw | {part: value})
    )
    assert script(before) != script_or_refusal(after)


def places_in(data, *place):
    """Each value of a topology's parameters that is no list, with its place."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from places_in(value, *place, key)
    else:
        yield place, data


def others_of(value, row):
    """Other values of a parameter, some of which may not be allowed."""
    if isinstance(value, bool):
        return [not value]
    if row.get("choices"):
        return [each for each in row["choices"] if each != value]
    whole = int if isinstance(value, int) else float
    known = (0, 0.01, 3, 50) if value is None else (value * 1.25, value / 2, value + 2)
    return [whole(each) for each in known]


def with_other_values(name):
    """The scenario with one number, choice or switch of its topology changed, for each of them."""
    scenario = loading.load(name)
    data = loading.resolved(scenario) | {"try": []}
    rows = {row["name"]: row for row in described(TOPOLOGIES[scenario.topology.kind].Params)}
    for place, value in places_in(data["topology"]):
        key = ".".join(str(step) for step in place if not isinstance(step, int))
        row = next((row for name, row in rows.items() if name.replace("[]", "") == key), {})
        beside = reduce(lambda inner, step: inner[step], place[:-1], data["topology"])
        if place[-1] == "queue_packets" and beside.get("rate_mbps", 1) is None:
            continue  # without a rate nothing waits
        if isinstance(value, str) and not row.get("choices"):
            continue
        for other in others_of(value, row):
            changed = copy.deepcopy(data)
            reduce(lambda inner, step: inner[step], place[:-1], changed["topology"])[place[-1]] = (
                other
            )
            try:
                found = loading.from_data(changed, name)
            except RequestError:
                continue  # this value is not allowed
            if found.network != scenario.network:
                yield f"{key}: {other}", found
                break


ONE_OF_EACH_KIND = {loading.load(name).topology.kind: name for name in EXPRESSED}


@pytest.mark.parametrize("name", ONE_OF_EACH_KIND.values())
def test_another_value_of_a_topology_is_another_script_or_refused(name):
    for setting, changed in with_other_values(name):
        assert for_mininet(script_or_refusal(changed)) != for_mininet(exported(name)), setting


def test_weights_are_named():
    assert "weights of LTE users (ue2 0.875) are left out" in exported("testbed_wifi_lte")
    equal = "topology.users.ue2.lte_weight=1"
    assert "weights of LTE users" not in exported("testbed_wifi_lte", equal)


@pytest.mark.usefixtures("_only_built_in")
def test_the_controller_gets_the_file_of_a_strategy_of_ones_own(tmp_path):
    own = tmp_path / "it's mine" / "keep_all.py"
    own.parent.mkdir()
    own.write_text(STRATEGY)
    name = extensions.strategy_name(str(own))
    text = script(loading.load("two_paths", Overrides(strategy=name)))
    words = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    assert f"--strategy_file={own}" in words
    assert "--strategy_file" not in exported("two_paths")


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("multipath.scheduler=redundant", "scheduler 'redundant'"),
        ("multipath.scheduler=round_robin", "scheduler 'round_robin'"),
        ("multipath.stack=paper", "stack 'paper'"),
        ("multipath.penalisation=true", "penalisation 'true'"),
    ],
)
def test_what_the_kernel_does_not_have_is_refused(setting, reason):
    with pytest.raises(RequestError, match=reason) as caught:
        exported("uneven_paths", setting)
    assert "Run it with ./run_lab.sh run uneven_paths --engine sim" in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("multipath.receive_buffer_kb=64", "The receive buffer of 64 kB is left out"),
        ("multipath.server_enabled=false", "The servers accept Multipath TCP here"),
        ("multipath.expected_by=window", "Expected rates limit no congestion window"),
        ("multipath={cc: olia, olia_metric: draft}", "The variant olia_metric: draft is left out"),
        ("topology.paths.1.rate_mbps=2000", "Links above 1000 Mb/s have no limit"),
        ("traffic.1={user: ue1, kind: file, volume_mb: 9, stop_s: 9}", "whatever their stop_s"),
        ("traffic.1={user: ue1, kind: on_off, rate_mbps: 1}", "Flows that pause and go on"),
    ],
)
def test_a_setting_that_the_script_does_not_carry_is_named(setting, sentence):
    assert sentence in exported("uneven_paths", setting)
    if "receive_buffer" not in setting:
        assert sentence not in exported("uneven_paths")


def test_jitter_is_carried():
    text = exported("uneven_paths", "topology.paths.2.delay_ms=3")
    assert 'delay="3ms", jitter="3ms"' in text


def test_what_is_left_out_is_said():
    assert "Congestion control balia is eBPF of the lab" in exported("static_loss")
    assert "timed changes are left out" in exported("uneven_paths")


def test_the_command_writes_a_file(tmp_path):
    file = tmp_path / "own.py"
    argv = [sys.executable, "-m", "lab", "export-script", "two_paths", "--out", str(file)]
    subprocess.run(argv, cwd=ROOT, check=True, timeout=60)
    assert file.read_text() == exported("two_paths")
    done = subprocess.run(
        [*argv[:4], "moving_users"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "Run it with ./run_lab.sh run moving_users --engine mininet" in done.stderr
