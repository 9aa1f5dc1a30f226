// The projector's page: the code to join, or what the instructor points at, in large type. A run is
// shown with its predictions, and with those of the whole class.
import { $ } from "./app.js";
import { follow } from "./class_link.js";
import { ClassPredictions } from "./class_predictions.js";
import { watch } from "./class_watch.js";

let live = null; // the run that is shown
const beside = new ClassPredictions($("run-predictions"), { measured: (path) => live?.measured(path) ?? null });
const alone = new ClassPredictions($("predictions"), { alone: true });
let showRun = null;
let shown = "";
let predicted = "";

async function show(about) {
  $("seats").textContent = about.seats === 1 ? "1 seat" : `${about.seats} seats`;
  const key = JSON.stringify(about.look);
  const isNew = key !== shown;
  shown = key;
  const { run, worksheet, step, predictions } = about.look ?? {};
  if (isNew) showStep(run, worksheet, step);
  $("run").classList.toggle("asked", about.predictions.length > 0);
  $("step").parentElement.classList.toggle("of-all", Boolean(predictions));
  const text = JSON.stringify([key, about.predictions]);
  if (text !== predicted) {
    predicted = text;
    beside.show(run ? about.predictions : []);
    alone.show(predictions ? about.predictions : []);
  }
  if (!isNew || !run) return;
  showRun ??= watch({ few: true, onDrawn: follows });
  live = null;
  const found = await showRun(run);
  $("run-title").textContent = found.run?.title ?? "";
}

function showStep(run, worksheet, step) {
  const found = worksheet && [...document.querySelectorAll("template[data-worksheet]")].find((each) => each.dataset.worksheet === worksheet && each.dataset.step === (step ?? ""));
  if (worksheet && !document.querySelector(`template[data-worksheet="${CSS.escape(worksheet)}"]`)) location.reload(); // it was added
  $("welcome").hidden = Boolean(run || found);
  $("step").hidden = !found;
  $("run").hidden = !run;
  if (found) $("step").replaceChildren(found.content.cloneNode(true));
}

function follows(of) {
  const first = live !== of;
  live = of;
  if (first) beside.draw();
  else beside.follow();
}

follow("/api/projector/stream", "look", show);
