// What all students of a class predicted: bars for numbers and choices, one line for each curve.
// With a run, its measured figure is drawn over them.
import { css, element, number } from "./app.js";

const CONFIG = { displayModeBar: false, showSendToCloud: false, staticPlot: true };
const EVERY_MS = 1000; // between two drawings while a run goes on

export class ClassPredictions {
  // `measured(path)`: the measured line of a figure, {x, y}, or null. `alone`: nothing else is shown
  // but the question itself.
  constructor(box, { measured = () => null, alone = false } = {}) {
    Object.assign(this, { box, measured, alone, found: [], drawnAt: 0 });
    document.addEventListener("theme", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(box);
  }

  show(found) {
    this.found = found;
    this.box.hidden = !found.length;
    this.plots = found.map(() => element("div", { class: "plot", role: "img" }));
    this.box.replaceChildren(
      ...found.map((each, n) =>
        element(
          "figure",
          { class: "card chart predicted" },
          this.alone ? null : element("h3", { title: each.ask }, each.label ? `Predicted: ${each.label}` : each.ask),
          element("p", { class: "meta" }, `${each.answered} of ${each.seats} seats predicted`),
          element("div", { class: "stage" }, this.plots[n]),
        ),
      ),
    );
    this.draw();
  }

  // Something was measured: draw it soon.
  follow() {
    if (performance.now() - this.drawnAt > EVERY_MS) this.draw();
  }

  draw() {
    if (!window.Plotly) return;
    this.drawnAt = performance.now();
    this.found.forEach((each, n) => {
      const plot = this.plots[n];
      const line = each.path ? this.measured(each.path) : null;
      plot.setAttribute("aria-label", inWords(each));
      const { traces, layout } = each.curves.length ? curves(each, line) : each.bars.some((bar) => bar.label) ? choices(each) : numbers(each, line);
      const { clientWidth: width, clientHeight: height } = plot;
      const font = { ...layout.font, size: this.alone ? 20 : 13 };
      if (width) Plotly.react(plot, traces, { ...layout, font, width, height }, CONFIG);
    });
  }
}

const nameOf = (bar, unit) => bar.label ?? `${bar.from} to ${bar.to}${unit ? ` ${unit}` : ""}`;

function inWords({ bars, curves: drawn, unit, label }) {
  if (drawn.length) return `${drawn.length} drawn predictions of ${label}`;
  return `Predictions: ${bars.filter((bar) => bar.count).map((bar) => `${nameOf(bar, unit)}: ${bar.count}`).join(", ")}`;
}

function layoutOf(more) {
  const axis = { gridcolor: css("--grid"), linecolor: css("--grid"), zeroline: false, fixedrange: true, automargin: true };
  const { xaxis = {}, yaxis = {}, ...rest } = more;
  return {
    margin: { l: 46, r: 16, t: 18, b: 36 },
    showlegend: false,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { size: 13, color: css("--ink"), family: "system-ui, sans-serif" },
    bargap: 0.08,
    ...rest,
    xaxis: { ...axis, ...xaxis },
    yaxis: { ...axis, ...yaxis },
  };
}

const seats = { title: { text: "seats" }, rangemode: "tozero", tickformat: "d" };
const known = ({ y }) => y.filter((value) => value !== null);

function numbers({ bars, unit }, line) {
  const widths = bars.map((bar) => bar.to - bar.from);
  const x = bars.map((bar) => (bar.from + bar.to) / 2);
  const traces = [{ type: "bar", x, y: bars.map((bar) => bar.count), width: widths.map((width) => 0.94 * width), marker: { color: css("--accent") } }];
  const most = Math.max(1, ...bars.map((bar) => bar.count));
  const layout = layoutOf({ xaxis: { title: { text: unit, standoff: 4 } }, yaxis: { ...seats, range: [0, 1.15 * most], dtick: Math.ceil(most / 4) } });
  const values = line ? known(line) : [];
  if (!values.length) return { traces, layout };
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  layout.shapes = [{ type: "line", name: "measured", x0: mean, x1: mean, y0: 0, y1: 1, yref: "paper", line: { color: css("--ink"), width: 3 } }];
  const text = `measured: mean ${number(mean, 1)}${unit ? ` ${unit}` : ""}`;
  const [from, to] = [Math.min(mean, bars[0]?.from ?? mean), Math.max(mean, bars.at(-1)?.to ?? mean)];
  const room = (to - from || 1) / 25;
  layout.xaxis.range = [from - room, to + room];
  const xanchor = mean < (from + to) / 2 ? "left" : "right"; // the text has room there
  layout.annotations = [{ x: mean, y: 1, yref: "paper", yanchor: "bottom", xanchor, showarrow: false, text }];
  return { traces, layout };
}

function choices({ bars }) {
  const rows = [...bars].reverse();
  const traces = [
    { type: "bar", orientation: "h", x: rows.map((bar) => bar.count), y: rows.map((bar) => bar.label), text: rows.map((bar) => String(bar.count)), textposition: "auto", marker: { color: css("--accent") } },
  ];
  return { traces, layout: layoutOf({ xaxis: { ...seats, dtick: Math.ceil(Math.max(1, ...bars.map((bar) => bar.count)) / 4) } }) };
}

function curves({ curves: drawn, unit, duration_s: total }, line) {
  const faint = { color: css("--accent"), width: 1.6 };
  const traces = drawn.map((points) => ({ x: points.map(([t]) => t), y: points.map(([, y]) => y), mode: "lines", line: faint, opacity: Math.max(0.25, 1 / Math.sqrt(drawn.length)) }));
  if (line) traces.push({ x: line.x, y: line.y, mode: "lines", line: { color: css("--ink"), width: 3 } });
  return { traces, layout: layoutOf({ xaxis: { range: [0, total], ticksuffix: " s", showticksuffix: "last" }, yaxis: { title: { text: unit }, rangemode: "tozero" } }) };
}
