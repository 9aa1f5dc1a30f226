// Charts with many lines show the ones that matter: the greatest, the least and the selected ones.
// The others are a band from their least to their greatest value, or all are a heat map.
import { naturally } from "./series.js";

export const MOST_LINES = 8;
const GREATEST = 4,
  LEAST = 2;
const BINS = 160;

const isLine = (trace) => trace.meta.key.length > 0 && trace.visible !== false;
const isMeasured = (trace) => trace.y.some((value) => value !== null);
const upper = (trace) => (trace.yaxis ?? "y") === "y";

// The axes that have lines, but no value.
export function emptyAxes(traces) {
  const axes = Map.groupBy(traces.filter(isLine), (trace) => trace.yaxis ?? "y");
  return [...axes].filter(([, lines]) => !lines.some(isMeasured)).map(([axis]) => axis);
}

export const hasMany = (traces) =>
  traces.filter((trace) => isLine(trace) && upper(trace)).length > MOST_LINES;

// Whether a line belongs to the selection; `related` maps a kind to the ids that belong to it.
export function isRelated({ meta }, related) {
  const [kind, id] = meta.of ?? meta.key;
  return Boolean(related?.[kind]?.has(id));
}

// Of many rates of traces, only those of the selection are drawn.
function withFewRates(traces, related) {
  if (traces.filter(({ meta }) => meta.of).length <= MOST_LINES) return traces;
  return traces.filter((trace) => !trace.meta.of || isRelated(trace, related));
}

// Return the lines to draw and how many others there are.
export function split(every, related) {
  const traces = withFewRates(every, related);
  if (!hasMany(traces)) return { shown: traces, others: [] };
  const ranked = traces
    .filter((trace) => isLine(trace) && upper(trace) && isMeasured(trace))
    .map((trace) => ({ name: trace.name, mean: mean(trace.y) }))
    .sort((a, b) => b.mean - a.mean);
  const names = new Set([...ranked.slice(0, GREATEST), ...ranked.slice(-LEAST)].map((each) => each.name));
  let room = MOST_LINES;
  for (const trace of traces)
    if (isLine(trace) && upper(trace) && isRelated(trace, related) && room-- > 0) names.add(trace.name);
  const shown = traces.filter((trace) => !isLine(trace) || names.has(trace.name));
  return { shown, others: traces.filter((trace) => isLine(trace) && isMeasured(trace) && !names.has(trace.name)) };
}

// Two traces for each axis: the least and the greatest value of `others`, with the area between.
export function bands(others, colour) {
  const found = [];
  for (const axis of new Set(others.map((trace) => trace.yaxis ?? "y"))) {
    const mine = others.filter((trace) => (trace.yaxis ?? "y") === axis);
    const { x, low, high } = binned(mine);
    const common = {
      x,
      type: "scatter",
      mode: "lines",
      yaxis: axis,
      line: { width: 0, color: colour },
      showlegend: false,
      hoverinfo: "skip",
      connectgaps: true,
      meta: { key: [], colour: -1, band: true },
    };
    found.push({ ...common, y: low }, { ...common, y: high, fill: "tonexty", fillcolor: colour });
  }
  return found;
}

// One row for each line, in natural order from above, and one column for each moment.
export function heatMap(traces, from, to) {
  const lines = traces.filter((trace) => isLine(trace) && upper(trace) && isMeasured(trace));
  lines.sort((a, b) => naturally(b.name, a.name));
  const { x } = binned(lines);
  return {
    type: "heatmap",
    x,
    y: lines.map((trace) => trace.name),
    z: lines.map((trace) => binned([trace], x.length, x[0], x.at(-1)).mean),
    colorscale: [
      [0, from],
      [1, to],
    ],
    zmin: 0,
    colorbar: { thickness: 10, outlinewidth: 0 },
    hovertemplate: "%{y} at %{x:.1f} s: %{z:.3g}<extra></extra>",
    meta: { key: [], colour: -1 },
  };
}

function binned(traces, wanted, first, last) {
  const longest = Math.max(0, ...traces.map((trace) => trace.x.length));
  const count = wanted ?? Math.min(BINS, longest);
  const from = first ?? Math.min(...traces.map((trace) => trace.x[0] ?? Infinity));
  const to = last ?? Math.max(...traces.map((trace) => trace.x.at(-1) ?? -Infinity));
  const width = count > 1 ? (to - from) / (count - 1) : 1;
  const [low, high, mean, sums, counts] = [null, null, null, 0, 0].map((each) =>
    new Array(count).fill(each),
  );
  for (const { x, y } of traces)
    for (let i = 0; i < x.length; i++) {
      if (y[i] === null) continue;
      const bin = Math.min(count - 1, Math.max(0, Math.round((x[i] - from) / (width || 1))));
      low[bin] = low[bin] === null ? y[i] : Math.min(low[bin], y[i]);
      high[bin] = high[bin] === null ? y[i] : Math.max(high[bin], y[i]);
      sums[bin] += y[i];
      counts[bin]++;
    }
  for (let bin = 0; bin < count; bin++) if (counts[bin]) mean[bin] = sums[bin] / counts[bin];
  return { x: low.map((_, bin) => from + bin * width), low, high, mean };
}

function mean(values) {
  const known = values.filter((value) => value !== null);
  return known.length ? known.reduce((a, b) => a + b, 0) / known.length : 0;
}
