"""The improved form of a strategy, `NAME/improved`, next to the paper's form, `NAME`.

A strategy declares it with a class attribute such as `improved = {"at_floor": "backup"}`: defaults
of parameters that differ from the paper's. The improved form is the same class with these defaults,
so users can still override each of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any

from pydantic import create_model

from controller.strategies.base import Strategy, StrategyParams, checked_params
from controller.strategy_names import IMPROVED, SEPARATOR


def named_forms(strategy: type[Strategy]) -> dict[str, type[Strategy]]:
    """Map `NAME` to the strategy, and `NAME/improved` to its improved form if it has one.

    An improved form is the same strategy with other defaults of some parameters. The class
    attribute `improved` has these defaults. If only a base class has this attribute, there is no
    improved form. Raise `ParamsRefused` if `improved` has an unknown parameter or a wrong value.
    """
    forms = {strategy.name: strategy}
    if vars(strategy).get("improved"):
        form = _improved(strategy)
        forms[form.name] = form
    return forms


def explain_unknown(name: str, known: Iterable[str]) -> str:
    """Return the error message for `name`, which was not found among the strategies `known`.

    If `name` is "NAME/FORM" and NAME is in `known`, the message says that NAME has no such form.
    Otherwise the result is "".
    """
    base, slash, _ = name.partition(SEPARATOR)
    known = list(known)
    if not slash or base not in known:
        return ""
    forms = [each for each in known if each.startswith(base + SEPARATOR)]
    if forms:
        return f"strategy '{base}' has no form {name!r}: choose from {', '.join([base, *forms])}"
    having = ", ".join(each for each in known if SEPARATOR in each) or "none"
    return f"strategy '{base}' has no improved form: leave out the slash, or choose from {having}"


def preset_text(strategy: type[Strategy]) -> str:
    """Return the defaults that an improved form sets, such as "at_floor: backup".

    An improved form is a strategy with other defaults of some parameters. Return "" if `strategy`
    is not an improved form.
    """
    if SEPARATOR not in strategy.name:
        return ""
    return ", ".join(f"{key}: {value}" for key, value in strategy.improved.items())


def _improved(strategy: type[Strategy]) -> type[Strategy]:
    name = f"{strategy.name}{SEPARATOR}{IMPROVED}"
    checked = checked_params(strategy.Params, strategy.improved, f"presets of '{name}'")
    members = {
        "__module__": strategy.__module__,
        "__doc__": strategy.__doc__,
        "name": name,
        "Params": _with_defaults(strategy.Params, checked, strategy.improved),
    }
    return type(strategy.__name__, (strategy,), members)


def _with_defaults(
    params: type[StrategyParams], checked: StrategyParams, keys: Iterable[str]
) -> type[StrategyParams]:
    def with_default(key: str) -> Any:
        field = copy(params.model_fields[key])
        field.default = getattr(checked, key)
        return field.annotation, field

    fields = {key: with_default(key) for key in keys}
    return create_model(
        params.__name__,
        __base__=params,
        __module__=params.__module__,
        __doc__=params.__doc__,
        **fields,
    )
