"""Sizes of flows and objects from a CSV file."""

from __future__ import annotations

import pytest
import yaml

from lab.errors import RequestError
from lab.run.recorder import write_scenario
from lab.scenario import loading
from lab.scenario.loading import Overrides

POINTS = [[3, 0.2], [20.5, 0.9], [400, 1]]
PATHS = {"kind": "parallel_paths", "paths": [{"rate_mbps": 20, "delay_ms": 5}]}


def written(folder, content, **entry):
    (folder / "sizes").mkdir(exist_ok=True)
    if content is not None:
        (folder / "sizes" / "own.csv").write_text(content)
    flow = {"user": "ue1", "kind": "workload", "sizes": "sizes/own.csv", "rate_mbps": 1}
    raw = {"name": "some", "title": "Some", "topology": PATHS, "traffic": [flow | entry]}
    (folder / "some.yaml").write_text(yaml.safe_dump(raw))
    return folder / "some.yaml"


def csv_of(points):
    return "size_kb,fraction\n" + "".join(f"{kb}, {part}\n" for kb, part in points)


@pytest.mark.parametrize("entry", [{}, {"kind": "web", "rate_mbps": None}])
def test_sizes_of_a_file_are_those_of_its_points(tmp_path, entry):
    by_file = loading.load(str(written(tmp_path, csv_of(POINTS), **entry)))
    by_points = loading.load(str(written(tmp_path, None, **entry | {"sizes": POINTS})))
    assert by_file.traffic == by_points.traffic
    digests = {loading.experiment(each, "sim") for each in (by_file, by_points)}
    assert len(digests) == 1


def test_a_run_keeps_the_sizes_without_the_file(tmp_path):
    made = loading.load(str(written(tmp_path, csv_of(POINTS))))
    run = tmp_path / "run"
    run.mkdir()
    write_scenario(run / "scenario.yaml", made)
    assert loading.load(str(run / "scenario.yaml")).traffic == made.traffic


def test_another_file_is_another_experiment(tmp_path):
    first = loading.load(str(written(tmp_path, csv_of(POINTS))))
    second = loading.load(str(written(tmp_path, csv_of([[3, 0.3], *POINTS[1:]]))))
    assert loading.experiment(first, "sim") != loading.experiment(second, "sim")


def test_an_option_can_name_the_file(tmp_path):
    path = str(written(tmp_path, csv_of(POINTS), sizes="web_search"))
    made = loading.load(path, Overrides(settings=("traffic.1.sizes=sizes/own.csv",)))
    assert [list(each) for each in made.traffic[0].sizes] == POINTS


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no file"),
        ("", "begin with the header size_kb,fraction"),
        ("kb,fraction\n1,1\n", "begin with the header size_kb,fraction"),
        ("size_kb,fraction\n1,0.5\n2,much\n", "row 3: 2,much is no size and fraction"),
        ("size_kb,fraction\n1,0.5,7\n", "row 2: 1,0.5,7 is no size and fraction"),
        ("size_kb,fraction\n", "sizes"),
        (csv_of([[20, 0.5], [10, 1]]), "write points"),
        (csv_of([[n, n / 1001] for n in range(1, 1002)]), "1000"),
    ],
)
def test_a_file_without_a_distribution_is_refused(tmp_path, content, said):
    with pytest.raises(RequestError, match=said):
        loading.load(str(written(tmp_path, content)))


def test_a_path_is_refused_where_no_file_may_be_read():
    flow = {"user": "ue1", "kind": "workload", "sizes": "own.csv", "rate_mbps": 1}
    raw = {"name": "some", "title": "Some", "topology": PATHS, "traffic": [flow]}
    with pytest.raises(RequestError, match="only in a scenario file"):
        loading.from_data(raw, "test")
