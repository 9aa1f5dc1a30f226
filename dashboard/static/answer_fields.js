// The fields for an answer: a number, a choice, a text or a curve. Each has `node`, `read()` (null
// if it is empty), `write(value)` and `lock(locked)`, and calls `changed` when it is edited.
import { element } from "./app.js";
import { CurvePad } from "./curve_pad.js";

export function answerField(step, changed) {
  if (step.curve) return new CurvePad(step, changed);
  if (step.choice) return choiceField(step, changed);
  return step.text ? textField(step, changed) : numberField(step, changed);
}

// The answer in words, for a prediction that can no longer be changed.
export function inWords(step) {
  if (step.curve) return "the curve above";
  return step.number?.unit ? `${step.answer} ${step.number.unit}` : String(step.answer);
}

function numberField(step, changed) {
  const { unit = "", minimum, maximum } = step.number ?? {};
  const bounded = minimum !== undefined && maximum !== undefined && maximum < 1e6;
  const input = element("input", {
    type: "number",
    step: "any",
    inputmode: "decimal",
    "aria-labelledby": `ask-${step.id}`,
    "aria-describedby": `unit-${step.id}`,
    min: minimum,
    max: maximum,
  });
  input.addEventListener("input", changed);
  const words = [unit, bounded ? `(${minimum} to ${maximum})` : ""].filter(Boolean).join(" ");
  return {
    node: element("div", { class: "unit-box number-answer" }, input, element("span", { id: `unit-${step.id}` }, words)),
    read: () => (input.value.trim() === "" || !Number.isFinite(input.valueAsNumber) ? null : input.valueAsNumber),
    write: (value) => (input.value = value ?? ""),
    lock: (locked) => (input.disabled = locked),
  };
}

function choiceField(step, changed) {
  const boxes = step.choice.map((text) => {
    const radio = element("input", { type: "radio", name: step.id, value: text });
    radio.addEventListener("change", changed);
    return radio;
  });
  const rows = boxes.map((radio, n) => element("label", {}, radio, element("span", {}, step.choice[n])));
  return {
    node: element("div", { class: "choices", role: "radiogroup", "aria-labelledby": `ask-${step.id}` }, ...rows),
    read: () => boxes.find((each) => each.checked)?.value ?? null,
    write: (value) => boxes.forEach((each) => (each.checked = each.value === value)),
    lock: (locked) => boxes.forEach((each) => (each.disabled = locked)),
  };
}

function textField(step, changed) {
  const area = element("textarea", { rows: 4, maxlength: 5000, "aria-labelledby": `ask-${step.id}` });
  area.addEventListener("input", changed);
  return {
    node: area,
    read: () => area.value.trim() || null,
    write: (value) => (area.value = value ?? ""),
    lock: (locked) => (area.readOnly = locked),
  };
}
