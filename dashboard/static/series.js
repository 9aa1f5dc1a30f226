// Work on the series of a chart: thin them, and show them as a table.
import { element, number } from "./app.js";

// An order in which ue2 comes before ue10.
export const naturally = new Intl.Collator("en", { numeric: true }).compare;

const ALONE_PX = 5;

// A line whose points without a neighbour are dots: a line through one point is not drawn.
export function withAlone(trace) {
  const { x, y, connectgaps } = trace;
  if (connectgaps || trace.mode !== "lines" || trace.fill) return trace;
  const known = (n) => y[n] !== null && y[n] !== undefined;
  const sizes = Array.from(x, (_, n) => (known(n) && !known(n - 1) && !known(n + 1) ? ALONE_PX : 0));
  if (!sizes.some(Boolean)) return trace;
  return { ...trace, mode: "lines+markers", marker: { size: sizes, color: trace.line.color, opacity: 1, line: { width: 0 } } };
}

// Keep every peak: of each four points keep the least and the greatest.
export function thin(trace) {
  const x = [],
    y = [];
  for (let i = 0; i < trace.x.length; i += 4) {
    const group = [0, 1, 2, 3].map((j) => i + j).filter((j) => j < trace.x.length);
    const low = group.reduce((a, b) => (trace.y[b] !== null && trace.y[b] < trace.y[a] ? b : a));
    const high = group.reduce((a, b) =>
      trace.y[b] !== null && trace.y[b] > (trace.y[a] ?? -Infinity) ? b : a,
    );
    for (const j of [...new Set([low, high])].sort((a, b) => a - b)) {
      x.push(trace.x[j]);
      y.push(trace.y[j]);
    }
  }
  trace.x = x;
  trace.y = y;
}

// A table with the present, mean, least and greatest value of each line.
export function valueTable(traces) {
  const lines = traces
    .filter((trace) => trace.meta.key.length)
    .sort((a, b) => naturally(a.name, b.name));
  const head = element(
    "tr",
    {},
    element("th", {}, "Line"),
    ...["now", "mean", "minimum", "maximum"].map((text) => element("th", { class: "num" }, text)),
  );
  const rows = lines.map((trace) => {
    const known = trace.y.filter((value) => value !== null);
    const mean = known.reduce((a, b) => a + b, 0) / known.length;
    const cells = known.length
      ? [trace.y.at(-1), mean, Math.min(...known), Math.max(...known)]
      : [null, null, null, null];
    return element(
      "tr",
      {},
      element("td", {}, trace.name),
      ...cells.map((value) => element("td", { class: "num" }, number(value, 3))),
    );
  });
  return element(
    "table",
    {},
    element("caption", { class: "hidden" }, "Values of this chart"),
    element("thead", {}, head),
    element("tbody", {}, ...rows),
  );
}
