// The projector's page: the code to join, or what the instructor points at, in large type.
import { $ } from "./app.js";
import { follow } from "./class_link.js";
import { watch } from "./class_watch.js";

let showRun = null;
let shown = "";

async function show(about) {
  $("seats").textContent = about.seats === 1 ? "1 seat" : `${about.seats} seats`;
  const key = JSON.stringify(about.look);
  if (key === shown) return;
  shown = key;
  const { run, worksheet, step } = about.look ?? {};
  const found = worksheet && [...document.querySelectorAll("template[data-worksheet]")].find((each) => each.dataset.worksheet === worksheet && each.dataset.step === (step ?? ""));
  $("welcome").hidden = Boolean(run || found);
  $("step").hidden = !found;
  $("run").hidden = !run;
  if (found) $("step").replaceChildren(found.content.cloneNode(true));
  if (!run) return;
  showRun ??= watch();
  const live = await showRun(run);
  $("run-title").textContent = live.run?.title ?? "";
}

follow("/api/projector/stream", "look", show);
