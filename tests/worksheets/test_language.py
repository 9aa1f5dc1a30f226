"""The language of checks: what it reads, what it refuses, and that it writes what it reads."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import RequestError
from lab.worksheets import language as at
from lab.worksheets.language import parse, parse_number, spelled

name = st.from_regex(r"[a-z_]\w{0,8}", fullmatch=True).filter(
    lambda text: text not in ("and", "or", "not", "before", "of") and text.isascii()
)
run = st.one_of(st.just(""), name)
path = st.lists(name, min_size=1, max_size=4).map(".".join)
value = st.from_regex(r"[a-z0-9_./:-]{1,8}", fullmatch=True)
number = st.floats(0, 1e6, allow_nan=False).map(at.Number)
span = st.tuples(st.integers(0, 50), st.integers(51, 100)).map(lambda two: tuple(map(float, two)))
event = st.builds(at.Occurrence, name, st.lists(st.tuples(name, value), max_size=3).map(tuple), run)
sampled = st.builds(
    lambda fold, where, between, which: at.Sampled(fold, where, *between, which),
    st.sampled_from(["mean", "min", "max", "last"]),
    path,
    span,
    run,
)
leaf = st.one_of(
    number,
    sampled,
    st.builds(at.Measured, path, run),
    st.builds(at.Time, event),
    st.builds(at.Count, event),
)
numeric = st.recursive(
    leaf,
    lambda inner: st.one_of(
        st.builds(at.Magnitude, inner),
        st.builds(at.Arithmetic, st.sampled_from("+-*/"), inner, inner),
    ),
    max_leaves=4,
)
basic = st.one_of(
    event,
    st.builds(at.Multipath, run),
    st.builds(at.Before, event, event),
    st.builds(at.Comparison, st.sampled_from(["<", "<=", ">", ">="]), numeric, numeric),
)
condition = st.recursive(
    basic,
    lambda inner: st.one_of(
        st.builds(at.Not, inner), st.builds(at.Both, inner, inner, st.booleans())
    ),
    max_leaves=3,
)


@given(condition.filter(lambda tree: len(spelled(tree)) <= 500))
def test_what_is_written_is_read_back(tree):
    assert parse(spelled(tree)) == tree


@given(st.text(max_size=60) | st.text("()<>=.,+-*/ aofmen0123456789", max_size=80))
def test_any_text_is_read_or_refused(text):
    with suppress(RequestError):
        assert spelled(parse(text))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("1 + 2 * 3 < 4", "((1.0 + (2.0 * 3.0)) < 4.0)"),
        ("1 - 2 - 3 < 4", "(((1.0 - 2.0) - 3.0) < 4.0)"),
        ("-1 < 2", "((0 - 1.0) < 2.0)"),
        (
            "flip(a) or flip(b) and not flip(c)",
            "(event(flip, target=a) or (event(flip, target=b) and not (event(flip, target=c))))",
        ),
        ("time(flip(x=1)) of r < 2", "(time(event(flip, target=x, value=1) of r) < 2.0)"),
        (
            "mean(ap.wifi1.tier2_mbps,20..40)of r<0.2",
            "(mean(ap.wifi1.tier2_mbps, 20..40) of r < 0.2)",
        ),
        ("min(sf.ue1-1/2.mbps, 1.5..2e1) >= 0", "(min(sf.ue1-1/2.mbps, 1.5..20) >= 0.0)"),
    ],
)
def test_precedence_and_short_forms(text, same):
    assert spelled(parse(text)).replace("0.0 - 1.0", "0 - 1.0") == same


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 1 of '': expected a number or a function"),
        ("men(a, 1..2) < 1", "did you mean 'mean'?"),
        ("result(a) == 1", "write a range: abs(a - b) < 0.1"),
        ("result(a)", "expected a condition before this place. Compare the number"),
        ("1 < 2 < 3", "column 7 of '1 < 2 < 3': '< 3' is left over"),
        ("flip(a) < 1", "expected a number before this place, not a condition"),
        ("1 before flip(a)", "expected event(...) or flip(...) before this place"),
        ("mean(a, 4..3) < 1", "the time span 4..3 ends before it starts"),
        ("result(__import__('os').x) < 1", "expected ')'"),
        ("(" * 50 + "1" + ")" * 50 + " < 2", "more than 40 brackets inside one another"),
        ("not " * 50 + "flip(a)", "more than 40 brackets inside one another"),
        ("1 < " + "9" * 400, "is too large a number"),
        ("1 < 1e999", "is too large a number"),
        ("1 < " + "9" * 600, "a check of 604 characters: write at most 500"),
    ],
)
def test_refused_texts_say_what_to_write(text, message):
    with pytest.raises(RequestError) as refused:
        parse(text)
    assert message in str(refused.value)


def test_the_longest_sum_is_read():
    text = "+".join(["1"] * 249)
    assert len(list(at.parts(parse_number(text)))) == 497


def test_a_condition_is_no_number():
    with pytest.raises(RequestError, match="expected a number"):
        parse_number("flip(a)")
