"""Figures and LaTeX tables of a comparison."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys

import pytest
from command_line import lab  # noqa: F401 - a fixture
from test_compare import runs  # noqa: F401 - a fixture

from lab.errors import RequestError
from lab.results import compare, latex
from lab.results.figures import curves, drawing, plan
from lab.results.figures.plan import Asked, Bars, Heat, Lines
from lab.results.statistics import Estimate

needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None,
    reason="needs matplotlib: python -m pip install --require-hashes -r locks/figures.txt",
)
BUFFERS, DELAY = "multipath.receive_buffer_kb", "duration_s"


def parts(folders, by=()):
    return compare.compared_by(folders, None, by)[0]


def grid(runs, second=(5,), strategies=("none", "disjoint")):  # noqa: F811
    return [
        folder
        for n, buffer in enumerate((1000, 2000, 4000))
        for m, seconds in enumerate(second)
        for strategy in strategies
        for folder in runs(
            strategy, [10.0 + n + 3 * m], f"{BUFFERS}={buffer}", f"{DELAY}={seconds}"
        )
    ]


ESTIMATES = (Estimate(10.0, 9.0, 11.0, 5), Estimate(12.0, None, None, 3), plan.NO_ESTIMATE)
CURVES = tuple(curves.Curve(f"curve {n}", (1.0, 2.0, 3.0), ESTIMATES) for n in range(3))
PANELS = {
    "bars": Bars(("none", "a", "b"), ESTIMATES, "throughput (Mb/s)"),
    "lines": Lines(CURVES, "buffer (kB)", "throughput (Mb/s)"),
    "names": Lines(CURVES, "congestion control", "throughput (Mb/s)", ("-", "lia", "olia", "-")),
    "time": Lines(CURVES, "Time (s)", "throughput (Mb/s)", is_time=True),
    "cdf": Lines(CURVES[:1], "Time (s)", "Fraction of files", is_cdf=True),
    "heat": Heat("none", ((1.0, None), (3.0, 4.0)), ("1", "2"), ("a", "b"), "x (s)", "y", "Mb/s"),
}


def finished(folder, times):
    path = folder / "result.json"
    document = json.loads(path.read_text())
    document["connections"] = [
        {"id": str(n), "completion_s": t, "out_of_order_fraction": None}
        for n, t in enumerate(times)
    ]
    path.write_text(json.dumps(document))


def test_bars_have_the_estimates_of_the_comparison(runs):  # noqa: F811
    found = parts([*runs("none", [9.0, 10, 11, 9, 10]), *runs("disjoint", [12.0])])
    (panel,) = plan.panels(found, Asked(None, (), (), None))
    assert isinstance(panel, Bars)
    assert list(panel.estimates) == found[0][1].estimates["throughput_mbps"]
    assert panel.names == ("none", "disjoint")
    assert panel.axis.endswith("(Mb/s)")


@pytest.mark.parametrize("by", [(), (BUFFERS,)])
def test_a_key_with_three_numbers_is_the_x_axis_of_a_line_for_each_strategy(runs, by):  # noqa: F811
    (panel,) = plan.panels(parts(grid(runs), by), Asked(None, (), by, None))
    assert isinstance(panel, Lines)
    assert {curve.name for curve in panel.curves} == {"none", "disjoint"}
    for curve in panel.curves:
        assert curve.places == (1000, 2000, 4000)
        assert [each.mean for each in curve.estimates] == [10.0, 11.0, 12.0]
    assert panel.x_axis == "receive buffer (kB)"


def test_two_keys_are_a_heat_map_for_each_strategy(runs):  # noqa: F811
    (panel,) = plan.panels(parts(grid(runs, (5, 6, 7), ["none"])), Asked(None, (), (), None))
    assert isinstance(panel, Heat)
    assert panel.name == ""
    by = (BUFFERS, DELAY)
    panel, other = plan.panels(parts(grid(runs, (5, 6)), by), Asked(None, (), by, None))
    assert panel.x_names == ("1000", "2000", "4000")
    assert panel.y_names == ("5", "6")
    assert panel.means == ((10.0, 11.0, 12.0), (13.0, 14.0, 15.0))
    assert (panel.name, other.name) == ("none", "disjoint")


def test_files_that_were_never_complete_count_in_the_distribution(runs):  # noqa: F811
    folders = [*runs("none", [9.0, 9.0]), *runs("disjoint", [12.0])]
    for folder, times in zip(folders, ([3.0, None], [1.0, 2.0], [4.0]), strict=True):
        finished(folder, times)
    (panel,) = plan.panels(parts(folders), Asked(None, (), (), None))
    assert panel.is_cdf
    assert panel.curves[0].places == (1.0, 2.0, 3.0)
    assert [each.mean for each in panel.curves[0].estimates] == [0.25, 0.5, 0.75]
    assert [each.mean for each in panel.curves[1].estimates] == [1.0]


def test_the_mean_over_time_is_the_mean_that_compare_gives_for_that_time(lab, tmp_path):  # noqa: F811
    words = "run testbed_wifi_lte --engine fake --duration 8 --repeat 5 --quiet --out"
    assert lab(words, tmp_path / "runs").exit_code == 0
    own, folders = (), sorted((tmp_path / "runs").iterdir())
    folders = [each for each in folders if (each / "samples.jsonl").exists()]
    whole = curves.over_time("x", folders, "throughput_mbps", own, compare.Window())
    late = curves.over_time("x", folders, "throughput_mbps", own, compare.Window(4, 8))
    assert late.places == tuple(each for each in whole.places if each > 4)
    for place, found in zip(late.places, late.estimates, strict=True):
        window = compare.Window(place - 0.5, place + 0.5)
        groups = compare.compared(folders, window)
        assert found == groups.estimates["throughput_mbps"][0]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Asked("heat", (), (), None), "needs runs with 2 varied keys"),
        (Asked("cdf", (), (), None), "no run completed a file"),
        (Asked(None, ("throughput",), (), None), "no run has it. Some that they have: throughput_"),
    ],
)
def test_what_the_runs_do_not_have_is_refused(runs, asked, said):  # noqa: F811
    with pytest.raises(RequestError, match=said):
        plan.panels(parts(runs("none", [1.0])), asked)


@needs_matplotlib
@pytest.mark.parametrize("suffix", drawing.SUFFIXES)
@pytest.mark.parametrize("kind", PANELS)
def test_a_figure_has_the_same_bytes_again_and_names_no_date(tmp_path, suffix, kind):
    panel = PANELS[kind]
    for name in ("a", "b"):
        drawing.draw([panel], tmp_path / name, suffix, "page")
    first = (tmp_path / "a").read_bytes()
    assert first == (tmp_path / "b").read_bytes()
    assert b"Date>" not in first
    assert b"/CreationDate" not in first
    if suffix == ".svg":
        axis = panel.axis if isinstance(panel, Bars) else panel.x_axis
        assert f">{axis}</text>".encode() in first
        assert b'width="515.52pt"' in first
    if suffix == ".pdf":
        assert b"/FontFile2" in first  # TrueType


@needs_matplotlib
def test_labels_stay_inside_and_apart_with_many_groups_and_long_names(tmp_path):
    names = tuple(
        f"a_strategy_with_a_long_name, receive buffer {n} kB, loss 0.1" for n in range(12)
    )
    panel = Bars(names, (plan.NO_ESTIMATE,) * 12, "all users: throughput (Mb/s)")
    drawing.draw([panel], tmp_path / "a.svg", ".svg", "column")
    text = (tmp_path / "a.svg").read_text()
    height = float(re.search(r'height="([\d.]+)pt"', text)[1])
    assert height / len(names) > 8 * max(
        name.count("\n") + 1 for name in drawing._wrapped(names, "column")
    )


@needs_matplotlib
def test_the_command_writes_both_files_and_overwrites_none(lab, runs, tmp_path):  # noqa: F811
    folders = [*runs("none", [9.0]), *runs("disjoint", [12.0])]
    figure, table = tmp_path / "new" / "f.pdf", tmp_path / "new" / "t.tex"
    got = lab("compare", *folders, "--figure", figure, "--latex", table)
    assert got.exit_code == 0, got.stderr
    assert figure.read_bytes().startswith(b"%PDF")
    assert sorted(each.name for each in figure.parent.iterdir()) == ["f.pdf", "t.tex"]
    for more, said in (
        (("--figure", figure), "is there already"),
        (("--figure", tmp_path / "f.gif"), "must end with .pdf, .svg, .png"),
        (("--kind", "bars"), "add --figure"),
        (("--metric", "throughput_mbps"), "add --figure"),
    ):
        got = lab("compare", *folders, *more)
        assert (got.exit_code, got.stderr.count("\n")) == (2, 1)
        assert said in got.stderr


def test_without_matplotlib_it_says_what_to_type(lab, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    got = lab("compare", tmp_path, "--figure", tmp_path / "f.pdf")
    assert got.exit_code == 3
    assert "-r locks/figures.txt" in got.stderr


def test_a_latex_table_has_five_cells_in_each_row_and_nothing_unescaped(runs):  # noqa: F811
    folders = [
        *runs("none", [9.0, 10, 9, 10, 9]),
        *runs("meter_throttling", [12.0, 13, 12, 13, 12]),
    ]
    text = latex.table(parts(folders))
    body = [line for line in text.splitlines() if not line.startswith("%")]
    assert body[0] == r"\begin{tabular}{lrrll}"
    assert body[-1] == r"\end{tabular}"
    for line in body[1:-1]:
        if line.startswith(r"\quad"):
            assert line.endswith(r" \\")
            assert len(re.split(r"(?<!\\)&", line)) == 5
        bare = re.sub(r"\\[%_&#]|\$[^$]*\$", "", line)
        assert not re.search(r"[%_#$^~]", bare)
    row = next(line for line in body if r"meter\_throttling" in line)
    assert re.search(
        r"& 5 & \$12\.4\$ & \[\$\d+(\.\d+)?\$, \$\d+(\.\d+)?\$\] & better by \d+ \\%", row
    )


def test_latex_escapes_every_special_letter_and_writes_powers():
    assert latex.escaped("a_b & 5 % {x} \\ ~ ^ # $") == (
        r"a\_b \& 5 \% \{x\} \textbackslash{} \textasciitilde{} \textasciicircum{} \# \$"
    )
    assert latex._number(1_234_000) == r"$1.23 \times 10^{6}$"
    assert latex._number(-0.5) == "$-0.5$"


@pytest.mark.whole
@pytest.mark.skipif(not shutil.which("pdflatex"), reason="NOT COMPILED: pdflatex is not installed")
def test_latex_compiles_whatever_a_group_is_called(runs, tmp_path):  # noqa: F811
    folders = [
        *runs("none", [9.0, 10, 9, 10, 9]),
        *runs("meter_throttling", [12.0, 13, 12, 13, 12]),
    ]
    found = parts(folders)
    texts = [f"{{{latex.escaped(each)}}}" for each in ("a_b & 5 % {x} \\ ~ ^ # $", "<5>", "100 %")]
    lines = [
        r"\documentclass{article}\usepackage{booktabs}\begin{document}",
        *texts,
        latex.table(found),
        latex.table([({"topology.paths.1.delay_ms": "10"}, each) for _, each in found]),
        r"\end{document}",
    ]
    (tmp_path / "paper.tex").write_text("\n".join(lines))
    argv = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
