// The part of the start form for several runs: strategies, seeds, one varied key.
import { $, element } from "./app.js";

export class Several {
  constructor(strategies) {
    $("strategies").append(
      ...strategies
        .filter((each) => !each.unfit)
        .map((each) =>
          element(
            "label",
            {},
            element("input", { type: "checkbox", value: each.name }),
            ` ${each.name}`,
          ),
        ),
    );
    $("several").addEventListener("input", () => this.show());
    this.show();
  }

  strategies() {
    return [...$("strategies").querySelectorAll("input:checked")].map((each) => each.value);
  }

  values() {
    if (!$("vary-key").value.trim()) return [];
    return $("vary-values")
      .value.split(",")
      .map((text) => text.trim())
      .filter(Boolean)
      .map(read);
  }

  count() {
    const seeds = Math.max(1, Number($("repeats").value) || 1);
    return Math.max(1, this.strategies().length) * Math.max(1, this.values().length) * seeds;
  }

  request(start) {
    if (start.speed !== undefined) start.speed = "max";
    const body = {
      start,
      strategies: this.strategies(),
      repeats: Math.max(1, Number($("repeats").value) || 1),
    };
    const values = this.values();
    if (values.length) body.vary = { key: $("vary-key").value.trim(), values };
    return body;
  }

  show() {
    const count = this.count();
    const strategies = this.strategies().length || 1;
    const values = this.values().length;
    const parts = [`${strategies} ${strategies > 1 ? "strategies" : "strategy"}`];
    if (values) parts.push(`${values} ${values > 1 ? "values" : "value"}`);
    const seeds = Math.max(1, Number($("repeats").value) || 1);
    parts.push(`${seeds} ${seeds > 1 ? "seeds" : "seed"}`);
    $("count").textContent = count > 1 ? `${count} runs: ${parts.join(" × ")}` : "";
    $("start").querySelector("button[type=submit]").textContent =
      count > 1 ? `Start ${count} runs` : "Start";
  }
}

// A value of a varied key: a number, true or false, or a word.
function read(text) {
  if (text === "true" || text === "false") return text === "true";
  return Number.isNaN(Number(text)) ? text : Number(text);
}
