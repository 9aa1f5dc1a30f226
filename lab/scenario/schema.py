"""The keys of a scenario file: their names, types, units, bounds and defaults, and their checks.

Rates are Mb/s in the units of the scenario file; on the wire, each rate is multiplied by
`rate_scale`. Delays are one way, in ms.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    BaseModel,
    Field,
    PrivateAttr,
    SerializeAsAny,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from lab.errors import RequestError, nearest, show, unknown
from lab.inputs import Digests
from lab.scenario.engine_table import STACKS
from lab.scenario.parts import Part, Positive, Seconds, known_cc
from lab.scenario.traffic import Traffic
from lab.topologies.topology import Topology, as_json, wire

Prose = Annotated[str, Field(max_length=4000)]
# Texts for people: they affect no result.
PROSE = ("title", "paper", "question", "expect", "minutes", "try")


RoleOfUser = Literal["subflow", "backup", "none"]  # of a user's MPTCP endpoint
Role = RoleOfUser | Literal["signal", "signal_backup"]  # or of a server's, which is announced


class Endpoint(Part):
    """What the addresses of an interface of a host are for, with the flags of `ip mptcp endpoint`.
    `interface` is without the host, such as `wlan0`.

    The addresses of a user open subflows to the server's first address, those with `fullmesh` also
    to each address that the server announces. A server announces the addresses with `signal`.
    """

    host: str
    interface: str
    flags: Annotated[
        tuple[Literal["subflow", "backup", "signal", "fullmesh"], ...], Field(max_length=4)
    ]

    @property
    def role(self) -> Role:
        if "signal" in self.flags:
            return "signal_backup" if "backup" in self.flags else "signal"
        if "backup" in self.flags:
            return "backup"
        return "subflow" if self.flags else "none"

    @property
    def is_fullmesh(self) -> bool:
        return "fullmesh" in self.flags


class Limits(Part):
    """The limits of `ip mptcp limits`: how many subflows a connection has beyond its first one, and
    how many announced addresses it uses. Without `subflows`, there is no limit of the subflows."""

    subflows: Annotated[int, Field(ge=0, le=8)] | None = None
    add_addr_accepted: Annotated[int, Field(ge=0, le=8)] = 8


class Multipath(Part):
    """The settings of Multipath TCP.

    - `server_enabled`: if false, the server refuses Multipath TCP
    - `endpoints`: interfaces whose addresses open backups, or no subflows, or that are announced.
      The others of users open subflows, and those of servers are not announced
    - `limits`: how many subflows and announced addresses a connection may have
    - `balia_decrease`, `olia_metric`: the variants of BALIA and of OLIA: "draft" follows the
      Internet-Draft, "kernel" the multipath-tcp.org kernel
    - `expected_by`: how a subflow is limited to the throughput that the SDN controller expects:
      "pacing" limits its pacing rate, "window" its congestion window (Algorithm 5 of S-MPTCP)
    - `stack`: the implementation that the simulator models (`engine_table.STACKS`). It sets
      `scheduler` and `penalisation`. Without it, these two can be chosen freely
    - `penalisation`: while the receive window is full, resend the missing data on another subflow,
      and halve the congestion window of the slower subflow (Raiciu et al., NSDI 2012, section
      4.2). It is off by default, because upstream Linux does not do this
    - `ecn`: the hosts use explicit congestion notification (RFC 3168) in all TCP connections: a
      queue that marks (`queue` of a link) marks their packets instead of dropping them. Connections
      with DCTCP use it anyway
    """

    cc: str = "reno"
    stack: Literal["paper", "linux"] | None = None
    scheduler: Literal["lowest_rtt", "linux", "round_robin", "redundant"] = "lowest_rtt"
    receive_buffer_kb: Annotated[int, Field(ge=16, le=1_000_000)] = 4000
    server_enabled: bool = True
    endpoints: tuple[Endpoint, ...] = ()
    limits: Limits = Limits()
    balia_decrease: Literal["kernel", "draft"] = "kernel"
    olia_metric: Literal["kernel", "draft"] = "kernel"
    expected_by: Literal["pacing", "window"] = "pacing"
    penalisation: bool = False
    ecn: bool = False

    _cc = field_validator("cc")(known_cc)

    @model_validator(mode="before")
    @classmethod
    def has_the_settings_of_its_stack(cls, data: Any) -> Any:
        name = data.get("stack") if isinstance(data, dict) else None
        if isinstance(name, str) and name in STACKS:
            return STACKS[name].added_to(name, data)
        return data  # the schema refuses an unknown name

    @property
    def by_window(self) -> bool:
        """Whether the rates that the controller expects of subflows limit congestion windows.

        If not, they limit pacing rates.
        """
        return self.expected_by == "window"

    @model_validator(mode="after")
    def settings_go_together(self) -> Multipath:
        if self.penalisation and self.scheduler not in ("lowest_rtt", "round_robin"):
            raise ValueError(
                "penalisation belongs to the schedulers lowest_rtt and round_robin, not"
                f" '{self.scheduler}'"
            )
        return self


class StrategyChoice(Part):
    """A strategy of the controller, and its parameters.

    In a loaded scenario, `params` has every parameter, also those with their default value.
    """

    name: str = "none"
    params: dict[str, Any] = {}


class TopologyChoice(Part):
    """A kind of topology, and its parameters as an instance of this kind's pydantic model."""

    kind: str
    params: SerializeAsAny[BaseModel]


class Event(Part):
    """A change of the running network that the scenario file makes.

    At `at_s`, in s since the start of the run, the parameter `target` is set to `value`.
    `./run_lab.sh list targets` shows the parameters that can be changed.
    """

    at_s: Seconds
    target: str
    value: Any = None


class Suggestion(Part):
    """A change of the running network that the dashboard suggests to the user.

    A click sets the parameter `target` to `value`. `watch` names a number in the samples that shows
    the effect, such as `user.ue1.mbps`. The text `before` is shown before the click, and the text
    `after` 10 s after the change. In `after`, {before} and {after} are replaced by the means before
    and after the change, and {seconds} by the measured time. `target` cannot be a parameter of a
    strategy, because an earlier change of the strategy could remove this parameter.
    """

    target: str
    value: Any
    watch: str
    before: Annotated[str, Field(min_length=1)]
    after: Annotated[str, Field(min_length=1)]


NotNegative = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Walked = tuple[NotNegative, NotNegative, NotNegative]  # s, m, m


class Mobility(Part):
    """The movement of users.

    `random_waypoint`: each user walks to a random place at a random speed between `speed_min_mps`
    and `speed_max_mps`, pauses there for `pause_s`, and walks on to the next place. `trace`: users
    walk along `walks`, each point of which is a time in s, and x and y in m.
    """

    kind: Literal["random_waypoint", "trace"] = "random_waypoint"
    speed_min_mps: Annotated[float, Field(gt=0, le=100)] = 1
    speed_max_mps: Annotated[float, Field(gt=0, le=100)] = 5
    pause_s: Seconds = 0
    walks: dict[str, Annotated[tuple[Walked, ...], Field(min_length=1)]] = {}

    @model_validator(mode="after")
    def speeds_in_order(self) -> Mobility:
        if self.speed_max_mps < self.speed_min_mps:
            raise ValueError(
                f"speed_max_mps {self.speed_max_mps:g} is below speed_min_mps"
                f" {self.speed_min_mps:g}"
            )
        return self

    @model_validator(mode="after")
    def walks_of_a_trace(self) -> Mobility:
        if (self.kind == "trace") != bool(self.walks):
            raise ValueError("kind: trace and walks belong together: walks has the users' places")
        if self.kind == "trace" and (self.speed_min_mps, self.speed_max_mps, self.pause_s) != (
            1,
            5,
            0,
        ):
            raise ValueError("kind: trace has no speeds and pauses: leave them out")
        for user, points in self.walks.items():
            for (before_s, *_), (after_s, *_) in pairwise(points):
                if after_s <= before_s:
                    raise ValueError(
                        f"walks: {user} is somewhere at {before_s:g} s, then at {after_s:g} s: "
                        "write each user's times in order"
                    )
        return self


class Scenario(Part):
    """The complete description of a run. `lab.scenario.loading` makes it from a file and checks
    every value.

    If `traffic_direction` or `traffic_parallel` is set, it replaces the value in all entries of
    `traffic`. If `traffic_volume_mb` is set, all entries transfer a file of this size.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
    title: Annotated[str, Field(max_length=200)]
    paper: Prose = ""
    question: Prose = ""
    expect: Prose = ""
    minutes: Annotated[float, Field(gt=0, le=10_000)] | None = None
    topology: TopologyChoice
    traffic: tuple[Traffic, ...] = Field(min_length=1)
    multipath: Multipath = Multipath()
    strategy: StrategyChoice = StrategyChoice()
    events: tuple[Event, ...] = ()
    to_try: tuple[Suggestion, ...] = Field((), alias="try", max_length=3)
    mobility: Mobility | None = None
    traffic_direction: Literal["down", "up"] | None = None
    traffic_parallel: Annotated[int, Field(ge=1, le=64)] | None = None
    traffic_volume_mb: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 1
    duration_s: Positive = 60
    sample_interval_s: Annotated[float, Field(ge=0.05, le=60)] = 0.5
    rate_scale: Annotated[float, Field(gt=0, le=100)] = 1
    slow_machine_rate_scale: Annotated[float, Field(gt=0, le=1)] = 1
    _network: Topology | None = PrivateAttr(default=None)
    _inputs: Digests = PrivateAttr(default={})

    @property
    def network(self) -> Topology:
        """The network. Its rates are those on the wire: the rates of the scenario file times
        `rate_scale`."""
        assert self._network is not None, "a Scenario is made by lab.scenario.loading"
        return self._network

    def traced_bps(self) -> dict[str, list[float]]:
        """Return the rates on the wire that targets take by their traces [bit/s]."""
        return {
            each.target: [step.rate_bps(self.rate_scale) or 0 for step in each.trace.steps]
            for each in self.network.traces
        }

    @property
    def inputs(self) -> Digests:
        """The files that users' code has read while the scenario was checked and its network
        built."""
        return self._inputs

    def with_inputs(self, inputs: Digests) -> Scenario:
        """Return a copy with these inputs. Only `lab.scenario.loading` calls this."""
        copy = self.model_copy()
        copy._inputs = dict(inputs)
        return copy

    @property
    def congestion_controls(self) -> list[str]:
        """All congestion controls that the scenario uses.

        They are the default one, those of single entries in `traffic`, and those to which events
        switch.
        """
        named = [self.multipath.cc, *(flow.cc for flow in self.traffic if flow.cc)]
        named += [event.value for event in self.events if event.target == "cc"]
        return list(dict.fromkeys(named))

    def with_network(self, network: Topology) -> Scenario:
        """Return a copy with this network. Only `lab.scenario.loading`, which builds the network,
        and `lab.scenario.targets`, which moves users in it, call this."""
        copy = self.model_copy()
        copy._network = network
        return copy

    @property
    def data_flows(self) -> tuple[tuple[str, str], ...]:
        """The user and the directions ("down" or "up") of each entry in `traffic`."""
        return tuple((flow.user, way) for flow in self.traffic for way in flow.directions)

    @model_validator(mode="after")
    def is_sampled_at_least_once(self) -> Scenario:
        if self.sample_interval_s > self.duration_s:
            raise ValueError(
                f"sample_interval_s {self.sample_interval_s:g} is longer than duration_s"
                f" {self.duration_s:g}"
            )
        return self


# Checking plain data against a model, with the texts of all errors
#
# An error message has the file, the key and the value, and says what to write. A nested key is
# written like `topology.paths[1].loss`; list entries are counted from 1.


UNITS = {
    "mbps": "Mb/s",
    "ms": "ms",
    "s": "s",
    "mb": "MB",
    "kb": "kB",
    "m": "m",
    "mps": "m/s",
    "packets": "packets",
    "dbm": "dBm",
}
FACTORS = {
    "Mb/s": {
        f"{prefix}{bits}": factor
        for prefix, factor in (("", 1e-6), ("k", 1e-3), ("m", 1.0), ("g", 1e3))
        for bits in ("bit", "bit/s", "b/s", "bps")
    },
    "ms": {"us": 1e-3, "ms": 1.0, "s": 1e3},
    "s": {"ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0},
    "MB": {"kb": 1e-3, "mb": 1.0, "gb": 1e3},
    "kB": {"b": 1e-3, "kb": 1.0, "mb": 1e3},
    "m": {"cm": 1e-2, "m": 1.0, "km": 1e3},
    "m/s": {"m/s": 1.0, "km/h": 1 / 3.6},
    "packets": {"p": 1.0, "packet": 1.0, "packets": 1.0},
    "dBm": {"dbm": 1.0},
    "fraction from 0 to 1": {"%": 1e-2},
}  # by the unit of a key: the units that people write, and what to multiply with
SHAPES = {
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "string_type": "text",
    "bool_type": "true or false",
}
LIMITS = {
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
}
FRACTIONS = ("loss", "loss_both", "reorder", "duplicate", "p", "r", "good", "bad")
MOST_UNKNOWN = 6  # unknown keys of a mapping that an error names
Model = TypeVar("Model", bound=BaseModel)
Loc = Sequence[str | int]


def validate(model: type[Model], data: Any, source: str, *prefix: str | int) -> Model:
    """Check `data` and return it as an instance of `model`.

    Raise one `RequestError` with a line for each problem. Each line begins with `source` and the
    wrong key. `prefix` has the outer keys under which `data` is in the file, for the error
    messages.
    """
    problems = [
        f"{source}: {where([*prefix, *loc]) or 'top'}: {text}" for loc, text in _unmeasurable(data)
    ]
    if not problems:
        try:
            return model.model_validate(_tuples(data), strict=True)
        except ValidationError as error:
            problems = list(_problems(model, error, source, prefix))
    raise RequestError("\n".join(dict.fromkeys(problems)))


def where(loc: Loc) -> str:
    """Format a sequence of keys and list indices as text such as `paths[1].loss`.

    List indices count from 0 in `loc` and from 1 in the text.
    """
    text = ""
    for step in loc:
        text += f"[{step + 1}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def unit(key: str) -> str:
    """Return the unit that the last word of a key stands for, such as "ms" for `delay_ms`.

    Return "" for a key without a unit.
    """
    if key in FRACTIONS:
        return "fraction from 0 to 1"
    if key.endswith("_per_s"):
        return "1/s"
    return UNITS.get(key.rpartition("_")[2], "") if "_" in key else ""


def without_unit(text: str, wanted: str) -> float | None:
    """Return the number that a text with a unit means in the unit `wanted` (see `unit`), such as
    0.5 for "500 kbit" and "Mb/s". Return None if the text has another form or unit."""
    found = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*([a-z/%]*)\s*", text.lower())
    if not found:
        return None
    factor = 1.0 if not found[2] else FACTORS.get(wanted, {}).get(found[2])
    return None if factor is None else float(f"{float(found[1]) * factor:.12g}")


def _tuples(data: Any) -> Any:
    """Replace all lists in the data by tuples, because the frozen models accept only tuples."""
    if isinstance(data, dict):
        return {key: _tuples(value) for key, value in data.items()}
    return tuple(_tuples(each) for each in data) if isinstance(data, (list, tuple)) else data


def _unmeasurable(data: Any, *loc: str | int) -> Iterator[tuple[Loc, str]]:
    """Yield (location, message) for each number that is infinite or NaN, and for each key that is
    not text.

    `loc` is the location of `data` in the file.
    """
    if isinstance(data, float) and not math.isfinite(data):
        yield loc, f"{data} is not a number that can be measured"
    pairs = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, (list, tuple))
        else ()
    )
    for key, value in pairs:
        if isinstance(data, dict) and not isinstance(key, str):
            yield loc, f"key {show(key)} is not a word: put it in quotes"
        else:
            yield from _unmeasurable(value, *loc, key)


def _problems(
    model: type[BaseModel], error: ValidationError, source: str, prefix: Loc
) -> Iterator[str]:
    """Yield a line for each problem, but only one for all unknown keys of a mapping.

    pydantic counts no wrong entries of a list, so it may also call the list too short: this is left
    out.
    """
    found: list[dict[str, Any]] = [
        dict(each) | {"loc": _keys_of(each["loc"])} for each in error.errors()
    ]
    strange: dict[str, list[Any]] = {}  # unknown keys by the place of their mapping
    for each in found:
        if each["type"] == "extra_forbidden":
            strange.setdefault(where(each["loc"][:-1]), []).append(each["loc"][-1])
    for each in found:
        loc, kind = each["loc"], each["type"]
        inside = any(other["loc"][: len(loc)] == loc for other in found if other is not each)
        if kind == "too_short" and inside:
            continue
        if kind != "extra_forbidden":
            yield _problem(model, each, source, prefix)
        elif keys := strange.pop(where(loc[:-1]), None):
            yield _unknown_keys(model, loc[:-1], keys, source, prefix)


def _keys_of(loc: Loc) -> list[str | int]:
    """Return a location without the steps that are no keys, but pydantic's names of functions and
    of alternatives (`loss_keys.Loss`)."""
    return [key for key in loc if isinstance(key, int) or not key.startswith(("function-", "<"))]


def _unknown_keys(
    model: type[BaseModel], loc: Loc, keys: Sequence[str | int], source: str, prefix: Loc
) -> str:
    known = sorted(_fields(_model_at(model, loc)))
    outer = where([*prefix, *loc])
    listed = [f"'{key}'{nearest(str(key), known)}" for key in keys[:MOST_UNKNOWN]]
    more = f" and {len(keys) - MOST_UNKNOWN} more" if len(keys) > MOST_UNKNOWN else ""
    word = "unknown key" if len(keys) == 1 else "unknown keys"
    return (
        f"{source}: {f'{outer}: ' if outer else ''}{word} {', '.join(listed)}{more}. "
        f"Known keys: {', '.join(known) or 'none'}"
    )


MISSING = {
    "name": "name: my_network",
    "title": "title: My network",
    "traffic": "traffic: [{user: all, kind: bulk}]",
    "user": "user: all",
}  # examples of keys that a scenario must have


def _problem(model: type[BaseModel], error: dict[str, Any], source: str, prefix: Loc) -> str:
    loc = error["loc"]
    kind, value, ctx = error["type"], error["input"], error.get("ctx", {})
    key = next((step for step in reversed(loc) if isinstance(step, str)), "")
    place = where([*prefix, *loc])
    if kind == "missing":
        example = f", for example '{MISSING[key]}'" if key in MISSING else ""
        return f"{source}: {place}: is missing. Add it{example}"
    return (
        f"{source}: {place}: {_cure(kind, key, value, ctx, error['msg'])}"
        if place
        else f"{source}: {ctx.get('error', error['msg'])}"
    )


def _cure(kind: str, key: str, value: Any, ctx: dict[str, Any], message: str) -> str:
    """Return the end of an error message: what is wrong with the value, and what to write instead.

    `kind`, `ctx` and `message` are from the pydantic error.
    """
    if kind == "value_error":
        return str(ctx["error"])
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", ctx["expected"])
        return unknown(value, known)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if key in FRACTIONS and is_number and not 0 <= value <= 1:
        if 1 < value <= 100:
            return f"{value} is no fraction from 0 to 1: write {value / 100:g} for {value:g} %"
        return f"{value} is no fraction from 0 to 1"
    if kind.startswith(("float_", "int_")) or kind == "finite_number":
        whole = "whole number" if kind.startswith("int_") else "number"
        asks = f"{show(value)} is not a {whole}" + (f" in {unit(key)}" if unit(key) else "")
        meant = without_unit(value, unit(key)) if isinstance(value, str) else None
        return f"{asks}: write {meant:g}" if meant is not None else asks
    if kind in LIMITS:
        name, words = LIMITS[kind]
        bound = f"{words} {ctx[name]:g}"
        of = "" if key in FRACTIONS else unit(key)
        return f"{show(value)} is out of range: write {bound} {of}".rstrip()
    if kind in SHAPES:
        return f"{show(value)} is not {SHAPES[kind]}"
    if kind in ("too_short", "too_long"):
        bound = (
            f"at least {ctx['min_length']}"
            if kind == "too_short"
            else f"at most {ctx['max_length']}"
        )
        return f"holds {ctx['actual_length']} entries: write {bound}"
    if kind == "string_pattern_mismatch":
        return f"{show(value)} does not fit {ctx['pattern']}"
    return f"{show(value)}: {message[0].lower()}{message[1:]}"


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel]:
    """Return the model to which the keys `loc` lead from `model`, through nested models and
    lists."""
    for step in loc:
        if isinstance(step, str) and step in _fields(model):
            model = _inner(_fields(model)[step].annotation) or model
    return model


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a model by the keys that they have in a scenario file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _inner(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _inner(arg))), None)


# The keys of a model, as rows for the user


def described(model: type[BaseModel]) -> list[dict[str, Any]]:
    """Return one dictionary for each key of a model: the key's name, type, unit, bounds, choices,
    default and help text.

    Keys inside lists are included: `paths[].loss` is the key `loss` of each entry of the list
    `paths`, and `paths[].queue.kind` the key `kind` of its key `queue`.
    """
    return [dict(row) for row in _described(model)]


@cache
def _described(model: type[BaseModel]) -> list[dict[str, Any]]:
    schema = model.model_json_schema()
    return list(_rows(schema, schema.get("$defs", {}), ""))


def _rows(schema: dict[str, Any], named: dict[str, Any], before: str) -> Iterator[dict[str, Any]]:
    for key, entry in schema.get("properties", {}).items():
        field = _resolved(entry, named)
        yield {
            "name": before + key,
            "type": field.get("type", "text" if "enum" in field else "any"),
            "unit": field.get("unit", unit(key)),
            "minimum": field.get("minimum", field.get("exclusiveMinimum")),
            "maximum": field.get("maximum", field.get("exclusiveMaximum")),
            "choices": field.get("enum"),
            "default": field.get("default"),
            "help": field.get("description", ""),
            "words": field.get("words", ""),
        }
        if "items" in field:
            yield from _rows(_resolved(field["items"], named), named, f"{before}{key}[].")
        elif before:
            yield from _rows(field, named, f"{before}{key}.")


def _resolved(field: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of a field without references.

    A `$ref` is replaced by the definition in `named`. For an optional field, the schema is that of
    the type without null.
    """
    kinds = [each for each in field.get("anyOf", []) if each.get("type") != "null"]
    field = field | (kinds[0] if len(kinds) == 1 else {})
    return field | (named[field["$ref"].rpartition("/")[2]] if "$ref" in field else {})


# The controller's strategies by name: parameters, help texts, and whether they can act in a network
#
# `controller` is imported only when a function needs it, so that the command line starts quickly.


def strategies() -> dict[str, Any]:
    """Return the classes of all strategies by name, users' own strategies included."""
    from controller.strategies import STRATEGIES

    return dict(STRATEGIES)


def strategy_params(name: str, source: str = "strategy") -> type[BaseModel]:
    """Return the pydantic model that checks the parameters of the strategy `name`.

    Raise `RequestError`, which lists the known names, if there is no such strategy. The error
    message begins with `source`.
    """
    from controller.strategies import forms

    known = strategies()
    if name not in known:
        raise RequestError(
            f"{source}: {forms.explain_unknown(name, known) or unknown(name, sorted(known))}"
        )
    model: type[BaseModel] = known[name].Params
    return model


def checked_strategy_params(
    name: str, params: dict[str, Any], source: str, *prefix: str
) -> dict[str, Any]:
    """Return all parameters of a strategy as plain data: the checked values in `params`, and
    defaults for the others.

    Raise `RequestError` if a value is wrong. The error message begins with `source` and the keys
    `prefix`, which say where in the file the parameters are.
    """
    model = strategy_params(name, f"{source}: {prefix[0]}.name" if prefix else source)
    return validate(model, params, source, *prefix).model_dump(mode="json")


def checked_strategy(value: Any, source: str) -> StrategyChoice:
    """Check the value of the key `strategy`, and return it with all parameters of the strategy.

    Parameters that are missing get their defaults. Raise `RequestError`, which begins with
    `source`, if something is wrong.
    """
    choice = validate(StrategyChoice, value, source, "strategy")
    params = checked_strategy_params(choice.name, choice.params, source, "strategy", "params")
    return choice.model_copy(update={"params": params})


def check_strategy_fits(name: str, topology: Topology, source: str) -> None:
    """Raise `RequestError` if the strategy `name` could never act in this network.

    The message begins with `source` and lists the strategies that could.
    """
    if reason := strategies()[name].unfit(_for_controller(topology)):
        fit = ", ".join(each for each, reason in why_unfit(topology).items() if not reason)
        raise RequestError(
            f"{source}: strategy '{name}' has nothing to do in this network: {reason}. "
            f"Choose from {fit}"
        )


def why_unfit(topology: Topology) -> dict[str, str | None]:
    """Map each strategy to the reason why it could never act in this network, or to None if it
    could."""
    network = _for_controller(topology)
    return {name: strategy.unfit(network) for name, strategy in sorted(strategies().items())}


def _for_controller(topology: Topology) -> Any:
    """Return the network in the form that the controller reads (`controller.topology.Topology`)."""
    from controller.topology import Topology as ControllerTopology

    return ControllerTopology.model_validate(as_json(topology, wire(topology)))


def strategy_help(name: str) -> str:
    """Return the help text of a strategy.

    It is the first line of the docstring of the strategy's module. For an improved form
    (`NAME/improved`), the defaults that differ from those of `NAME` are added.
    """
    from controller.strategies.forms import preset_text

    strategy = strategies()[name]
    line = (sys.modules[strategy.__module__].__doc__ or "").strip().partition("\n")[0]
    presets = preset_text(strategy)
    return f"{line} Improved form: {presets}." if presets else line


def described_strategy(name: str) -> list[dict[str, Any]]:
    """Return a row for each parameter of a strategy: its name, type, unit, bounds, choices, default
    and help text."""
    return described(strategy_params(name))
