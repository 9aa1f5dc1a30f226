// Draw charts and extend them while a run is running. The server sends the figures; this file
// appends new frames, marks events, redraws and shows tables.
import { dark, element } from "./app.js";
import { thin, valueTable } from "./series.js";

const LIGHT = [
  "#0072B2",
  "#D55E00",
  "#009E73",
  "#CC79A7",
  "#000000",
  "#E69F00",
  "#56B4E9",
  "#8a7f00",
];
const DARK = [
  "#56B4E9",
  "#FF8A3D",
  "#2CC79B",
  "#E79BC4",
  "#F2F2F2",
  "#E69F00",
  "#8ab4f8",
  "#F0E442",
];
const MOST_POINTS = 1200; // of a line; with more, it is thinned to half
const WINDOW_S = 60; // of a running run; a finished run is shown whole
const SLOWEST_MS = 500; // between two redraws
const FASTEST_MS = 200;
const CONFIG = {
  displaylogo: false,
  showSendToCloud: false,
  scrollZoom: false,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
};

export const colour = (n) => (n < 0 ? "#8b949c" : (dark() ? DARK : LIGHT)[n % LIGHT.length]);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export class Charts {
  constructor(box, { live = false } = {}) {
    this.box = box;
    this.live = live;
    this.cards = new Map();
    this.marks = [];
    this.ticks = [];
    this.t = 0;
    this.paused = false;
    this.waitMs = FASTEST_MS;
    this.redrawn = [];
    this.visibility = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) {
          const card = entry.target.card;
          card.visible = entry.isIntersecting;
          if (card.visible && card.dirty) {
            if (this.paused) this.draw(card);
            else this.redrawSoon();
          }
        }
      },
      { rootMargin: "120px" },
    );
    this.sizes = new ResizeObserver((entries) => {
      for (const { target } of entries)
        if (target.layout && target.clientWidth && target.layout.width !== target.clientWidth)
          Plotly.Plots.resize(target);
    });
    document.addEventListener("theme", () => this.restyle());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
  }

  set(figures) {
    const names = new Set(figures.map((each) => each.name));
    for (const [name, card] of this.cards)
      if (!names.has(name)) {
        card.node.remove();
        this.cards.delete(name);
      }
    for (const each of figures) {
      const card = this.cards.get(each.name) ?? this.card(each);
      card.traces = each.figure.data;
      card.layout = each.figure.layout;
      card.dirty = true;
    }
    this.restyle();
  }

  card(each) {
    const plot = element("div", {
      class: "plot",
      role: "img",
      "aria-label": `${each.title}. The button Table shows the values.`,
    });
    const table = element("div", { class: "scroll", hidden: true });
    const button = element("button", { type: "button", "aria-pressed": "false" }, "Table");
    const node = element(
      "figure",
      { class: "card chart", id: `chart-${each.name}` },
      element("header", {}, element("h3", {}, each.title), button),
      plot,
      table,
      each.explains ? element("p", { class: "help" }, each.explains) : null,
    );
    const card = {
      node,
      plot,
      table,
      visible: false,
      dirty: true,
      revision: 0,
      traces: [],
      layout: {},
    };
    node.card = card;
    button.addEventListener("click", () => {
      table.hidden = !table.hidden;
      plot.hidden = !table.hidden;
      button.setAttribute("aria-pressed", String(!table.hidden));
      button.textContent = table.hidden ? "Table" : "Chart";
      this.draw(card);
    });
    this.box.append(node);
    this.cards.set(each.name, card);
    this.visibility.observe(node);
    this.sizes.observe(plot);
    return card;
  }

  append(frame) {
    this.t = frame.t;
    let unknown = false;
    for (const card of this.cards.values()) {
      for (const trace of card.traces) {
        const key = trace.meta.key;
        if (!key.length) continue;
        const value = frame[key[0]]?.[key[1]]?.[key[2]];
        trace.x.push(frame.t);
        trace.y.push(value ?? null);
        if (trace.x.length > MOST_POINTS) thin(trace);
      }
      card.dirty = true;
    }
    const known = new Set(
      [...this.cards.values()].flatMap((card) =>
        card.traces.map((trace) => `${trace.meta.key[0]}/${trace.meta.key[1]}`),
      ),
    );
    for (const kind of ["ap", "user", "sf"])
      for (const name of Object.keys(frame[kind] ?? {}))
        if (!known.has(`${kind}/${name}`)) unknown = true;
    this.redrawSoon();
    return unknown;
  }

  mark(event) {
    if (event.mark === "line") this.marks.push(event);
    else if (event.mark === "tick") this.ticks.push(event);
    else return;
    for (const card of this.cards.values()) card.dirty = true;
    this.redrawSoon();
  }

  redrawSoon() {
    if (this.timer || document.hidden) return;
    this.timer = setTimeout(
      () => {
        this.timer = null;
        this.redraw();
      },
      this.live ? this.waitMs : 0,
    );
  }

  redraw() {
    if (this.paused || !window.Plotly) return;
    const began = performance.now();
    const cards = [...this.cards.values()].filter((card) => card.dirty && card.visible);
    for (const card of cards) this.draw(card);
    if (!cards.length) return;
    const took = performance.now() - began;
    const every = Math.max(FASTEST_MS, Math.min(SLOWEST_MS, took * 2));
    this.waitMs = Math.max(60, every - took);
    this.redrawn = [...this.redrawn.filter((at) => began - at < 5000), began];
  }

  draw(card) {
    if (!card.table.hidden) card.table.replaceChildren(valueTable(card.traces));
    else if (window.Plotly)
      Plotly.react(card.plot, [...card.traces, ...this.tickTrace()], this.layoutOf(card), CONFIG);
    else return; // Plotly is still loading: the card stays dirty
    card.dirty = false;
  }

  // Redraw all cards; visible ones at once if the charts are paused.
  refresh() {
    for (const card of this.cards.values()) {
      card.dirty = true;
      if (this.paused && card.visible) this.draw(card);
    }
    this.redrawSoon();
  }

  rate() {
    return this.redrawn.filter((at) => performance.now() - at < 5000).length / 5;
  }

  pause(paused) {
    this.paused = paused;
    this.refresh();
  }

  finish() {
    this.live = false;
    this.refresh();
  }

  restyle() {
    for (const card of this.cards.values())
      for (const trace of card.traces) trace.line.color = colour(trace.meta.colour);
    this.refresh();
  }

  layoutOf(card) {
    const ink = css("--ink"),
      grid = css("--grid"),
      flip = css("--flip"),
      mark = css("--mark"),
      paper = css("--card");
    const layout = structuredClone(card.layout);
    layout.datarevision = ++card.revision;
    if (this.live && this.t > WINDOW_S) layout.xaxis.range = [this.t - WINDOW_S, this.t];
    else if (this.live && layout.xaxis.range[1] > WINDOW_S) layout.xaxis.range = [0, WINDOW_S];
    layout.hovermode = this.live && !this.paused ? false : "x unified";
    layout.hoverlabel = { bgcolor: paper, bordercolor: css("--line"), font: { color: ink } };
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: mark, activecolor: ink };
    layout.font = { ...layout.font, color: ink, family: "system-ui, sans-serif" };
    for (const axis of ["xaxis", "yaxis", "yaxis2"])
      if (layout[axis])
        Object.assign(layout[axis], { gridcolor: grid, linecolor: grid, zeroline: false });
    const tint = (each) =>
      each.run !== undefined ? colour(each.run) : each.kind === "flip" ? flip : mark;
    layout.shapes = this.marks.map((each) => ({
      type: "line",
      x0: each.t,
      x1: each.t,
      yref: "paper",
      y0: 0,
      y1: 1,
      line: { color: tint(each), width: 1.6, dash: "dot" },
    }));
    layout.annotations = this.marks.map((each) => ({
      x: each.t,
      y: 1,
      yref: "paper",
      yanchor: "top",
      showarrow: false,
      text: `<b>${each.number}</b>`,
      font: { color: paper, size: 11 },
      bgcolor: tint(each),
      borderpad: 2,
      hovertext: `${each.word}: ${each.title}. ${each.reason}`,
    }));
    if (this.ticks.length)
      layout.yaxis9 = {
        overlaying: "y",
        range: [0, 1],
        visible: false,
        fixedrange: true,
        tickmode: "auto",
      };
    return layout;
  }

  tickTrace() {
    if (!this.ticks.length) return [];
    return [
      {
        x: this.ticks.map((each) => each.t),
        y: this.ticks.map(() => 0.025),
        yaxis: "y9",
        mode: "markers",
        type: "scatter",
        name: "decisions",
        showlegend: false,
        marker: {
          symbol: "line-ns-open",
          size: 8,
          color: css("--mark"),
          line: { width: 1.2, color: css("--mark") },
        },
        text: this.ticks.map((each) => `${each.title}: ${each.reason}`),
        hovertemplate: "%{text}<extra></extra>",
        meta: { key: [], colour: -1 },
      },
    ];
  }
}
