// Predict first: draw what a suggested change will do before it is made. The drawn curve is shown
// over what comes, and the browser keeps it with the run.
import { css, element, number } from "./app.js";
import { CurvePad } from "./curve_pad.js";

const SPAN_S = 20; // of a prediction, from the change on
const CHARTS = ["users", "tiers"]; // whose lines can be predicted, all in Mb/s
const HEADROOM = 1.6; // of the axis over the greatest rate so far

const keyOf = (id) => `predictions ${id}`;

export class Predictions {
  // `charts()` are those of the page, where the curves are drawn.
  constructor(id, charts) {
    Object.assign(this, { id, charts, at: new Map() });
    this.kept = JSON.parse(localStorage.getItem(keyOf(id)) ?? "[]");
  }

  // A change was answered by the run: from then on its prediction is drawn.
  event(event) {
    if (event.kind !== "flip" || !event.ok || !event.seq) return;
    this.at.set(event.seq, event.t);
    if (this.kept.some((each) => each.seq === event.seq)) this.charts().refresh();
  }

  // `prediction` is of a change that has the number `seq` in this run.
  keep(prediction, seq) {
    this.kept.push({ ...prediction, seq });
    this.save(this.id, this.kept);
    this.charts().refresh();
  }

  // `prediction` is of a change at `t` in another run, which was just started.
  keepFor(id, prediction, t) {
    this.save(id, [{ ...prediction, t }]);
  }

  save(id, kept) {
    localStorage.setItem(keyOf(id), JSON.stringify(kept));
  }

  traces(chart) {
    const mine = this.kept.filter((each) => each.chart === chart);
    return mine.flatMap((each) => {
      const from = each.t ?? this.at.get(each.seq);
      return from === undefined ? [] : [this.trace(each, from)];
    });
  }

  trace({ line, points }, from) {
    return {
      x: points.map(([t]) => from + t),
      y: points.map(([, value]) => value),
      type: "scatter",
      mode: "lines",
      name: `you expected of ${line}`,
      line: { color: css("--ink"), width: 3, dash: "dash" },
      meta: { key: [], colour: -1 },
      hovertemplate: `you expected of ${line}: %{y:.1f}<extra></extra>`,
    };
  }

  // Ask for a curve, and give it to `done`.
  ask({ before, watch_key: watched }, done) {
    const lines = CHARTS.flatMap((chart) => this.linesOf(chart));
    const chosen = lines.find((each) => each.key === watched) ?? lines[0];
    if (!chosen) return;
    const dialog = element("dialog", { class: "predict-first", "aria-labelledby": "ask-predict" });
    const list = element("select", { "aria-label": "What you predict" }, ...lines.map((each, n) =>
      element("option", { value: n, selected: each === chosen }, each.line),
    ));
    const box = element("div");
    const now = element("p", { class: "help" });
    const apply = element("button", { type: "button", disabled: true }, "Make the change");
    const cancel = element("button", { type: "button", class: "quiet" }, "Cancel");
    let pad;
    const show = () => {
      const of = lines[list.value];
      const curve = { duration_s: SPAN_S, maximum: of.maximum, unit: "Mb/s", label: `the rate of ${of.line} in the ${SPAN_S} s after the change` };
      pad = new CurvePad({ id: "predict", curve }, () => (apply.disabled = !pad.read()));
      box.replaceChildren(pad.node);
      apply.disabled = true;
      now.textContent = of.now === null ? "" : `Before the change ${of.line} has ${number(of.now, 1)} Mb/s.`;
    };
    list.addEventListener("change", show);
    cancel.addEventListener("click", () => dialog.close());
    apply.addEventListener("click", () => {
      const { chart, line } = lines[list.value];
      done({ chart, line, points: pad.read() });
      dialog.close();
    });
    dialog.addEventListener("close", () => dialog.remove());
    dialog.append(
      element("h2", {}, "What do you expect?"),
      element("p", { id: "ask-predict" }, before),
      element("div", { class: "row" }, list, now),
      box,
      element("div", { class: "row" }, apply, cancel),
    );
    document.body.append(dialog);
    dialog.showModal();
    show();
  }

  // The lines of a chart that can be predicted.
  linesOf(chart) {
    const traces = (this.charts().cards.get(chart)?.traces ?? []).filter(
      ({ meta, visible, yaxis }) => meta.key.length && visible !== false && (yaxis ?? "y") === "y",
    );
    const most = Math.max(1, ...traces.flatMap((trace) => trace.y));
    return traces.map(({ name, meta, y }) => ({
      chart,
      line: name,
      key: meta.key.join("."),
      maximum: Math.ceil(HEADROOM * most),
      now: y.at(-1) ?? null,
    }));
  }
}
