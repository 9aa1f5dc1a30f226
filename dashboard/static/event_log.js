// The event log of a run: the latest event is the first row.
import { element, number } from "./app.js";

const MOST_ROWS = 2000;

export class EventLog {
  constructor(table, showAll) {
    this.body = table.tBodies[0];
    this.showAll = showAll; // the checkbox
    this.clear();
    this.about = null; // show only events about one of these; null: about anything
    showAll.addEventListener("change", () => this.filter(this.about));
  }

  filter(about) {
    this.about = about;
    for (const row of this.body.rows) row.hidden = this.hides(row);
  }

  hides(row) {
    if (row.quiet && !this.showAll.checked) return true;
    return this.about !== null && !row.about.some((name) => this.about.has(name));
  }

  clear() {
    this.known = new Set();
    this.orders = new Map(); // the last orders about each subject
    this.marks = 0;
    this.body.replaceChildren();
  }

  // Add an event and number its mark; return false if the log has it already.
  add(event) {
    if (this.known.has(event.n)) return false;
    this.known.add(event.n);
    if (this.changesNothing(event)) Object.assign(event, { quiet: true, mark: "none" });
    if (event.mark === "line") event.number = ++this.marks;
    this.body.prepend(this.row(event));
    while (this.body.rows.length > MOST_ROWS) this.body.lastElementChild.remove();
    return true;
  }

  // Whether a decision leaves its subject as it is.
  changesNothing(event) {
    if (!event.subject) return false;
    const before = this.orders.get(event.subject);
    this.orders.set(event.subject, event.orders);
    return event.orders === before;
  }

  row(event) {
    const badge = event.number ? element("span", { class: "badge" }, String(event.number)) : "";
    const row = element(
      "tr",
      { "data-kind": event.kind, class: event.ok ? "" : "bad" },
      element("td", { class: "num" }, badge),
      element("td", { class: "num" }, number(event.t, 1)),
      element("td", {}, event.word),
      element("td", {}, event.title),
      element("td", {}, event.reason),
    );
    Object.assign(row, { quiet: event.quiet, about: event.about ?? [] });
    row.hidden = this.hides(row);
    return row;
  }
}
