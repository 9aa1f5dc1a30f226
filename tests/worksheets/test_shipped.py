"""The worksheets that come with the lab are proved by their own attempts, for more than one seat."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from lab.__main__ import cli
from lab.cli.worksheet import TRIAL_SECRET
from lab.worksheets import loading, planning
from lab.worksheets.expressions import Number, parts
from lab.worksheets.schema import Check
from lab.worksheets.variants import Seat

SEATS = 16
FIRST = "seat1"


def most_different(name):
    """Return the seat whose variants differ most from those of the first seat."""
    runs = loading.load(name).runs.values()

    def given(seat):
        of = Seat(TRIAL_SECRET, seat, name)
        return [value for run in runs for value in planning.given(run, of).values()]

    first = given(FIRST)
    seats = [f"seat{n}" for n in range(2, SEATS + 1)]
    return max(seats, key=lambda seat: sum(a != b for a, b in zip(first, given(seat), strict=True)))


def tried(name, tmp_path, *options):
    """Try a worksheet. The run of the instructor in real_kernel is simulated here, too."""
    argv = ["worksheet", "try", name, "--engine", "sim", "--runs", str(tmp_path), *options]
    done = CliRunner().invoke(cli, argv)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("name", loading.names())
def test_each_shipped_worksheet_is_proved_by_its_attempts(name, tmp_path):
    for seat in (FIRST, most_different(name)):
        tried(name, tmp_path, "--seat", seat)


@pytest.mark.long
@pytest.mark.parametrize("name", loading.names())
def test_each_shipped_worksheet_is_proved_for_every_seat(name, tmp_path):
    output = tried(name, tmp_path, "--seats", str(SEATS))
    assert f"{SEATS} of {SEATS} seats as expected" in output


@pytest.mark.parametrize("name", loading.names())
def test_a_check_asks_something_and_gives_nothing_away(name):
    """It names no threshold of its condition, nothing that is to be chosen, and no hint."""
    worksheet = loading.load(name)
    right = worksheet.solution
    chosen = {value for each in right.choices.values() for value in each.values()}
    chosen |= {flip.value for flips in right.flips.values() for flip in flips}
    for check in (each for each in worksheet.tasks if isinstance(each, Check)):
        assert check.ask != Check.model_fields["ask"].default
        limits = {f"{leaf.value:g}" for leaf in parts(check.condition) if isinstance(leaf, Number)}
        words = set(re.findall(r"[\w.]*\w", check.ask))
        assert not words & (limits | {str(each) for each in chosen}), check.id
        assert check.hint not in check.ask
        assert check.why not in check.ask
