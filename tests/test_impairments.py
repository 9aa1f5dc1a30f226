"""Losses in bursts, reordering and duplicates in a scenario file."""

from __future__ import annotations

import pytest

from lab.errors import RequestError
from lab.scenario import loading
from lab.scenario.loading import Overrides
from lab.topologies.bursts import Bursts

PATH = {"rate_mbps": 10, "delay_ms": 20}
KINDS = {
    "parallel_paths": lambda link: {"kind": "parallel_paths", "paths": [link]},
    "shared_bottleneck": lambda link: {
        "kind": "shared_bottleneck",
        "users": [{"id": "ue1"}],
        **link,
    },
    "nodes_and_links": lambda link: {
        "kind": "nodes_and_links",
        "users": [{"id": "ue1"}],
        "servers": ["srv1"],
        "switches": ["s1", "s2"],
        "links": [
            {"a": "s1", "b": "s2", **link},
            {"a": "ue1", "b": "s2"},
            {"a": "s1", "b": "srv1"},
        ],
    },
}


def network(kind="parallel_paths", direction="down", **keys):
    data = {
        "name": "x",
        "title": "X",
        "topology": KINDS[kind](PATH | keys),
        "traffic": [{"user": "ue1", "direction": direction}],
    }
    return loading.from_data(data, "x.yaml").network


def shaped(*args, **keys):
    """The two directions of the link with a delay: towards the user, and back."""
    (link,) = (each for each in network(*args, **keys).links if each.delay_ns)
    return link.way("ab"), link.way("ba")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direction", ["down", "up"])
def test_bursts_act_on_data_and_the_others_in_both_directions(kind, direction):
    keys = {"loss": {"p": 0.01, "r": 0.19, "bad": 0.5}, "reorder": 0.02, "duplicate": 0.001}
    found = shaped(kind, direction, **keys)
    data, back = found if direction == "down" else found[::-1]
    assert (data.bursts, data.loss_ppm) == (Bursts(10_000, 190_000, 0, 500_000), 25_000)
    assert (back.bursts, back.loss_ppm) == (None, 0)
    assert {(each.reorder_ppm, each.duplicate_ppm) for each in found} == {(20_000, 1_000)}


def test_each_direction_can_have_its_own():
    down, up = shaped(
        loss=0.01,
        reorder=0.1,
        down={"loss": {"p": 0.1, "r": 0.3}},
        up={"reorder": 0, "duplicate": 0.2},
    )
    assert (down.bursts, down.loss_ppm) == (Bursts(100_000, 300_000), 250_000)
    assert (down.reorder_ppm, down.duplicate_ppm) == (100_000, 0)
    assert (up.bursts, up.loss_ppm, up.reorder_ppm, up.duplicate_ppm) == (None, 0, 0, 200_000)
    down, _ = shaped(loss={"p": 0.1, "r": 0.3}, down={"loss": 0.02})
    assert (down.bursts, down.loss_ppm) == (None, 20_000)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"loss": {"p": 0.1}}, r"paths\[1\].loss.r: is missing"),
        ({"loss": {"p": 0, "r": 0.1}}, r"paths\[1\].loss.p: 0 is out of range: write more than 0$"),
        ({"loss": {"p": 0.1, "r": 0.1, "h": 1}}, "unknown key 'h'.*bad, good, p, r"),
        ({"loss": {"p": 0.1, "r": 0.1, "bad": 0}}, "loses less than one packet in a million"),
        ({"loss": {"p": 1e-7, "r": 0.1}}, "less than one packet in a million"),
        ({"loss": 2}, r"paths\[1\].loss: 2 is no fraction from 0 to 1: write 0.02"),
        (
            {"loss": "1%"},
            r"paths\[1\].loss: '1%' is not a number in fraction from 0 to 1: write 0.01$",
        ),
        (
            {"loss": {"p": 0.1, "r": 0.1}, "loss_both": 0.1},
            "loss_both: a link with losses in bursts",
        ),
        ({"reorder": 1.5}, r"paths\[1\].reorder: 1.5 is no fraction"),
        ({"reorder": 1e-7}, "less than one packet in a million"),
        ({"duplicate": -1}, r"paths\[1\].duplicate: -1 is no fraction"),
        ({"reorder": 0.1, "delay_ms": 0}, "reorder: .* add delay_ms"),
        ({"up": {"reorder": 0.1, "delay_ms": 0}}, "reorder: .* add delay_ms"),
        ({"jitter_ms": 30}, "jitter"),
    ],
)
def test_what_is_refused_says_why(keys, words):
    with pytest.raises(RequestError, match=words):
        network(**keys)


def test_without_them_a_network_keeps_its_digest():
    plain, zero = network(), network(reorder=0, duplicate=0)
    assert plain.sha256() == zero.sha256()
    assert plain.sha256() == "49b72a204fcd60dc30d140aa52ae46167fb4c0b3bf77f74e4cbb46b4cf416976"
    others = [
        network(reorder=0.1),
        network(duplicate=0.1),
        network(loss={"p": 0.1, "r": 0.1}),
        network(loss=0.5),
    ]
    assert len({each.sha256() for each in [plain, *others]}) == 5


def test_set_changes_them_from_the_command_line():
    settings = ("topology.paths.1.loss={p: 0.01, r: 0.3}", "topology.paths.2.reorder=0.1")
    found = loading.load("two_paths", Overrides(settings=settings)).network
    one, two = (each for each in found.links if each.id.startswith("path"))
    assert one.way("ab").bursts == Bursts(10_000, 300_000)
    assert two.reorder_ppm == 100_000
