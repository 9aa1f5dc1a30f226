// What the captures of a finished run show of each subflow.
import { $, element, number } from "./app.js";

export function showCaptured(subflows) {
  $("captured").hidden = !subflows.length;
  $("captured").querySelector("tbody").replaceChildren(...subflows.map(row));
}

function row(subflow) {
  const numbers = [
    number(subflow.opened_s),
    subflow.handshake_ms === null ? "never" : number(subflow.handshake_ms, 0),
    subflow.segments,
    subflow.retransmitted,
    subflow.reordered,
  ];
  const prios = subflow.prios.map(
    ([t, host, backup]) => `${number(t)} s ${host}: ${backup ? "backup" : "no backup"}`,
  );
  const resets = subflow.resets.map(([t, host]) => `${number(t)} s ${host}`);
  return element(
    "tr",
    {},
    element("td", {}, subflow.user),
    element("td", {}, `${subflow.client}, ${subflow.joins ? "joined" : "first"}`),
    ...numbers.map((each) => element("td", { class: "num" }, String(each))),
    element("td", {}, prios.join("; ")),
    element("td", {}, resets.join("; ")),
  );
}
