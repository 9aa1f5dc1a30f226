// A run on a page of a class: its charts, which grow while it runs, with predictions drawn over
// them, and what may be changed. The charts are those of the run's own page.
import { api, element, number, toast } from "./app.js";
import { Charts } from "./charts.js";
import { RunLog } from "./class_log.js";
import { controls, refill } from "./controls.js";
import { Stream } from "./stream.js";

const INK = 4; // the palette's black, white on dark pages
const RETRY_MS = 800;
let opened = null; // the run whose stream this page has open

export class LiveRun {
  // `predictions(run)`: [{path, points: [[t, y], ...], name}]. `all`: show all charts at first.
  // `few`: only the charts with predictions, or that of the users if there are none.
  // `onBegun(path)`, `onFrame(frame)` and `onEvent(event)` are for a page that shows more.
  constructor(box, { predictions = () => [], all = false, few = false, onFrame = null, onEvent = null, onLoad = null, onBegun = null } = {}) {
    Object.assign(this, { predictions, all, few, onFrame, onEvent, onLoad, onBegun, id: null });
    this.bar = element("div");
    this.progress = element("div", { class: "progress", "aria-hidden": "true" }, this.bar);
    this.clock = element("span", { class: "meta" });
    this.stopButton = element("button", { type: "button", class: "danger", hidden: true, onclick: () => this.post("stop") }, "Stop");
    this.more = element("button", { type: "button", class: "quiet", hidden: true, onclick: () => this.toggle() }, "All charts");
    this.targets = element("div", { class: "targets", hidden: true });
    this.changes = element("ol", { class: "changes" });
    this.log = new RunLog(() => !this.run.state.over);
    this.charts_ = element("div", { class: "charts" });
    this.head = element("p", { class: "spread run-head" }, this.clock, element("span", {}, this.more, this.stopButton));
    box.replaceChildren(this.progress, this.head, this.targets, this.charts_, this.changes, this.log.node);
    this.charts = new Charts(this.charts_);
    document.addEventListener("visibilitychange", () => this.visible());
    document.addEventListener("shortcut", ({ detail: event }) => {
      if (event.key !== " " || this.run?.state.over !== false) return;
      event.preventDefault();
      this.charts.pause(!this.charts.paused);
    });
  }

  get path() {
    return `/api/class/runs/${encodeURIComponent(this.id)}`;
  }

  // Show a run, or once more the same one.
  async show(id) {
    this.leave();
    this.id = id;
    this.t = 0;
    try {
      this.run = await this.begun(id);
      if (!this.run) return;
      await this.onBegun?.(this.path);
      this.charts.live = !this.run.state.over;
      this.stream = new Stream(this.path, (type, body) => this.arrived(type, body), () => null);
      this.stream.over = this.run.state.over;
      this.drawControls();
      await this.load();
      this.showState();
      this.connect();
    } catch (error) {
      this.clock.textContent = error.message;
    }
  }

  // The run, as soon as it has written something; null if another one is wanted meanwhile.
  async begun(id) {
    while (this.id === id) {
      const found = await api(this.path);
      if (found.duration_s !== null || found.state.over) return found;
      this.clock.textContent = "Starting …";
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
    return null;
  }

  leave() {
    this.stream?.disconnect();
    this.stream = null;
    if (opened === this) opened = null;
  }

  // One stream at a time: a browser has only six connections for all its pages.
  connect() {
    if (!this.stream || this.run.state.over) return;
    if (opened && opened !== this) opened.stream?.disconnect();
    opened = this;
    this.stream.connect();
  }

  visible() {
    if (document.hidden) this.stream?.disconnect();
    else if (opened === this) this.connect();
  }

  async load() {
    const id = this.id;
    const found = await api(`${this.path}/charts`);
    if (this.id !== id) return;
    this.figures = found.figures;
    this.charts.marks = [];
    this.charts.ticks = [];
    this.log.clear();
    this.changes.replaceChildren();
    this.onLoad?.(found);
    for (const event of found.events) this.event(event, true);
    this.draw();
    if (this.stream) this.stream.seq = found.seq;
    if (found.last) this.reached(found.last);
  }

  // Show the charts, with the predictions over them; without `all`, only those that matter here.
  draw() {
    const lines = this.predictions(this.run);
    const has = (figure, path) => figure.figure.data.some((trace) => trace.meta.key.join(".") === path);
    const predicted = (figure) => lines.some((line) => has(figure, line.path));
    const isAny = this.few && this.figures.some(predicted);
    const main = (figure) => predicted(figure) || (figure.name === "users" && !isAny);
    const shown = this.figures.filter((each) => this.all || main(each));
    this.more.hidden = this.all || this.few || shown.length === this.figures.length;
    this.charts.set(shown.map((each) => withLines(each, lines)));
  }

  // The measured line of a figure, {x, y}; null if the run has none.
  measured(path) {
    const traces = [...this.charts.cards.values()].flatMap((card) => card.traces);
    return traces.find((trace) => trace.meta.key.join(".") === path) ?? null;
  }

  toggle() {
    this.all = true;
    this.draw();
  }

  arrived(type, body) {
    if (type === "status") return this.state(body);
    if (type === "event") return this.event(body);
    if (body.t <= this.t) return undefined;
    const unknown = this.charts.append(body);
    this.reached(body);
    if (unknown || !this.charts.cards.size) this.loadSoon();
    return undefined;
  }

  loadSoon() {
    this.loading ??= setTimeout(async () => {
      this.loading = null;
      await this.load().catch(() => null);
    }, 1200);
  }

  event(event, old = false) {
    if (!this.log.add(event)) return;
    this.charts.mark(event);
    this.onEvent?.(event);
    if (event.kind !== "flip" || event.state === "sent") return;
    if (event.ok && event.number)
      this.changes.append(element("li", { value: event.number }, `${number(event.t, 1)} s: ${event.title}`));
    if (old) return;
    if (!event.ok) toast(`${event.title}: ${event.reason}`, true);
    else this.refill();
  }

  async refill() {
    this.run = await api(this.path).catch(() => this.run);
    if (this.targets.children.length) refill(this.run);
  }

  reached(frame) {
    this.t = frame.t;
    this.charts.t = frame.t;
    this.onFrame?.(frame);
    this.showState();
  }

  async state(state) {
    const ended = state.over && !this.run.state.over;
    this.run.state = state;
    if (ended) {
      this.stream.over = true;
      this.leave();
      this.charts.finish();
      await this.load().catch(() => null);
    }
    this.showState();
  }

  showState() {
    const { state, duration_s: total } = this.run;
    this.bar.style.width = state.over ? "100%" : `${Math.min(100, (100 * this.t) / (total || 1))}%`;
    const words = { starting: "Starting …", running: "Running", complete: "Complete", interrupted: "Stopped", failed: "Failed", cut: "Ended without a result" };
    const made = this.run.engine === "sim" ? "simulated" : "in the emulation";
    const slower = (this.run.time_dilation ?? 1) > 1 ? `, ${this.run.time_dilation} times slower than real time` : "";
    const text = `${words[state.status] ?? state.status}: ${number(this.t, 1)} of ${total} s, ${made}${slower}`;
    this.clock.textContent = state.overloaded ? `${text}. The machine was overloaded: do not trust the numbers.` : text;
    this.stopButton.hidden = state.over || !this.mayStop;
    this.targets.hidden = state.over || !this.targets.children.length;
  }

  drawControls() {
    const targets = this.run.targets ?? [];
    this.targets.replaceChildren();
    if (!targets.length || this.run.state.over) return;
    const box = element("div");
    this.targets.append(element("h3", {}, "Change the run while it goes on"), box);
    controls(box, this.run, (target, value) => this.post("flips", { target, value }));
  }

  async post(what, body = {}) {
    try {
      await api(`${this.path}/${what}`, { method: "POST", body });
    } catch (error) {
      toast(error.message, true);
    }
  }
}

// A figure with the predictions of what it shows, on the axes of the line that was predicted.
function withLines(each, lines) {
  const made = lines.flatMap(({ path, points, name }) => {
    const over = each.figure.data.find((trace) => trace.meta.key.join(".") === path);
    if (!over) return [];
    return [
      {
        x: points.map(([t]) => t),
        y: points.map(([, y]) => y),
        name,
        mode: "lines",
        type: "scatter",
        line: { width: 3, dash: "dash" },
        xaxis: over.xaxis,
        yaxis: over.yaxis,
        meta: { key: [], colour: INK },
        hovertemplate: "%{y:.3g}",
      },
    ];
  });
  return { ...each, figure: { ...each.figure, data: [...each.figure.data, ...made] } };
}
