"""Build several users behind one link.

This network shows how much of the link the k subflows of a connection take together: one share, or
k shares (RFC 6356, goal 2).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from lab.topologies.checks import check_names
from lab.topologies.parallel_paths import Path, link, traces
from lab.topologies.topology import Link, Node, Topology


class User(BaseModel):
    """A user's id and number of subflows. Each subflow has its own address."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    id: str
    subflows: Annotated[int, Field(ge=1, le=8)] = 1


class Params(Path):
    """The parameters of a topology with `kind: shared_bottleneck`: the bottleneck link and the
    users."""

    users: tuple[User, ...] = Field(min_length=1, max_length=30)

    @model_validator(mode="after")
    def names_differ(self) -> Params:
        check_names([user.id for user in self.users])
        return self


def build(params: Params, rate_scale: float = 1.0) -> Topology:
    """Return a network in which all users share the link `bottleneck`.

    Every user has one interface, with one address per subflow. In the figure, mp is a multipath
    user and sp a single-path user.

    mp ---\\     bottleneck
           p1 ============== s1 --- srv1
    sp ---/
    """
    users = [
        Node(user.id, "user", f"access{n}", user.subflows) for n, user in enumerate(params.users, 1)
    ]
    access = [Link(f"access{n}", "p1", user.id) for n, user in enumerate(params.users, 1)]
    return Topology(
        name="shared_bottleneck",
        nodes=(*users, Node("p1", "switch"), Node("s1", "switch"), Node("srv1", "server")),
        links=(
            Link("server", "s1", "srv1"),
            *access,
            link(params, "bottleneck", "s1", "p1", rate_scale),
        ),
        multipath=tuple(user.id for user in params.users if user.subflows > 1),
        traces=traces([("bottleneck", params)]),
    )
