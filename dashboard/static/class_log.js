// The log of a run on a page of a class: what was changed, and what the controller decided and why.
import { element } from "./app.js";
import { EventLog } from "./event_log.js";

const COLUMNS = ["Mark", "t (s)", "Event", "What", "Reason"];

// `live()` says whether the run goes on.
export class RunLog extends EventLog {
  constructor(live) {
    const all = element("input", { type: "checkbox" });
    const head = element("thead", {}, element("tr", {}, ...COLUMNS.map((each) => element("th", {}, each))));
    const table = element("table", {}, head, element("tbody"));
    const node = element(
      "details",
      { class: "run-log" },
      element("summary", {}, "Log of this run: changes and decisions"),
      element("label", { class: "help" }, all, " show everything"),
      element("div", { class: "scroll log", role: "region", "aria-label": "Rows of the log", tabindex: 0 }, table),
    );
    super(table, all, live);
    this.node = node;
  }
}
