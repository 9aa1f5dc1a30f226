// The control panel: a form for every target, with its unit and bounds.
import { element } from "./app.js";
import { grouped as inGroups, option } from "./fields.js";

const HIDE_UNITS = ["choice", "switch", "1"];
const DRAG = "In the drawing, drag it, or select it and press the arrow keys (1 m, with Shift 10 m)";
let box,
  send,
  picks = null;

export function controls(into, run, flip) {
  box = into;
  send = flip;
  box.dataset.targets = run.targets.map((each) => each.name).join(" ");
  const groups = Map.groupBy
    ? Map.groupBy(run.targets, (each) => each.group)
    : grouped(run.targets);
  box.replaceChildren(
    element("div", { class: "picked" }),
    ...[...groups].map(([name, targets], n) =>
      element("details", { open: n === 0 }, element("summary", {}, name), ...targets.map(row)),
    ),
  );
  if (picks) pick(picks);
}

// Show the forms of some targets first, and the others below in closed groups. `wanted(target)` says
// which. Returns how many there are.
export function pick(wanted) {
  picks = wanted;
  const first = box.querySelector(".picked");
  const forms = [...box.querySelectorAll("form")];
  const place = new Map(names(box).map((name, n) => [name, n]));
  forms.sort((a, b) => place.get(a.dataset.target) - place.get(b.dataset.target));
  const groups = new Map([...box.querySelectorAll("details")].map((each) => [each.firstChild.textContent, each]));
  let count = 0;
  for (const form of forms) {
    const mine = wanted(form.dataset.target);
    const into = mine ? first : groups.get(form.dataset.group);
    if (mine) count += 1;
    into.append(form);
  }
  for (const each of groups.values()) Object.assign(each, { open: false, hidden: !each.querySelector("form") });
  return count;
}

// The names of all targets, in their order.
const names = (into) => into.dataset.targets.split(" ");

// Show new values, and other parameters if the strategy has changed; keep what is being typed.
export function refill(run) {
  if (run.targets.map((each) => each.name).join(" ") !== box.dataset.targets) {
    controls(box, run, send);
    return;
  }
  for (const target of run.targets) {
    const form = box.querySelector(`form[data-target="${CSS.escape(target.name)}"]`);
    const text = written(target.value);
    if (form.dataset.value === text) continue;
    form.dataset.value = text;
    const texts = target.kind === "place" ? coordinates(target) : [text];
    const fields = [...form.querySelectorAll("input:not([type=range]), select")];
    if (!fields.includes(document.activeElement)) for (const [n, field] of fields.entries()) field.value = texts[n];
    const slider = form.querySelector("[type=range]");
    if (slider) slider.value = text;
    form.classList.remove("fresh");
    requestAnimationFrame(() => form.classList.add("fresh"));
  }
}

function grouped(targets) {
  const groups = new Map();
  for (const each of targets) groups.set(each.group, [...(groups.get(each.group) ?? []), each]);
  return groups;
}

const written = (value) => (value === null || value === undefined ? "" : String(value));

function field(target, id) {
  const { value, choices } = target;
  const about = { id, "aria-describedby": `${id}-help` };
  if (choices.length) {
    const made = (each) => option(each, each, each === written(value));
    return element("select", about, ...inGroups(choices, made, target.meant));
  }
  if (typeof value === "boolean")
    return element("select", about, option("true", "on", value), option("false", "off", !value));
  return element("input", {
    ...about,
    type: "number",
    step: "any",
    min: target.minimum,
    max: target.maximum,
    value: written(value),
    placeholder: target.nullable ? "unlimited" : null,
    required: !target.nullable,
  });
}

// The two fields of a place.
const coordinates = ({ value }) => (value ?? ["", ""]).map(String);

function placeFields(target, id) {
  const { minimum, maximum, nullable } = target;
  const more = { type: "number", step: "any", min: minimum, max: maximum, required: !nullable, "aria-describedby": `${id}-help` };
  const [x, y] = coordinates(target);
  return element(
    "span",
    { class: "place" },
    element("input", { ...more, id, value: x, "aria-label": `x of ${target.label}, m` }),
    element("input", { ...more, value: y, "aria-label": `y of ${target.label}, m` }),
  );
}

function typed(target, input) {
  if (target.kind === "place") {
    const texts = [...input.children].map((each) => each.value);
    return texts.some(Boolean) || !target.nullable ? texts.map((each) => (each === "" ? null : Number(each))) : null;
  }
  if (typeof target.value === "boolean") return input.value === "true";
  if (target.choices.length) return input.value;
  return input.value === "" ? null : Number(input.value);
}

// A station walks away from its access point, or back: its rate falls and rises.
const slides = ({ name }) => /^cell\..+\..+\.rate_mbps$/.test(name);

function slider(target, input) {
  const made = element("input", { type: "range", min: 0.5, max: Math.ceil(1.5 * target.value), step: 0.5, value: target.value, "aria-label": `Slider: ${target.label}` });
  made.addEventListener("input", () => (input.value = made.value));
  made.addEventListener("change", () => send(target.name, Number(made.value)));
  return made;
}

function row(target) {
  const id = `t-${target.name.replaceAll(".", "-")}`;
  const isPlace = target.kind === "place";
  const input = isPlace ? placeFields(target, id) : field(target, id);
  const unit = HIDE_UNITS.includes(target.unit)
    ? ""
    : target.unit === "fraction"
      ? ""
      : target.unit;
  const bounds =
    target.minimum === null
      ? ""
      : ` ${target.minimum} to ${target.maximum}`;
  const form = element(
    "form",
    {
      class: "target",
      "data-target": target.name,
      "data-value": written(target.value),
      "data-group": target.group,
      title: target.name,
      novalidate: true,
    },
    element("label", { for: id }, isPlace ? `${target.label}: x and y` : target.label),
    element("span", { class: "unit-box" }, input, element("span", {}, unit)),
    element("button", { type: "submit" }, "Set"),
    slides(target) ? slider(target, input) : null,
    element(
      "p",
      { class: "help", id: `${id}-help` },
      [target.help.replace("null: unlimited", "leave empty for unlimited").replace("null: it walks", "empty: it walks"), isPlace ? ` ${DRAG}` : "", bounds]
        .filter(Boolean)
        .join("."),
    ),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(target.name, typed(target, input));
  });
  if (input.tagName === "SELECT") {
    form.querySelector("button").hidden = true;
    input.addEventListener("change", () => send(target.name, typed(target, input)));
  }
  return form;
}
