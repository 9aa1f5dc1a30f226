"""Names such as `user.ue1.mbps`, for the number of a frame that shows the effect of a change.

The name has three parts: the kind of the sample (`ap`, `link` or `user`), the ID, and the field.
The ID `*` means the sum over all samples of this kind.
"""

from __future__ import annotations

from dataclasses import dataclass

from lab.errors import RequestError, unknown
from lab.metrics import sampled
from lab.topologies.topology import Topology

ALL = "*"
EVERYBODY = {"user": "all users", "ap": "all access points", "link": "all links"}


@dataclass(frozen=True)
class Watched:
    """One number of a frame: `kind` of the sample, its ID or `*`, and the field."""

    kind: str
    id: str
    field: str

    @property
    def text(self) -> str:
        """In words, such as `ue1: throughput`."""
        subject = EVERYBODY[self.kind] if self.id == ALL else self.id
        return f"{subject}: {sampled(self.kind)[self.field].label}"

    @property
    def unit(self) -> str:
        """Empty if the number has none."""
        return sampled(self.kind)[self.field].unit


def parsed(name: str, network: Topology) -> Watched:
    """Parse a name such as `user.ue1.mbps`.

    Raise `RequestError` if the frames of this network do not have this number.
    """
    kind, _, rest = name.partition(".")
    subject, _, field = rest.rpartition(".")
    if kind not in EVERYBODY:
        raise RequestError(
            f"{unknown(kind, EVERYBODY)}: write KIND.ID.FIELD, such as user.ue1.mbps"
        )
    ids = {
        "user": network.users,
        "ap": network.ids("wifi", "lte"),
        "link": tuple(link.id for link in network.links),
    }[kind]
    if subject not in (*ids, ALL):
        raise RequestError(f"{name}: {unknown(subject, ids)}")
    if field not in (known := sampled(kind)):
        raise RequestError(f"{name}: {unknown(field, known)}")
    return Watched(kind, subject, field)
