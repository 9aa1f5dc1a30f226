"""Queues of links in scenario files: what is accepted, what is refused, and what the engines get."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
import yaml

from lab.engines.mininet.export import script as export
from lab.engines.mininet.kernel import shaping
from lab.engines.mininet.kernel.shaping import Shape
from lab.errors import RequestError
from lab.scenario import loading, targets
from lab.topologies.parallel_paths import Way
from lab.topologies.queue_keys import Queue
from lab.topologies.queues import FIFO, Discipline, Kind


def loaded(tmp_path, topology, **keys):
    scenario = {"name": "one", "title": "One", "topology": topology, "traffic": [{"user": "ue1"}]}
    (tmp_path / "one.yaml").write_text(yaml.safe_dump(scenario | keys, sort_keys=False))
    return loading.load(str(tmp_path / "one.yaml"))


def path(**keys):
    return {"kind": "parallel_paths", "paths": [{"rate_mbps": 10, **keys}]}


def own(**keys):
    links = [{"a": "s1", "b": "ue1"}, {"id": "path1", "a": "srv1", "b": "s1", **keys}]
    hosts = {"users": [{"id": "ue1"}], "servers": ["srv1"], "switches": ["s1"]}
    return {"kind": "nodes_and_links", **hosts, "links": links}


def queues(scenario):
    """The size and the discipline of path1 away from the server, and back."""
    (link,) = (each for each in scenario.network.links if each.id == "path1")
    sides = ("ab", "ba") if link.a in ("s1", "srv1x1", "srv1x") else ("ba", "ab")
    return [(link.way(side).queue_packets, link.way(side).discipline) for side in sides]


@pytest.mark.parametrize("network", [path, lambda **keys: own(rate_mbps=10, **keys)])
def test_a_direction_has_the_queue_of_its_link_or_its_own(tmp_path, network):
    codel, fair = Discipline("codel", True, 15, 100), Discipline("fq_codel", False)
    keys = {"queue": {"kind": "codel", "target_ms": 15}, "queue_packets": 70}
    assert queues(loaded(tmp_path, network(**keys))) == [(70, codel)] * 2
    keys["up"] = {"queue": {"kind": "fq_codel", "packets": 9, "ecn": False}}
    assert queues(loaded(tmp_path, network(**keys))) in ([(70, codel), (9, fair)],)
    keys["up"] = {"queue": {"kind": "fifo"}, "queue_packets": 8}
    assert queues(loaded(tmp_path, network(**keys))) == [(70, codel), (8, FIFO)]


def test_packets_of_a_queue_and_its_short_form_are_one_network(tmp_path):
    short = loaded(tmp_path, path(queue_packets=70)).network
    assert loaded(tmp_path, path(queue={"packets": 70})).network.sha256() == short.sha256()
    assert loaded(tmp_path, path(queue={"kind": "codel"})).network.sha256() != short.sha256()


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        (path(queue={"kind": "code"}), "queue.kind"),
        (path(queue={"kind": "codel", "packets": 0}), "queue.packets"),
        (path(queue={"kind": "fifo", "ecn": True}), "a fifo queue marks nothing"),
        (path(queue={"target_ms": 5}), "target_ms is for codel and fq_codel, not for fifo"),
        (path(queue={"kind": "codel", "target_ms": 100}), "target_ms 100 is not below interval_ms"),
        (path(queue={"packets": 5}, queue_packets=6), "queue_packets is the short form"),
        (path(up={"queue": {"packets": 5}, "queue_packets": 6}), "queue_packets is the short form"),
        (
            path(queue={"kind": "red", "packets": 11}),
            "red needs 2 <= min_packets < max_packets <= packets, not 0, 2, 11",
        ),
        (path(queue={"kind": "red", "min_packets": 9, "max_packets": 9}), "not 9, 9, 100"),
        (path(queue={"kind": "red", "max_packets": 90}, queue_packets=80), "not 30, 90, 80"),
        (path(up={"queue": {"kind": "red", "max_packets": 200}}), "not 66, 200, 100"),
        (path(queue={"kind": "red", "target_ms": 9}), "target_ms is for codel and fq_codel, not"),
        (
            path(queue={"kind": "codel", "probability": 0.1}),
            "probability is for red, not for codel",
        ),
        (
            path(queue={"kind": "codel", "mark_packets": 9}),
            "mark_packets is for red, not for codel",
        ),
        (path(queue={"kind": "red", "mark_packets": 0}), "queue.mark_packets"),
        (path(queue={"kind": "red", "mark_packets": 9, "ecn": False}), "leave out ecn: false"),
        (
            path(queue={"kind": "red", "mark_packets": 9, "min_packets": 5}),
            "mark_packets is the only threshold: leave out min_packets",
        ),
        (
            path(queue={"kind": "red", "mark_packets": 81}, queue_packets=80),
            "mark_packets 81 is above the size of the queue, 80",
        ),
        (own(delay_ms=5, queue={"kind": "codel"}), "a link without a rate has no queue"),
        (own(delay_ms=5, down={"queue": {"kind": "codel"}}), "down.queue: a link without a rate"),
    ],
)
def test_what_makes_no_queue_is_refused(tmp_path, topology, message):
    with pytest.raises(RequestError, match=message):
        loaded(tmp_path, topology)


def test_formats_md_has_every_key():
    page = (Path(__file__).parents[1] / "docs" / "formats.md").read_text()
    section = page.partition("`up` and `down` of a link")[2].partition("`--set key.path")[0]
    for key in (*Queue.model_fields, *Way.model_fields):
        assert f"`{key}" in section, key
    for kind in get_args(Kind):
        assert f"`kind: {kind}`" in section


def test_a_script_for_mininet_refuses_queues_that_mininet_lacks(tmp_path):
    with pytest.raises(RequestError, match="another queue than fifo"):
        export.script(loaded(tmp_path, path(queue={"kind": "codel"})))


@pytest.mark.parametrize(
    ("discipline", "qdisc"),
    [
        (FIFO, "pfifo limit 70"),
        (Discipline("codel", True, 15, 150), "codel limit 70 target 15ms interval 150ms ecn"),
        (
            Discipline("fq_codel"),
            "fq_codel limit 70 flows 1024 quantum 1514 memory_limit 1Gb target 5ms interval 100ms "
            "noecn",
        ),
        (
            Discipline("red", True, mark_packets=20),
            "red limit 105980 min 30280 max 30280 avpkt 1514 burst 20 probability 0.02 "
            "bandwidth 5000000bit ecn",
        ),
        (
            Discipline("red", True, min_packets=10, max_packets=30, probability=0.1),
            "red limit 105980 min 15140 max 45420 avpkt 1514 burst 17 probability 0.1 "
            "bandwidth 5000000bit ecn",
        ),
    ],
)
def test_the_kernel_gets_the_queue_behind_the_delay(discipline, qdisc):
    shape = Shape(5_000_000, queue_packets=70, discipline=discipline)
    lines = shaping.link("s1-eth1", shape)
    assert lines[-1] == f"qdisc replace dev s1-eth1 parent 30:1 handle 10: {qdisc}"
    assert not [line for line in shaping.changed_link("s1-eth1", shape) if "handle 10:" in line]


def flipped(scenario, *changes):
    for target, value in changes:
        scenario = targets.after(scenario, target, targets.check_flip(scenario, target, value))
    return scenario


def test_a_queue_that_is_changed_keeps_its_parameters(tmp_path):
    keys = {"queue": {"kind": "codel", "target_ms": 15, "packets": 70}, "up": {"queue_packets": 30}}
    scenario = loaded(tmp_path, path(**keys))
    assert targets.targets(scenario)["link.path1.queue"].value == "codel"
    bigger = flipped(scenario, ("link.path1.queue.packets", 90))
    assert queues(bigger) == [(90, Discipline("codel", True, 15))] * 2
    other = flipped(scenario, ("link.path1.queue", "fifo"))
    assert [(size, each.kind) for size, each in queues(other)] == [(70, "fifo"), (30, "fifo")]
    back = flipped(other, ("link.path1.queue", "codel"))
    assert queues(back) == queues(scenario)
    assert targets.targets(bigger)["link.path1.queue.packets"].value == 90


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_queue_of_one_direction_is_changed_alone(tmp_path, way):
    keys = {"queue": {"kind": "codel", "target_ms": 15}, way: {"queue_packets": 30}}
    scenario = loaded(tmp_path, path(**keys))
    name, values = f"link.path1.{way}.queue", targets.targets(scenario)
    assert (values[name].value, values[f"{name}.packets"].value) == ("codel", 30)
    other = flipped(scenario, (name, "fq_codel"), (f"{name}.packets", 40))
    found = dict(zip(("down", "up"), queues(other), strict=True))
    assert found.pop(way) == (40, Discipline("fq_codel", True, 15))
    assert list(found.values()) == [(100, Discipline("codel", True, 15))]
    both = flipped(other, ("link.path1.queue.packets", 50))
    assert [size for size, _ in queues(both)] == [50, 50]


def test_a_change_of_both_queues_is_no_longer_hidden_by_one_of_a_direction():
    names = ("link.a.up.queue", "link.a.up.queue.packets", "link.a.queue")
    assert all(targets.is_replaced(each, "link.a.queue") for each in names)
    others = ("link.b.queue", "link.a.up.rate_mbps", "link.a.up", "strategy")
    assert not any(targets.is_replaced(each, "link.a.queue") for each in others)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([("link.path1.up.queue.packets", 20), ("link.path1.queue", "red")], "red needs"),
        ([("link.path1.down.queue", "red"), ("link.path1.queue.packets", 9)], "red needs"),
        ([("link.path1.queue", "code")], "did you mean 'codel'"),
        ([("link.path1.queue.packets", 0)], "0 is not within 1 to 10000 packets"),
        ([("link.path1.queue.packets", 2.5)], "2.5 is not a whole number of packets"),
        ([("link.path1.queue.packets", True)], "true is not a number"),
        ([("link.path1.queue.packets", 20), ("link.path1.queue", "red")], "red needs .* not 1, 5"),
        ([("link.path1.queue", "red"), ("link.path1.queue.packets", 20)], "red needs .* not 1, 5"),
        ([("link.access1.queue", "codel")], "target 'link.access1.queue' is unknown"),
    ],
)
def test_a_change_to_what_is_no_queue_is_refused(tmp_path, changes, message):
    scenario = loaded(tmp_path, path())
    with pytest.raises(RequestError, match=message):
        flipped(scenario, *changes)
    events = [
        {"at_s": n, "target": target, "value": value} for n, (target, value) in enumerate(changes)
    ]
    with pytest.raises(RequestError, match=rf"events\[{len(events)}\]: .*{message}"):
        loaded(tmp_path, path(), events=events)
