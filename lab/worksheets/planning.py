"""From a run step of a worksheet to the run that one student makes, with the student's own seed and
variants."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lab.batch.request import Request
from lab.errors import RequestError, show, unknown
from lab.scenario.loading import Overrides, load
from lab.scenario.schema import Scenario
from lab.worksheets.schema import Flip, Run, Variant

SEEDS = 100_000  # seeds are from 1 to this number


@dataclass(frozen=True)
class Seat:
    """A seat of a class: one student, or two who work together, and their seed and variants.

    They depend only on the class's secret and the names of the seat and the worksheet, so whoever
    has these three can compute them again.
    """

    secret: bytes
    name: str
    worksheet: str

    def number(self, purpose: str) -> int:
        """Return a pseudorandom number from 0 to 2^64 - 1, the same at each call.

        It is the first 8 bytes of HMAC-SHA-256 over the names of seat and worksheet and the
        `purpose`.
        """
        parts = [each.encode() for each in (self.name, self.worksheet, purpose)]
        message = b"".join(len(each).to_bytes(4, "big") + each for each in parts)
        return int.from_bytes(hmac.digest(self.secret, message, hashlib.sha256)[:8], "big")

    @property
    def seed(self) -> int:
        """The seed of all runs of this seat. It is the same for all, so that two runs differ only
        in what was chosen differently."""
        return 1 + self.number("seed") % SEEDS

    def pick(self, key: str, variants: Sequence[Any]) -> Any:
        """Return this seat's one of `variants`.

        The position in the list depends on `key`, not on the run: it is the same in all runs of the
        worksheet.
        """
        return variants[self.number(f"variant {key}") % len(variants)]


EXAMPLE_SEAT = Seat(b"an example", "example", "")


def request(
    run: Run,
    seat: Seat,
    chosen: Mapping[str, Any],
    flips: Sequence[Flip] = (),
    out: Path | None = None,
) -> Request:
    """Return the request for a run step as the student at `seat` makes it.

    `chosen` has the student's values of keys in `run.choose`; other keys keep the worksheet's
    value. `flips` become events of the scenario. Raise `RequestError` if the worksheet does not
    allow a value or a flip.
    """
    check_choices(run, chosen)
    settings = {**given(run, seat), **chosen}
    if flips:
        settings["events"] = _events(run, settings, flips)
        scenario_of(run, settings)
    return Request(
        run.scenario,
        run.engine,
        (run.strategy,) if run.strategy else (),
        seed=seat.seed,
        duration_s=run.duration_s,
        settings=_written(settings),
        speed="max" if run.engine == "sim" else None,
        out=out,
    )


def scenario_of(run: Run, settings: Mapping[str, Any]) -> Scenario:
    """Load the scenario of a run with these settings. Raise `RequestError` if it is not valid."""
    overrides = Overrides(run.strategy, duration_s=run.duration_s, settings=_written(settings))
    return load(run.scenario, overrides)


def _written(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return settings as arguments of `--set`: `key=JSON`."""
    return tuple(f"{key}={json.dumps(value)}" for key, value in settings.items())


def given(run: Run, seat: Seat) -> dict[str, Any]:
    """Return the worksheet's settings of a run, with this seat's variants."""
    return {key: _value(key, value, seat) for key, value in run.settings.items()}


def variants(value: Any) -> tuple[Any, ...] | None:
    """Return the list in `{variant: [...]}`, or None if `value` is not of this form.

    Raise `RequestError` if the list does not have 2 to 64 values.
    """
    if not (isinstance(value, Mapping) and set(value) == {"variant"}):
        return None
    try:
        return Variant.model_validate(dict(value)).variant
    except ValidationError as error:
        raise RequestError(
            f"{show(dict(value))}: write {{variant: [...]}} with 2 to 64 values"
        ) from error


def _value(key: str, value: Any, seat: Seat) -> Any:
    choices = variants(value)
    return value if choices is None else seat.pick(key, choices)


def check_choices(run: Run, chosen: Mapping[str, Any]) -> None:
    """Raise `RequestError` if the run step does not allow a key or value in `chosen`."""
    for key, value in chosen.items():
        if key not in run.choose:
            raise RequestError(f"run '{run.id}': {unknown(key, run.choose)}")
        bounds = run.choose[key]
        if not bounds.allows(value):
            allowed = (
                ", ".join(show(each) for each in bounds.choices)
                if bounds.choices is not None
                else f"a number from {bounds.minimum:g} to {bounds.maximum:g}"
            )
            raise RequestError(
                f"run '{run.id}': {key}: {show(value)} is not allowed. Choose {allowed}"
            )


def _events(run: Run, settings: Mapping[str, Any], flips: Sequence[Flip]) -> list[dict[str, Any]]:
    """Return the events of the scenario followed by the flips, as a scenario file has them. Raise
    `RequestError` if the worksheet does not allow a flip."""
    for flip in flips:
        if flip.target not in run.flips:
            raise RequestError(f"run '{run.id}': flip of {unknown(flip.target, run.flips)}")
    present = scenario_of(run, settings).events
    return [each.model_dump(mode="json") for each in (*present, *flips)]
