// The distribution of completion times of a finished run, with a line for each kind of traffic.
import { $, css } from "./app.js";

const DASHES = ["solid", "dash", "dot"];
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
    line: { shape: "hv", color: css("--ink"), dash: DASHES[n % DASHES.length] },
  }));
  const axis = { gridcolor: css("--grid"), linecolor: css("--grid"), zeroline: false, automargin: true };
  const layout = {
    margin: { l: 46, r: 16, t: 18, b: 36 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { size: 13, color: css("--ink"), family: "system-ui, sans-serif" },
    showlegend: traces.length > 1,
    xaxis: { ...axis, title: { text: "completion time, s" }, type: "log" },
    yaxis: { ...axis, title: { text: "fraction" }, range: [0, 1.02] },
  };
  Plotly.react(plot, traces, layout, CONFIG);
}

document.addEventListener("theme", draw);
if ($("completion")) new ResizeObserver(draw).observe($("completion"));
