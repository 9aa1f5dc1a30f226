// Marks of events on charts: a line with a number for a change, a plain line for any other event such
// as a handover, a tick for a decision.
import { css } from "./app.js";
import { finishedAt } from "./transfers.js";

const NEVER_S = 1e7; // behind the end of every run

// `done` is the time from which on the charts are shaded, because all transfers are finished. Marks
// that are closer than `room` in s have one number, such as 2–5.
export function markLayout(marks, colour, done = null, room = 0) {
  const tint = (each) =>
    each.run !== undefined ? colour(each.run) : each.kind === "flip" ? css("--change") : css("--mark");
  return {
    shapes: [
      ...(done === null ? [] : [shade(done)]),
      ...marks.map((each) => ({
        type: "line",
        x0: each.t,
        x1: each.t,
        yref: "paper",
        y0: 0,
        y1: 1,
        line: each.number ? { color: tint(each), width: 1.4 } : { color: tint(each), width: 0.8, dash: "dot" },
      })),
    ],
    annotations: [
      ...(done === null ? [] : [doneText(done)]),
      ...clusters(marks.filter((each) => each.number), room, tint).map((near) => ({
        x: near[0].t,
        y: 1,
        yref: "paper",
        yanchor: "top",
        showarrow: false,
        text: `<b>${near[0].number}${near.length > 1 ? `–${near.at(-1).number}` : ""}</b>`,
        font: { color: css("--card"), size: 11 },
        bgcolor: tint(near[0]),
        borderpad: 2,
        hovertext: near.map((each) => `${each.word}: ${each.title}. ${each.reason}`).join("<br>"),
      })),
    ],
  };
}

function clusters(marks, room, tint) {
  const found = [];
  for (const mark of marks) {
    const before = found.at(-1);
    const near = before && mark.t - before[0].t < room && tint(mark) === tint(before[0]);
    if (near) before.push(mark);
    else found.push([mark]);
  }
  return found;
}

// The text on an axis of which no line has a value.
export function emptyText(axis, live) {
  return {
    xref: "paper",
    x: 0.5,
    yref: `${axis} domain`,
    y: 0.5,
    showarrow: false,
    text: live ? "no values so far" : "no values",
    font: { color: css("--muted"), size: 12 },
  };
}

const shade = (t) => ({
  type: "rect",
  layer: "below",
  x0: t,
  x1: NEVER_S,
  yref: "paper",
  y0: 0,
  y1: 1,
  fillcolor: css("--band"),
  line: { width: 0 },
});

const doneText = (t) => ({
  x: t,
  y: 0.5,
  yref: "paper",
  xanchor: "left",
  xshift: 3,
  textangle: -90,
  showarrow: false,
  text: finishedAt(t),
  font: { color: css("--muted"), size: 11 },
});

export function tickTraces(ticks) {
  if (!ticks.length) return [];
  const color = css("--mark");
  return [
    {
      x: ticks.map((each) => each.t),
      y: ticks.map(() => 0.025),
      yaxis: "y9",
      mode: "markers",
      type: "scatter",
      name: "decisions",
      showlegend: false,
      marker: { symbol: "line-ns-open", size: 8, color, line: { width: 1.2, color } },
      text: ticks.map((each) => `${each.title}: ${each.reason}`),
      hovertemplate: "%{text}<extra></extra>",
      meta: { key: [], colour: -1 },
    },
  ];
}
