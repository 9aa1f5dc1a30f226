// The list of runs: search, compare, remove.
import { $, api, element, number, pill, started, toast, verified } from "./app.js";
import { isOfBatch, refreshBatches } from "./batches.js";
import { differing } from "./run_words.js";

const MOST = 1000;
const selected = new Set();
let shown = "";

// Networks without access points have no tiers.
const tier = (doc, which) => number(Object.keys(doc.aps ?? {}).length ? doc.tiers?.[which] : null);

function row(doc, more) {
  const box = element("input", {
    type: "checkbox",
    checked: selected.has(doc.id),
    "aria-label": `select ${doc.id}`,
  });
  box.addEventListener("change", () => {
    if (box.checked) selected.add(doc.id);
    else selected.delete(doc.id);
    buttons();
  });
  return element(
    "tr",
    {},
    element("td", {}, box),
    element(
      "td",
      {},
      element("a", { href: `/runs/${doc.id}` }, doc.scenario || doc.id),
      element("br"),
      element("code", {}, doc.id),
    ),
    element(
      "td",
      {},
      doc.strategy,
      element("div", { class: "meta" }, [...more.get(doc.id), doc.cc, doc.duration_s && `${doc.duration_s} s`].filter(Boolean).join(", ")),
      doc.changed ? element("div", { class: "scale changed" }, doc.changed) : null,
    ),
    element("td", {}, doc.engine),
    element("td", { class: "num" }, String(doc.seed ?? "–")),
    element("td", { class: "num" }, number(doc.throughput_mbps)),
    element("td", { class: "num" }, tier(doc, "1")),
    element("td", { class: "num" }, tier(doc, "2")),
    element("td", { class: doc.verified === false ? "bad" : "" }, verified(doc)),
    element(
      "td",
      {},
      pill(doc.status),
      doc.overloaded ? element("div", { class: "bad" }, "overloaded") : null,
      doc.rates ? element("div", { class: "scale" }, doc.rates) : null,
    ),
    element("td", {}, ...doc.tags.map((tag) => element("span", { class: "tag" }, tag))),
    element("td", { class: "when" }, started(doc.started)),
  );
}

function buttons() {
  const count = selected.size ? ` ${selected.size}` : "";
  $("compare").disabled = selected.size < 2 || selected.size > MOST;
  $("compare").textContent = `Compare${count}`;
  $("compare").title = selected.size > MOST ? `Select at most ${MOST} runs to compare` : "";
  $("remove").disabled = !selected.size;
  $("remove").textContent = `Remove${count}`;
}

async function remove() {
  const named = [...selected].slice(0, 10).join("\n"),
    more = selected.size > 10 ? `\n… and ${selected.size - 10} more` : "";
  if (!confirm(`Remove these runs and their folders? This cannot be undone.\n\n${named}${more}`))
    return;
  for (const id of [...selected]) {
    try {
      await api(`/api/runs/${encodeURIComponent(id)}`, { method: "DELETE" });
      selected.delete(id);
    } catch (error) {
      if (error.status === 404) selected.delete(id);
      else toast(error.message, true);
    }
  }
  buttons();
  refresh();
}

async function refresh() {
  try {
    const runs = await api(`/api/runs?limit=500&q=${encodeURIComponent($("search").value)}`);
    await refreshBatches();
    const text = JSON.stringify([runs, $("with-batches").checked]);
    if (text !== shown) {
      shown = text;
      if (!$("search").value)
        for (const id of selected) if (!runs.some((doc) => doc.id === id)) selected.delete(id);
      buttons();
      const all = $("with-batches").checked || $("search").value;
      const listed = all ? runs : runs.filter((doc) => !isOfBatch(doc));
      const empty = element("tr", {}, element("td", { colspan: 12, class: "muted" }, "No runs."));
      const more = differing(runs);
      $("runs").tBodies[0].replaceChildren(...(listed.length ? listed.map((doc) => row(doc, more)) : [empty]));
    }
  } catch (error) {
    toast(error.message, true);
  }
}
$("compare").addEventListener("click", () => {
  location.href = `/compare?runs=${[...selected].map(encodeURIComponent).join(",")}`;
});
$("remove").addEventListener("click", remove);
$("search").addEventListener("input", refresh);
$("with-batches").addEventListener("change", refresh);
setInterval(() => document.hidden || refresh(), 2000);
refresh();
