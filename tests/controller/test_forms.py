"""The improved form of a strategy: its name, its presets, and how a user's parameters override
them."""

import sys

import pytest

from controller.errors import ParamsRefused, UnknownStrategy
from controller.strategies import BUILT_IN, STRATEGIES, make
from controller.strategies.base import Strategy, StrategyParams, param
from controller.strategies.forms import named_forms
from controller.strategy_names import base_name

FORMS = sorted(name for name in STRATEGIES if name != base_name(name))


class TwoForms(Strategy):
    """A strategy with presets, as a user would write it."""

    class Params(StrategyParams):
        keep: int = param(1, "subflows", "How many carry data", ge=1, le=16)

    name, improved = "two_forms", {"keep": 3}

    def decide(self, observation):
        return []

    def withdraw(self, observation):
        return []


def test_meter_throttling_has_an_improved_form():
    assert "meter_throttling/improved" in FORMS


@pytest.mark.parametrize("name", FORMS)
def test_the_two_forms_differ_in_the_presets_alone(name):
    plain, improved = make(base_name(name), {}).params, make(name, {}).params
    presets = STRATEGIES[base_name(name)].improved
    assert presets
    assert improved.model_dump() == plain.model_dump() | dict(presets)
    assert all(getattr(plain, key) != value for key, value in presets.items())


def test_a_users_parameter_overrides_the_preset():
    assert make("meter_throttling/improved", {"at_floor": "keep"}).params.at_floor == "keep"


def test_bounds_and_unknown_parameters_are_checked_as_in_the_plain_form():
    keep = named_forms(TwoForms)["two_forms/improved"].Params
    assert keep().keep == 3
    assert keep.model_fields["keep"].json_schema_extra == {"unit": "subflows"}
    assert TwoForms.Params().keep == 1
    for wrong in ({"keep": 17}, {"kept": 1}):
        with pytest.raises(ValueError, match="validation error"):
            keep(**wrong)


def test_a_wrong_preset_is_refused():
    class Wrong(TwoForms):
        improved = {"keep": 17}

    with pytest.raises(ParamsRefused, match=r"presets of 'two_forms/improved'.* 16"):
        named_forms(Wrong)


def test_a_derived_strategy_does_not_inherit_presets():
    class Derived(TwoForms):
        name = "derived"

    assert list(named_forms(Derived)) == ["derived"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("none/improved", "strategy 'none' has no improved form.*meter_throttling/improved"),
        ("meter_throttling/better", "no form.*choose from meter_throttling, meter_thr.*/improved"),
        ("magic/improved", "strategy 'magic/improved' is unknown: choose from"),
    ],
)
def test_an_unknown_form_is_refused(name, says):
    with pytest.raises(UnknownStrategy, match=says):
        make(name, {})


def test_each_strategy_has_a_help_text_of_its_own():
    """`list` shows the first line of the docstring of the strategy's module."""
    lines = {
        name: (sys.modules[STRATEGIES[name].__module__].__doc__ or "").partition("\n")[0]
        for name in BUILT_IN
        if "/" not in name
    }
    assert all(lines.values())
    assert len(set(lines.values())) == len(lines)
