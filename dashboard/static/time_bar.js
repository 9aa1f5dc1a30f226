// The scrubber below the charts: it moves the time of the page, replays a finished run, and goes
// from event to event.
import { element, number } from "./app.js";

const SPEEDS = [0.5, 1, 2, 5, 10, 20];
const TICK_MS = 100;

export class TimeBar {
  // `events()` and `reached()` are the events of the run and the time of its latest sample.
  constructor(box, view, { events, reached, duration, live }) {
    Object.assign(this, { box, view, events, reached, duration, live });
    this.range = element("input", { type: "range", min: 0, step: "any", "aria-label": "Time of the page" });
    [this.marks, this.paths] = rail();
    this.zoomed = element("div", { class: "zoomed", "aria-hidden": "true" });
    this.text = element("output");
    this.play = button("Replay", "Replay the run from here", () => this.toggle());
    this.speed = element(
      "select",
      { "aria-label": "Speed of the replay" },
      ...SPEEDS.map((each) => element("option", { value: each, selected: each === 1 }, `${each}×`)),
    );
    this.now = button("Now", "Follow the run", () => this.leave());
    this.whole = button("Whole run", "Show the whole run in all charts", () => view.zoomTo(null));
    box.replaceChildren(
      element(
        "div",
        { class: "keys" },
        button("Event before", "Go to the event before", () => this.step(-1)),
        this.play,
        this.speed,
        button("Next event", "Go to the next event", () => this.step(1)),
      ),
      element("div", { class: "rail" }, this.marks, this.zoomed, this.range),
      element("div", { class: "keys" }, this.text, this.whole, this.now),
    );
    this.range.addEventListener("input", () => {
      this.stop();
      view.go(Number(this.range.value));
    });
    this.range.addEventListener("keydown", (event) => this.keyPressed(event));
    view.addEventListener("time", () => this.show());
    view.addEventListener("zoom", () => this.show());
    this.show();
  }

  end() {
    return this.live() ? Math.max(this.reached(), 1) : Math.max(this.reached(), this.duration() || 1);
  }

  show() {
    const { view } = this;
    const end = this.end();
    const t = view.t ?? this.reached();
    this.range.max = end;
    if (document.activeElement !== this.range || view.t !== null) this.range.value = t;
    this.range.setAttribute("aria-valuetext", `${number(t, 1)} seconds`);
    const behind = this.reached() - t;
    this.text.textContent =
      view.t === null
        ? `${number(t, 1)} s`
        : this.live()
          ? `${number(t, 1)} s, ${number(behind, 0)} s behind`
          : `${number(t, 1)} of ${number(end, 0)} s`;
    this.now.hidden = view.t === null;
    this.now.textContent = this.live() ? "Now" : "End";
    this.whole.hidden = !view.zoom;
    this.play.hidden = this.speed.hidden = this.live();
    this.play.textContent = this.timer ? "Pause" : "Replay";
    this.zoomed.hidden = !view.zoom;
    if (view.zoom) {
      const [from, to] = view.zoom.map((each) => Math.min(100, (100 * each) / end));
      Object.assign(this.zoomed.style, { left: `${from}%`, width: `${Math.max(0.5, to - from)}%` });
    }
    this.showMarks(end);
  }

  showMarks(end) {
    const events = this.events().filter((event) => ["line", "tick"].includes(event.mark));
    const key = `${events.length} ${Math.round(end)}`;
    if (this.marks.dataset.shown === key) return;
    this.marks.dataset.shown = key;
    for (const [mark, path] of Object.entries(this.paths)) {
      const places = events.filter((event) => event.mark === mark).map((event) => (100 * Math.max(0, event.t)) / end);
      path.setAttribute("d", [...new Set(places.map((each) => `M${each.toFixed(1)} 0v1`))].join(""));
    }
  }

  keyPressed(event) {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    this.stop();
    const t = (this.view.t ?? this.reached()) + step * (event.shiftKey ? 5 : 0.5);
    this.view.go(Math.min(this.reached(), Math.max(0, t)));
  }

  step(direction) {
    this.stop();
    const { view } = this;
    const here = view.t ?? (direction > 0 ? -1 : Infinity);
    const times = this.events()
      .filter((event) => !event.quiet)
      .map((event) => event.t);
    const next =
      direction > 0
        ? Math.min(...times.filter((t) => t > here + 1e-6))
        : Math.max(...times.filter((t) => t < here - 1e-6));
    if (Number.isFinite(next)) view.go(next);
  }

  toggle() {
    if (this.timer) {
      this.stop();
      return;
    }
    const start = this.view.t ?? 0;
    let t = start >= this.reached() - 0.1 ? 0 : start;
    let before = performance.now();
    this.timer = setInterval(() => {
      const now = performance.now();
      t += ((now - before) / 1000) * Number(this.speed.value);
      before = now;
      if (t >= this.reached()) this.leave();
      else this.view.go(t, true);
    }, TICK_MS);
    this.view.go(t, true);
  }

  stop() {
    if (!this.timer) return;
    clearInterval(this.timer);
    this.timer = null;
    this.view.go(this.view.t, false);
    this.show();
  }

  leave() {
    clearInterval(this.timer);
    this.timer = null;
    this.view.go(null);
    this.show();
  }
}

// All marks are two paths, so that the page does not grow with the run.
function rail() {
  const made = (name) => document.createElementNS("http://www.w3.org/2000/svg", name);
  const marks = made("svg");
  const attributes = { class: "rail-marks", viewBox: "0 0 100 1", preserveAspectRatio: "none" };
  for (const [name, value] of Object.entries({ ...attributes, "aria-hidden": "true" }))
    marks.setAttribute(name, value);
  const paths = { tick: made("path"), line: made("path") };
  for (const [mark, path] of Object.entries(paths)) path.setAttribute("class", mark);
  marks.append(paths.tick, paths.line);
  return [marks, paths];
}

const button = (text, title, act) =>
  element("button", { type: "button", title, onclick: act }, text);
