// A small drawing of a curve, from its heights in percent at equal distances in time.
import { element } from "./app.js";

const SVG = "http://www.w3.org/2000/svg";

function made(name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

export function sketch(percents) {
  const last = Math.max(1, percents.length - 1);
  const points = percents.map((value, n) => `${((100 * n) / last).toFixed(1)},${100 - value}`).join(" ");
  const svg = made("svg", { viewBox: "-4 -6 108 112", preserveAspectRatio: "none", class: "sketch", "aria-hidden": "true" });
  svg.append(made("polyline", { points, fill: "none", stroke: "currentColor", "stroke-width": 2, "vector-effect": "non-scaling-stroke" }));
  return svg;
}

// The same with axes in words, for an answer that is looked at alone.
export function drawnAnswer(points, { maximum, unit, duration_s: total }) {
  const svg = made("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", class: "sketch", role: "img", "aria-label": points.map(([t, y]) => `${+t.toFixed(1)} s: ${+y.toFixed(2)}`).join(", ") });
  const line = points.map(([t, y]) => `${((100 * t) / total).toFixed(2)},${(100 - (100 * y) / maximum).toFixed(2)}`).join(" ");
  svg.append(made("polyline", { points: line, fill: "none", stroke: "currentColor", "stroke-width": 2.5, "vector-effect": "non-scaling-stroke" }));
  return element("div", { class: "drawn-answer" }, element("span", { class: "top-left" }, `${maximum} ${unit}`), element("span", { class: "bottom-left" }, "0"), svg, element("span", { class: "bottom-right" }, `${total} s`));
}
