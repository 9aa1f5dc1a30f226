import { $, api, banners, data, element, number } from "./app.js";
import { Charts, colour } from "./charts.js";

const docs = data("docs");
const runs = docs.map((doc) => encodeURIComponent(doc.id)).join(",");

function swatches() {
  const styles = ["solid", "dashed", "dotted", "dashed", "dashed", "dotted"];
  for (const each of document.querySelectorAll(".swatch")) {
    each.style.setProperty("--c", colour(Number(each.dataset.n)));
    each.style.borderTopStyle = styles[each.dataset.n];
  }
}

function metrics(said) {
  const labels = said.groups.map((group) => group.label);
  const head = element("tr", {}, element("th", {}, "Metric"), ...said.groups.map((group) => element("th", { class: "num" }, `${group.label} (n = ${group.n})`)));
  $("metrics").tHead.replaceChildren(head);
  $("metrics").tBodies[0].replaceChildren(...Object.entries(said.metrics).map(([metric, cells]) => element("tr", {}, element("td", {}, metric), ...labels.map((label) => {
    const cell = cells[label];
    const interval = cell?.low === null || cell?.low === undefined ? "" : ` [${number(cell.low, 3)}, ${number(cell.high, 3)}]`;
    return element("td", { class: "num" }, `${number(cell?.mean, 3)}${interval}`);
  }))));
  $("table-card").hidden = false;
  const words = Object.entries(said.verdicts).flatMap(([label, each]) => Object.entries(each).map(([metric, text]) => [label, metric, text]));
  const single = said.groups.every((group) => group.n === 1);
  const rows = single ? [element("li", {}, "One run each: nobody can tell a difference from chance. Repeat each at least five times, for instance with --repeat 5.")]
    : words.map(([label, metric, text]) => element("li", {}, element("b", {}, `${label}, ${metric}: `), text));
  $("verdicts").querySelector("ul").replaceChildren(...rows);
  $("verdicts").hidden = !words.length;
}

async function load() {
  swatches();
  const warnings = docs.filter((doc) => doc.verified === false).map((doc) => ["bad", `${doc.label}: it was NOT verified to be Multipath TCP.`]);
  try {
    const charts = new Charts($("charts"));
    const { figures, marks } = await api(`/api/compare/charts?runs=${runs}`);
    charts.set(figures);
    for (const mark of marks) charts.mark(mark);
    $("waiting").remove();
    const said = await api(`/api/compare?runs=${runs}`);
    metrics(said);
    warnings.push(...said.warnings.map((text) => ["warn", text]));
  } catch (error) {
    warnings.push(["warn", error.message]);
  }
  banners(warnings);
}
document.addEventListener("theme", swatches);

load();
