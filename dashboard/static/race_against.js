// On the page of a run: a race of it against another strategy, both from the start.
import { $, element } from "./app.js";
import { grouped, option } from "./fields.js";

// `again(body, drawn, address)` starts it; a run that goes on is stopped then.
export function offerRace(run, again) {
  const list = $("race-against");
  const row = run.targets.find(({ name }) => name === "strategy");
  list.hidden = !row || !run.controls.includes("pause");
  if (list.hidden || list.dataset.shown === run.strategy) return;
  list.dataset.shown = run.strategy;
  const others = row.choices.filter((name) => name !== run.strategy);
  list.replaceChildren(
    element("option", { value: "" }, "Race against …"),
    ...grouped(others, (name) => option(name), row.meant),
  );
  list.onchange = () => {
    const lanes = [{}, { strategy: list.value }];
    if (list.value) again({ run: run.id, lanes }, null, "/api/races");
    list.value = "";
  };
}
