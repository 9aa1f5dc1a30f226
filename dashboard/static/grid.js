// The means of one metric over the keys that compared runs vary: lines, or heat maps.
import { $, api, css, element } from "./app.js";
import { runColour } from "./charts.js";

const CONFIG = { displaylogo: false, displayModeBar: false, responsive: true };
const NO_KEY = "";

export class Grid {
  // `runs` is the part of the address that names them, and `metric` the one that is shown first.
  constructor(runs, metric) {
    Object.assign(this, { runs, metric });
    this.drawn = [];
    for (const id of ["grid-metric", "grid-x", "grid-y"])
      $(id).addEventListener("change", () => this.load());
    document.addEventListener("theme", () => this.restyle());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
  }

  async load() {
    try {
      this.show(await api(`/api/compare/grid?${this.runs}${this.asked()}`));
      $("grid-problem").hidden = true;
    } catch (error) {
      $("grid-problem").textContent = error.message;
      $("grid-problem").hidden = false;
    }
  }

  asked() {
    const keys = [$("grid-x").value, $("grid-y").value].filter(Boolean);
    const by = [...new Set(keys)].map(encodeURIComponent).join(",");
    return `&by=${by}&metric=${encodeURIComponent($("grid-metric").value || this.metric)}`;
  }

  show({ keys, by, metric, metrics, panels }) {
    $("grid").hidden = !by.length;
    const names = Object.entries(keys);
    choose("grid-metric", Object.entries(metrics), metric);
    choose("grid-x", names, by[0]);
    choose("grid-y", [[NO_KEY, "none: draw lines"], ...names.filter(([key]) => key !== by[0])], by[1] ?? NO_KEY);
    this.drawn = panels.map((panel) => ({ panel, plot: element("div", { class: "plot", role: "img", "aria-label": panel.title }) }));
    $("grid-panels").replaceChildren(
      ...this.drawn.map(({ panel, plot }) =>
        element("figure", { class: "chart" }, element("h3", {}, panel.title), plot),
      ),
    );
    this.restyle();
  }

  restyle() {
    for (const { panel, plot } of this.drawn) Plotly.react(plot, panel.data.map(coloured), layoutOf(panel), CONFIG);
  }
}

function choose(id, options, chosen) {
  $(id).replaceChildren(
    ...options.map(([value, text]) => element("option", { value, selected: value === chosen }, text)),
  );
}

function coloured(trace) {
  if (trace.type === "heatmap") return trace;
  return { ...trace, line: { color: runColour(trace.meta), width: 2 } };
}

function layoutOf({ data, xaxis, yaxis }) {
  const axis = { gridcolor: css("--grid"), zerolinecolor: css("--grid"), automargin: true };
  return {
    xaxis: { ...axis, ...xaxis },
    yaxis: { ...axis, ...yaxis },
    font: { color: css("--ink"), family: "system-ui, sans-serif", size: 12 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 56, r: 12, t: 12, b: 44 },
    showlegend: data.length > 1,
    legend: { orientation: "h", y: 1.02, yanchor: "bottom" },
    hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") } },
  };
}
