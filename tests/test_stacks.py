"""The two implementations of Multipath TCP: their settings, their names, and what is refused."""

from __future__ import annotations

from dataclasses import asdict

import pytest
import yaml

from lab.engines import registry
from lab.errors import RequestError
from lab.run.engine import Options
from lab.scenario import loading
from lab.scenario.engine_table import STACKS, named
from lab.scenario.loading import Overrides


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
