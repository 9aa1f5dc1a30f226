// The legend of a chart is text above the plot, so that it never takes the plot's room. Each entry
// is a button that selects its line everywhere.
import { element } from "./app.js";
import { selected, toggle } from "./selection.js";

const SVG = "http://www.w3.org/2000/svg";
const DASHES = { dash: "6 3", dot: "2 3", dashdot: "6 3 2 3", longdash: "9 3", longdashdot: "9 3 2 3" };
const KINDS = ["link", "ap", "user", "sf"];

// A legend without buttons that scrolls can be reached by the keyboard.
const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => makeReachable(target)));

function makeReachable(list) {
  const scrolls = list.scrollHeight > list.clientHeight + 1 || list.scrollWidth > list.clientWidth + 1;
  if (scrolls && !list.querySelector("button")) list.tabIndex = 0;
  else list.removeAttribute("tabindex");
}

export function fillLegend(list, traces, others, transfers = null) {
  const lines = traces.filter(
    (trace) => trace.showlegend !== false && trace.visible !== false && !trace.meta.band,
  );
  lines.sort((a, b) => Boolean(a.meta.of) - Boolean(b.meta.of)); // rates of traces last
  const chosen = selected();
  const key = JSON.stringify([
    lines.map((trace) => [trace.name, trace.line?.color, trace.line?.dash]),
    others,
    chosen,
    transfers && [...transfers.ends],
  ]);
  if (list.dataset.shown === key) return;
  list.dataset.shown = key;
  const rest = others ? [element("li", { class: "muted" }, `grey: ${others} others, least to greatest`)] : [];
  list.replaceChildren(...lines.map((trace) => element("li", {}, entry(trace, chosen, transfers))), ...rest);
  makeReachable(list);
  sizes.observe(list);
}

function entry(trace, chosen, transfers) {
  const [kind, id] = trace.meta.key;
  const finished = kind === "user" ? transfers?.of(id) : "";
  const text = finished ? `${trace.name}, ${finished}` : trace.name;
  const parts = [swatch(trace.line ?? {}), element("b", { title: text }, text)];
  if (!KINDS.includes(kind) || id === "*") return element("span", {}, ...parts);
  const pressed = chosen?.kind === kind && chosen.id === id;
  const made = element("button", { type: "button", "aria-pressed": String(pressed) }, ...parts);
  made.addEventListener("click", () => toggle(kind, id));
  return made;
}

function swatch({ color, dash }) {
  const made = document.createElementNS(SVG, "svg");
  const line = document.createElementNS(SVG, "line");
  for (const [name, value] of Object.entries({ width: 22, height: 8, "aria-hidden": "true" }))
    made.setAttribute(name, value);
  for (const [name, value] of Object.entries({ x1: 0, x2: 22, y1: 4, y2: 4, stroke: color, "stroke-width": 2.5 }))
    line.setAttribute(name, value);
  if (DASHES[dash]) line.setAttribute("stroke-dasharray", DASHES[dash]);
  made.append(line);
  return made;
}
