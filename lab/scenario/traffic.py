"""The keys of an entry of `traffic` in a scenario file, and their checks."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from lab.scenario import flow_sizes
from lab.scenario.parts import Part, Positive, Rate, Seconds, known_cc

SizePoints = Annotated[tuple[tuple[float, float], ...], Field(min_length=1, max_length=1000)]
Sizes = Annotated[
    Annotated[Literal["web_search", "data_mining"], Tag("<name>")]
    | Annotated[SizePoints, Tag("<points>")],
    Discriminator(lambda value: "<name>" if isinstance(value, str) else "<points>"),
]
KINDS_OF_KEYS = {
    "sizes": ("workload", "web"),
    "size_scale": ("workload", "web"),
    "load": ("workload",),
    "link": ("workload",),
    "pattern": ("workload",),
    "request_kb": ("rpc", "web"),
    "think_s": ("rpc", "web"),
    "answer_kb": ("rpc",),
    "requests_per_s": ("rpc",),
    "objects": ("web",),
    "connections": ("web",),
    "bitrates_mbps": ("video",),
    "chunk_s": ("video",),
    "buffer_s": ("video",),
    "adapts_by": ("video",),
    "packet_bytes": ("call",),
    "packet_ms": ("call",),
    "playout_ms": ("call",),
    "interface": ("call",),
}  # which kinds of an entry of `traffic` have a key
FURTHER_KEYS = {  # for which kinds other keys make sense; `start_s` and `stop_s` do for all
    "direction": ("bulk", "file", "rate", "on_off", "udp", "workload"),
    "parallel": ("bulk", "file", "rate", "on_off", "udp", "rpc", "web", "video", "call"),
    "volume_mb": ("file",),
    "rate_mbps": ("rate", "on_off", "udp", "workload"),
    "on_s": ("on_off",),
    "off_s": ("on_off",),
    "cc": ("bulk", "file", "rate", "on_off", "workload", "rpc", "web", "video"),
    "warm": ("bulk", "file", "rate", "on_off"),
}
SELF_PACED = ("workload", "rpc", "web", "video", "call")  # kinds whose flows no demand limits
TAKES_ALL = frozenset({"bulk", "file"})  # what the others ask for limits their rate


BITRATES_MBPS = (0.24, 0.375, 0.56, 0.75, 1.05, 1.75, 2.35, 3.0, 4.3, 5.8)  # BBA's, section 3.1


class Traffic(Part):
    """The traffic of one user, or of each user if `user` is "all".

    With the kinds "rate" and "on_off", the application writes at `rate_mbps`. "on_off" alternates
    between sending and silence; the lengths of these periods are exponentially distributed with the
    means `on_s` and `off_s`. "udp" sends `rate_mbps` over the user's first interface, regardless of
    loss. "file" transfers `volume_mb` and ends; "bulk" sends as much as it can. The connection and
    all its subflows are open before `start_s` if `warm` is true.

    "workload" transfers many flows, each over a connection of its own. They begin at random times
    (a Poisson process), and together they are `rate_mbps` on average, or `load` times the rate of
    `link`, divided among the users of the entry. `sizes` is the distribution of their sizes
    (`flow_sizes`), times `size_scale`. With the pattern "permutation", each user has times and
    sizes of its own; with "incast", all users transfer equally large flows at the same times.

    "rpc" sends requests of `request_kb` and gets answers of `answer_kb` over one connection, which
    is open before `start_s`. The next request follows an answer after a pause of `think_s` on
    average; or, with `requests_per_s`, requests come at random times (a Poisson process).

    "web" loads pages of `objects` objects, whose sizes are drawn from `sizes`, over `connections`
    connections that are open before `start_s`. The next page follows after a pause of `think_s` on
    average.

    "video" loads chunks of `chunk_s` of a video, each in one of `bitrates_mbps`, into a buffer of
    `buffer_s`. `adapts_by` says how the bitrate is chosen (`clients.VideoClient`).

    "call" sends a datagram of `packet_bytes` every `packet_ms` in both directions, over `interface`
    of the user (its first one if that is ""), regardless of loss. `playout_ms` is how long a
    receiver keeps the quickest datagrams before it plays them (`lab.run.calls`).
    """

    user: str
    kind: Literal[
        "bulk", "file", "rate", "on_off", "udp", "workload", "rpc", "web", "video", "call"
    ] = "bulk"
    direction: Literal["down", "up"] = "down"
    start_s: Seconds = 0
    stop_s: Positive | None = None
    parallel: Annotated[int, Field(ge=1, le=64)] = 1
    volume_mb: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    rate_mbps: Rate | None = None
    on_s: Positive = 2
    off_s: Positive = 2
    cc: str | None = None
    warm: bool = False
    sizes: Sizes | None = None
    size_scale: Annotated[float, Field(gt=0, le=1000)] = 1
    load: Annotated[float, Field(gt=0, le=2)] | None = None
    link: str | None = None
    pattern: Literal["permutation", "incast"] = "permutation"
    request_kb: Annotated[float, Field(gt=0, le=14)] = 0.3  # ten packets, an initial window
    answer_kb: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    think_s: Seconds = 1
    requests_per_s: Annotated[float, Field(gt=0, le=1000)] | None = None
    objects: Annotated[int, Field(ge=1, le=1000)] = 20
    bitrates_mbps: Annotated[tuple[Rate, ...], Field(min_length=1, max_length=32)] = BITRATES_MBPS
    chunk_s: Annotated[float, Field(ge=0.5, le=60)] = 4
    buffer_s: Annotated[float, Field(gt=0, le=3600)] = 30
    adapts_by: Literal["rate", "buffer"] = "buffer"
    connections: Annotated[int, Field(ge=1, le=16)] = 6  # as browsers open to a server (HTTP/1.1)
    packet_bytes: Annotated[int, Field(ge=16, le=1472)] = 172  # 20 ms of G.711, and RTP's header
    packet_ms: Annotated[float, Field(ge=5, le=200)] = 20
    playout_ms: Annotated[float, Field(ge=0, le=1000)] = 60
    interface: Annotated[str, Field(max_length=40)] = ""

    _cc = field_validator("cc")(known_cc)

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions in which its data goes."""
        return ("down", "up") if self.kind == "call" else (self.direction,)

    def _written(self, *keys: str) -> str:
        """Return the keys among these that have a value of their own, such as `warm and cc`."""
        fields = type(self).model_fields
        return " and ".join(key for key in keys if getattr(self, key) != fields[key].default)

    @model_validator(mode="after")
    def has_no_key_of_another_kind(self) -> Traffic:
        for key, kinds in KINDS_OF_KEYS.items():
            is_set = getattr(self, key) != type(self).model_fields[key].default
            if is_set and self.kind not in kinds:
                names = " and ".join(f"'{kind}'" for kind in kinds)
                raise ValueError(f"{key} belongs to kind {names}, not '{self.kind}'")
        return self

    @model_validator(mode="after")
    def is_complete_as_client(self) -> Traffic:
        if self.kind not in ("rpc", "web", "video"):
            return self
        if self.kind == "rpc" and self.answer_kb is None:
            raise ValueError("kind 'rpc' needs answer_kb, the size of an answer in kB")
        if self.kind == "web" and self.sizes is None:
            raise ValueError(
                "kind 'web' needs sizes of its objects: points such as [[10, 0.5], [100, 1]]"
            )
        if self.requests_per_s and self.think_s != type(self).model_fields["think_s"].default:
            raise ValueError(
                "requests_per_s and think_s: requests come at the times of a Poisson process, or "
                "after a pause. Leave out one of them"
            )
        if self.direction == "up":
            raise ValueError(f"kind '{self.kind}' is always a download: leave out direction")
        if written := self._written("warm", "rate_mbps"):
            raise ValueError(f"kind '{self.kind}' sends at its own pace: leave out {written}")
        return self

    @model_validator(mode="after")
    def is_a_video_that_can_play(self) -> Traffic:
        if any(a >= b for a, b in pairwise(self.bitrates_mbps)):
            raise ValueError("bitrates_mbps must grow, such as [0.5, 1, 2, 4]")
        if self.buffer_s < 2 * self.chunk_s:
            raise ValueError(f"buffer_s {self.buffer_s:g} holds less than two chunks of chunk_s")
        return self

    @model_validator(mode="after")
    def is_a_call_of_two(self) -> Traffic:
        if self.kind != "call":
            return self
        if self.direction == "up":
            raise ValueError("kind 'call' sends in both directions: leave out direction")
        if written := self._written("warm", "cc", "rate_mbps"):
            raise ValueError(
                f"kind 'call' sends packet_bytes every packet_ms over UDP: leave out {written}"
            )
        return self

    @model_validator(mode="after")
    def has_sizes_that_are_a_distribution(self) -> Traffic:
        if isinstance(self.sizes, tuple) and (text := flow_sizes.problem(self.sizes)):
            raise ValueError(f"sizes: {text}")
        return self

    @model_validator(mode="after")
    def is_complete_as_workload(self) -> Traffic:
        if self.kind != "workload":
            return self
        if self.sizes is None:
            raise ValueError(f"kind 'workload' needs sizes: {' or '.join(flow_sizes.PUBLISHED)}")
        by_load = self.load is not None and self.link is not None
        if by_load == (self.rate_mbps is not None) or (self.load is None) != (self.link is None):
            raise ValueError("kind 'workload' needs either rate_mbps, or load and link")
        if self.parallel > 1 or self.warm:
            raise ValueError("a flow of kind 'workload' opens a connection: no parallel, no warm")
        return self

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
        if self.kind == "udp" and self.warm:
            raise ValueError("kind 'udp' has no connection to open: leave out warm")
        if self.stop_s is not None and self.stop_s <= self.start_s:
            raise ValueError(f"stop_s {self.stop_s:g} is not after start_s {self.start_s:g}")
        return self
