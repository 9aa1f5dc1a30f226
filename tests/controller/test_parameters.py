"""What users may set: default, unit and bounds of each parameter of the built-in strategies."""

from __future__ import annotations

from math import inf, nan, nextafter
from typing import Literal, get_args, get_origin

import pytest

from controller.errors import ParamsRefused
from controller.strategies import STRATEGIES
from controller.strategies.base import StrategyParams, checked_params, choice, param, switch

# strategy, parameter, default, least, most, unit; a least value after ">" is not allowed itself
NUMBERS = """
meter_throttling     interval_s                 2       0.2    60      s
meter_throttling     cth                        0.85    >0     1       fraction
meter_throttling     alpha                      0.5     >0     5       1
meter_throttling     min_rate_mbps              0.1     0.01   1000    Mb/s
meter_throttling     categorisation_interval_s  2       0.2    120     s
meter_throttling     m_floor                    0.05    0.001  0.5     fraction
meter_throttling     floor_steps                1       1      100     steps
meter_throttling     room_factor                4       >1     1000    1
subflow_selection    interval_s                 2       0.2    60      s
subflow_selection    rl_max_kb                  0       0      1000000 kB
subflow_selection    largest_window             0       0      512     segments
subflow_selection    queue_bdp                  1       0      100     BDP
subflow_selection    rtt_sd                     0.1     0      1       fraction
subflow_selection    trial_s                    10      3      600     s
subflow_selection    trial_budget               0.02    0      0.5     fraction
subflow_selection    trial_gain                 0.03    0      1       fraction
optimum              most_paths                 6       1      15      subflows
loss_aware           interval_s                 0.5     0.2    60      s
loss_aware           window_packets             1000    10     1000000 packets
loss_aware           gamma_wifi                 0.0001  >0     1       fraction
loss_aware           gamma_lte                  0.01    >0     1       fraction
loss_aware           gamma_wired                0.0001  >0     1       fraction
loss_aware           stay_s                     0       0      600     s
expected_throughput  interval_s                 2       0.2    60      s
expected_throughput  fairness                   0.9     >0     1       fraction
expected_throughput  max_subflows               8       1      16      subflows
disjoint             interval_s                 2       0.2    60      s
"""
ROWS = [line.split() for line in NUMBERS.strip().splitlines()]
FIELDS = {
    (name, key): field
    for name, strategy in STRATEGIES.items()
    for key, field in strategy.Params.model_fields.items()
}


def set_to(name, key, value):
    return getattr(checked_params(STRATEGIES[name].Params, {key: value}, "set"), key)


@pytest.mark.parametrize(("name", "key", "default", "least", "most", "unit"), ROWS)
def test_default_unit_and_bounds_of_a_number(name, key, default, least, most, unit):
    field, kind = FIELDS[name, key], FIELDS[name, key].annotation
    assert (field.default, field.json_schema_extra) == (kind(default), {"unit": unit})

    def past(value, to):  # the next value that there is
        return value + (1 if to > value else -1) if kind is int else nextafter(value, to)

    low, high = kind(least.removeprefix(">")), kind(most)
    lowest, below = (past(low, inf), low) if ">" in least else (low, past(low, -inf))
    assert [set_to(name, key, each) for each in (lowest, high)] == [lowest, high]
    for wrong in (below, past(high, inf)):
        with pytest.raises(ParamsRefused, match=f"set: parameter {key} = "):
            set_to(name, key, wrong)


def test_every_number_of_a_strategy_is_in_the_table():
    """Parameters that strategies share are there once."""
    numbers = {key for (_, key), field in FIELDS.items() if field.annotation in (int, float)}
    assert numbers == {key for _, key, *_ in ROWS}


@pytest.mark.parametrize(("name", "key"), FIELDS)
def test_the_unit_tells_a_choice_and_a_switch_from_a_number(name, key):
    field = FIELDS[name, key]
    unit, is_choice = field.json_schema_extra["unit"], get_origin(field.annotation) is Literal
    assert (unit == "choice") == is_choice
    assert (unit == "switch") == (field.annotation is bool)
    assert not is_choice or field.default in get_args(field.annotation)


def test_a_strategy_declares_a_choice_and_a_switch_without_a_unit():
    class Declared(StrategyParams):
        way: Literal["a", "b"] = choice("a", "One of two")
        guarded: bool = switch(True, "Or not")

    units = {key: field.json_schema_extra["unit"] for key, field in Declared.model_fields.items()}
    assert units == {"interval_s": "s", "way": "choice", "guarded": "switch"}
    described = [field.description for field in Declared.model_fields.values()]
    assert described[1:] == ["One of two", "Or not"]
    assert Declared().model_dump() == {"interval_s": 2.0, "way": "a", "guarded": True}


@pytest.mark.parametrize("value", [inf, -inf, nan])
def test_a_parameter_without_bounds_is_a_finite_number_all_the_same(value):
    class Own(StrategyParams):
        offset: float = param(0.0, "s", "Any number")

    assert checked_params(Own, {"offset": -1e300}, "set").offset == -1e300
    with pytest.raises(ParamsRefused, match=r"parameter offset = .*finite"):
        checked_params(Own, {"offset": value}, "set")
