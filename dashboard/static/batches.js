// Batches of runs: one row each, with progress.
import { $, api, element, toast } from "./app.js";

const open = new Set(); // the ids of the batches whose failures are shown
let shown = "";

export const isOfBatch = (doc) => doc.id.startsWith("batch-") || doc.tags.some((tag) => tag.startsWith("batch-"));

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
  const metric = row.metric ? `&metric=${encodeURIComponent(row.metric)}` : "";
  const href = `/compare?batch=${encodeURIComponent(row.id)}${metric}`;
  const ended = row.runs.length - row.unfinished.length - row.failed.length;
  return element(
    "li",
    {},
    element("b", {}, row.title),
    bar,
    element("span", { class: "muted" }, state(row)),
    ended > 1 ? element("a", { class: "button", href }, row.over ? "Compare" : "Compare so far") : null,
    row.over ? null : button("Stop", "danger", () => ask(row, "stop")),
    row.can_continue && row.left ? button(again(row), "", () => ask(row, "continue")) : null,
    ...row.errors.map((text) => element("p", { class: "bad" }, text)),
    row.failed.length ? failures(row) : null,
  );
}

function state(row) {
  if (row.is_waiting) return "waiting for other runs";
  const failed = row.failed.length ? `, ${row.failed.length} failed` : "";
  const left = row.time_left ? `, ${row.time_left} left` : "";
  return `${row.done} of ${row.total} done${failed}${left}`;
}

function again({ left, failed }) {
  return left === failed.length ? `Repeat the ${left} that failed` : `Continue: ${left} to make`;
}

function failures({ id, failed }) {
  const list = failed.map((each) =>
    element("li", {}, element("a", { href: `/runs/${encodeURIComponent(each.id)}` }, each.name), `: ${each.error}`),
  );
  const made = element("details", { open: open.has(id) }, element("summary", {}, `${failed.length} failed`), element("ul", {}, ...list));
  made.addEventListener("toggle", () => open[made.open ? "add" : "delete"](id));
  return made;
}

function button(text, kind, pressed) {
  const made = element("button", { type: "button", class: kind || null }, text);
  made.addEventListener("click", pressed);
  return made;
}

const ask = (row, what) =>
  api(`/api/batches/${encodeURIComponent(row.id)}/${what}`, { method: "POST", body: {} }).catch((error) => toast(error.message, true));
