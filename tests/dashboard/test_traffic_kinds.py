"""What the start page offers for entries of traffic is what scenarios accept."""

from __future__ import annotations

import pytest

from dashboard.scenario_pages import choices, traffic_kinds
from lab.scenario.schema import unit
from lab.scenario.traffic import Traffic

KINDS = {row["kind"]: row for row in traffic_kinds()}
OTHER_THAN_DEFAULT = {
    "sizes": [[5, 0.5], [20, 1]],
    "bitrates_mbps": [1, 2, 4],
    "link": "access1",
    "interface": "wlan0",
    "buffer_s": 20,
}
TOGETHER = {"load": {"link": "access1"}, "link": {"load": 0.5}}  # keys that need another one
APART = {"load": "rate_mbps", "link": "rate_mbps", "requests_per_s": "think_s"}


def made(kind, **more):
    entry = {"user": "ue1", "kind": kind} | KINDS[kind]["first"] | more
    return Traffic.model_validate(
        {key: tupled(value) for key, value in entry.items()}, strict=False
    )


def tupled(value):
    return tuple(map(tupled, value)) if isinstance(value, list) else value


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_begins_with_what_its_kind_needs(kind):
    assert made(kind).kind == kind


@pytest.mark.parametrize(
    ("kind", "key"),
    [(kind, field["name"]) for kind, row in KINDS.items() for field in row["fields"]],
)
def test_every_key_of_the_form_is_one_that_its_kind_takes(kind, key):
    (field,) = (each for each in KINDS[kind]["fields"] if each["name"] == key)
    if key in OTHER_THAN_DEFAULT:
        value = OTHER_THAN_DEFAULT[key]
    elif field["choices"]:
        value = next(each for each in field["choices"] if each and each != field["default"])
    elif field["type"] == "boolean":
        value = not field["default"]
    else:
        value = max(field["minimum"] or 0, 1)
    more = {key: value} | TOGETHER.get(key, {})
    entry = {"user": "ue1", "kind": kind} | KINDS[kind]["first"] | more
    entry.pop(APART.get(key, ""), None)
    found = Traffic.model_validate({name: tupled(each) for name, each in entry.items()})
    assert getattr(found, key) == tupled(value)


def test_every_key_of_traffic_is_on_the_form():
    shown = {field["name"] for row in KINDS.values() for field in row["fields"]}
    assert shown == set(Traffic.model_fields) - {"user", "kind"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_of_another_kind_is_not_on_the_form(kind):
    """Whatever is refused for a kind must not be offered."""
    shown = {field["name"] for field in KINDS[kind]["fields"]}
    for name, value in OTHER_THAN_DEFAULT.items():
        if name in shown:
            continue
        with pytest.raises(ValueError, match=name):
            made(kind, **{name: value})


def test_users_are_those_of_the_network():
    assert choices("testbed_wifi_lte")["users"] == ["ue1", "ue2", "ue3", "ue4"]


def test_a_number_per_second_has_its_unit():
    assert unit("requests_per_s") == "1/s"
    assert unit("think_s") == "s"
