"""The two implementations of Multipath TCP: their settings, their names, and what is refused."""

from __future__ import annotations

from dataclasses import asdict
from typing import get_args

import pytest
import yaml

from lab.congestion import BUILT_IN
from lab.engines import registry
from lab.errors import MachineLacks, RequestError
from lab.run.engine import Options
from lab.scenario import loading
from lab.scenario.engine_table import STACKS, named, refuse
from lab.scenario.loading import Overrides
from lab.scenario.schema import Multipath


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", ["pooling", "two_paths", "uneven_paths"])
def test_a_stack_is_a_name_for_its_settings(stack, name):
    """two_paths and uneven_paths name a scheduler themselves; `--stack` replaces it."""
    multipath = loading.load(name, Overrides(stack=stack)).multipath
    assert multipath.stack == stack
    assert asdict(STACKS[stack]).items() <= multipath.model_dump().items()
    assert named(multipath.scheduler, multipath.penalisation) == stack


def test_without_a_stack_settings_are_free_and_may_have_a_name():
    def name_of(*settings):
        multipath = loading.load("pooling", Overrides(settings=settings)).multipath
        return named(multipath.scheduler, multipath.penalisation)

    assert name_of() is None
    assert name_of("multipath.scheduler=linux") == "linux"
    assert name_of("multipath.penalisation=true") == "paper"
    assert name_of("multipath.scheduler=redundant") is None


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (("multipath.stack=paper", "multipath.scheduler=linux"), "leave out scheduler or stack"),
        (("multipath.stack=linux", "multipath.penalisation=true"), "penalisation or stack"),
        (("multipath.stack=bsd",), "stack"),
    ],
)
def test_settings_that_contradict_the_stack_are_refused(settings, says):
    with pytest.raises(RequestError, match=says):
        loading.load("pooling", Overrides(settings=settings))


IN_KERNEL = {
    "scheduler": ("lowest_rtt", "linux"),
    "penalisation": (False,),
    "balia_decrease": ("kernel",),
    "olia_metric": ("kernel",),
    "cc": tuple(BUILT_IN),
}


@pytest.mark.parametrize("key", IN_KERNEL)
def test_the_simulator_has_every_setting_and_the_emulation_those_of_its_kernel(key):
    values = get_args(Multipath.model_fields[key].annotation)
    values = {"penalisation": (False, True), "cc": tuple(BUILT_IN)}.get(key, values)
    assert set(IN_KERNEL[key]) <= set(values)
    for value in values:
        refuse("sim", key, value)
        if value in IN_KERNEL[key]:
            refuse("mininet", key, value)
        else:
            said = rf"{key} '{str(value).lower()}' on engine 'mininet': .*Choose from: \w"
            with pytest.raises(MachineLacks, match=said):
                refuse("mininet", key, value)


def test_the_emulation_has_one_stack():
    options = Options(1.0, False, False)
    registry.admit("mininet", loading.load("pooling", Overrides(stack="linux")), options)
    with pytest.raises(RequestError, match=r"stack 'paper' on engine 'mininet': .*--stack linux"):
        registry.admit("mininet", loading.load("pooling", Overrides(stack="paper")), options)


def test_a_run_folder_loads_as_the_same_stack_and_can_take_another(tmp_path):
    first = loading.load("two_paths", Overrides(stack="paper"))
    (tmp_path / "scenario.yaml").write_text(yaml.safe_dump(loading.resolved(first)))
    assert loading.load(str(tmp_path)).multipath == first.multipath
    other = loading.load(str(tmp_path), Overrides(stack="linux")).multipath
    assert (other.scheduler, other.penalisation) == ("linux", False)
