"""Data for two pages: the home page with all scenarios, and the form to start a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

from pydantic import BaseModel

from dashboard import flips
from lab.scenario import catalogue, loading, schema, yaml_text
from lab.scenario.interfaces import endpoint_of, switchable
from lab.scenario.schema import Endpoint, Limits, Multipath, Scenario
from lab.scenario.traffic import FURTHER_KEYS, KINDS_OF_KEYS, Traffic
from lab.topologies import nodes_and_links

Row = dict[str, Any]  # a JSON object of the catalogue
GROUPS = {  # by the first word of a scenario's `paper`
    "MP-SDN": (
        "WiFi and LTE at the same time",
        "meter_throttling limits additional subflows at congested access points.",
    ),
    "S-MPTCP": (
        "Subflows that share links",
        "expected_throughput spreads subflows over paths and limits their rates.",
    ),
    "MPTCP-LA": (
        "Paths that lose packets",
        "loss_aware stops using a lossy path and returns to it later.",
    ),
    "DTMC": (
        "Many uneven paths",
        "subflow_selection forecasts which paths are worth using.",
    ),
    "RAT": (
        "Congestion control over WiFi and LTE",
        "Compare Cubic, LIA, OLIA, BALIA and wVegas.",
    ),
}
KEYS_OF_A_RUN = ("duration_s", "sample_interval_s", "rate_scale")  # that a grid can vary
FLAGS_OF_USERS = ("subflow", "subflow fullmesh", "backup", "backup fullmesh", "")  # as `ip mptcp`
FLAGS_OF_SERVERS = ("", "signal", "signal backup")
PLAIN = ("number", "integer", "boolean")  # types; a text can vary if it has choices
ASKED = (
    "Questions people asked",
    "Settings from public threads about Multipath TCP: what they saw, and what both engines show.",
)
AMOUNTS = ("volume_mb", "rate_mbps", "on_s", "off_s")  # what a flow is first about
EXAMPLES = {  # what an entry of a kind has at first, where its kind needs something
    "file": {"volume_mb": 10},
    "rate": {"rate_mbps": 1},
    "on_off": {"rate_mbps": 1},
    "udp": {"rate_mbps": 1},
    "workload": {"rate_mbps": 1, "sizes": "web_search", "size_scale": 0.1},
    "rpc": {"answer_kb": 30},
    "web": {"sizes": [[10, 0.5], [50, 0.9], [500, 1]]},
}
OTHERS = ("Other networks", "Scenarios of no paper, and your own files in scenarios/.")


@dataclass(frozen=True)
class Group:
    """The scenarios of one paper, in the order of the figures in the paper, or of public threads.

    `title` is the heading of the group, and `about` the text below it.
    """

    title: str
    about: str
    scenarios: tuple[Row, ...]


def rows() -> list[Row]:
    """Return one row for each scenario, with the fields that pages show.

    A scenario with the path of a code file is not loaded. Its row has an error.
    """
    return catalogue.scenario_rows(
        partial(loading.refuse_code_of_others, doing="load the scenario")
    )


def groups() -> list[Group]:
    """Return the scenarios grouped by paper; those of public threads are one group. Groups without
    a scenario are left out."""
    titles = (*GROUPS.values(), ASKED, OTHERS)
    found: dict[tuple[str, str], list[Row]] = {each: [] for each in titles}
    for row in rows():
        first, *_ = re.split(r"[\s,]", row.get("paper") or "")
        found[ASKED if _is_address(first) else GROUPS.get(first, OTHERS)].append(row)
    return [
        Group(title, about, tuple(sorted(in_group, key=_first_figure)))
        for (title, about), in_group in found.items()
        if in_group
    ]


def choices(name: str) -> Row:
    """Return the strategies, engines and congestion controls that can be chosen for a run of this
    scenario.

    For each strategy, `unfit` says why the strategy could never act in this network. It is empty if
    the strategy could act. `meant` has the strategies that the scenario is about. `traffic` has the
    entries of the scenario, `kinds` what others can be (`traffic_kinds`), for `users`. `endpoints`
    and `limits` are the interfaces of hosts with several ones, and the limits of a connection.
    """
    scenario = loading.load(name)
    unfit = schema.why_unfit(scenario.network)
    return {
        "strategies": [
            row | {"unfit": unfit[row["name"]] or ""} for row in catalogue.strategy_rows()
        ],
        "meant": flips.meant_strategies(scenario),
        "engines": catalogue.engine_rows(),
        "cc": [row["name"] for row in catalogue.congestion_control_rows()],
        "topology": topology_parameters(scenario),
        "endpoints": endpoint_rows(scenario),
        "limits": limit_rows(scenario.multipath),
        "keys": varied_keys(scenario, yaml_text.read(loading.find(name))),
        "traffic": [
            each.model_dump(mode="json", exclude_defaults=True) for each in scenario.traffic
        ],
        "kinds": traffic_kinds(),
        "users": list(scenario.network.users),
    }


def traffic_kinds() -> list[Row]:
    """Return a row for each kind of traffic: `first`, the keys that its entries need, with values
    to begin with, and `fields`, a row for each key that its entries can have, with its bounds.

    `is_further` is true for keys that seldom need a value, such as when the traffic starts.
    """
    described = {row["name"]: row for row in schema.described(Traffic)}
    ccs = [row["name"] for row in catalogue.congestion_control_rows()]
    described["cc"] |= {"choices": ["", *ccs]}
    found = []
    for kind in described["kind"]["choices"]:
        own = [key for key, kinds in KINDS_OF_KEYS.items() if kind in kinds]
        own += [key for key in AMOUNTS if kind in FURTHER_KEYS[key]]
        further = [key for key, kinds in FURTHER_KEYS.items() if kind in kinds and key not in own]
        rows = [described[key] | {"is_further": False} for key in described if key in own]
        rows += [
            described[key] | {"is_further": True}
            for key in described
            if key in (*further, "start_s", "stop_s")
        ]
        found.append({"kind": kind, "first": EXAMPLES.get(kind, {}), "fields": rows})
    return found


def topology_parameters(scenario: Scenario) -> list[Row]:
    """Return the parameters of a scenario's topology, each with its value in the scenario.

    A network that was read from a file has none: it is changed in the file.

    The users with several paths are those of the network: a file may leave them to their default.
    For a parameter that is a list, `items` is the type of its entries. If the entries are objects,
    `fields` has their keys, and of a key that is an object those with choices, such as
    `queue.kind`.
    """
    params = scenario.topology.params
    if isinstance(params, nodes_and_links.Params) and params.read_from:
        return []
    values = params.model_dump(mode="json")
    values |= {"multipath": list(scenario.network.multipath)} if "multipath" in values else {}
    described = schema.described(type(params))
    return [
        row | {"value": values[row["name"]]} | _items(row["name"], values[row["name"]], described)
        for row in described
        if row["name"] in type(params).model_fields
        and (row["choices"] or row["type"] in ("number", "integer", "boolean", "array"))
    ]


def endpoint_rows(scenario: Scenario) -> list[Row]:
    """Return a row for each interface that can have an entry in `multipath.endpoints`: the flags
    that it has, `usual`, those without an entry, and `choices`. The first interface of a user opens
    the connections, so it has no choice without flags. `fullmesh` is a choice if a server can
    announce an address."""
    rows = []
    is_meshed = any(host not in scenario.network.users for host, _ in switchable(scenario))
    first = dict(reversed(switchable(scenario)))
    for (host, name), each in switchable(scenario).items():
        is_user = host in scenario.network.users
        said = endpoint_of(scenario.multipath, each)
        usual = "subflow" if is_user else ""
        choices = FLAGS_OF_USERS if is_user else FLAGS_OF_SERVERS
        flags = _flags(said) if said else usual
        found = [
            option
            for option in choices
            if (option or not is_user or first[host] != name)
            and (is_meshed or "fullmesh" not in option or option == flags)
        ]
        rows.append(
            {"host": host, "interface": name, "link": each.link, "flags": flags, "usual": usual}
            | {"choices": found}
        )
    return rows


def _flags(endpoint: Endpoint) -> str:
    """Return the flags of an endpoint in the order of the choices of the form."""
    if "signal" in endpoint.flags:
        return "signal backup" if "backup" in endpoint.flags else "signal"
    if endpoint.role == "none":
        return ""
    return endpoint.role + (" fullmesh" if endpoint.is_fullmesh else "")


def limit_rows(multipath: Multipath) -> list[Row]:
    values = multipath.limits.model_dump()
    return [row | {"value": values[row["name"]]} for row in schema.described(Limits)]


def varied_keys(scenario: Scenario, raw: Row) -> list[Row]:
    """Return the keys of a scenario that a grid can vary: for each its path, unit, bounds, choices
    and value, as in the scenario's file, whose content is `raw`.

    Parameters of strategies are left out: they are among the strategies of `choices`.
    """
    params = scenario.topology.params
    run = [row for row in schema.described(Scenario) if row["name"] in KEYS_OF_A_RUN]
    flows = [row for row in schema.described(Scenario) if row["name"].startswith("traffic[].")]
    known = [
        *_keys("topology.", schema.described(type(params)), params, raw.get("topology")),
        *_keys("multipath.", schema.described(Multipath), scenario.multipath, {}),
        *_keys("", [*run, *flows], scenario, raw),
    ]
    found = [row for _, row in sorted(known, key=itemgetter(0)) if _can_vary(row)]
    ccs = [row["name"] for row in catalogue.congestion_control_rows()]
    return [row | {"choices": ccs} if row["key"].endswith(".cc") else row for row in found]


def _keys(
    prefix: str, described: list[Row], part: BaseModel, raw: Any
) -> Iterator[tuple[int, Row]]:
    """Yield a row for each described key. For a key of the entries of a list, yield one for each
    entry in `raw`, with its number, from 1. An entry is named by its id, or by its number."""
    values = part.model_dump(mode="json")
    for row in described:
        name, of_list, key = row["name"].partition("[].")
        shown = {each: row[each] for each in ("type", "unit", "minimum", "maximum", "choices")}
        if not of_list:
            yield 0, {"key": prefix + name, "value": values.get(name)} | shown
            continue
        entries = raw.get(name) if isinstance(raw, dict) and "[]." not in key else None
        for n, each in enumerate(entries if isinstance(entries, list) else [], 1):
            if isinstance(each, dict):
                path = f"{prefix}{name}.{each.get('id', n)}.{key}"
                first, _, inner = key.partition(".")
                value = each.get(first, row["default"])
                if inner:
                    value = value.get(inner, row["default"]) if isinstance(value, dict) else None
                yield n, {"key": path, "value": value} | shown


def _can_vary(row: Row) -> bool:
    if row["type"] == "array":
        return not any(isinstance(each, dict) for each in row["value"] or [])
    return row["type"] in PLAIN or bool(row["choices"]) or row["key"].endswith(".cc")


def _items(name: str, value: Any, described: list[Row]) -> Row:
    """Return the fields `items` and `fields` for a parameter that is a list, otherwise an empty
    dictionary."""
    if not isinstance(value, list):
        return {}
    before = f"{name}[]."
    fields = [
        row | {"name": row["name"].removeprefix(before)}
        for row in described
        if row["name"].startswith(before) and _is_drawn(row, row["name"].removeprefix(before))
    ]
    is_number = bool(value) and all(isinstance(each, int | float) for each in value)
    return {
        "items": "object" if fields else "number" if is_number else "string",
        "fields": fields,
    }


def _is_drawn(row: Row, key: str) -> bool:
    """Return whether a table of a list has a column for a key of its entries."""
    return row["type"] != "object" and (not key.count(".") or key == "queue.kind")


def description(kind: str) -> list[str]:
    """Return the description of the topology `kind` as paragraphs.

    The text is the docstring of the function that builds the topology, without the word `Return`
    and without drawings made of characters.
    """
    texts = (row["picture"] for row in catalogue.topology_rows() if row["kind"] == kind)
    text = (next(texts, "") or "").replace("`", "").removeprefix("Return ")
    text = text[:1].upper() + text[1:]
    return [part for part in text.split("\n\n") if part and "  " not in part]


def _is_address(paper: str) -> bool:
    return paper.startswith("https://")


def _first_figure(row: Row) -> int:
    paper = row.get("paper") or ""
    number = None if _is_address(paper) else re.search(r"\d+", paper)
    return int(number[0]) if number else 0
