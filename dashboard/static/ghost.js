// An earlier run as faint lines under those of the page. It is chosen from a list on the first chart,
// and the browser keeps the choice with the run.
import { api, css, element, started, toast } from "./app.js";
import { colour } from "./charts.js";
import { differing, settingsOf } from "./run_words.js";

const MOST = 100; // runs in the list
const keyOf = (id) => `ghost ${id}`;
export const keepGhost = (id, ghost) => localStorage.setItem(keyOf(id), ghost);
const pathOf = (id) => `/api/runs/${encodeURIComponent(id)}`;

export class Ghost {
  // `run()` and `charts()` are those of the page.
  constructor(run, charts) {
    Object.assign(this, { run, charts, figures: new Map(), label: "", short: "" }); // both name the chosen run
    this.list = element("select", { class: "ghost", "aria-label": "An earlier run, as faint lines" });
    this.list.addEventListener("change", () => this.choose(this.list.value));
    this.offer([]);
  }

  // Fill the list, and show what was chosen before.
  async load() {
    try {
      const runs = await api(`/api/runs?limit=${MOST}`);
      this.offer(runs.filter(({ id, status }) => id !== this.run().id && status !== "starting"));
      const kept = localStorage.getItem(keyOf(this.run().id));
      if (kept && runs.some(({ id }) => id === kept)) await this.choose(kept);
    } catch (error) {
      toast(error.message, true);
    }
  }

  offer(runs) {
    const [own, others] = [true, false].map((same) => runs.filter(({ scenario }) => (scenario === this.run().scenario) === same));
    const more = differing(runs);
    const option = (each) => element("option", { value: each.id }, nameOf(each, this.run(), more));
    const group = (label, several) => (several.length ? [element("optgroup", { label }, ...several.map(option))] : []);
    this.list.replaceChildren(
      element("option", { value: "" }, "No ghost"),
      ...group("Runs of this scenario", own),
      ...group("Other scenarios", others),
    );
  }

  // Show the lines of a run; without an id, of none.
  async choose(id) {
    try {
      if (id) await this.fetch(id);
      else this.figures.clear();
    } catch (error) {
      this.figures.clear();
      id = "";
      toast(error.message, true);
    }
    this.list.value = id;
    if (id) keepGhost(this.run().id, id);
    else localStorage.removeItem(keyOf(this.run().id));
    this.charts().refresh();
  }

  async fetch(id) {
    const [mine, other] = await Promise.all([this.run().id, id].map((each) => api(pathOf(each))));
    if (other.wire_rates !== mine.wire_rates || other.rate_scale !== mine.rate_scale)
      throw new Error(`Ghost ${id}: it has another rate scale, so its queues differ. Choose a run with the same scale.`);
    const { figures } = await api(`${pathOf(id)}/charts`);
    const elsewhere = other.topology_sha256 === mine.topology_sha256 ? "" : ", another network";
    this.label = `${nameOf(other, mine)}${elsewhere}`;
    this.short = `${settingsOf(other, mine)}${elsewhere}`;
    this.figures = new Map(figures.map(({ name, figure }) => [name, figure.data]));
  }

  // The lines of the ghost in a chart that also has `shown`.
  traces(chart, shown) {
    const keys = new Set(shown.map((each) => each.meta.key.join(" ")));
    const lines = (this.figures.get(chart) ?? []).filter(
      ({ meta, visible }) => meta.key.length && visible !== false && keys.has(meta.key.join(" ")),
    );
    const legend = { x: [], y: [], name: `faint: ${this.short}`, line: { color: css("--mark"), width: 1 }, meta: { key: [], colour: -1 } };
    return lines.length ? [legend, ...lines.map((each) => this.faint(each))] : [];
  }

  faint(trace) {
    return {
      ...trace,
      line: { ...trace.line, color: colour(trace.meta.colour), width: 1.3 },
      opacity: 0.45,
      showlegend: false,
      name: `${trace.name}, ${this.label}`,
      hovertemplate: `${trace.name}, ${this.label}: %{y:.2f}<extra></extra>`,
      meta: { key: [], colour: trace.meta.colour },
    };
  }
}

const nameOf = (doc, run, more) => `${settingsOf(doc, run, more)}, ${started(doc.started)}`;
