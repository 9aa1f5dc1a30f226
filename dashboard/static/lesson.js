// The suggested changes of a run, and what each change of the run did.
// The server measures: GET /api/runs/ID/changes.
import { $, api, element, number } from "./app.js";

const WINDOW_S = 10; // of a measurement after a change
const AGAIN_MS = 1500; // between two requests while a measurement goes on
const letter = (index) => String.fromCharCode(65 + index);

export class Lesson {
  // `again(change, prediction)` makes a finished run once more, with a change.
  constructor(path, run, transfers, predictions, again) {
    Object.assign(this, { path, run, transfers, predictions, again });
    this.tried = new Map(); // by suggestion: {sent, seq, refused}
    this.clear();
  }

  clear() {
    this.marks = new Map(); // by number of the event: the number of its mark
    this.flips = new Map(); // by number of the message: the event that answers it
    this.changes = [];
    this.open = false; // a measurement goes on
    this.asked = 0;
  }

  // A row of the event log has arrived; rows of marks have their number.
  event(event) {
    if (event.kind !== "flip" || event.state === "sent") return;
    if (event.seq) this.flips.set(event.seq, event);
    if (event.ok) {
      this.marks.set(event.n, event.number);
      this.open = true;
      this.asked = 0;
      this.refreshSoon();
    }
    for (const [index, each] of this.tried) if (each.seq) this.settle(index, each.seq);
  }

  // Show the answer of the run to a suggestion, if it has arrived.
  settle(index, seq) {
    const event = this.flips.get(seq);
    if (event?.ok) this.tried.delete(index);
    else if (event) this.refuse(index, event.reason);
  }

  // The run has reached a time.
  reached() {
    if (this.open && performance.now() - this.asked > AGAIN_MS) this.refresh();
  }

  refreshSoon() {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.refresh();
    }, 100);
  }

  async refresh() {
    this.asked = performance.now();
    this.changes = await api(`${this.path}/changes`).catch(() => this.changes);
    this.open = !this.run.state.over && this.changes.some((each) => !each.is_final);
    this.draw();
  }

  show(run) {
    const ended = run.state.over && !this.run.state.over;
    this.run = run;
    if (ended) this.refresh();
    this.draw();
  }

  draw() {
    const { over } = this.run.state;
    const suggestions = this.run.to_try;
    const states = suggestions.map((each, index) => this.stateOf(index));
    const text = JSON.stringify([suggestions, states, over]);
    if (text !== this.drawn) {
      this.drawn = text;
      const focused = document.activeElement?.closest?.("#try li")?.dataset.index;
      $("try").replaceChildren(
        ...suggestions.map((each, index) => this.item(each, index, states[index])),
      );
      if (focused !== undefined)
        $("try").querySelector(`[data-index="${focused}"] button`)?.focus();
    }
    const made = this.changes.filter((each) => !each.by_scenario || each.t > 0);
    if (!over) made.reverse(); // what has just happened comes first
    $("effects").replaceChildren(...made.map((each) => this.effect(each)));
  }

  stateOf(index) {
    const pending = this.tried.get(index);
    if (pending?.refused) return { kind: "refused", badge: "!", text: pending.refused };
    if (pending) return { kind: "sent", badge: letter(index), text: "Sent to the run …" };
    const { already } = this.run.to_try[index];
    const done = this.changes.findLast((each) => each.suggestion === index);
    if (this.run.state.over && !done)
      return { kind: "idle", badge: letter(index), text: "Not tried: starts a new run." };
    if (!done && this.transfers.doneAt(null) !== null)
      return { kind: "already", badge: letter(index), text: "All transfers have finished: a change has no effect now." };
    if (!done && already)
      return { kind: "already", badge: letter(index), text: "Already so: it would change nothing now." };
    if (!done) return { kind: "idle", badge: letter(index), text: "" };
    const badge = String(this.marks.get(done.n) ?? "");
    const at = `(at ${number(done.t, 1)} s)`;
    return { kind: done.is_final ? "done" : "measuring", badge, text: `${words(done, this.run.state.over)} ${at}` };
  }

  item(each, index, state) {
    const button = element(
      "button",
      { type: "button", class: "press", disabled: each.already && !this.run.state.over, title: `${each.before} (${each.name}, watch ${each.watch})` },
      element("b", { class: "letter" }, state.badge),
      element("span", { class: "words" }, each.before),
    );
    button.addEventListener("click", () => this.send(index));
    const predict = element("button", { type: "button", class: "predict", title: "Draw what you expect, then make the change", "aria-label": `Predict ${letter(index)} first`, hidden: button.disabled }, "Predict first");
    predict.addEventListener("click", () => this.predictions.ask(each, (drawn) => this.send(index, drawn)));
    const result = element("p", { class: "result", role: "status", title: state.text }, short(state.text));
    return element("li", { class: state.kind, "data-index": index }, button, result, predict);
  }

  effect(each) {
    const badge = element("span", { class: "badge" }, String(this.marks.get(each.n) ?? "–"));
    const who = each.by_scenario ? ", by the scenario file" : "";
    return element(
      "li",
      {},
      badge,
      element(
        "div",
        {},
        element("b", { class: "what", title: each.name }, each.words),
        " ",
        element("code", {}, each.name),
        element("span", { class: "muted when" }, ` at ${number(each.t, 1)} s${who}${windows(each)}`),
        element("p", {}, words(each, this.run.state.over)),
        reasons(shownReasons(each, this.run.state.over)),
      ),
    );
  }

  // `drawn` is the curve that was predicted, if any.
  async send(index, drawn = null) {
    const { target, value } = this.run.to_try[index];
    if (this.run.state.over) {
      await this.again({ target, value, at_s: Math.min(WINDOW_S, this.run.duration_s / 3) }, drawn);
      return;
    }
    this.tried.set(index, {});
    this.draw();
    try {
      const { seq } = await api(`${this.path}/flips`, { method: "POST", body: { target, value } });
      this.tried.set(index, { seq });
      if (drawn) this.predictions.keep(drawn, seq);
      this.settle(index, seq); // the event may have been faster than this answer
      this.draw();
    } catch (error) {
      this.refuse(index, error.message);
    }
  }

  refuse(index, reason) {
    // A refused suggestion has no message that could still be answered.
    const text = reason.startsWith("refused") ? reason.slice(9).trim() : reason;
    this.tried.set(index, { refused: `Refused: ${text}` });
    this.draw();
  }
}

const isMeasuring = (change, over) => !over && !change.is_final && change.seconds < WINDOW_S;

// The times of both means of a change.
function windows({ is_measured, windows: [before, after] }) {
  const span = ([from, to]) => `${number(from, 1)} to ${number(to, 1)} s`;
  return is_measured ? ` · ${span(after)} against ${span(before)}` : "";
}

// What explains the effect of a change; nothing while it is being measured.
const shownReasons = (change, over) => (isMeasuring(change, over) ? [] : change.why);

const reasons = (texts) =>
  texts.length ? element("div", { class: "why" }, ...texts.map((text) => element("p", {}, text))) : null;

// One line of a card has no space for what the chart shows: how long the parts are.
const short = (text) => text.replace(/ in the [\d.]+ s after\./, ".");

function words(change, over) {
  if (isMeasuring(change, over) && !change.is_early)
    return `Measuring: ${number(change.seconds, 1)} of ${WINDOW_S} s …`;
  if (over) return change.sentence; // the outcome of the run names the user that changed most
  return [change.sentence, change.also].filter(Boolean).join(" ");
}
