"""A colour or a dash means one thing on the whole page of a run."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from dashboard import charts, palette
from lab.metrics import BUILT_IN
from lab.scenario import loading

CSS = Path(__file__).resolve().parents[2] / "dashboard" / "static" / "network.css"


def luminance(colour):
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def themes():
    """Palettes in the style sheet: light, dark, and dark by preference."""
    found = re.findall(r"--c(\d+): (#[0-9a-f]{6})", CSS.read_text())
    starts = [n for n, (index, _) in enumerate(found) if index == "0"]
    return [[colour for _, colour in found[a:b]] for a, b in pairwise([*starts, len(found)])]


def test_the_style_sheet_has_the_whole_palette_in_both_themes():
    light, dark, preferred = themes()
    assert dark == preferred
    for theme in (light, dark):
        assert len(theme) == len(set(theme)) == len(palette.COLOURS)
    same = [a.lower() == b for a, b in zip(palette.COLOURS, light, strict=True)]
    assert same.count(False) == 1  # yellow is too light for a white page


@pytest.mark.parametrize("theme", [0, 1])
def test_every_colour_of_a_place_is_seen_on_its_page(theme):
    page = (1.0, 0.012)[theme]
    for colour in themes()[theme][len(palette.USERS) :]:
        light, dark = sorted([luminance(colour), page], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3


@pytest.mark.parametrize("name", ["testbed_wifi_lte", "collision_between", "shared_pipe"])
def test_a_colour_is_one_thing_and_a_broken_line_an_additional_subflow(name):
    network = loading.load(name).network
    links = tuple(link.id for link in network.links if link.rate_bps is not None)
    about = charts.About(60.0, network.ids("wifi", "lte"), network.users, network.multipath, links)
    subflows = {
        f"{user}-1/{n}": {"rtt_ms": 1.0, "cwnd": 1, "tier": n}
        for user in network.users
        for n in ((1, 2) if user in network.multipath else (1,))
    }
    means = {}
    for chart in charts.of_run([{"t": 1.0, "sf": subflows}], about):
        for line in chart.lines:
            kind, what, field = line.key
            thing = what.partition("-")[0] if kind == "sf" else what
            assert means.setdefault(line.colour, thing) == thing
            declared = next(m.drawn for m in BUILT_IN if (m.of, m.name) == (kind, field))
            is_additional = declared.dashed or what.endswith("/2")
            assert (line.dash != "solid") == is_additional


def test_subflows_have_solid_first_lines_and_other_dashes():
    dashes = [palette.subflow_dash(palette.subflow_style(n, None)) for n in range(1, 16)]
    assert dashes[0] == "solid"
    assert len(set(dashes[:5])) == 5
    assert dashes[14] != "solid"
