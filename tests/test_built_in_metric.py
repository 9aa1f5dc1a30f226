"""A further built-in metric that follows from samples needs only its declaration: samples, result,
charts, `compare`, CSV and the checks of worksheets follow."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dashboard import charts, exports
from lab import metrics
from lab.engines import registry
from lab.errors import RequestError
from lab.metrics import Chart, Drawn, Metric
from lab.results import compare
from lab.run.engine import Options
from lab.run.reading import read_document, read_frames, read_samples
from lab.run.recorder import Recorder
from lab.run.runner import run
from lab.scenario import loading
from lab.scenario.loading import Overrides
from lab.worksheets import consistency
from lab.worksheets.language import parse_number

OWNERS = {"ap": "wifi1", "link": "wifi", "user": "ue1", "sf": "ue1-1/1"}
FIGURES = {
    "ap": lambda frame, name: frame.ap[name].stations,
    "link": lambda frame, name: frame.link[name].mbps,
    "user": lambda frame, name: frame.user[name].mbps,
    "sf": lambda frame, name: frame.sf[name].mbps,
}


def twice(of):
    def value(frame, name):
        return 2 * FIGURES[of](frame, name)

    return Metric(
        of=of,
        name="twice",
        label="twice",
        meaning="Twice another figure.",
        value=value,
        number="twice_mean",
        better=1,
        drawn=Drawn(Chart(f"twice_{of}", "Twice", ("twice",))),
    )


@pytest.fixture(scope="module", params=OWNERS)
def made(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        known = (*metrics.BUILT_IN, twice(request.param))
        for module in (metrics, charts, compare):
            patch.setattr(module, "BUILT_IN", known)
        settings = ("duration_s=3", "events=[]")
        scenario = loading.load("testbed_wifi_lte", Overrides(settings=settings))
        folder = tmp_path_factory.mktemp(request.param)
        engine = registry.create("sim", Options(0.0))
        run(scenario, engine, Recorder(folder, scenario, "sim"))
        owner = OWNERS[request.param]
        yield SimpleNamespace(folder=folder, of=request.param, owner=owner, scenario=scenario)


def test_samples_and_result_hold_its_numbers(made):
    frames = read_frames(made.folder)
    twices = [each.figure(made.of, made.owner, "twice") for each in frames]
    assert twices == pytest.approx([2 * FIGURES[made.of](each, made.owner) for each in frames])
    result = read_document(made.folder, "result.json")
    number = result[metrics.SECTIONS[made.of]][made.owner]["twice_mean"]
    assert number == pytest.approx(sum(twices) / len(twices), abs=1e-5)
    assert number > 0


def test_the_csv_and_compare_have_it(made):
    columns = b"".join(exports.as_csv(made.folder)).decode().splitlines()[0].split(",")
    assert f"{made.of}.{made.owner}.twice" in columns
    path = f"{metrics.SECTIONS[made.of]}.{made.owner}.twice_mean"
    assert path in compare.compared([made.folder]).estimates
    assert compare.direction(path) == 1


def test_the_page_draws_it(made):
    frames, links = list(read_samples(made.folder)), made.of == "link"
    if links:  # drawn in networks without access points
        frames = [frame | {"ap": {}} for frame in frames]
    found = {each["name"]: each["figure"] for each in charts.figures(frames, charts.About())}
    (line,) = (
        each
        for each in found[f"twice_{made.of}"]["data"]
        if each["meta"]["key"] == [made.of, made.owner, "twice"]
    )
    assert line["y"] == [frame[made.of].get(made.owner, {}).get("twice") for frame in frames]


def test_a_suggestion_may_watch_it(made):
    if made.of != "sf":  # suggestions watch no subflows
        path = f"{made.of}.{made.owner}.twice"
        assert metrics.watched_number(path, made.scenario.network).text == f"{made.owner}: twice"


def test_checks_may_look_at_it(made):
    no_flips, section = SimpleNamespace(flips=()), metrics.SECTIONS[made.of]
    for text in (
        f"mean({made.of}.{made.owner}.twice, 0..3) of a",
        f"result({section}.{made.owner}.twice_mean) of a",
    ):
        consistency.check_leaf(parse_number(text), made.scenario, no_flips)
    for text in (
        f"mean({made.of}.{made.owner}.twise, 0..3) of a",
        f"result({section}.nobody.twice_mean) of a",
    ):
        with pytest.raises(RequestError, match="is unknown"):
            consistency.check_leaf(parse_number(text), made.scenario, no_flips)
