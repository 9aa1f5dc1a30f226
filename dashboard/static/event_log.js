// The event log of a run: the latest event is the first row. A page that is open for hours keeps the
// latest events of each kind, and the table has few rows at first.
import { element, number } from "./app.js";
import { keep } from "./event_memory.js";

const ROWS = 40;
const MORE_ROWS = 200; // for each click

export class EventLog {
  // `showAll` is the checkbox; `live()` says whether the run is running.
  constructor(table, showAll, live) {
    this.body = table.tBodies[0];
    Object.assign(this, { table, showAll, live });
    this.about = null; // show only events about one of these; null: about anything
    this.note = element("span", { class: "help" });
    this.older = element("button", { type: "button" }, "Show older events");
    this.older.addEventListener("click", () => {
      this.most += MORE_ROWS;
      this.draw();
    });
    table.parentElement.after(element("p", { class: "older" }, this.older, this.note));
    this.clear();
    showAll.addEventListener("change", () => this.filter(this.about));
  }

  filter(about) {
    this.about = about;
    this.most = ROWS;
    this.draw();
  }

  shows(event) {
    if (event.quiet && !this.showAll.checked) return false;
    return this.about === null || (event.about ?? []).some((name) => this.about.has(name));
  }

  clear() {
    this.events = [];
    this.latest = 0; // the number of the latest event
    this.orders = new Map(); // the last orders about each subject
    this.paths = new Map(); // the present path of each subflow
    this.marks = 0;
    this.replaced = 0; // rows of flips that were sent and then answered
    this.most = ROWS;
    this.draw();
  }

  // Add an event, and number the mark of a change; return false if the log has it already.
  add(event) {
    if (event.n <= this.latest) return false;
    this.latest = event.n;
    if (this.changesNothing(event)) Object.assign(event, { quiet: true, mark: "none" });
    if (event.mark === "line" && event.kind === "flip") event.number = ++this.marks;
    if (event.kind === "flip" && event.seq) this.answered(event.seq);
    keep(this.events, event, this.live());
    if (this.shows(event)) {
      this.body.prepend(row(event));
      if (this.body.rows.length > this.most) this.body.lastElementChild.remove();
    }
    this.showNote();
    return true;
  }

  // A flip has one row, which says that it was sent until it was applied or refused.
  answered(seq) {
    const at = this.events.findLastIndex((each) => each.state === "sent" && each.seq === seq);
    if (at < 0) return;
    this.events.splice(at, 1);
    this.replaced += 1;
    this.body.querySelector(`tr[data-sent="${CSS.escape(seq)}"]`)?.remove();
  }

  // Whether a decision leaves its subject as it is.
  changesNothing(event) {
    const { connection, subflow, path } = event.facts ?? {};
    if (event.kind === "subflow") this.paths.set(`${connection}/${subflow}`, String(path));
    if (!event.subject) return false;
    const { action, path: ordered } = JSON.parse(event.orders);
    if (action === "route" && this.paths.get(event.subject) === String(ordered)) return true;
    const before = this.orders.get(event.subject);
    this.orders.set(event.subject, event.orders);
    return event.orders === before;
  }

  draw() {
    const shown = this.events.filter((event) => this.shows(event)).slice(-this.most);
    this.body.replaceChildren(...shown.reverse().map(row));
    this.showNote();
  }

  showNote() {
    const all = this.events.filter((event) => this.shows(event)).length;
    this.older.hidden = all <= this.body.rows.length;
    this.table.hidden = !all;
    const text =
      this.latest > this.events.length + this.replaced
        ? "Events that are older still are in events.jsonl. This page shows them when the run is over."
        : all
          ? ""
          : this.about
            ? "None of these events is about the selection."
            : "Nobody has changed the run, and no strategy has decided anything.";
    if (this.note.textContent !== text) this.note.textContent = text;
  }
}

function row(event) {
  const badge = event.number ? element("span", { class: "badge" }, String(event.number)) : "";
  return element(
    "tr",
    {
      "data-kind": event.kind,
      "data-sent": event.state === "sent" ? event.seq : null,
      class: event.ok || event.state === "sent" ? "" : "bad",
    },
    element("td", { class: "num" }, badge),
    element("td", { class: "num" }, number(event.t, 1)),
    element("td", {}, event.word),
    element("td", {}, event.title),
    element("td", {}, event.reason),
  );
}
