"""The data of a run from which the effects of changes are explained, with functions to query it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from controller.units import scenario_mbps
from lab.frame import Frame
from lab.results.effects import USUAL_S, variation
from lab.results.explain.paths import NodePath, Paths, flow_names, owner
from lab.results.flips import is_accepted
from lab.results.stretches import Span
from lab.scenario.schema import Scenario
from lab.summaries import EPSILON_S
from lab.topologies.topology import (
    Direction,
    Directions,
    Link,
    Topology,
    data_directions,
    down_directions,
)

Event = Mapping[str, Any]  # a line of events.jsonl
Routes = Mapping[str, NodePath]  # by subflow: the nodes from its server to its user


@dataclass(frozen=True)
class Scene:
    """The data of a run: its scenario at the start, its samples (`frames`), and its events in order
    of time."""

    scenario: Scenario
    frames: Sequence[Frame]
    events: Sequence[Event]
    whole: Scene | None = None  # the run of which this is a part

    @property
    def network(self) -> Topology:
        return self.scenario.network

    @cached_property
    def links(self) -> Mapping[frozenset[str], Link]:
        """Map each pair of nodes to the link between them.

        A pair with several links is left out, because the path of a subflow does not say which of
        them it uses.
        """
        found: dict[frozenset[str], list[Link]] = {}
        for link in self.network.links:
            found.setdefault(frozenset((link.a, link.b)), []).append(link)
        return {ends: each[0] for ends, each in found.items() if len(each) == 1}

    def link_name(self, id: str) -> str:
        """Return the id of a link with the words for its place: `c4-a1x2 (core 4 to pod 1)`."""
        words = next((link.words for link in self.network.links if link.id == id), "")
        return f"{id} ({words})" if words else id

    def named(self, ids: Iterable[str]) -> str:
        return listed([self.link_name(each) for each in ids])

    @cached_property
    def _times(self) -> list[float]:
        return [frame.t for frame in self.frames]

    @cached_property
    def _routes(self) -> dict[float, Routes]:
        return {}

    def within(self, start_s: float, end_s: float) -> Scene:
        """Return the part of the run between two times, and the one sample before it.

        Means over intervals inside this part stay the same and are faster to compute.
        """
        first = max(0, bisect_right(self._times, start_s + EPSILON_S) - 1)
        last = bisect_right(self._times, end_s + EPSILON_S)
        return Scene(self.scenario, self.frames[first:last], self.events, self.whole or self)

    def quiet(self, at_s: float) -> Span:
        """Return the interval before `at_s` in which nothing was changed, at most `USUAL_S`
        long."""
        times = [
            each["t"] for each in self.events if is_accepted(each) and each["t"] < at_s - EPSILON_S
        ]
        return Span(max([0.0, at_s - USUAL_S, *times]), at_s)

    def varied(
        self, at_s: float, seconds: float, mean_of: Callable[[Scene, Span], float | None]
    ) -> tuple[Span, float, float] | None:
        """Return how a mean varied before `at_s`, in the interval that `quiet` returns.

        `mean_of` computes the mean. It is taken over a sliding window of `seconds`. The result is
        that of `lab.results.effects.variation`.
        """
        whole, time = self.whole or self, self.quiet(at_s)
        part = whole.within(max(0.0, time.start_s - seconds), at_s)
        return variation(part.frames, time, seconds, lambda _, span: mean_of(part, span))

    def routes(self, t: float) -> Routes:
        """Return the path of each subflow just before time `t`."""
        if t not in self._routes:
            self._routes[t] = self._followed(t)
        return self._routes[t]

    def _followed(self, t: float) -> Routes:
        index = bisect_right(self._times, t + EPSILON_S)
        if not index:
            return {}
        paths = Paths(self.network)
        paths.follow(each for each in self.events if each["t"] < t - EPSILON_S)
        samples = self.frames[index - 1].sf
        found = {name: paths.of(name, vars(sample)) for name, sample in samples.items()}
        return {name: path for name, path in found.items() if path}

    def crossed(self, path: NodePath) -> Iterator[Link]:
        """Yield the links on a path that have a configured rate."""
        for ends in pairwise(path):
            link = self.links.get(frozenset(ends))
            if link and link.rate_bps is not None:
                yield link

    def value(self, target: str, first: Any, t: float, other: str = "") -> Any:
        """Return the value of a parameter just before time `t`.

        `target` names the parameter, such as `link.up1.rate_mbps`, and so may `other`. `first` is
        its value at the start of the run.
        """
        for event in self.events:
            is_earlier = is_accepted(event) and event["t"] < t - EPSILON_S
            if is_earlier and event.get("target") in (target, other):
                first = event.get("value")
        return first

    def rate_mbps(self, link: Link, t: float) -> float:
        """Return the configured rate of a link in Mb/s just before time `t`.

        It is the rate of the scenario file, not the rate on the wire. If the directions differ, it
        is that of the data, or the lower one if data goes both ways.
        """
        return min(self._way_mbps(link, side, t) for side in self._data_sides[link.id])

    def _way_mbps(self, link: Link, side: Direction, t: float) -> float:
        way = "down" if self._down.get(link.id) == side else "up"
        first = scenario_mbps(link.way(side).rate_bps or 0, self.scenario.rate_scale)
        both, one = f"link.{link.id}.rate_mbps", f"link.{link.id}.{way}.rate_mbps"
        return float(self.value(both, first, t, one))

    @cached_property
    def _data_sides(self) -> Mapping[str, Directions]:
        return data_directions(self.network, self.scenario.data_flows)

    @cached_property
    def _down(self) -> Mapping[str, Direction]:
        return down_directions(self.network)

    def link_mbps(self, link: str, span: Span) -> float:
        """Return the mean rate of a link in its faster direction, in Mb/s with Ethernet headers."""

        def number(frame: Frame) -> float | None:
            return frame.link[link].mbps if link in frame.link else None

        return span.mean(self.frames, number) or 0.0

    def user_mbps(self, user: str, span: Span) -> float:
        """Return the mean rate of the payload that a user received, in Mb/s; 0 without samples."""

        def number(frame: Frame) -> float | None:
            return frame.user[user].mbps if user in frame.user else None

        return span.mean(self.frames, number) or 0.0

    def subflow_mbps(self, subflow: str, span: Span) -> float:
        """Return the mean rate of a subflow's payload in Mb/s. Samples without the subflow count as
        0."""
        return (
            span.mean(
                self.frames,
                lambda frame: frame.sf[subflow].mbps if subflow in frame.sf else 0.0,
            )
            or 0.0
        )

    def has_moved(self, t: float) -> bool:
        """Return whether users may have been elsewhere before time `t` than at the start."""
        return self.scenario.mobility is not None or any(
            is_accepted(each) and each["t"] < t - EPSILON_S and is_place(each.get("target"))
            for each in self.events
        )

    def station_mbps(self, ap: str, user: str, t: float) -> float | None:
        """Return the rate in Mb/s that a user would get alone at an access point just before `t`.

        The result is None if the user has no fixed rate there, has one for each direction, or was
        put somewhere else.
        """
        if self.value(f"user.{user}.position", None, t) is not None:
            return None
        for cell in self.network.cells:
            for each in cell.stations:
                if (cell.ap, each.user) == (ap, user):
                    ways = (f"cell.{ap}.{user}.{way}.rate_mbps" for way in ("up", "down"))
                    own = [self.value(way, None, t) for way in ways]
                    if each.up_bps is not None or own != [None, None]:
                        return None
                    first = scenario_mbps(each.rate_bps, self.scenario.rate_scale)
                    return float(self.value(f"cell.{ap}.{user}.rate_mbps", first, t))
        return None

    def station_carried_mbps(self, ap: str, user: str, span: Span) -> float:
        """Return the mean rate in Mb/s of a user's subflows over an access point."""
        return sum(
            self.subflow_mbps(name, span)
            for name, path in self.routes(span.end_s).items()
            if path[-2:] == (ap, user)
        )

    def tier_mbps(self, ap: str, tier: int, span: Span) -> float:
        """Return the mean rate in Mb/s of Tier 1 or Tier 2 of an access point; 0 without
        samples."""
        field = f"tier{tier}_mbps"
        return span.mean(self.frames, lambda frame: frame.figure("ap", ap, field)) or 0.0

    def name_in_samples(self, subflow: str) -> str:
        """Return the name that samples use for a subflow of an event, such as `ue2-1/1`."""
        connection, _, number = subflow.rpartition("/")
        return f"{self._flow_names.get(connection, connection)}/{number}"

    @cached_property
    def _flow_names(self) -> Mapping[str, str]:
        return flow_names(self.events)

    def user_of(self, subflow: str) -> str:
        for frame in reversed(self.frames):
            if subflow in frame.sf:
                return owner(subflow, vars(frame.sf[subflow]))[0]
        return owner(subflow, {})[0]


def is_place(target: object) -> bool:
    """Return whether a parameter is the position of a user, such as `user.ue1.position`."""
    return str(target).startswith("user.") and str(target).endswith(".position")


def subflow_number(subflow: str, field: str) -> Callable[[Frame], float | None]:
    """Return a function that reads a field of a subflow, such as `rtt_ms`, from a frame."""
    return lambda frame: getattr(frame.sf.get(subflow), field, None)


def inside(scene: Scene, span: Span) -> list[Frame]:
    return [frame for frame in scene.frames if span.start_s < frame.t <= span.end_s + EPSILON_S]


def listed(names: Sequence[str], most: int = 4) -> str:
    """Join names as in `a, b and c`. If there are more than `most`, only the number of the others
    is given."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def percent(part: float) -> str:
    """Format a fraction as a whole percentage, such as `43 %`."""
    return f"{100 * part:.0f} %"
