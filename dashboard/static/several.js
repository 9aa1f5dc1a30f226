// The part of the start form for several runs: strategies, seeds, varied keys, or a sweep file. The
// server reads the values, counts the runs and estimates what they take.
import { $, api, element } from "./app.js";
import { option } from "./fields.js";

const COUNT_AFTER_MS = 400; // of no further input
const ESTIMATE_AFTER_MS = 1500;
const PARTS = { topology: "Network", traffic: "Traffic", multipath: "Multipath TCP", strategy: "Strategy" };
const SILENT_UNITS = ["fraction from 0 to 1", "1", "choice", "switch"];

export class Several {
  // `request()` is the body of the form for one run.
  constructor({ keys, strategies }, request) {
    Object.assign(this, { keys, strategies, request });
    $("strategies").append(
      ...strategies
        .filter((each) => !each.unfit)
        .map((each) => element("label", {}, element("input", { type: "checkbox", value: each.name }), ` ${each.name}`)),
    );
    this.asked = "";
    this.addRow();
    $("more-keys").addEventListener("click", () => this.addRow().querySelector("select").focus());
    $("start").addEventListener("input", () => this.follow());
    $("start").addEventListener("change", () => this.follow());
    this.clear();
  }

  isWanted() {
    return Boolean(this.sweep() || this.chosen().length || this.varied().length || this.repeats() > 1);
  }

  sweep() {
    return $("sweep").value.trim() ? $("sweep").value : "";
  }

  chosen() {
    return [...$("strategies").querySelectorAll("input:checked")].map((each) => each.value);
  }

  repeats() {
    return Math.max(1, Number($("repeats").value) || 1);
  }

  // The rows of keys in which a key is chosen.
  rows() {
    return [...$("vary").children].filter((row) => row.querySelector("select").value);
  }

  varied() {
    return this.rows().map((row) => ({ key: row.querySelector("select").value, values: row.querySelector("input").value }));
  }

  body() {
    const start = this.request();
    if (this.sweep()) return { sweep: this.sweep(), engine: start.engine, vm: start.vm };
    if (start.speed !== undefined) start.speed = "max";
    return {
      start,
      strategies: this.chosen(),
      repeats: this.repeats(),
      vary: this.varied(),
      keep: $("keep").value,
    };
  }

  addRow() {
    const n = $("vary").children.length + 1;
    const help = `vary-${n}-help`;
    const list = element("select", { "aria-label": `Varied key ${n}`, "aria-describedby": help });
    const values = element("input", { "aria-label": `Values of key ${n}`, "aria-describedby": help, placeholder: "10,20,30 or 10..40..10" });
    const remove = element("button", { type: "button", class: "quiet", "aria-label": `Do not vary key ${n}` }, "×");
    const row = element("div", { class: "vary" }, list, values, remove, element("p", { class: "help", id: help }), element("p", { class: "bad", role: "alert", hidden: true }));
    list.append(option("", "choose a key"), ...this.groups());
    list.addEventListener("change", () => describe(row, this.key(list.value)));
    remove.addEventListener("click", () => {
      row.remove();
      if (!$("vary").children.length) this.addRow();
      this.follow();
    });
    $("vary").append(row);
    return row;
  }

  // The keys of the scenario in groups; last the parameters of strategies that can be chosen.
  groups() {
    const params = this.strategies.filter((each) => !each.unfit).flatMap((each) => each.params);
    const named = new Map(params.map((each) => [`strategy.${each.name}`, { ...each, key: `strategy.${each.name}`, value: each.default }]));
    this.all = new Map([...this.keys.map((each) => [each.key, each]), ...named]);
    const groups = new Map(Object.values({ ...PARTS, run: "Run" }).map((label) => [label, []]));
    for (const { key } of this.all.values()) {
      const part = key.split(".")[0];
      groups.get(PARTS[part] ?? "Run").push(option(key, PARTS[part] ? key.slice(part.length + 1) : key));
    }
    return [...groups].filter(([, made]) => made.length).map(([label, made]) => element("optgroup", { label }, ...made));
  }

  key(name) {
    return this.all.get(name);
  }

  // A field that loses the focus tells of a change once more: nothing may move under the mouse then.
  follow() {
    const asked = this.isWanted() ? JSON.stringify(this.body()) : "";
    if (asked === this.asked) return;
    this.asked = asked;
    this.rest();
    this.forget();
    if (!asked) return this.clear();
    $("start-button").textContent = "Start several runs";
    $("count").textContent = "…";
    this.soon = setTimeout(() => this.check(), COUNT_AFTER_MS);
  }

  async check() {
    const { signal } = (this.asking = new AbortController());
    const ask = (what) => api(`/api/batches/${what}`, { method: "POST", body: this.body(), signal });
    try {
      const found = await ask("check");
      $("count").textContent = counted(found);
      $("start-button").textContent = found.runs > 1 ? `Start ${found.runs} runs` : "Start 1 run";
      await new Promise((resume) => setTimeout(resume, ESTIMATE_AFTER_MS));
      if (signal.aborted) return;
      $("estimate").textContent = "Trying some runs to estimate time and disk …";
      $("estimate").textContent = `${(await ask("estimate")).text}.`;
    } catch (error) {
      if (signal.aborted) return;
      $("estimate").textContent = "";
      if (error.status === 422) $("count").textContent = "";
      this.complain(error);
    }
  }

  // Stop waiting for the count and the estimate.
  rest() {
    clearTimeout(this.soon);
    this.asking?.abort();
  }

  clear() {
    $("count").textContent = "";
    $("start-button").textContent = "Start";
  }

  forget() {
    $("estimate").textContent = "";
    for (const place of $("start").querySelectorAll(".bad")) place.hidden = true;
    for (const field of $("start").querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  }

  // Show an error beside the field that the server names, or above the button.
  complain(error) {
    const [kind, n] = (error.field ?? "").split(".");
    const row = kind === "vary" ? this.rows()[Number(n)] : null;
    const place = row?.querySelector(".bad") ?? $(`${kind}-problem`) ?? $("problem");
    (row?.querySelector("input") ?? (kind === "sweep" ? $("sweep") : null))?.setAttribute("aria-invalid", "true");
    place.textContent = error.message;
    place.hidden = false;
  }
}

function counted({ runs, strategies, points, repeats, note }) {
  const factors = [
    [strategies, "strategies"],
    [points, "combinations of values"],
    [repeats, "seeds"],
  ].filter(([count]) => count > 1);
  const product = factors.map(([count, what]) => `${count} ${what}`).join(" × ");
  return `${runs} ${runs > 1 ? "runs" : "run"}${product && `: ${product}`}. ${note}`.trim();
}

function describe(row, key) {
  const help = row.querySelector(".help");
  if (!key) return help.replaceChildren();
  const { unit, minimum, maximum, choices, value } = key;
  const text = (each) => (Array.isArray(each) ? `[${each.join(", ")}]` : String(each));
  const range = minimum === null || maximum === null ? "" : `${minimum} to ${maximum}`;
  const allowed = choices ? choices.join(", ") : key.type === "boolean" ? "true, false" : range;
  const named = SILENT_UNITS.includes(unit) ? "" : unit;
  const now = value === null || value === undefined ? "" : `now ${text(value)}`;
  const about = [[allowed, named].filter(Boolean).join(" "), now].filter(Boolean).join("; ");
  help.replaceChildren(element("code", {}, key.key), about ? `: ${about}` : "");
}
