"""From a step of a worksheet to the run of one student, with the student's own random seed and
values."""

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
    """Gives one student or pair a random seed and varied values for one worksheet.

    The seed and the values depend only on `secret` (a key of the class), `name` (the student's
    seat) and `worksheet`, so they can be computed again at any time.
    """

    secret: bytes
    name: str
    worksheet: str

    def number(self, purpose: str) -> int:
        """Return a pseudorandom number from 0 to 2^64 - 1. Equal arguments always give the same
        number.

        The number is the first 8 bytes of HMAC-SHA-256 over `name`, `worksheet` and `purpose`, with
        `secret` as the key.
        """
        parts = [each.encode() for each in (self.name, self.worksheet, purpose)]
        message = b"".join(len(each).to_bytes(4, "big") + each for each in parts)
        return int.from_bytes(hmac.digest(self.secret, message, hashlib.sha256)[:8], "big")

    @property
    def seed(self) -> int:
        """The random seed of all runs of this student in this worksheet.

        All runs have the same seed, so two runs differ only by the settings that the student
        changed.
        """
        return 1 + self.number("seed") % SEEDS

    def pick(self, key: str, variants: Sequence[Any]) -> Any:
        """Return this student's value out of `variants`.

        The choice depends on `key` but not on the run. So all runs of the worksheet get the same
        value for the same key.
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
    """Return the request for the run that the student at `seat` makes in the step `run`.

    `chosen` maps keys of the scenario to the student's values. Other keys keep the value in the
    worksheet. `flips` are changes during the run; they become events of the scenario. Raise
    `RequestError` if the worksheet does not allow a value or a change.
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
    """Load the scenario of a run with these settings. Raise `RequestError` if the result is not
    valid."""
    overrides = Overrides(run.strategy, duration_s=run.duration_s, settings=_written(settings))
    return load(run.scenario, overrides)


def _written(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return settings in the form of arguments of `--set`: `key=JSON`."""
    return tuple(f"{key}={json.dumps(value)}" for key, value in settings.items())


def given(run: Run, seat: Seat) -> dict[str, Any]:
    """Return the settings that the worksheet gives for a run, with this student's varied values."""
    return {key: _value(key, value, seat) for key, value in run.settings.items()}


def variants(value: Any) -> tuple[Any, ...] | None:
    """Return the list in `{variant: [...]}`, from which each student gets one value.

    Return None if `value` does not have this form. Raise `RequestError` if the list does not have 2
    to 64 values.
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
    """Raise `RequestError` if the worksheet does not let students choose a key or a value in
    `chosen`."""
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
    """Return the events of the scenario followed by `flips`, in the form of a scenario file.

    Raise `RequestError` if the worksheet does not allow a change.
    """
    for flip in flips:
        if flip.target not in run.flips:
            raise RequestError(f"run '{run.id}': flip of {unknown(flip.target, run.flips)}")
    present = scenario_of(run, settings).events
    return [each.model_dump(mode="json") for each in (*present, *flips)]
