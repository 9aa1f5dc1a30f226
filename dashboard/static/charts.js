// Draw charts and extend them while a run is running. The server sends the figures; this file
// appends new frames, marks events, redraws and shows tables.
import { fillLegend } from "./chart_legend.js";
import { keep } from "./event_memory.js";
import { emptyText, markLayout, tickTraces } from "./chart_marks.js";
import { attach } from "./chart_time.js";
import { css, element } from "./app.js";
import { bands, emptyAxes, hasMany, heatMap, isRelated, split } from "./many_lines.js";
import { moveLines, windowed } from "./live_lines.js";
import { selected } from "./selection.js";
import { thin, valueTable, withAlone } from "./series.js";
import { dashOf } from "./subflow_style.js";
import { TimeView } from "./time_view.js";

const MOST_POINTS = 1200; // of a line; with more, it is thinned to half
const WINDOW_S = 60; // of a running run; a finished run is shown whole
const STEP_S = 10; // by which the window of a running run moves
const LAID_OUT_MS = 4000; // so long only the lines of a running run move
const NUMBER_SHARE = 0.05; // of a chart's width, for the number of a mark
const SLOWEST_MS = 500; // between two redraws
const FASTEST_MS = 200;
const CONFIG = {
  displaylogo: false,
  showSendToCloud: false,
  scrollZoom: false,
  doubleClick: false, // a double click shows the whole run in all charts
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
};

// Events outside the range are not drawn: a chart that is live for hours has many.
const within = ([from, to] = [-Infinity, Infinity]) => (event) => event.t >= from && event.t <= to;

// The palette is in network.css. -1 is the colour of what has none of its own.
export const colour = (n) => (n < 0 ? "#8b949c" : css(`--c${n}`));

// Compared runs have the colours of users.
const USERS = 16;
export const runColour = (n) => colour(n % USERS);

const copyOf = (trace) => ({ ...trace, x: [...trace.x], y: [...trace.y], line: { ...trace.line } });
const drawnOf = (card) => card.held ?? card.traces;

// The last number of the time axis has the unit, which takes no room of its own.
function unitAtEnd(layout) {
  Object.assign(layout.margin, { r: 20, b: 24 });
  Object.assign(layout.xaxis, { title: "", ticksuffix: " s", showticksuffix: "last" });
}

export class Charts {
  // `view` has the time and the zoom of the page; `related()` what belongs to the selection;
  // `transfers` which users are finished; `slots` puts the charts into their places; `over(name, shown)`
  // are lines that a chart has besides those of `shown`, and that get no samples.
  constructor(
    box,
    { live = false, view = new TimeView(), related = () => null, transfers = null, slots = null, over = () => [] } = {},
  ) {
    this.transfers = transfers;
    this.slots = slots;
    this.box = box;
    this.live = live;
    this.view = view;
    this.related = related;
    this.over = over;
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
      for (const { target } of entries) {
        const { width, height } = target._fullLayout ?? {};
        if (!width || !target.clientWidth || (width === target.clientWidth && height === target.clientHeight))
          continue;
        Plotly.Plots.resize(target);
        target.closest(".chart").card.laid = null;
      }
    });
    view.addEventListener("zoom", () => this.refresh());
    for (const type of ["time", "point"]) view.addEventListener(type, () => this.showCursor());
    document.addEventListener("select", () => this.refresh());
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
      this.hold(card);
      card.layout = each.figure.layout;
      card.dirty = true;
    }
    this.slots?.arrange(this.cards);
    this.restyle();
  }

  card(each) {
    const plot = element("div", {
      class: "plot",
      role: "group",
      "aria-label": `${each.title}. The button Table shows the values.`,
    });
    const table = element("div", {
      class: "scroll",
      role: "region",
      "aria-label": `Values of ${each.title}`,
      tabindex: 0,
      hidden: true,
    });
    const button = element("button", { type: "button", "aria-pressed": "false" }, "Table");
    const heat = element("button", { type: "button", "aria-pressed": "false", hidden: true }, "Heat map");
    const legend = element("ul", { class: "lines", "aria-label": `Lines of ${each.title}` });
    const node = element(
      "figure",
      { class: "card chart", id: `chart-${each.name}` },
      element("header", {}, element("h3", { title: each.explains || null }, each.title), button, heat),
      legend,
      element("div", { class: "stage" }, plot),
      table,
      each.explains ? element("p", { class: "help" }, each.explains) : null,
    );
    const card = {
      node,
      plot,
      table,
      legend,
      heat,
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
    heat.addEventListener("click", () => {
      const wanted = heat.getAttribute("aria-pressed") === "false";
      heat.setAttribute("aria-pressed", String(wanted));
      card.laid = null;
      this.draw(card);
    });
    if (!this.slots) this.box.append(node);
    this.cards.set(each.name, card);
    this.visibility.observe(node);
    this.sizes.observe(plot);
    return card;
  }

  hold(card) {
    card.held = this.paused ? card.traces.map(copyOf) : null;
  }

  append(frame) {
    this.t = frame.t;
    let unknown = false;
    for (const card of this.cards.values()) {
      for (const trace of card.traces) {
        const key = trace.meta.key;
        if (!key.length) continue;
        const value = key.reduce((part, name) => part?.[name], frame);
        trace.x.push(frame.t);
        trace.y.push(value ?? null);
        if (trace.x.length > MOST_POINTS) thin(trace);
        const dash = key[0] === "sf" && frame.sf?.[key[1]] ? dashOf(key[1], frame) : trace.line.dash;
        if (dash !== trace.line.dash) card.laid = null;
        trace.line.dash = dash;
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
    if (event.mark === "line") keep(this.marks, event, this.live);
    else if (event.mark === "tick") keep(this.ticks, event, this.live);
    else return;
    for (const card of this.cards.values()) Object.assign(card, { dirty: true, laid: null });
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
    if (!card.table.hidden) card.table.replaceChildren(valueTable(drawnOf(card)));
    else if (window.Plotly) this.plot(card);
    else return; // Plotly is still loading: the card stays dirty
    card.placeCursor?.();
    card.dirty = false;
  }

  plot(card) {
    const range = this.rangeOf(card);
    const moving = this.live && !this.paused;
    if (moving && this.isLaidOut(card, range) && this.move(card, range)) return;
    this.layOut(card, range);
    card.laid.until = moving ? performance.now() + LAID_OUT_MS : 0;
  }

  isLaidOut({ laid }, range) {
    return laid && performance.now() < laid.until && laid.range === String(range);
  }

  // Move the lines of the last layout; return false if that is not possible.
  move(card, range) {
    return card.laid.asHeatMap || moveLines(card.plot, this.lines(card.laid, range));
  }

  layOut(card, range) {
    const drawn = drawnOf(card);
    card.heat.hidden = !hasMany(drawn);
    const asHeatMap = !card.heat.hidden && card.heat.getAttribute("aria-pressed") === "true";
    const layout = this.layoutOf(card, range, asHeatMap);
    const inside = within(layout.xaxis.range);
    const related = this.related();
    const done = this.transfers?.doneAt(related) ?? null;
    const room = NUMBER_SHARE * (layout.xaxis.range?.[1] - layout.xaxis.range?.[0] || 0);
    Object.assign(layout, markLayout(this.marks.filter(inside), runColour, done, room));
    for (const axis of emptyAxes(drawn)) layout.annotations.push(emptyText(axis, this.live));
    const { shown, others } = split(drawn, related);
    card.laid = { range: String(range), asHeatMap, shown, others, related };
    const over = this.over(card.node.id.replace("chart-", ""), shown);
    const traces = asHeatMap
      ? [heatMap(drawn, css("--bg"), css("--accent"))]
      : [...this.lines(card.laid, range), ...tickTraces(this.ticks.filter(inside)), ...over];
    Plotly.react(card.plot, traces, layout, CONFIG);
    if (!card.cursor) attach(card, this.view, () => this.live);
    const upper = new Set(others.filter((trace) => (trace.yaxis ?? "y") === "y"));
    fillLegend(card.legend, asHeatMap ? [] : [...over, ...shown], upper.size, this.transfers);
  }

  lines({ shown, others, related }, range) {
    const part = (traces) => (this.live ? traces.map((trace) => windowed(trace, range)) : traces);
    return [...bands(part(others), css("--band")), ...this.emphasised(part(shown), related).map(withAlone)];
  }

  // The lines of the selection are wider and the others fade, if the chart has lines of it.
  emphasised(traces, related) {
    if (!selected() || !traces.some((trace) => isRelated(trace, related))) return traces;
    return traces.map((trace) => {
      if (!isRelated(trace, related)) return { ...trace, opacity: 0.22 };
      return trace.meta.of ? trace : { ...trace, line: { ...trace.line, width: 3.4 } };
    });
  }

  showCursor() {
    for (const card of this.cards.values()) if (card.visible) card.placeCursor?.();
  }

  // Redraw all cards; visible ones at once if the charts are paused.
  refresh() {
    for (const card of this.cards.values()) {
      Object.assign(card, { dirty: true, laid: null });
      if (this.paused && card.visible) this.draw(card);
    }
    this.redrawSoon();
  }

  rate() {
    return this.redrawn.filter((at) => performance.now() - at < 5000).length / 5;
  }

  // Paused charts keep the lines of this moment, even when they are drawn again.
  pause(paused) {
    this.paused = paused;
    for (const card of this.cards.values()) this.hold(card);
    this.refresh();
  }

  finish() {
    this.live = false;
    this.refresh();
  }

  restyle() {
    for (const card of this.cards.values())
      for (const trace of [...card.traces, ...(card.held ?? [])]) trace.line.color = colour(trace.meta.colour);
    this.refresh();
  }

  rangeOf({ layout: { xaxis } }) {
    if (this.view.zoom) return [...this.view.zoom];
    if (!this.live || !xaxis.range) return xaxis.range;
    const from = STEP_S * Math.max(0, Math.ceil((this.t - WINDOW_S) / STEP_S));
    return from ? [from, from + WINDOW_S] : [0, Math.min(WINDOW_S, xaxis.range[1])];
  }

  layoutOf(card, range, asHeatMap) {
    const ink = css("--ink"),
      grid = css("--grid");
    const layout = structuredClone(card.layout);
    layout.datarevision = ++card.revision;
    layout.showlegend = false;
    layout.margin = { ...layout.margin, t: 12 };
    if (layout.xaxis.title?.text === "s") unitAtEnd(layout);
    layout.xaxis.range = range;
    layout.xaxis.uirevision = String(this.view.zoom);
    layout.hovermode = asHeatMap ? "closest" : this.live && !this.paused ? false : "x unified";
    layout.hoverlabel = { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: ink } };
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: css("--mark"), activecolor: ink };
    layout.font = { ...layout.font, color: ink, family: "system-ui, sans-serif" };
    for (const axis of ["xaxis", "yaxis", "yaxis2"])
      if (layout[axis])
        Object.assign(layout[axis], { gridcolor: grid, linecolor: grid, zeroline: false, tickangle: 0 });
    for (const axis of ["yaxis", "yaxis2"]) if (layout[axis]) layout[axis].fixedrange = true;
    if (this.ticks.length)
      layout.yaxis9 = {
        overlaying: "y",
        range: [0, 1],
        visible: false,
        fixedrange: true,
        tickmode: "auto",
      };
    if (asHeatMap) {
      for (const axis of ["yaxis2", "yaxis9"]) delete layout[axis];
      Object.assign(layout.xaxis, { anchor: "y" });
      layout.yaxis = { type: "category", fixedrange: true, automargin: true, dtick: 1, domain: [0, 1] };
      layout.yaxis.tickfont = { size: 9 };
    }
    return layout;
  }
}
