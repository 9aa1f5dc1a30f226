// The difference of the lanes of a race: one quantity of all lanes in one chart, below it how far each
// is from the first, and tiles with the same numbers.
import { css, element, number } from "./app.js";
import { runColour } from "./charts.js";
import { tierMbps } from "./tiles.js";

const MOST_POINTS = 4000; // of a lane; with more, every second one is forgotten
const WINDOW_S = 60; // of a race that goes on
const MOST_TILES = 6;

const sum = (owners, field) => {
  const known = Object.values(owners ?? {}).map((each) => each[field]).filter((value) => value !== null && value !== undefined);
  return known.length ? known.reduce((a, b) => a + b, 0) : null;
};

const values = (owners, field) => Object.values(owners ?? {}).flatMap((each) => each[field] ?? []);
const average = (found) => (found.length ? found.reduce((a, b) => a + b, 0) / found.length : null);
const lowest = (found) => (found.length ? Math.min(...found) : null);

// What users notice, over all of them.
const noticed = [
  { field: "waited_s", name: "Completion time", unit: "s", mean: "flows.fct_p50_s", take: average },
  { field: "mos", name: "MOS of calls", unit: "of 4.5", mean: "call.mos", take: lowest },
  { field: "stalled", name: "Videos stood still", unit: "part", mean: null, take: average },
].map((each) => ({ ...each, of: (frame) => each.take(values(frame.user, each.field)) }));

// What can be compared: `of(frame)` is the value in a sample, `mean` its name in a summary.
export function quantities(run) {
  const total = { name: "All users", unit: "Mb/s", mean: "throughput_mbps", of: (frame) => sum(frame.user, "mbps") };
  const tiers = [1, 2].map((tier) => ({ name: `Tier ${tier}`, unit: "Mb/s", mean: `tiers.${tier}`, of: (frame) => tierMbps(frame, tier, run.relayed) }));
  const held = { name: "Held back", unit: "kB", mean: null, of: (frame) => sum(frame.user, "held_back_kb") };
  const names = new Set(run.targets.flatMap((each) => /^user\.([^.]+)\./.exec(each.name)?.[1] ?? []));
  const users = [...names].map((user) => ({ name: user, unit: "Mb/s", mean: `users.${user}.throughput_mbps`, of: (frame) => frame.user?.[user]?.mbps ?? null }));
  const felt = noticed.filter(({ field }) => run.noticing[field]);
  return [total, ...felt, ...(run.has_tiers ? tiers : []), ...(run.multipath.length ? [held] : []), ...users];
}

export class Apart {
  constructor(plot, lanes) {
    Object.assign(this, { plot, lanes, all: [], chosen: 0, points: lanes.map(() => []) });
    new ResizeObserver(() => plot._fullLayout && Plotly.Plots.resize(plot)).observe(plot);
  }

  // Fill the list of quantities; `changed` is called when another one is chosen.
  offer(list, all, changed) {
    this.all = all;
    list.replaceChildren(...all.map(({ name, unit }, n) => element("option", { value: n }, `${name}, ${unit}`)));
    list.addEventListener("change", () => {
      this.chosen = Number(list.value);
      changed();
    });
  }

  add(lane, frame) {
    const points = this.points[lane];
    points.push({ t: frame.t, values: this.all.map(({ of }) => of(frame)) });
    if (points.length > MOST_POINTS) this.points[lane] = points.filter((_, n) => n % 2);
  }

  // The latest time that all lanes have reached that go on.
  common() {
    const going = this.lanes.filter(({ run }) => !run.state.over);
    const times = (going.length ? going : this.lanes).map(({ n }) => this.points[n].at(-1)?.t ?? 0);
    return Math.min(...times);
  }

  // How far a lane is from the first one, at each time that both have.
  differences(lane) {
    const first = new Map(this.points[0].map(({ t, values }) => [t, values[this.chosen]]));
    const both = this.points[lane].filter(({ t, values }) => values[this.chosen] !== null && (first.get(t) ?? null) !== null);
    return { x: both.map(({ t }) => t), y: both.map(({ t, values }) => values[this.chosen] - first.get(t)) };
  }

  draw(live, duration_s, view) {
    if (!window.Plotly || !this.all.length) return;
    const until = Math.max(0, ...this.points.map((points) => points.at(-1)?.t ?? 0));
    const from = live ? Math.max(0, 10 * Math.ceil((until - WINDOW_S) / 10)) : 0;
    const range = view.zoom ?? [from, live ? from + Math.min(WINDOW_S, duration_s || WINDOW_S) : until];
    const others = this.lanes.slice(1);
    const traces = [
      ...this.lanes.map(({ n, letter }) => ({
        name: letter,
        mode: "lines",
        x: this.points[n].map(({ t }) => t),
        y: this.points[n].map(({ values }) => values[this.chosen]),
        line: { color: runColour(n), width: 2 },
        fill: this.lanes.length === 2 && n === 1 ? "tonexty" : "none",
        fillcolor: css("--band"),
        hovertemplate: "%{y:.2f}",
      })),
      ...others.map(({ n, letter }) => ({
        ...this.differences(n),
        name: `${letter} − A`,
        mode: "lines",
        yaxis: "y2",
        line: { color: runColour(n), width: 1.6 },
        fill: others.length === 1 ? "tozeroy" : "none",
        fillcolor: css("--band"),
        hovertemplate: "%{y:+.2f}",
      })),
    ];
    const { unit } = this.all[this.chosen];
    const axis = { gridcolor: css("--grid"), zeroline: false, fixedrange: true };
    Plotly.react(
      this.plot,
      traces,
      {
        margin: { l: 52, r: 20, t: 8, b: 24 },
        showlegend: false,
        hovermode: live ? false : "x unified",
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        font: { color: css("--ink"), size: 12, family: "system-ui, sans-serif" },
        hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") } },
        xaxis: { ...axis, range, anchor: "y2", ticksuffix: " s", showticksuffix: "last" },
        yaxis: { ...axis, title: { text: unit }, rangemode: "tozero", domain: [0.46, 1] },
        yaxis2: { ...axis, title: { text: "− A" }, zeroline: true, zerolinecolor: css("--mark"), domain: [0, 0.38] },
      },
      { displayModeBar: false },
    );
  }

  // Each quantity of each lane and its difference to the first, now or in the mean of the run.
  tiles(box, means) {
    const t = this.common();
    const now = this.points.map((points) => points.findLast((each) => each.t <= t));
    const valueOf = (lane, { mean }, place) => (means ? means[lane][mean] : now[lane]?.values[place]) ?? null;
    const tiles = this.all
      .map((each, place) => ({ ...each, values: this.lanes.map(({ n }) => valueOf(n, each, place)) }))
      .filter(({ values }) => values.some((value) => value !== null))
      .slice(0, MOST_TILES);
    box.setAttribute("aria-label", means ? "Means of the runs" : `At ${number(t, 1)} s`);
    box.replaceChildren(
      element("p", { class: "meta when" }, means ? "Mean of each run" : `Now, at ${number(t, 1)} s`),
      ...tiles.map((each) => this.tile(each)),
    );
  }

  tile({ name, unit, values }) {
    const rows = values.map((value, n) =>
      element(
        "span",
        { class: "row-of-lane" },
        element("b", { class: "letter", style: `--c: ${runColour(n)}` }, this.lanes[n].letter),
        element("span", { class: "value" }, number(value, unit === "kB" ? 0 : 2)),
        element("span", { class: "apart-by" }, n ? by(value, values[0], unit) : ""),
      ),
    );
    return element("div", { class: "tile" }, element("span", { class: "name" }, `${name}, ${unit}`), ...rows);
  }

  // Who carried most, in words.
  outcome(means) {
    const totals = means.map((each, n) => [each.throughput_mbps ?? null, this.lanes[n]]);
    if (totals.some(([value]) => value === null)) return "";
    const [[best, lane], [next, other]] = totals.toSorted(([a], [b]) => b - a);
    const share = next ? ` (${by(best, next, "Mb/s").split(", ")[1]})` : "";
    const words =
      best - next < 0.005
        ? `All users together got the same in ${lane.letter} and ${other.letter}: ${number(best)} Mb/s.`
        : `All users together got most in ${lane.letter}, ${lane.run.label}: ${number(best)} Mb/s on average, ${number(best - next)} more than in ${other.letter}, ${other.run.label}${share}.`;
    return `The race is over. ${words} It is one run of each: Compare in full has all figures.`;
  }
}

function by(value, first, unit) {
  if (value === null || first === null) return "";
  const signed = (x, digits) => `${x < 0 ? "−" : "+"}${number(Math.abs(x), digits)}`;
  const percent = Math.abs(first) > 1e-9 ? ` ${signed((100 * (value - first)) / first, 0)} %` : "";
  return signed(value - first, unit === "kB" ? 0 : 2) + (percent && `,${percent}`);
}
