"""A page that is live for long: its lines move without a new layout, and it does not grow."""

from __future__ import annotations

import re

import pytest
from test_browser import page, until  # noqa: F401  # the fixture `page`

pytestmark = [pytest.mark.browser, pytest.mark.whole]

CHART = """async ([before, after]) => {
  const { moveLines } = await import('/static/live_lines.js');
  const plot = document.createElement('div');
  document.body.append(plot);
  const layout = () => ({ width: 600, height: 400, margin: { t: 10, b: 30, l: 40, r: 10 },
    xaxis: { range: [0, 60] }, yaxis: { range: [0, 10], domain: [0.5, 1] },
    yaxis2: { range: [0, 4], domain: [0, 0.4], anchor: 'x' } });
  const line = { simplify: false, width: 2 };
  const traces = (rows) => rows.map((each) => ({ type: 'scatter', mode: 'lines',
    ...structuredClone(each), line: { ...line, ...each.line } }));
  const paths = () => [...plot.querySelectorAll('.js-line, .js-fill')].map((each) => each.getAttribute('d'));
  await Plotly.react(plot, traces(before), layout());
  const moved = moveLines(plot, traces(after));
  const own = paths();
  await Plotly.react(plot, traces(after), { ...layout(), datarevision: 1 });
  const laid = paths();
  plot.remove();
  return [moved, own, laid];
}"""
LOG = """async (counts) => {
  const { EventLog } = await import('/static/event_log.js');
  document.body.insertAdjacentHTML('beforeend',
    '<div><div><table id="log-2"><tbody></tbody></table></div></div><input type="checkbox" id="all-2">');
  const table = document.getElementById('log-2');
  const log = new EventLog(table, document.getElementById('all-2'), () => true);
  const found = [];
  let n = 0;
  for (const count of counts) {
    while (n < count) {
      const kind = ++n % 100 === 1 ? 'flip' : 'decision';
      log.add({ n, t: n, kind, word: kind, title: '', reason: '', ok: true, quiet: n % 2 === 0,
        mark: kind === 'flip' ? 'line' : 'tick', about: [] });
    }
    found.push([table.querySelectorAll('*').length, log.events.length, log.marks]);
  }
  return found;
}"""

FLIPS = """async (flips) => {
  const { EventLog } = await import('/static/event_log.js');
  document.body.insertAdjacentHTML('beforeend',
    '<div><div><table id="log-3"><tbody></tbody></table></div></div><input type="checkbox" id="all-3">');
  const table = document.getElementById('log-3');
  const log = new EventLog(table, document.getElementById('all-3'), () => true);
  const rows = () => [...table.tBodies[0].rows].map((each) => [each.cells[0].textContent, each.cells[4].textContent, each.className]);
  return flips.map((each) => {
    log.add({ kind: 'flip', word: 'Change', title: 'x', quiet: false, about: [], ...each });
    const live = rows();
    log.draw();
    return [live, rows(), log.note.textContent];
  });
}"""


def flip(n, seq, state):
    ok = state == "applied"
    mark = "line" if ok else "none"
    return {"n": n, "t": n, "seq": seq, "state": state, "ok": ok, "mark": mark, "reason": state}


def trace(y, **more):
    return {
        "x": list(range(0, 5 * len(y), 5)),
        "y": y,
        "meta": {"key": ["user", "ue1", "mbps"], "colour": 0},
        **more,
    }


def numbers(path):
    """Points of an SVG path of straight lines."""
    x = y = 0.0
    found = []
    for command, text in re.findall(r"([MLHVZ])([^MLHVZ]*)", path):
        values = [float(each) for each in re.findall(r"-?[\d.]+", text)]
        pairs = zip(values[::2], values[1::2], strict=False) if command in "ML" else []
        for x, y in pairs:
            found.append((x, y))
        for value in values if command in "HV" else []:
            x, y = (value, y) if command == "H" else (x, value)
            found.append((x, y))
    return found


BAND = {"meta": {"key": [], "band": True}, "connectgaps": True, "line": {"width": 0}}
BEFORE = [
    trace([1, 2, 1, 2], **BAND),
    trace([5, 6, 5, 6], fill="tonexty", **BAND),
    trace([1, 3, 5, 7, 6]),
    trace([1, 2, 3], line={"shape": "hv"}, yaxis="y2"),
]
AFTER = [
    trace([1, 2, 1, 2, 1, 2, 3], **BAND),
    trace([5, 6, 5, 6, None, 5, 8], fill="tonexty", **BAND),
    trace([2, 3, 5, None, 6, 9, 9.5, 0]),
    trace([1, 2, 3, 1, 4], line={"shape": "hv"}, yaxis="y2"),
]


def corners(paths):
    return [each for path in paths if path for each in numbers(path)]


def test_lines_that_are_moved_are_where_a_new_layout_puts_them(page, address):  # noqa: F811
    page.goto(f"{address}/runs/plain")
    until(page, lambda: page.evaluate("() => Boolean(window.Plotly)"))
    moved, own, laid = page.evaluate(CHART, [BEFORE, AFTER])
    assert moved
    found, expected = (sorted({*corners(each)} - {(0, 0)}) for each in (own, laid))
    assert len(found) > 20
    for corner in expected:
        gap = min(abs(x - corner[0]) + abs(y - corner[1]) for x, y in found)
        assert gap < 0.3, corner
    for corner in found:
        gap = min(abs(x - corner[0]) + abs(y - corner[1]) for x, y in expected)
        assert gap < 0.3, corner

    higher = [*AFTER[:2], trace([1, 3, 5, 7, 11]), AFTER[3]]
    assert page.evaluate(CHART, [BEFORE, higher])[0] is False  # outside the axis
    empty = [*BEFORE[:2], trace([None, None]), BEFORE[3]]
    assert page.evaluate(CHART, [empty, AFTER])[0] is False  # a line appears


def test_the_log_of_a_live_page_does_not_grow(page, address):  # noqa: F811
    page.goto(f"{address}/runs/plain")
    first, second = page.evaluate(LOG, [2000, 4000])
    assert first[:2] == [second[0], second[1] - 20]  # twenty more changes are kept
    assert second[0] < 400
    assert second[1] == 540
    assert second[2] == 40


def test_a_flip_has_one_row_which_says_sent_until_it_was_applied_or_refused(page, address):  # noqa: F811
    page.goto(f"{address}/runs/plain")
    sent, other = ["", "sent", ""], ["", "sent", ""]
    applied, refused = ["1", "applied", ""], ["", "refused", "bad"]
    states = [("1", "sent"), ("2", "sent"), ("1", "applied"), ("2", "refused")]
    flips = [flip(n, seq, state) for n, (seq, state) in enumerate(states, 1)]
    found = page.evaluate(FLIPS, flips)
    rows = [[sent], [other, sent], [applied, other], [refused, applied]]
    assert found == [[each, each, ""] for each in rows]
