// The grid of a class: one row for each seat, one column for each step of a worksheet.
import { data, element } from "./app.js";
import { namesOf } from "./class_link.js";
import { sketch } from "./sketch.js";

const SIGNS = { open: "", passed: "✓", failed: "✗", saved: "●", waiting: "…", running: "▶" };
const WORDS = { open: "open", passed: "passed", failed: "wrong", saved: "saved", waiting: "waits", running: "runs" };
// The columns: the id of a step is a name for its worksheet's file.
const KINDS = { predict: "prediction", run: "run", check: "check", question: "question" };
const asked = data("asked"); // what each step asks, by worksheet and step
const QUIET_MIN = 5; // from here on a seat without progress is marked

export class Grid {
  constructor(table, { look, detail, readmit, free, manage }) {
    Object.assign(this, { table, look, detail, readmit, free, manage, rows: new Map() });
  }

  // `age_min`: how old the grid `found` is.
  draw(found, sheet, age_min) {
    if (!sheet) return;
    this.age_min = age_min;
    if (this.sheet !== sheet.name) this.head(sheet);
    const seats = [...found.seats];
    const kept = new Set(seats.map((each) => each.seat));
    for (const [id, row] of this.rows) if (!kept.has(id)) this.drop(id, row);
    for (const seat of seats) this.row(seat, sheet);
  }

  head(sheet) {
    this.sheet = sheet.name;
    for (const [id, row] of this.rows) this.drop(id, row);
    const steps = sheet.steps.map((step, n) =>
      element("th", { scope: "col", class: "step-head", title: asked[sheet.name]?.[step.id] ?? `${step.kind}: ${step.id}` }, element("button", { type: "button", class: "quiet", title: "Point all at this step", onclick: () => this.look({ worksheet: sheet.name, step: step.id }) }, String(n + 1)), element("small", {}, KINDS[step.kind] ?? step.kind), step.kind === "predict" ? this.showAll(sheet, step) : null),
    );
    this.table.tHead.replaceChildren(
      element("tr", {}, element("th", { scope: "col" }, "Seat"), element("th", { scope: "col", class: "num" }, "Without progress"), ...steps, element("th", { scope: "col", class: "num" }, "Points"), element("th", { scope: "col" }, "Run")),
    );
  }

  showAll(sheet, step) {
    const label = `Show on the wall what all predicted: ${step.id}`;
    return element("button", { type: "button", class: "quiet all-predictions", "aria-label": label, title: label, onclick: () => this.look({ worksheet: sheet.name, step: step.id, predictions: true }) }, "all");
  }

  drop(id, row) {
    row.node.remove();
    this.rows.delete(id);
  }

  row(seat, sheet) {
    const cells = seat.cells[sheet.name];
    const quiet = seat.quiet_min === null ? null : Math.floor(seat.quiet_min + this.age_min);
    const key = JSON.stringify([{ ...seat, quiet_min: quiet }, sheet.name]);
    const before = this.rows.get(seat.seat);
    if (before?.key === key) return;
    const stuck = quiet !== null && quiet >= QUIET_MIN;
    const node = element(
      "tr",
      { class: stuck ? "stuck" : "" },
      element("th", { scope: "row" }, element("i", { class: seat.online ? "dot on" : "dot", title: seat.online ? "on the page" : "not on the page" }), ...this.person(seat), element("span", { class: "hidden" }, seat.online ? "on the page" : "not on the page")),
      element("td", { class: "num quiet-min" }, quiet === null ? "–" : `${quiet} min`),
      ...sheet.steps.map((step) => element("td", { class: "cell-box" }, cells ? this.cell(seat, sheet, step, cells[step.id] ?? "open") : "–")),
      element("td", { class: "num" }, seat.points === null || seat.points === undefined ? "–" : String(seat.points)),
      element("td", {}, seat.latest ? this.run(seat) : ""),
    );
    if (!before) {
      this.table.tBodies[0].append(node);
      this.rows.set(seat.seat, { node, key });
      return;
    }
    const focused = before.node.contains(document.activeElement) ? [...before.node.querySelectorAll("button, a")].indexOf(document.activeElement) : -1;
    before.node.replaceWith(node);
    if (focused >= 0) node.querySelectorAll("button, a")[focused]?.focus();
    Object.assign(before, { node, key });
  }

  person(seat) {
    const names = namesOf(seat);
    const more = element("button", { type: "button", class: "quiet free", title: "Merge or remove this seat", "aria-label": `Merge or remove: ${names}`, onclick: () => this.manage(seat) }, "⋯");
    if (seat.left) return [element("span", { class: "name" }, names), element("small", { class: "meta", title: "The seat was freed; its work stays in the grades" }, " left"), more];
    return [
      element("button", { type: "button", class: "quiet name", title: "A new PIN, for another computer", onclick: () => this.readmit(seat) }, names),
      element("button", { type: "button", class: "quiet free", title: "Free this seat", "aria-label": `Free this seat: ${names}`, onclick: () => this.free(seat) }, "Free"),
      more,
    ];
  }

  // The run that goes on, or the last one that has ended.
  run(seat) {
    const { running, latest } = seat;
    const run = running ?? latest;
    const who = namesOf(seat);
    return element(
      "span",
      { class: "actions" },
      element("a", { href: `/class/runs/${encodeURIComponent(run)}`, "aria-label": `${running ? "watch" : "last run"}: ${who}` }, running ? "watch" : "last run"),
      element("button", { type: "button", "aria-label": `look here: ${who}`, title: "Show it to all, with what was predicted", onclick: () => this.look({ run }) }, "look here"),
    );
  }

  cell(seat, sheet, step, state) {
    const label = `${namesOf(seat)}, ${step.id}: ${WORDS[state] ?? state}`;
    const drawn = seat.drawn[sheet.name]?.[step.id];
    return element("button", { type: "button", class: `cell ${state}`, "aria-label": label, title: label, onclick: () => this.detail(seat, sheet, step) }, drawn ? sketch(drawn) : (SIGNS[state] ?? "?"));
  }
}
