// Fields of forms for parameters: a number, a switch, a choice or a text.
import { element } from "./app.js";

export const option = (value, text = value, selected = false) =>
  element("option", { value, selected }, text);

// Options in two groups: those that are meant here, and the others. Without `meant` there is one.
export function grouped(names, made, meant = null) {
  const first = names.filter((each) => meant?.includes(each));
  const others = names.filter((each) => !meant?.includes(each));
  if (!first.length || !others.length) return names.map(made);
  return [
    element("optgroup", { label: "In this scenario" }, ...first.map(made)),
    element("optgroup", { label: "Others" }, ...others.map(made)),
  ];
}

export function input(id, param, value, more = { "aria-describedby": `${id}-help` }) {
  const described = { id, name: param.name, "data-type": param.type, ...more };
  if (param.choices)
    return element(
      "select",
      described,
      ...param.choices.map((each) => option(each, each, String(each) === String(value))),
    );
  if (param.type === "boolean")
    return element(
      "select",
      described,
      option("true", "on", value === true),
      option("false", "off", value === false),
    );
  if (["number", "integer"].includes(param.type))
    return element("input", {
      ...described,
      type: "number",
      min: param.minimum,
      max: param.maximum,
      step: param.type === "integer" ? 1 : "any",
      value,
    });
  return element("input", { ...described, value: value ?? "" });
}

// The value of a field; null for an empty number.
export function typed(field) {
  if (["number", "integer"].includes(field.dataset.type))
    return field.value === "" ? null : Number(field.value);
  return field.dataset.type === "boolean" ? field.value === "true" : field.value;
}

export function bounds(param) {
  const from = param.minimum ?? null,
    to = param.maximum ?? null;
  return from === null && to === null ? "" : ` ${from ?? "…"} to ${to ?? "…"}.`;
}

const UNIT = /_(mbps|ms|s|m|mb|kb|mhz|packets|percent|bytes|per_s)$/;

// The name of a parameter in words; a unit that the form shows beside the field is left out.
export const words = (name, unit = "") => (unit ? name.replace(UNIT, "") : name).replaceAll(/[_.]/g, " ");
