// The control panel: a form for every target, with its unit and bounds.
import { element } from "./app.js";

const option = (value, text, selected) => element("option", { value, selected }, text);
const HIDE_UNITS = ["choice", "switch", "1"];
let box, send;

export function controls(into, run, flip) {
  box = into;
  send = flip;
  const groups = Map.groupBy
    ? Map.groupBy(run.targets, (each) => each.group)
    : grouped(run.targets);
  box.replaceChildren(
    ...[...groups].map(([name, targets], n) =>
      element("details", { open: n === 0 }, element("summary", {}, name), ...targets.map(row)),
    ),
  );
}

// Show new values, and other parameters if the strategy has changed; keep what is being typed.
export function refill(run) {
  const names = run.targets.map((each) => each.name).join();
  const shown = [...box.querySelectorAll("form")].map((form) => form.dataset.target).join();
  if (names !== shown) {
    controls(box, run, send);
    return;
  }
  for (const target of run.targets) {
    const form = box.querySelector(`form[data-target="${CSS.escape(target.name)}"]`);
    const field = form.querySelector("input, select");
    const text = written(target.value);
    if (form.dataset.value === text) continue;
    form.dataset.value = text;
    if (document.activeElement !== field) field.value = text;
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
  if (choices.length)
    return element(
      "select",
      about,
      ...choices.map((each) => option(each, each, each === written(value))),
    );
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

function typed(target, input) {
  if (typeof target.value === "boolean") return input.value === "true";
  if (target.choices.length) return input.value;
  return input.value === "" ? null : Number(input.value);
}

function row(target) {
  const id = `t-${target.name.replaceAll(".", "-")}`;
  const input = field(target, id);
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
      title: target.name,
      novalidate: true,
    },
    element("label", { for: id }, target.label),
    element("span", { class: "unit-box" }, input, element("span", {}, unit)),
    element("button", { type: "submit" }, "Set"),
    element(
      "p",
      { class: "help", id: `${id}-help` },
      [target.help.replace("null: unlimited", "leave empty for unlimited"), bounds]
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
