// Batches of runs: one row each, with progress.
import { $, api, element, toast } from "./app.js";

let shown = "";

export const isOfBatch = (doc) => doc.tags.some((tag) => tag.startsWith("batch-"));

export async function refreshBatches() {
  const rows = await api("/api/batches");
  const text = JSON.stringify(rows);
  if (text === shown) return;
  shown = text;
  $("batches-card").hidden = !rows.length;
  $("batches").replaceChildren(...rows.map(item));
}

function item(row) {
  const bar = element("progress", {
    max: row.total,
    value: row.done,
    "aria-label": `progress of ${row.title}`,
  });
  const failed = row.errors.length ? `, ${row.errors.length} not started` : "";
  const ids = row.runs.filter((id) => !row.unfinished.includes(id));
  const compare = element(
    "a",
    { class: "button", href: `/compare?runs=${ids.map(encodeURIComponent).join(",")}` },
    row.over ? "Compare" : "Compare so far",
  );
  const stop = element("button", { type: "button", class: "danger" }, "Stop");
  stop.addEventListener("click", () =>
    api(`/api/batches/${encodeURIComponent(row.id)}/stop`, { method: "POST", body: {} }).catch(
      (error) => toast(error.message, true),
    ),
  );
  return element(
    "li",
    {},
    element("b", {}, row.title),
    bar,
    element("span", { class: "muted" }, `${row.done} of ${row.total} done${failed}`),
    ids.length > 1 ? compare : null,
    row.over ? null : stop,
    row.errors.length ? element("p", { class: "bad" }, row.errors[0]) : null,
  );
}
