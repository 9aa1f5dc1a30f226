"""YAML in files and options is read within limits; beyond them there is one clear error, and
soon."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.bounded_json import LARGEST_INTEGER
from lab.errors import RequestError
from lab.scenario import loading
from lab.scenario.loading import Overrides
from lab.scenario.yaml_text import MOST_BYTES, parse, read, text_of


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (bomb(9), "stand for more than"),
        ("&a [*a]", "inside of the value"),
        ("a: &a {b: *a}", "inside of the value"),
        ("[" * 3000, "deeper than 64"),
        ("{a: " * 3000, "deeper than 64"),
        ("- " * 3000, "deeper than 64"),
        ("a: 1" + "0" * 400, "too many digits"),
        ("a: 1" + "0" * 5000, "too many digits"),
        ("a: 0x" + "f" * 400, "too many digits"),
        ("!!timestamp z", "timestamp is not allowed"),
        ("a: 2026-01-01", "timestamp is not allowed"),
        ("!!set {a, b}", "set is not allowed"),
        ("!!binary x", "binary is not allowed"),
        ("!!python/object/apply:os.system [ls]", "line 1"),
        (r'"\ud800"', "UTF-8"),
        (r'a: "\UFFFFFFFF"', "."),
        ("!!int x", "."),
        ("!!float x", "."),
        ("!!bool x", "."),
        ("? [a]\n: 1", "key must be a word"),
        ("x" * (MOST_BYTES + 1), "longer than"),
    ],
)
def test_text_beyond_a_limit_is_refused_soon(text, why):
    began = time.monotonic()
    with pytest.raises(RequestError, match=why) as refused:
        parse(text, "file.yaml")
    assert time.monotonic() - began < 2
    assert len(str(refused.value)) < 500


def test_a_value_may_have_64_levels_and_an_integer_15_digits_or_more():
    assert parse("[" * 64 + "]" * 64, "x")
    with pytest.raises(RequestError, match="deeper than 64"):
        parse("[" * 65 + "]" * 65, "x")
    most = LARGEST_INTEGER - 1
    assert parse(f"[{most}, {-most}]", "x") == [most, -most]
    for refused in (LARGEST_INTEGER, -LARGEST_INTEGER):
        with pytest.raises(RequestError, match="too many digits"):
            parse(f"a: {refused}", "x")


def test_aliases_may_stand_for_a_hundred_thousand_values():
    hundred, rest = f"&a [{', '.join('x' * 99)}]", ", *a" * 998 + ", x" * 99  # lists count, too
    assert len(parse(f"[{hundred}{rest}]", "x")) == 999 + 99
    with pytest.raises(RequestError, match="stand for more than 100000 values"):
        parse(f"[{hundred}{rest}, x]", "x")


def test_aliases_that_stand_for_little_are_read():
    assert parse("a: &a {b: [1, 2]}\nc: *a\nd: [*a, *a]", "x")["d"] == [{"b": [1, 2]}] * 2
    assert parse("a: &a {b: 1}\nc: {<<: *a, d: 2}", "x")["c"] == {"b": 1, "d": 2}


@given(st.text(max_size=200) | st.text("[]{}&*!:-?<>|'\"# \n\tax01,", max_size=60))
def test_no_text_raises_anything_else(text):
    try:
        parse(text, "x")
    except RequestError:
        return


@given(st.binary(max_size=60))
def test_no_file_raises_anything_else(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "file.yaml"
    path.write_bytes(data)
    try:
        read(path)
    except RequestError:
        return


@pytest.mark.parametrize(
    "setting",
    [
        "topology.kind={a: 1}",
        "topology.kind=[wifi_lte]",
        "topology={kind: {a: 1}}",
        "strategy.name={a: 1}",
        "strategy=[1]",
        "traffic.1.user={a: 1}",
        "traffic.1.rate_mbps=" + "9" * 400,
        "rate_scale=1e-8",
        "rate_scale=1.0e-8",
        "rate_scale=1.0e-200",
        "topology.users.ue1.wifi_mbps=1.0e-9",
        "rate_scale=1e-300",
        "rate_scale=.inf",
        "duration_s=" + "9" * 400,
        "seed=" + "9" * 400,
        "title=" + "x" * 140_000,
        "events=[{at_s: 1, target: {a: 1}, value: 1}]",
        "events=[{at_s: 1, target: strategy, value: {a: [1]}}]",
        "events=[{at_s: 1, target: strategy, value: 5}]",
        "events=[{at_s: 1, target: cc, value: {a: 1}}]",
        "events=[{at_s: 1, target: strategy.cth, value: [1]}]",
        "multipath.cc={a: 1}",
        "multipath.cc=[reno]",
        "topology.users=5",
        "topology.users=[5]",
        "topology.users.1=5",
        "mobility={kind: {a: 1}}",
        "a.b.c=1",
        "name.a=1",
        "traffic.99999999999999999999.user=x",
        "traffic.\u00b2.user=x",
        "rate_scale={a: 1}",
        "slow_machine_rate_scale=[]",
    ],
)
def test_a_wrong_value_is_one_error(setting):
    with pytest.raises(RequestError) as refused:
        loading.load("testbed_wifi_lte", Overrides(settings=(setting,)))
    assert len(str(refused.value)) < 2000


def test_two_thousand_events_are_checked_soon():
    events = ", ".join(
        f"{{at_s: {n / 50}, target: cell.wifi1.ue1.rate_mbps, value: {n % 90 + 1}}}"
        if n % 2
        else f"{{at_s: {n / 50}, target: strategy.cth, value: 0.{n % 9 + 1}}}"
        for n in range(2000)
    )
    settings = ("strategy.name=meter_throttling", f"events=[{events}]")
    began = time.process_time()
    scenario = loading.load("testbed_wifi_lte", Overrides(settings=settings))
    assert len(scenario.events) == 2000
    assert time.process_time() - began < 4


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_one_as_python_and_json_write_it(number: float) -> None:
    assert parse(json.dumps(number), "--set") == number
    assert parse(f"{number:.3E}", "--set") == float(f"{number:.3E}")


@pytest.mark.parametrize("text", ["1e-5", "+2E3", ".5e1", "1.e4", "-7e-07"])
def test_an_exponent_needs_no_dot_and_no_sign(text: str) -> None:
    assert parse(f"[{text}]", "--set") == [float(text)]


@given(
    st.recursive(
        st.floats(allow_nan=False) | st.from_regex(r"[-+.0-9eE]{1,7}", fullmatch=True),
        lambda inner: st.lists(inner, max_size=3),
    )
)
def test_what_is_written_is_read_again(value: object) -> None:
    for one_line in (False, True):
        again = parse(text_of({"title": value}, one_line), "scenario.yaml")["title"]
        assert again == value
        assert type(again) is type(value)
