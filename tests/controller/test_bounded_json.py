"""JSON from other processes is parsed within limits; `JsonRefused` is the only error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.bounded_json import MOST_DEPTH, JsonRefused, parse, parse_object

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text() | st.floats(-1e300, 1e300),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(), inside, max_size=4),
    max_leaves=30,
)


@given(VALUES, st.booleans())
def test_json_within_the_limits_is_read_as_it_was_written(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert parse(text) == value
    assert parse(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 2000, "deeper than 64"),
        ("[" * 2000 + "]" * 2000, "deeper than 64"),
        ('{"a":' * 65 + "1" + "}" * 65, "deeper than 64"),
        ("[" * 65 + '"]]]]"' + "]" * 65, "deeper than 64"),
        (f"1{'0' * 400}", "too many digits"),
        (f'{{"value": -1{"0" * 400}}}', "too many digits"),
        (f"1{'0' * 5000}", "too many digits"),
        ("1e400", "not a finite number"),
        (f"1{'0' * 400}.5", "not a finite number"),
        ("NaN", "not a finite number"),
        ("[-Infinity]", "not a finite number"),
        ('"\\ud800"', "UTF-8"),
        ('{"\\uDFFF": 1}', "UTF-8"),
        ("\ud800", "UTF-8"),
        (b"\xff", "UTF-8"),
        (b"\xff\xfe1\x00", "UTF-8"),
        ("", "no JSON"),
        ("{1: 2}", "no JSON"),
    ],
)
def test_a_text_beyond_a_limit_is_refused(text, why):
    with pytest.raises(JsonRefused, match=why):
        parse(text)


def test_limits_are_not_reached_by_what_looks_similar():
    deep = "[" * MOST_DEPTH + "]" * MOST_DEPTH
    parse(deep)
    parse("[" * MOST_DEPTH + f'"{"]" * 200}"' + "]" * MOST_DEPTH)
    assert parse(json.dumps(["[" * 500, "{" * 500])) == ["[" * 500, "{" * 500]
    assert parse('"\\ud83d\\ude00"') == "\U0001f600"
    assert parse('["' + "7" * 400 + '", 0.1234567890123456789012]')[0] == "7" * 400
    assert parse("[1e308, 18446744073709551615]") == [1e308, 2**64 - 1]


def test_a_text_that_is_too_long_is_refused_before_it_is_parsed():
    with pytest.raises(JsonRefused, match="at most 10"):
        parse(b" " * 11, 10)


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_else(data):
    try:
        parse(data)
    except JsonRefused:
        return


@pytest.mark.parametrize("text", ["[]", "1", "null", '"x"'])
def test_another_value_is_no_object(text):
    with pytest.raises(JsonRefused, match="no JSON object"):
        parse_object(text)
