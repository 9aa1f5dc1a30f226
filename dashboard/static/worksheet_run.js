// The card of a run step: what may be chosen, the runs that were made, and the charts of one.
import { element } from "./app.js";
import { LiveRun } from "./class_run.js";
import { frame } from "./worksheet_steps.js";

const STATUS = { waiting: "waits", running: "runs", complete: "complete", interrupted: "stopped", failed: "failed", cut: "failed" };

export class RunStep {
  constructor(step, n, context) {
    this.context = context;
    this.step = step;
    this.frame = frame(step, n);
    this.node = this.frame.node;
    this.fields = Object.entries(step.choose).map(([key, bounds]) => choice(step.id, key, bounds, step.labels[key]));
    this.button = element("button", { type: "button", class: "primary", onclick: () => this.start() });
    this.note = element("p", { class: "note", role: "status" });
    this.runs = element("select", { "aria-label": "Which of the runs is shown", onchange: () => this.pick(this.runs.value) });
    this.stop = element("button", { type: "button", class: "danger", onclick: () => this.context.post(`runs/${this.shown}/stop`) }, "Take out of the queue");
    this.figures = element("div", { class: "live-run", hidden: true });
    this.frame.body.append(
      element("p", { class: "ask" }, step.title),
      facts(step),
      ...this.fields.map((field) => field.node),
      element("p", { class: "actions" }, this.button, this.runs, this.stop),
      this.note,
      this.figures,
    );
    this.live = new LiveRun(this.figures, { predictions: () => context.predictions(step.id) });
    this.live.mayStop = step.by === "student";
    this.shown = null; // the id of the run whose charts are shown
    this.drawn = null;
  }

  async start() {
    const chosen = Object.fromEntries(this.fields.map((field) => [field.key, field.read()]));
    this.button.disabled = true;
    const found = await this.context.send(`runs/${this.step.id}`, { chosen });
    this.button.disabled = false;
    if (found) this.shown = found.run.id;
    this.context.refresh();
  }

  pick(id) {
    this.shown = id;
    this.show();
  }

  update(step) {
    this.step = step;
    const latest = step.runs.at(-1);
    const isNew = latest && !this.seen?.has(latest.id);
    if (isNew || !step.runs.some((each) => each.id === this.shown)) this.shown = latest?.id ?? null;
    this.seen = new Set(step.runs.map((each) => each.id));
    this.show();
  }

  show() {
    const { step } = this;
    const run = step.runs.find((each) => each.id === this.shown);
    const latest = step.runs.at(-1)?.status;
    const done = step.runs.some((each) => each.status === "complete");
    this.frame.state(done ? "passed" : (latest ?? (step.locked ? "locked" : "open")), null);
    this.button.hidden = step.by === "instructor";
    this.button.disabled = Boolean(step.locked);
    this.button.textContent = step.runs.length ? "Run again" : "Run";
    this.button.className = done ? "" : "primary";
    this.showRuns();
    this.stop.hidden = run?.status !== "waiting" || step.by === "instructor";
    this.note.textContent = words(step, run);
    this.note.className = run?.status === "failed" ? "note bad" : "note";
    const begun = run && run.status !== "waiting" && !(run.status === "failed" && run.error);
    this.figures.hidden = !begun;
    const key = begun ? run.id : null;
    if (key === this.drawn) return;
    this.drawn = key;
    if (key) this.live.show(key);
    else this.live.leave();
  }

  showRuns() {
    const { runs } = this.step;
    this.runs.hidden = runs.length < 2;
    const rows = runs.map((each, n) => [each.id, `Run ${n + 1}, ${STATUS[each.status]}${chosenWords(each.chosen, this.step.labels)}`]);
    const text = JSON.stringify(rows);
    if (this.rows !== text) {
      this.rows = text;
      this.runs.replaceChildren(...rows.map(([value, label]) => element("option", { value }, label)));
    }
    this.runs.value = this.shown ?? "";
  }

  // Predictions have been changed: draw them anew.
  redraw() {
    if (this.drawn && this.live.figures) this.live.draw();
  }
}

function words(step, run) {
  if (step.locked && !run) return step.locked;
  if (!run) return step.by === "instructor" ? "The instructor makes this run for all. It appears here." : "";
  if (run.status === "waiting") return run.place ? `It waits: number ${run.place} in the queue.` : "It waits in the queue.";
  if (run.status === "failed") return `It failed. ${run.error}`;
  return run.status === "cut" ? "It was interrupted: the machine stopped. Run it again." : "";
}

const shownValue = (value) => {
  if (typeof value === "boolean") return value ? "on" : "off";
  return Array.isArray(value) && !value.length ? "none" : typeof value === "object" ? JSON.stringify(value) : String(value);
};
const chosenWords = (chosen, labels) => Object.entries(chosen).map(([key, value]) => `, ${labels[key]} ${shownValue(value)}`).join("");

function facts(step) {
  const rows = [
    ["lasts", `${step.duration_s} s`],
    step.strategy ? ["strategy", step.strategy] : null,
    step.engine === "mininet" ? ["engine", "the emulation: a real kernel"] : null,
    ...Object.entries(step.given).map(([key, value]) => [step.labels[key], shownValue(value), key]),
    step.flips.length ? ["you may change", step.flips.map((key) => step.labels[key]).join(", "), step.flips.join(", ")] : null,
  ];
  return element("ul", { class: "run-facts" }, ...rows.filter(Boolean).map(([name, value, key]) => element("li", { title: key }, element("span", {}, name), " ", element("b", {}, value))));
}

// A field for a key that the student may choose, within the bounds of the worksheet.
function choice(step, key, bounds, label) {
  const id = `${step}-${key.replaceAll(".", "-")}`;
  const values = bounds.choices;
  const input = values
    ? element("select", { id }, ...values.map((each, n) => element("option", { value: n }, shownValue(each))))
    : element("input", { id, type: "number", step: "any", min: bounds.minimum, max: bounds.maximum, value: bounds.minimum });
  const help = values ? null : element("span", {}, `${bounds.minimum} to ${bounds.maximum}`);
  return {
    key,
    node: element("div", { class: "field choose" }, element("label", { for: id, title: key }, label), element("div", { class: "unit-box" }, input, help)),
    read: () => (values ? values[Number(input.value)] : input.valueAsNumber),
  };
}
