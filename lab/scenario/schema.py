"""The keys of a scenario file: names, types, units, bounds and defaults.

Rates are Mb/s in scenario units, that is, before they are multiplied by `rate_scale`. Delays are
one way, in ms.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SerializeAsAny,
    field_validator,
    model_validator,
)

from lab import extensions
from lab.errors import unknown
from lab.scenario.engine_table import STACKS
from lab.topologies.topology import Topology

DAY_S = 86_400
Prose = Annotated[str, Field(max_length=4000)]
Rate = Annotated[float, Field(gt=0, le=10_000)]
Seconds = Annotated[float, Field(ge=0, le=DAY_S)]
Positive = Annotated[float, Field(gt=0, le=DAY_S)]


class Part(BaseModel):
    """The base of all parts of a scenario: frozen, and unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def known_cc(name: str | None) -> str | None:
    """Return `name` unchanged. Raise `ValueError`, which lists the known names, if it is
    unknown."""
    if name is not None and name not in (known := extensions.congestion_controls()):
        raise ValueError(unknown(name, known))
    return name


class Traffic(Part):
    """The traffic of one user, or of each user if `user` is "all".

    With the kinds "rate" and "on_off", `rate_mbps` is the rate at which the application writes.
    "on_off" alternates between sending and silence; the lengths of the periods are exponentially
    distributed with the means `on_s` and `off_s`. "udp" sends `rate_mbps` over the user's first
    interface, regardless of loss.
    """

    user: str
    kind: Literal["bulk", "file", "rate", "on_off", "udp"] = "bulk"
    direction: Literal["down", "up"] = "down"
    start_s: Seconds = 0
    stop_s: Positive | None = None
    parallel: Annotated[int, Field(ge=1, le=64)] = 1
    volume_mb: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    rate_mbps: Rate | None = None
    on_s: Positive = 2
    off_s: Positive = 2
    cc: str | None = None

    _cc = field_validator("cc")(known_cc)

    @model_validator(mode="after")
    def has_what_its_kind_needs(self) -> Traffic:
        if self.kind == "file" and self.volume_mb is None:
            raise ValueError("kind 'file' needs volume_mb, the size of the file in MB")
        if self.kind != "file" and self.volume_mb is not None:
            raise ValueError(f"volume_mb belongs to kind 'file', not '{self.kind}'")
        if self.kind in ("rate", "on_off", "udp") and self.rate_mbps is None:
            raise ValueError(f"kind '{self.kind}' needs rate_mbps, the application's rate in Mb/s")
        if self.kind == "udp" and self.cc is not None:
            raise ValueError("kind 'udp' has no congestion control: leave out cc")
        if self.stop_s is not None and self.stop_s <= self.start_s:
            raise ValueError(f"stop_s {self.stop_s:g} is not after start_s {self.start_s:g}")
        return self


class Multipath(Part):
    """How connections use their paths.

    - `server_enabled`: if false, the server refuses Multipath TCP
    - `balia_decrease` and `olia_metric` choose between two variants of BALIA and OLIA: that of the
      Internet-Draft, or that of the multipath-tcp.org kernel
    - `expected_by`: how a subflow is limited to the throughput that the controller expects of it:
      by its pacing rate, or by its congestion window as in S-MPTCP's Algorithm 5
    - `stack`: the implementation that the simulator models (`engine_table.STACKS`). It sets
      `scheduler` and `penalisation`; without it, these two are free
    - `penalisation`: while the receive window is full, reinject the data that the receiver waits
      for, and halve the congestion window of the slower subflow (mptcp_rcv_buf_optimization of the
      multipath-tcp.org kernel). It is off by default, because upstream Linux does not do this.
    """

    cc: str = "reno"
    stack: Literal["paper", "linux"] | None = None
    scheduler: Literal["lowest_rtt", "linux", "round_robin", "redundant"] = "lowest_rtt"
    receive_buffer_kb: Annotated[int, Field(ge=16, le=1_000_000)] = 4000
    server_enabled: bool = True
    balia_decrease: Literal["kernel", "draft"] = "kernel"
    olia_metric: Literal["kernel", "draft"] = "kernel"
    expected_by: Literal["pacing", "window"] = "pacing"
    penalisation: bool = False

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
        """Whether expected rates limit windows; if not, they limit pacing rates."""
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
    """A strategy and its parameters. In a loaded scenario, `params` has every parameter, also those
    with their default."""

    name: str = "none"
    params: dict[str, Any] = {}


class TopologyChoice(Part):
    """A kind of topology, and its parameters as the pydantic model of this kind."""

    kind: str
    params: SerializeAsAny[BaseModel]


class Event(Part):
    """A change of the running network: at `at_s`, in s since the start of the run, `target` is set
    to `value`. `./run_lab.sh list targets` shows the targets."""

    at_s: Seconds
    target: str
    value: Any = None


class Suggestion(Part):
    """A change that the page of a run suggests.

    A click sets `target` to `value`. `watch` names the number of a sample that shows the effect,
    such as `user.ue1.mbps`. `before` is shown before the change. `after` is shown 10 s after it,
    with the measured means in place of {before} and {after} and the measured time in place of
    {seconds}. The target is no parameter of a strategy, so that no earlier change makes it invalid.
    """

    target: str
    value: Any
    watch: str
    before: Annotated[str, Field(min_length=1)]
    after: Annotated[str, Field(min_length=1)]


class Mobility(Part):
    """Each user moves to a random waypoint at a random speed between `speed_min_mps` and
    `speed_max_mps`, pauses there for `pause_s`, and moves on to the next one."""

    kind: Literal["random_waypoint"] = "random_waypoint"
    speed_min_mps: Annotated[float, Field(gt=0, le=100)] = 1
    speed_max_mps: Annotated[float, Field(gt=0, le=100)] = 5
    pause_s: Seconds = 0

    @model_validator(mode="after")
    def speeds_in_order(self) -> Mobility:
        if self.speed_max_mps < self.speed_min_mps:
            raise ValueError(
                f"speed_max_mps {self.speed_max_mps:g} is below speed_min_mps"
                f" {self.speed_min_mps:g}"
            )
        return self


class Scenario(Part):
    """One complete experiment. `lab.scenario.loading` makes it from a file and checks every value.

    If set, `traffic_direction` and `traffic_parallel` replace the values of all entries in
    `traffic`; with `traffic_volume_mb`, all entries transfer a file of this size.
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

    @property
    def network(self) -> Topology:
        """The network with rates as they are on the wire: those of the scenario file times
        `rate_scale`."""
        assert self._network is not None, "a Scenario is made by lab.scenario.loading"
        return self._network

    @property
    def congestion_controls(self) -> list[str]:
        """All congestion controls that the scenario uses: the default one, those of single entries
        in `traffic`, and those that events select."""
        named = [self.multipath.cc, *(flow.cc for flow in self.traffic if flow.cc)]
        named += [event.value for event in self.events if event.target == "cc"]
        return list(dict.fromkeys(named))

    def with_network(self, network: Topology) -> Scenario:
        """Return a copy with this network. Only `lab.scenario.loading`, which builds the network,
        calls this."""
        copy = self.model_copy()
        copy._network = network
        return copy

    @property
    def data_flows(self) -> tuple[tuple[str, str], ...]:
        """(user, direction) of each entry in `traffic`; the direction is "down" or "up"."""
        return tuple((flow.user, flow.direction) for flow in self.traffic)

    @model_validator(mode="after")
    def is_sampled_at_least_once(self) -> Scenario:
        if self.sample_interval_s > self.duration_s:
            raise ValueError(
                f"sample_interval_s {self.sample_interval_s:g} is longer than duration_s"
                f" {self.duration_s:g}"
            )
        return self
