"""What all parts of a scenario file share: their base class, units with bounds, and names of
congestion controls."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from lab import extensions
from lab.errors import unknown

DAY_S = 86_400
Rate = Annotated[float, Field(gt=0, le=10_000)]
Seconds = Annotated[float, Field(ge=0, le=DAY_S)]
Positive = Annotated[float, Field(gt=0, le=DAY_S)]


class Part(BaseModel):
    """The base class of all parts of a scenario: instances cannot be changed, and unknown keys are
    refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def known_cc(name: str | None) -> str | None:
    """Return `name` if it is None or the name of a congestion control.

    Raise `ValueError`, which lists the known names, if it is unknown.
    """
    if name is not None and name not in (known := extensions.congestion_controls()):
        raise ValueError(unknown(name, known))
    return name
