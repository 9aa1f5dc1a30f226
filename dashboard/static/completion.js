// The distribution of completion times of a finished run, with a line for each kind of traffic.
import { $, css } from "./app.js";

// Colours of the palette that users have only from the ninth on.
const FIRST_COLOUR = 8,
  COLOURS = 8;
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const STEPS = [[1, 3], [1, 2, 3, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]]; // of a decade of the axis
const FEWEST_TICKS = 3;
const DECADES = [-5, 5]; // in s
const CONFIG = { displayModeBar: false, showSendToCloud: false, staticPlot: true };
let shown = {};

// `kinds` maps each kind of traffic to points [time in s, fraction of its transfers].
export function showCompletion(kinds) {
  shown = kinds;
  const box = $("completion");
  if (!box) return;
  box.hidden = !Object.values(kinds).some((points) => points.length);
  draw();
}

function draw() {
  const plot = $("completion")?.querySelector(".plot");
  if (!plot || !window.Plotly || !plot.clientWidth) return;
  const traces = Object.entries(shown).map(([kind, points], n) => ({
    x: points.map(([time]) => time),
    y: points.map(([, fraction]) => fraction),
    name: kind,
    mode: "lines",
    line: { shape: "hv", color: css(`--c${FIRST_COLOUR + (n % COLOURS)}`), dash: DASHES[n % DASHES.length] },
  }));
  const axis = { gridcolor: css("--grid"), linecolor: css("--grid"), zeroline: false, automargin: true };
  const layout = {
    margin: { l: 46, r: 16, t: 18, b: 36 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { size: 13, color: css("--ink"), family: "system-ui, sans-serif" },
    showlegend: traces.length > 1,
    xaxis: { ...axis, title: { text: "completion time, s" }, type: "log", ...ticks(traces.flatMap(({ x }) => x)) },
    yaxis: { ...axis, title: { text: "fraction" }, range: [0, 1.02] },
  };
  Plotly.react(plot, traces, layout, CONFIG);
}

// The ticks of a logarithmic axis over some times: 0.1, 0.3, 1, 3, more of them if few are in its range.
export function ticks(times) {
  const known = times.filter((time) => time > 0);
  const [from, to] = [Math.min(...known), Math.max(...known)];
  const made = (steps) => {
    const all = [];
    for (let n = DECADES[0]; n <= DECADES[1]; n++) all.push(...steps.map((each) => Number(`${each}e${n}`)));
    return all;
  };
  const inside = (all) => all.filter((each) => each >= from && each <= to).length;
  const tickvals = made(STEPS.find((steps) => inside(made(steps)) >= FEWEST_TICKS) ?? STEPS.at(-1));
  return { tickmode: "array", tickvals, ticktext: tickvals.map(String) };
}

document.addEventListener("theme", draw);
if ($("completion")) new ResizeObserver(draw).observe($("completion"));
