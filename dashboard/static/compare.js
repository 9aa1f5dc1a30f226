// Compare runs: charts with a line per run, metrics and verdicts.
import { $, api, banners, data, element, number } from "./app.js";
import { Charts, runColour } from "./charts.js";
import { Grid } from "./grid.js";

const docs = data("docs");
const address = new URLSearchParams(location.search);
const mixed = address.get("mixed_scales") === "1";
const batch = address.get("batch");
const named = batch ? `batch=${encodeURIComponent(batch)}` : `runs=${docs.map((doc) => encodeURIComponent(doc.id)).join(",")}`;
const runs = named + (mixed ? "&mixed_scales=1" : "");

function swatches() {
  const styles = ["solid", "dashed", "dotted", "dashed", "dashed", "dotted"];
  for (const each of document.querySelectorAll(".swatch")) {
    each.style.setProperty("--c", runColour(Number(each.dataset.n)));
    each.style.borderTopStyle = styles[each.dataset.n % styles.length];
  }
}

function title({ heading, label, n, rate_scale }) {
  const scale = mixed && !label.includes("rate_scale") ? `, rate scale ${rate_scale}` : "";
  return `${heading} (n = ${n}${scale})`;
}

// Networks without access points have no tiers.
function isShown(metric, all) {
  return !metric.startsWith("tiers.") || all.some((each) => each.startsWith("aps."));
}

function showMetrics(comparison) {
  const all = Object.keys(comparison.metrics);
  const labels = comparison.groups.map((group) => group.label);
  const headings = new Map(comparison.groups.map((group) => [group.label, group.heading]));
  const head = element(
    "tr",
    {},
    element("th", {}, "Metric"),
    ...comparison.groups.map((group) =>
      element("th", { class: "num" }, title(group)),
    ),
  );
  $("metrics").tHead.replaceChildren(head);
  $("metrics").tBodies[0].replaceChildren(
    ...Object.entries(comparison.metrics).filter(([metric]) => isShown(metric, all)).map(([metric, cells]) =>
      element(
        "tr",
        {},
        element("td", { title: metric }, comparison.labels[metric]),
        ...labels.map((label) => {
          const cell = cells[label];
          const interval =
            cell?.low === null || cell?.low === undefined
              ? ""
              : ` [${number(cell.low, 3)}, ${number(cell.high, 3)}]`;
          return element("td", { class: "num" }, `${number(cell?.mean, 3)}${interval}`);
        }),
      ),
    ),
  );
  $("table-card").hidden = false;
  const words = Object.entries(comparison.verdicts).flatMap(([label, each]) =>
    Object.entries(each)
      .filter(([metric]) => isShown(metric, all))
      .map(([metric, text]) => [label, metric, text]),
  );
  const single = comparison.groups.every((group) => group.n === 1);
  const rows = single
    ? [
        element(
          "li",
          {},
          "One run each: not enough runs to tell a difference from chance. Start each with at least five seeds: on the page of its scenario, Several runs.",
        ),
      ]
    : [
        ...comparison.notes.map((text) => element("li", { class: "muted" }, text)),
        ...words.map(([label, metric, text]) =>
          element("li", {}, element("b", {}, `${headings.get(label)}, ${comparison.labels[metric]}: `), text),
        ),
      ];
  $("verdicts")
    .querySelector("ul")
    .replaceChildren(...rows);
  $("verdicts").hidden = !words.length;
}

async function showCharts() {
  const charts = new Charts($("charts"));
  try {
    const { figures, marks } = await api(`/api/compare/charts?${runs}`);
    charts.set(figures);
    for (const mark of marks) charts.mark(mark);
    $("waiting").remove();
  } catch (error) {
    $("waiting").textContent = error.message;
  }
}

async function load() {
  swatches();
  const warnings = docs
    .filter((doc) => doc.verified === false)
    .map((doc) => ["bad", `${doc.label}: Multipath TCP NOT verified.`]);
  try {
    await new Grid(runs, address.get("metric") ?? "").load();
    await showCharts();
    const comparison = await api(`/api/compare?${runs}`);
    showMetrics(comparison);
    warnings.push(...comparison.warnings.map((text) => ["warn", text]));
  } catch (error) {
    warnings.push(["warn", error.message]);
  }
  banners(warnings);
}
document.addEventListener("theme", swatches);

load();
