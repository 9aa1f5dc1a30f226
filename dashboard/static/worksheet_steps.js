// The cards of a worksheet's steps: text, prediction, question and check. Each has `node` and
// `update(step)`. `context.send(path, body)` answers with the step as the server has it now.
import { $, element } from "./app.js";
import { answerField, inWords } from "./answer_fields.js";

const LABELS = { predict: "Predict", run: "Run", question: "Question", check: "Check" };

// The frame of a card: a number, what kind of step it is, and its points.
export function frame(step, n) {
  const points = element("span", { class: "of" });
  const body = element("div", { class: "body" });
  const head = element("h2", {}, element("b", { class: "n" }, String(n)), LABELS[step.kind], points);
  const node = element("section", { class: `card step ${step.kind}`, id: step.id, "aria-label": `Step ${n}: ${LABELS[step.kind]}` }, head, body);
  const worth = (given) => {
    if (!step.points) return "";
    const unit = step.points === 1 ? "point" : "points";
    return given === null || given === undefined ? `${step.points} ${unit}` : `${given} of ${step.points} ${unit}`;
  };
  const state = (name, given) => {
    node.dataset.state = name;
    points.textContent = worth(name === "open" ? null : given);
  };
  return { node, body, state };
}

export class TextStep {
  constructor(step, index) {
    this.node = element("section", { class: "text" });
    const html = $(`text-${index}`); // the server has made it from Markdown, with all else escaped
    if (html) this.node.append(html.content.cloneNode(true));
  }

  update() {}
}

// A prediction or a question: a field, a button, and what the server said about the answer.
class AnswerStep {
  constructor(step, n, context) {
    this.context = context;
    this.step = step;
    this.frame = frame(step, n);
    this.node = this.frame.node;
    this.field = answerField(step, () => this.edited());
    this.button = element("button", { type: "button", class: "primary", onclick: () => this.save() });
    this.saved = element("span", { class: "saved", role: "status" });
    this.below = element("div", { class: "below", "aria-live": "polite" });
    this.frame.body.append(
      element("p", { class: "ask", id: `ask-${step.id}` }, step.ask),
      this.field.node,
      element("p", { class: "actions" }, this.button, this.saved),
      this.below,
    );
    this.failed = false; // the server did not answer when this was to be saved
    this.draft = context.drafts.get(step.id);
    this.field.write(this.draft ?? step.answer);
  }

  get isDraft() {
    return this.draft !== undefined && JSON.stringify(this.draft) !== JSON.stringify(this.step.answer);
  }

  edited() {
    this.failed = false;
    this.draft = this.field.read();
    this.context.drafts.set(this.step.id, this.draft);
    this.show();
  }

  async save() {
    const value = this.field.read();
    if (value === null) {
      this.saved.textContent = "There is nothing to save yet.";
      return;
    }
    this.button.disabled = true;
    this.saved.textContent = "Saving …";
    const found = await this.context.send(`answers/${this.step.id}`, { value });
    this.button.disabled = false;
    this.failed = !found;
    if (found) this.forget();
    showAnswered(this, found);
  }

  forget() {
    this.draft = undefined;
    this.context.drafts.delete(this.step.id);
  }

  update(step) {
    const changed = JSON.stringify(step.answer) !== JSON.stringify(this.step.answer);
    this.step = step;
    if (changed && !this.isDraft) this.field.write(step.answer);
    this.show();
  }

  words() {
    const saved = this.step.answer !== null && this.step.answer !== undefined;
    if (this.failed) return "Not saved."; // until the answer is edited or saved
    if (this.isDraft) return saved ? "Changed, not saved yet." : "Not saved yet.";
    return saved ? "Saved." : "";
  }
}

export class PredictStep extends AnswerStep {
  show() {
    const { step } = this;
    if (step.sealed && this.isDraft) {
      this.forget();
      this.field.write(step.answer);
    }
    const answered = step.answer !== null;
    this.frame.state(answered ? (this.isDraft ? "open" : "saved") : "open", answered ? step.points : null);
    this.field.lock(step.sealed);
    this.button.hidden = step.sealed;
    this.button.textContent = answered ? "Change the prediction" : "Save the prediction";
    const sealed = `Sealed: you predicted ${inWords(step)}.`;
    this.saved.textContent = step.sealed ? sealed : [this.words(), answered && !this.isDraft ? "You can change it until you start the run." : ""].join(" ").trim();
  }
}

export class QuestionStep extends AnswerStep {
  show() {
    const { step } = this;
    const graded = step.text && step.given_points !== null;
    this.frame.state(this.isDraft && step.state !== "passed" ? "open" : graded ? "passed" : step.state, step.given_points ?? null);
    const over = step.state === "passed" || graded;
    this.field.lock(over);
    this.button.hidden = over;
    const wait = this.context.wait(step);
    this.button.disabled = wait > 0;
    this.button.textContent = wait > 0 ? `Wait ${wait} s` : step.text || this.context.hidden() ? "Save the answer" : "Check the answer";
    this.saved.textContent = over ? "" : this.words();
    showOutcome(this.below, step, this.isDraft, this.context);
  }
}

export class CheckStep {
  constructor(step, n, context) {
    this.context = context;
    this.step = step;
    this.frame = frame(step, n);
    this.node = this.frame.node;
    this.button = element("button", { type: "button", class: "primary", onclick: () => this.check() });
    this.below = element("div", { class: "below", "aria-live": "polite" });
    this.frame.body.append(
      element("p", { class: "ask", id: `ask-${step.id}` }, step.ask),
      element("p", { class: "muted" }, looksAt(step.looks_at)),
      element("p", { class: "actions" }, this.button),
      this.below,
    );
  }

  async check() {
    this.button.disabled = true;
    const found = await this.context.send(`checks/${this.step.id}`, {});
    this.button.disabled = false;
    showAnswered(this, found);
  }

  update(step) {
    this.step = step;
    this.show();
  }

  show() {
    const { step } = this;
    this.frame.state(step.state, step.given_points ?? null);
    const wait = this.context.wait(step);
    this.button.hidden = step.state === "passed";
    this.button.disabled = wait > 0;
    this.button.textContent = wait > 0 ? `Wait ${wait} s` : "Check my runs";
    showOutcome(this.below, step, false, this.context);
  }
}

// Show an outcome again; details that were opened stay open.
function showOutcome(box, ...about) {
  const isOpen = box.querySelector("details")?.open ?? false;
  box.replaceChildren(...outcome(...about));
  const details = box.querySelector("details");
  if (details) details.open = isOpen;
}

// Which runs a check looks at, by the numbers of their steps.
function looksAt(steps) {
  if (!steps.length) return "";
  if (steps.length === 1) return `The lab looks at the latest complete run of step ${steps[0]}.`;
  return `The lab looks at the latest complete runs of steps ${steps.slice(0, -1).join(", ")} and ${steps.at(-1)}.`;
}

// Show the step as the server answered it (null: the server refused), then what else has changed.
function showAnswered(card, found) {
  card.update(found?.step ?? card.step);
  card.context.showProgress();
  card.context.refresh();
}

// What the server says about an answer or a check.
function outcome(step, isDraft, context) {
  const parts = [];
  const say = (kind, ...text) => parts.push(element("p", { class: `verdict ${kind}` }, ...text));
  if (step.problem) say("warn", sentence(step.problem));
  else if (step.state === "passed") say("good", element("b", {}, "Right. "), step.why ?? "");
  else if (step.state === "failed" && !isDraft) say("bad", element("b", {}, "Not yet. "), tries(step));
  else if (step.state === "saved" && step.given_points !== null && step.text) say("good", element("b", {}, "Graded. "), step.comment);
  else if (step.state === "saved") say("info", step.text && !context.hidden() ? "Saved. A person will grade it." : `Saved. The result is shown ${context.resultsFrom()}.`);
  if (step.hint && step.state !== "passed") say("info", element("b", {}, "Hint: "), step.hint);
  if (step.figures?.length)
    parts.push(
      element("details", {}, element("summary", {}, "What was measured"),
        element("ul", { class: "figures" }, ...step.figures.map((each) => element("li", { title: each.text }, `${each.label}: `, element("b", {}, `${+each.value.toPrecision(4)} ${each.unit}`))))),
    );
  return parts;
}

const tries = (step) => (step.tries === 1 ? "One try so far." : `${step.tries} tries so far.`);
const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`.replace("..", ".");
