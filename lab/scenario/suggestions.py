"""Check the changes that a scenario file suggests under `try`.

A suggestion is valid in any order with the others and after any other change. Only parameters of a
strategy depend on earlier changes, so they are refused here: a suggestion names the strategy with
its parameters instead.
"""

from __future__ import annotations

import string

from lab.errors import RequestError
from lab.scenario import targets, watched
from lab.scenario.checking import where
from lab.scenario.schema import Scenario, Suggestion

PLACEHOLDERS = {"before", "after", "seconds"}
NEEDED = {"before", "after"}


def possible(scenario: Scenario, source: str, is_changed: bool) -> tuple[Suggestion, ...]:
    """Return the suggestions of the scenario that fit its network.

    If the scenario is changed by options, suggestions that no longer fit are left out. Otherwise
    raise a `RequestError` that begins with `source` for a suggestion that does not fit.
    """
    found = []
    for n, each in enumerate(scenario.to_try):
        try:
            _check(scenario, each)
        except RequestError as error:
            if is_changed:
                continue
            raise RequestError(f"{source}: {where(['try', n])}: {error}") from error
        found.append(each)
    return tuple(found)


def _check(scenario: Scenario, suggestion: Suggestion) -> None:
    if suggestion.target.startswith("strategy."):
        raise RequestError(
            f"target {suggestion.target}: a change of the strategy could make it invalid. Write "
            "'target: strategy' and 'value: {name: NAME, params: {...}}'"
        )
    targets.check_flip(scenario, suggestion.target, suggestion.value)
    try:
        watched.parsed(suggestion.watch, scenario.network)
    except RequestError as error:
        raise RequestError(f"watch: {error}") from error
    used = _placeholders(suggestion.after)
    if wrong := sorted(used - PLACEHOLDERS):
        raise RequestError(
            f"after: {{{wrong[0]}}} is unknown: use {{before}}, {{after}}, {{seconds}}"
        )
    if missing := sorted(NEEDED - used):
        raise RequestError(f"after: quote the measurement: {{{missing[0]}}} is missing")


def _placeholders(text: str) -> set[str]:
    try:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    except ValueError as error:
        raise RequestError(f"after: {error}") from error
