"""What users may set: default, unit and bounds of each parameter of the built-in strategies."""

from __future__ import annotations

from math import inf, nan, nextafter
from typing import Literal, get_origin

import pytest
from pydantic import ValidationError

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
NUMBER_ROWS = [line.split() for line in NUMBERS.strip().splitlines()]
CHOICES = """
meter_throttling     increase_form      by         by,to
meter_throttling     primary_selection  priority   priority,filtering
meter_throttling     contention         bianchi    none,bianchi
meter_throttling     at_floor           keep       keep,backup
meter_throttling     payoff             assumed    assumed,measured
subflow_selection    accept             gain       printed,tentative,gain
subflow_selection    starts             first      first,all
subflow_selection    forecast           paper      paper,today
subflow_selection    loop               open       open,closed
subflow_selection    round              paper      paper,pipelined
subflow_selection    bandwidth          available  available,capacity
loss_aware           thresholds         paper      paper,measured
loss_aware           loss_source        device     device,network,tcp
expected_throughput  allocation         paper      paper,max_min
expected_throughput  demand             unlimited  unlimited,measured
expected_throughput  pacing             all        all,rivals
expected_throughput  moves              all        all,gains
"""
CHOICE_ROWS = [line.split() for line in CHOICES.strip().splitlines()]
FIELDS = {
    (name, key): field
    for name, strategy in STRATEGIES.items()
    for key, field in strategy.Params.model_fields.items()
}


def set_to(name, key, value):
    return getattr(checked_params(STRATEGIES[name].Params, {key: value}, "set"), key)


@pytest.mark.parametrize(("name", "key", "default", "least", "most", "unit"), NUMBER_ROWS)
def test_default_unit_and_bounds_of_a_number(name, key, default, least, most, unit):
    field, kind = FIELDS[name, key], FIELDS[name, key].annotation
    assert (field.default, field.json_schema_extra["unit"]) == (kind(default), unit)

    def past(value, to):  # the next value that there is
        return value + (1 if to > value else -1) if kind is int else nextafter(value, to)

    low, high = kind(least.removeprefix(">")), kind(most)
    lowest, below = (past(low, inf), low) if ">" in least else (low, past(low, -inf))
    assert [set_to(name, key, each) for each in (lowest, high)] == [lowest, high]
    for wrong in (below, past(high, inf)):
        with pytest.raises(ParamsRefused, match=f"set: parameter {key} = "):
            set_to(name, key, wrong)


@pytest.mark.parametrize(("name", "key", "default", "choices"), CHOICE_ROWS)
def test_default_and_values_of_a_choice(name, key, default, choices):
    assert (FIELDS[name, key].default, FIELDS[name, key].json_schema_extra["unit"]) == (
        default,
        "choice",
    )
    assert [set_to(name, key, each) for each in choices.split(",")] == choices.split(",")
    with pytest.raises(ParamsRefused, match=f"set: parameter {key} = "):
        set_to(name, key, default + "x")


@pytest.mark.parametrize("key", ["windup_guard", "preseed"])
def test_the_switches_are_on(key):
    field = FIELDS["meter_throttling", key]
    assert (field.default, field.json_schema_extra["unit"]) == (True, "switch")


def test_every_parameter_of_a_strategy_is_in_a_table():
    """Parameters that strategies share are there once."""
    names: dict[type, set[str]] = {}
    for (_, key), field in FIELDS.items():
        kind = Literal if get_origin(field.annotation) is Literal else field.annotation
        names.setdefault(kind, set()).add(key)
    assert names[int] | names[float] == {key for _, key, *_ in NUMBER_ROWS}
    assert names[Literal] == {key for _, key, *_ in CHOICE_ROWS}
    assert names[bool] == {"windup_guard", "preseed"}
    assert names.keys() == {int, float, bool, Literal}


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


def test_parameters_are_frozen_and_forbid_extra_ones():
    params = checked_params(StrategyParams, {"interval_s": 3}, "set")
    with pytest.raises(ValidationError, match="frozen"):
        params.interval_s = 4.0
    with pytest.raises(
        ParamsRefused, match=r"'interval' is unknown \(did you mean 'interval_s'\?\)"
    ):
        checked_params(StrategyParams, {"interval": 4}, "set")
