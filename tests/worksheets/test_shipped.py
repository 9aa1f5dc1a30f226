"""The attempts in the worksheets that come with the lab end as their authors say, for more than one
seat."""

from __future__ import annotations

import re
from functools import cache

import pytest
from click.testing import CliRunner

from lab.cli.commands import cli
from lab.cli.worksheet import TRIAL_SECRET
from lab.worksheets import loading, planning
from lab.worksheets.language import Number, parts
from lab.worksheets.planning import Seat
from lab.worksheets.schema import Check, Predict, Question

SEATS = tuple(f"seat{n}" for n in range(1, 17))


@cache
def sheet(name):
    return loading.load(name)


def given(name, seat):
    """All values that a seat has in a worksheet, with its variants."""
    of = Seat(TRIAL_SECRET, seat, name)
    return [
        value for run in sheet(name).runs.values() for value in planning.given(run, of).values()
    ]


def unlike(name):
    """The first seat; and if the worksheet has variants, one that differs in most of them."""
    first = given(name, SEATS[0])

    def differences(seat):
        return sum(a != b for a, b in zip(first, given(name, seat), strict=True))

    other = max(SEATS, key=differences)
    return [SEATS[0], other] if differences(other) else [SEATS[0]]


def with_all_variants(name):
    """16 seats, and one for each further combination of variants.

    If the variants include the seed, these seats have all runs that any seat can have.
    """
    names = (*SEATS, *(f"seat{n}" for n in range(len(SEATS) + 1, 2000)))
    found = {str(given(name, seat)): seat for seat in reversed(names)}
    return sorted({*SEATS, *found.values()})


def tried(name, seats, tmp_path):
    """Try a worksheet. The instructor's run in real_kernel is simulated here, too."""
    options = [word for seat in seats for word in ("--seat", seat)]
    argv = ["worksheet", "try", name, "--engine", "sim", "--runs", str(tmp_path), *options]
    done = CliRunner().invoke(cli, argv)
    assert done.exit_code == 0, done.output
    for seat in seats if len(seats) > 1 else ():
        assert f"\n{seat}:\nsolution: " in done.output


@pytest.mark.parametrize("name", loading.names())
def test_each_solution_answers_everything(name):
    asked = {each.id for each in sheet(name).tasks if isinstance(each, Predict | Question)}
    assert set(sheet(name).solution.answers) == asked


@pytest.mark.parametrize("name", loading.names())
def test_each_shipped_worksheet_is_proved_by_its_attempts(name, tmp_path):
    tried(name, unlike(name), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", loading.names())
def test_each_shipped_worksheet_is_proved_for_every_seat(name, tmp_path):
    tried(name, with_all_variants(name), tmp_path)


@pytest.mark.parametrize("name", loading.names())
def test_a_check_asks_something_and_gives_nothing_away(name):
    """It names no threshold of its condition, nothing that is to be chosen, and no hint."""
    worksheet = sheet(name)
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
