// The parts of a run between its changes: a table of means, and what users share in each part.
import { $, element, number } from "./app.js";

const NOTED = 0.03; // of the mean before: a smaller change is not shown

export function showStretches(rows) {
  $("stretches").hidden = rows.length < 2;
  if (rows.length > 1) $("stretches").replaceChildren(table(rows));
  const found = rows.filter((row) => row.limits.length);
  $("limits").hidden = !found.length;
  $("limits").replaceChildren(
    ...found.map((row) =>
      element(
        "li",
        {},
        rows.length > 1 ? element("b", {}, `${span(row)}: `) : "",
        row.limits.join(" "),
      ),
    ),
  );
}

const span = (row) => `${number(row.order ?? row.from, 1)} to ${number(row.to, 1)} s`;

function table(rows) {
  const titles = rows[0].means.map(([label, unit]) => (unit ? `${label}, ${unit}` : label));
  return element(
    "table",
    { class: "stretches" },
    element("caption", {}, caption(rows)),
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        element("th", {}, "Part of the run"),
        ...titles.map((title) => element("th", { class: "num" }, title)),
      ),
    ),
    element("tbody", {}, ...rows.map((row, n) => line(row, rows[n - 1]))),
  );
}

function caption(rows) {
  const texts = ["Means of each whole part of the run, and the change in % against the part before. Shorter times, as below each change, have other means. Users' rates are payload; links count whole frames."];
  if (rows.some((row) => row.order !== null))
    texts.push("After a change of the strategy, the means begin with its first order.");
  if (rows[0].means.some(([label]) => label.endsWith(" occupancy")))
    texts.push("Occupancy says how full the queue of a radio is; 1 is full. A share of the air below is the payload of a station divided by its rate alone, which counts headers too, so the shares add up to less than 100 %.");
  return texts.join(" ");
}

function line(row, before) {
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, row.name, element("small", {}, span(row), row.order === null ? "" : `, first order at ${number(row.order, 1)} s`)),
    ...row.means.map(([, , mean], n) =>
      element("td", { class: "num" }, number(mean), element("small", {}, change(before?.means[n][2], mean))),
    ),
  );
}

function change(before, now) {
  if (before === undefined || before === null || now === null || before < 0.005) return "\u00a0";
  const part = now / before - 1;
  return Math.abs(part) < NOTED ? "same" : `${part > 0 ? "+" : "−"}${Math.round(100 * Math.abs(part))} %`;
}
