"""Statements about runs are judged by 95 % intervals: how often the rule is wrong, measured with
random seeds."""

from __future__ import annotations

import numpy as np
import pytest

from lab.results.statistics import (
    MAX_ADDED_RUNS,
    Judgement,
    Margin,
    difference,
    judged,
    resampled,
    share_between,
    wilson,
)
from papers.relations import ABOUT, Constant, Relation, Value

TRIALS = 100  # docs/definitions.md has the shares of a thousand
WRONG = 0.10  # of the trials at most
SPREADS = {  # of one number over seeds, with the mean 1
    "normal": lambda rng, n: rng.normal(1, 0.1, n),
    "long tail": lambda rng, n: 0.8 + rng.exponential(0.2, n),
    "collisions": lambda rng, n: rng.choice([0.5, 1.0, 1.5], n, p=[0.25, 0.5, 0.25]),
}


def shares(statement, spread, n):
    """The shares of trials in which a statement holds and fails. In each, the statement is judged
    with `n` new values."""
    said = []
    for trial in range(TRIALS):
        rng = np.random.default_rng((trial, n))
        found = {each: [{"T": float(v)} for v in SPREADS[spread](rng, n)] for each in "ab"}
        said.append(statement.judgement(found).said)
    return said.count("holds") / TRIALS, said.count("fails") / TRIALS


def value(case):
    return Value(case, "T", case)


@pytest.mark.parametrize("n", [2, 5, 10])
@pytest.mark.parametrize("spread", SPREADS)
def test_a_statement_at_its_limit_is_seldom_decided(spread, n):
    """The means are equal, so "at most" is as nearly true as it is false."""
    holds, fails = shares(Relation(value("a"), "<=", value("b")), spread, n)
    assert max(holds, fails) <= (WRONG if n >= 5 else 0)


@pytest.mark.parametrize("n", [2, 10])
@pytest.mark.parametrize("spread", SPREADS)
def test_numbers_that_just_differ_are_seldom_called_equal(spread, n):
    """The mean of the left side is 5 % larger than that of the right side."""
    about = Relation(value("a"), "~", value("b"), 1 - ABOUT)
    assert shares(about, spread, n)[0] <= (WRONG if n >= 5 else 0)


@pytest.mark.parametrize(("operator", "wanted"), [("<=", 0), (">=", 1), ("~", 1)])
def test_what_is_clearly_true_or_false_is_decided_by_ten_runs(operator, wanted):
    statement = Relation(value("a"), operator, value("b"), 2)
    assert shares(statement, "collisions", 10)[wanted] >= 0.9


@pytest.mark.parametrize("n", [2, 5, 10, 20])
@pytest.mark.parametrize("true_share", [0.2, 0.8])
def test_a_share_at_its_limit_is_seldom_decided(true_share, n):
    hits = np.random.default_rng(n).binomial(n, true_share, 4 * TRIALS)
    said = [judged(share_between(int(each), n, 0.2, 0.8)).said for each in hits]
    assert max(said.count("holds"), said.count("fails")) / len(said) <= WRONG


def test_two_of_two_runs_do_not_refute_a_share_of_a_half():
    assert judged(share_between(2, 2, 0.2, 0.8)) == Judgement("open", 3)
    assert judged(share_between(5, 10, 0.2, 0.8)).said == "holds"
    assert judged(share_between(20, 20, 0.2, 0.8)).said == "fails"
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)  # Newcombe 1998, method 3


def test_two_seeds_agree_with_nothing():
    """T7 of S-MPTCP: 0.285 was called "at most 0.2" by two seeds."""
    at_most = Relation(value("a"), "<=", Constant(0.2))
    two = {"a": [{"T": 0.05}, {"T": 0.52}]}
    assert at_most.judgement(two) == Judgement("open", 3)
    assert at_most.judgement({"a": [{"T": 0.1}] * 5}).said == "holds"
    assert at_most.judgement({"a": [{"T": 0.21}] * 5}).said == "fails"


@pytest.mark.parametrize("seed", range(4))
def test_the_runs_to_add_probably_decide(seed):
    """Values whose mean is what the first runs measured: half of the new trials decide or more."""
    rng = np.random.default_rng(seed)
    first = rng.normal(0, 1, 8)
    first = 1.05 + 0.2 * (first - first.mean()) / first.std(ddof=1)
    judgement = judged([difference(first.tolist(), [1.0] * 8)])
    assert judgement.said == "open"
    n = 8 + judgement.added
    again = [rng.normal(1.05, 0.2, n).tolist() for _ in range(30)]
    decided = [judged([difference(each, [1.0] * n)]).said != "open" for each in again]
    assert 0.3 <= np.mean(decided) <= 0.9


def test_a_strict_statement_is_false_at_its_limit():
    assert Margin(0, 0, 0, 5).judgement.said == "holds"
    assert Margin(0, 0, 0, 5, is_strict=True).judgement.said == "fails"
    assert Margin(0.1, -0.1, 0.3, 5).judgement == Judgement("open", 15)
    assert Judgement("open", MAX_ADDED_RUNS).text == f"open, add {MAX_ADDED_RUNS} or more"


def test_one_margin_that_fails_refutes_a_statement_with_open_ones():
    positive, negative, undecided = (
        Margin(each, each - 1, each + 1, 5) for each in (2.0, -2.0, 0.5)
    )
    assert judged([positive, positive]).said == "holds"
    assert judged([positive, undecided]) == Judgement("open", 15)
    assert judged([positive, undecided, negative]).said == "fails"


def test_a_margin_of_several_numbers_is_resampled_by_run():
    """Two numbers whose sum is the same in every run: the sum has no spread."""
    first = np.array([1.0, 5.0, 2.0, 4.0, 3.0])
    both = np.stack([first, 6 - first])
    margin = resampled(5, lambda runs: both[:, runs].mean(axis=-1).sum(axis=0) - 5)
    assert (margin.value, margin.low, margin.high) == pytest.approx((1, 1, 1))
    alone = resampled(5, lambda runs: first[runs].mean(axis=-1) - 3)
    assert alone.low < 0 < alone.high
