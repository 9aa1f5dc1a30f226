"""The keys of a link's losses in a scenario file: a fraction, or the model of bursts."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)

from controller.units import ppm_from_fraction
from lab.topologies import bursts
from lab.topologies.checks import checked_loss

Fraction = Annotated[float, Field(ge=0, le=1), AfterValidator(checked_loss)]


class Bursts(BaseModel):
    """Losses in bursts (`bursts.Bursts`). Of the packets that find the link in its good state, the
    fraction `p` lets the bad one begin; of those that find it in the bad one, `r` ends it. `good`
    and `bad` are the fractions of packets that are lost in each state."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    p: Annotated[Fraction, Field(gt=0)]
    r: Annotated[Fraction, Field(gt=0)]
    good: Fraction = 0
    bad: Fraction = 1

    @model_validator(mode="after")
    def loses_something(self) -> Bursts:
        if self.model().mean_ppm == 0:
            raise ValueError("loses less than one packet in a million: write a larger p or bad")
        return self

    def model(self) -> bursts.Bursts:
        return bursts.Bursts(*map(ppm_from_fraction, (self.p, self.r, self.good, self.bad)))


def _kind(value: Any) -> str:
    return "<bursts>" if isinstance(value, (dict, Bursts)) else "<fraction>"


Loss = Annotated[
    Annotated[Fraction, Tag("<fraction>")] | Annotated[Bursts, Tag("<bursts>")],
    Discriminator(_kind),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1}),
]


def mean(loss: float | Bursts) -> float:
    """Return the fraction of packets that is lost in the long run."""
    return loss.model().mean_ppm / bursts.MILLION if isinstance(loss, Bursts) else loss


def model(loss: float | Bursts | None) -> bursts.Bursts | None:
    """Return the model of the bursts, or None without bursts."""
    return loss.model() if isinstance(loss, Bursts) else None
