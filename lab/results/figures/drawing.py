"""Draw the panels of a figure with matplotlib, as a column or a page of a paper needs them.

Curves differ in colour, line and marker, so they can be told apart in grey. The same panels always
give the same bytes: nothing depends on the date or on the user's settings of matplotlib.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.errors import MachineLacks
from lab.results.colours import OKABE_ITO
from lab.results.figures.curves import Curve
from lab.results.figures.plan import Bars, Heat, Lines, Panel
from lab.results.frames import INSTALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTHS_INCHES = {"column": 3.5, "page": 7.16}
PANEL_INCHES = 2.2  # the height of a panel
BAR_INCHES = 0.2  # the height of each line of a bar's name
SIDE_BY_SIDE = {"column": 1, "page": 2}
NAME_LETTERS = {"column": 26, "page": 34}
LEGEND_LETTERS = {"column": 52, "page": 108}  # in a row
LEGEND_INCHES = 0.16  # the height of a line
AXIS_LETTERS = 30  # in a line of an axis's label
SAMPLE_LETTERS = 8  # the room of a line's sample in a legend
BESIDE = 0.6  # of the room of a name on an axis
COLOURS = OKABE_ITO[:-1]  # yellow is hard to see on paper
STYLES = ("-", "--", "-.", ":")
MARKERS = "osD^vPX<>"
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # matplotlib brings it along
    "font.size": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.linewidth": 0.4,
    "grid.color": "#DDDDDD",
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "pdf.fonttype": 42,  # TrueType, which publishers ask for
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "lab",
}
UNDATED = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {"Software": None}}
SUFFIXES = tuple(UNDATED)
DOTS_PER_INCH = 300


def check_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MachineLacks(f"--figure: this needs matplotlib. Type: {INSTALL}") from error


def draw(panels: Sequence[Panel], path: Path, suffix: str, width: str) -> None:
    """Draw panels into a new file. `suffix` is one of `SUFFIXES`, and `width` of
    `WIDTHS_INCHES`."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        columns = min(len(panels), SIDE_BY_SIDE[width])
        rows = -(-len(panels) // columns)
        names = _legend_names(panels, width)
        height = rows * max(_height(each, width) for each in panels) + _legend_height(names, width)
        figure = Figure((WIDTHS_INCHES[width], height), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).flat
        for each, ax in zip(panels, axes, strict=False):
            _draw(each, ax, width)
        for ax in list(axes)[len(panels) :]:
            ax.set_axis_off()
        if names:
            _legend(figure, names, width)
        figure.savefig(path, format=suffix[1:], dpi=DOTS_PER_INCH, metadata=UNDATED[suffix])


def _height(panel: Panel, width: str) -> float:
    if isinstance(panel, Bars):
        lines = sum(name.count("\n") + 1 for name in _wrapped(panel.names, width))
        return 0.55 + BAR_INCHES * lines
    if isinstance(panel, Heat):
        return max(PANEL_INCHES, 0.9 + BAR_INCHES * len(panel.y_names))
    return PANEL_INCHES


def _wrapped(names: Sequence[str], width: str) -> list[str]:
    return [textwrap.fill(name, NAME_LETTERS[width]) for name in names]


def _draw(panel: Panel, ax: Axes, width: str) -> None:
    if isinstance(panel, Bars):
        _draw_bars(panel, ax, width)
    elif isinstance(panel, Heat):
        _draw_heat(panel, ax)
    else:
        _draw_lines(panel, ax)


def _draw_bars(panel: Bars, ax: Axes, width: str) -> None:
    known = [n for n, each in enumerate(panel.estimates) if each.mean is not None]
    means = [panel.estimates[n].mean or 0.0 for n in known]
    ax.barh(known, means, 0.65, color=OKABE_ITO[6], edgecolor="black", linewidth=0.6)
    _intervals(ax, known, [panel.estimates[n] for n in known])
    ax.set_yticks(range(len(panel.names)), _wrapped(panel.names, width))
    ax.set_ylim(len(panel.names) - 0.5, -0.5)
    ax.set_xlabel(textwrap.fill(panel.axis, AXIS_LETTERS))
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)


def _intervals(ax: Axes, places: Sequence[float], estimates: Sequence[Any]) -> None:
    for place, each in zip(places, estimates, strict=True):
        if each.low is not None:
            sides = [[max(0.0, each.mean - each.low)], [max(0.0, each.high - each.mean)]]
            ax.errorbar(each.mean, place, xerr=sides, color="black", capsize=2, linewidth=0.8)


def _draw_lines(panel: Lines, ax: Axes) -> None:
    for n, curve in enumerate(panel.curves):
        colour, style = COLOURS[n % len(COLOURS)], STYLES[n % len(STYLES)]
        if panel.is_cdf:
            _draw_steps(curve, ax, colour, style)
        elif panel.is_time:
            _draw_band(curve, ax, colour, style)
        else:
            beside = (n - (len(panel.curves) - 1) / 2) * BESIDE / len(panel.curves)
            _draw_points(curve, ax, colour, style, n, beside if panel.ticks else None)
    ax.set_xlabel(textwrap.fill(panel.x_axis, AXIS_LETTERS))
    ax.set_ylabel(textwrap.fill(panel.y_axis, AXIS_LETTERS))
    ax.set_ylim(_range(panel))
    if panel.ticks:
        ax.set_xticks(range(len(panel.ticks)), panel.ticks)
        ax.set_xlim(-0.5, len(panel.ticks) - 0.5)


def _range(panel: Lines) -> tuple[float, float]:
    """The ends of the y axis: it has 0, so that differences are seen in proportion."""
    if panel.is_cdf:
        return 0.0, 1.02
    found = [
        end
        for curve in panel.curves
        for each in curve.estimates
        for end in (each.low, each.mean, each.high)
        if end is not None
    ]
    low, high = min([0.0, *found]), max([0.0, *found])
    room = (high - low or 1.0) * 0.06
    return low - (room if low < 0 else 0.0), high + room


def _draw_steps(curve: Curve, ax: Axes, colour: str, style: str) -> None:
    heights = [each.mean or 0.0 for each in curve.estimates]
    ax.step([0.0, *curve.places], [0.0, *heights], style, where="post", color=colour)


def _draw_band(curve: Curve, ax: Axes, colour: str, style: str) -> None:
    means = [float("nan") if each.mean is None else each.mean for each in curve.estimates]
    ax.plot(curve.places, means, style, color=colour)
    known = [
        (x, each.low, each.high)
        for x, each in zip(curve.places, curve.estimates, strict=True)
        if each.low is not None and each.high is not None
    ]
    if known:
        xs, lows, highs = zip(*known, strict=True)
        ax.fill_between(xs, lows, highs, color=colour, alpha=0.2, linewidth=0)


def _draw_points(
    curve: Curve, ax: Axes, colour: str, style: str, n: int, beside: float | None
) -> None:
    """Draw a curve over a key. Over names, its points have no line, and are `beside` the place."""
    known = [
        (x + (beside or 0.0), each.mean)
        for x, each in zip(curve.places, curve.estimates, strict=True)
        if each.mean is not None
    ]
    ax.plot(
        [x for x, _ in known],
        [mean for _, mean in known],
        linestyle=style if beside is None else "none",
        marker=MARKERS[n % len(MARKERS)],
        color=colour,
    )
    for x, each in zip(curve.places, curve.estimates, strict=True):
        if each.low is not None and each.high is not None:
            ax.vlines(x + (beside or 0.0), each.low, each.high, colors=colour, linewidth=0.8)


def _draw_heat(panel: Heat, ax: Axes) -> None:
    means = [[float("nan") if each is None else each for each in row] for row in panel.means]
    image = ax.imshow(means, cmap="cividis", aspect="auto", origin="lower")
    ax.grid(visible=False)
    ax.set_xticks(range(len(panel.x_names)), panel.x_names)
    ax.set_yticks(range(len(panel.y_names)), panel.y_names)
    ax.set_xlabel(textwrap.fill(panel.x_axis, AXIS_LETTERS))
    ax.set_ylabel(textwrap.fill(panel.y_axis, AXIS_LETTERS))
    low, high = image.get_clim()
    for y, row in enumerate(panel.means):
        for x, mean in enumerate(row):
            if mean is not None:
                is_dark = mean <= (low + high) / 2
                text_colour = "white" if is_dark else "black"
                ax.text(x, y, f"{mean:.3g}", ha="center", va="center", color=text_colour, size=6)
    if panel.name:
        ax.set_title(panel.name, size=7)
    if ax.figure is not None:
        ax.figure.colorbar(image, ax=ax, label=textwrap.fill(panel.axis, AXIS_LETTERS))


def _legend_names(panels: Sequence[Panel], width: str) -> list[str]:
    """The names of the curves, which all panels share; none if there is only one curve."""
    first = panels[0]
    if not isinstance(first, Lines) or len(first.curves) < 2:
        return []
    letters = LEGEND_LETTERS[width] - SAMPLE_LETTERS
    return [textwrap.fill(curve.name, letters) for curve in first.curves]


def _legend_columns(names: Sequence[str], width: str) -> int:
    longest = max(len(line) for name in names for line in name.splitlines()) + SAMPLE_LETTERS
    return max(1, min(len(names), LEGEND_LETTERS[width] // longest))


def _legend_height(names: Sequence[str], width: str) -> float:
    if not names:
        return 0.0
    lines = max(name.count("\n") + 1 for name in names)
    return LEGEND_INCHES * lines * -(-len(names) // _legend_columns(names, width))


def _legend(figure: Figure, names: Sequence[str], width: str) -> None:
    figure.legend(
        figure.axes[0].get_lines(),
        names,
        loc="outside upper center",
        ncols=_legend_columns(names, width),
        frameon=False,
        handlelength=2.5,
    )
