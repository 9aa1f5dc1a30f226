// The page of a run, running or finished: it receives the run and tells all parts of the page.
// Each tab has one stream, closed while the tab is hidden.
import { $, api, banners, data, element, number, toast } from "./app.js";
import { Charts } from "./charts.js";
import { Slots } from "./chart_slots.js";
import { controls, refill } from "./controls.js";
import { EventLog } from "./event_log.js";
import { explains } from "./explain.js";
import { Finished } from "./finished.js";
import { Ghost, keepGhost } from "./ghost.js";
import { Lesson } from "./lesson.js";
import { LimitLine } from "./limit_line.js";
import { Pace, showSpeed, timeLeft } from "./pace.js";
import { panels } from "./panels.js";
import { Predictions } from "./predict.js";
import { offerRace } from "./race_against.js";
import { RunView } from "./run_view.js";
import { Stream } from "./stream.js";
import { showNow } from "./tiles.js";
import { Transfers } from "./transfers.js";

let run = data("run");
const path = `/api/runs/${encodeURIComponent(run.id)}`;
const log = new EventLog($("log"), $("all-events"), () => !run.state.over);
const pace = new Pace();
const transfers = new Transfers(run.transfers);
const ghost = new Ghost(() => run, () => charts);
const predictions = new Predictions(run.id, () => charts);
const lesson = new Lesson(path, run, transfers, predictions, (change, drawn) => again({ changes: [change] }, drawn));
const finished = new Finished(path, {
  onTransfers: (done) => {
    transfers.set(done);
    showTransfers();
  },
  atEnd: () => page.view.t === null,
  showLast: () => page.last && showNow(page.last, run, log.events, true),
  again,
});
const page = new RunView({ path, run: () => run, charts: () => charts, log, flip, onShow: showTiles });
const charts = new Charts($("charts"), {
  slots: new Slots($("chart-first"), $("chart-second"), $("charts"), ghost.list),
  live: !run.state.over,
  view: page.view,
  related: () => page.related(),
  over: (name, shown) => [...ghost.traces(name, shown), ...predictions.traces(name)],
  transfers,
});
const stream = new Stream(path, messageArrived, (error) =>
  banners([["warn", `${error.message} Reconnecting …`]]),
);
stream.over = run.state.over;
let paused = false; // the charts, not the run
let t = run.state.t ?? 0; // of the last frame
let hasFrame = false;
let reloading = null;
let applied = 0; // changes that `run` has
let overThis = false; // the run is made once more with this one as its ghost

async function load() {
  const found = await api(`${path}/charts`);
  charts.marks = [];
  charts.ticks = [];
  log.clear();
  lesson.clear();
  transfers.clear();
  for (const event of found.events) eventArrived(event, true);
  charts.set(found.figures);
  $("waiting")?.toggleAttribute("hidden", found.figures.length > 0);
  if (!found.figures.length && !run.state.over) $("waiting")?.replaceChildren("Waiting for the first sample …");
  stream.seq = found.seq;
  const changes = found.events.filter(isApplied).length;
  if (changes !== applied) await settingsChanged(changes); // some came before the stream began
  if (found.last) showFrame(found.last);
  if (page.map.drawing) page.showTime();
  else await page.load();
}

// ---- messages

function sampleArrived(frame) {
  if (frame.t <= t && hasFrame) return;
  showFrame(frame);
  if ((charts.append(frame) || !charts.cards.size) && !reloading) {
    reloading = setTimeout(async () => {
      reloading = null;
      await load().catch(() => null);
    }, 1200);
  }
}

function eventArrived(event, old = false) {
  if (!log.add(event)) return;
  lesson.event(event);
  predictions.event(event);
  charts.mark(event);
  page.event(event);
  if (event.kind === "completion") {
    transfers.event(event);
    showTransfers();
  }
  if (event.kind === "flip" && !old) changeArrived(event);
}

function changeArrived(event) {
  if (isApplied(event)) changeApplied(event); // the log shows that it was sent
  if (event.state === "refused") toast(`${event.title}: ${event.reason}`, true);
}

function isApplied(event) {
  return event.kind === "flip" && event.state === "applied";
}

async function settingsChanged(changes) {
  applied = changes;
  run = await api(path);
  showSettings();
  refill(run);
  showState();
  lesson.show(run);
}

async function changeApplied(event) {
  await settingsChanged(applied + 1);
  if (event.facts.target?.startsWith("strategy")) charts.set((await api(`${path}/charts`)).figures);
}

function showSettings() {
  $("strategy").textContent = run.strategy_words;
  $("cc").textContent = run.cc_words;
  showHelp("strategies", "Strategy ", run.strategies);
  showHelp("ccs", "Congestion control (cc) ", run.ccs);
}

function showHelp(id, what, rows) {
  $(id).replaceChildren(
    ...rows.map(({ name, help }) => element("li", {}, what, element("b", {}, name), `: ${help}`)),
  );
}

function stateArrived(state) {
  const wasOver = run.state.over;
  run.state = state;
  if (state.over && !wasOver) runEnded();
  showState();
}

function messageArrived(type, body) {
  if (type === "sample") sampleArrived(body);
  else if (type === "event") eventArrived(body);
  else stateArrived(body);
}

function showTransfers() {
  $("transfers").textContent = transfers.words();
  lesson.draw();
  charts.refresh();
}

// ---- the page

function showFrame(frame) {
  page.sample(frame);
  charts.t = frame.t;
  hasFrame = true;
  t = frame.t;
  lesson.reached(frame.t);
  pace.reached(frame.t, run.state);
  clock();
}

function showTiles(frame) {
  const isPast = page.view.t !== null;
  if (run.state.over && !isPast) finished.showTiles();
  else showNow(frame, run, log.events, isPast);
}

function clock() {
  const total = run.duration_s || 0,
    over = run.state.over;
  const part = total ? Math.min(100, (100 * t) / total) : 0;
  $("progress").style.width = `${over ? 100 : part}%`;
  $("progress").parentElement.setAttribute("aria-valuenow", String(Math.round(part)));
  const left = over || run.state.paused ? "" : timeLeft(total - t, pace.speed(), run);
  $("clock").textContent = total ? `${number(t, 1)} of ${total} s${left}` : "";
}

function showState() {
  const { state } = run;
  const text = state.paused ? "paused" : state.status;
  $("pill").className = `pill ${text}`;
  $("pill").textContent = text;
  const rows = [];
  if (state.status === "changed") rows.push(["bad", `${state.error}.`]);
  else if (state.status === "cut")
    rows.push([
      "bad",
      state.error
        ? `${state.error}.`
        : "The process of this run ended without a result. The page shows what it had written.",
    ]);
  else if (state.error) rows.push(["bad", `The run failed: ${state.error}`]);
  if (state.suspended) rows.push(["bad", `No progress: ${state.suspended}.`]);
  if (state.overloaded)
    rows.push(["bad", `This machine is overloaded, do not trust the numbers: ${state.overloaded}`]);
  if (run.rate_note) rows.push(["warn", run.rate_note]);
  if (run.clocks_note) rows.push(["warn", run.clocks_note]);
  if (state.verdict.is === "no") rows.push(["bad", state.verdict.text]);
  $("verdict").textContent = state.verdict.is === "no" ? "" : state.verdict.text;
  $("verified").textContent = state.verdict.is === "yes" ? "✓ Multipath TCP verified" : "";
  $("verified").title = state.verdict.text;
  banners(rows);
  const can = (what) => !state.over && run.controls.includes(what);
  $("stop").hidden = !can("stop");
  $("pause-run").hidden = !can("pause");
  $("speed").hidden = !can("speed");
  $("pause-run").textContent = state.paused ? "Resume run" : "Pause run";
  showSpeed($("speed"), state.speed);
  $("pause-charts").hidden = state.over;
  $("again").hidden = !state.over;
  offerRace(run, again);
  $("exports").hidden = !state.over;
  $("controls").hidden = !run.targets.length;
  $("undo").hidden = state.over || !run.is_changed;
  lesson.show(run);
  page.happened.show();
  finished.show(run);
  clock();
}

async function runEnded() {
  stream.over = true;
  document.querySelector(".simulator")?.remove();
  stream.disconnect();
  charts.finish();
  run = await api(path);
  await load();
  showSettings();
  showState();
  page.showSelection();
  page.map.onDrawn?.(); // without scissors
}

// ---- controls

function pauseCharts(wanted) {
  paused = wanted;
  charts.pause(paused);
  $("pause-charts").setAttribute("aria-pressed", String(paused));
  $("pause-charts").textContent = paused ? "Resume charts" : "Pause charts";
}

async function post(what, body) {
  try {
    await api(`${path}/${what}`, { method: "POST", body: body ?? {} });
  } catch (error) {
    toast(error.message, true);
  }
}

// Change the run; a run that is over is made once more with the change.
function flip(target, value) {
  if (run.state.over) again({ changes: [{ target, value }] });
  else post("flips", { target, value });
}

// Make the run once more, with the same seed. A run that goes on is stopped. `drawn` is a prediction of
// the change. With another `address`, it is a race that begins.
async function again(body = {}, drawn = null, address = `${path}/repeat`) {
  try {
    if (!run.state.over) await api(`${path}/stop`, { method: "POST", body: {} });
    const { id, url } = await api(address, { method: "POST", body });
    if (drawn) predictions.keepFor(id, drawn, body.changes[0].at_s);
    if (overThis) keepGhost(id, run.id);
    location.href = url;
  } catch (error) {
    toast(error.message, true);
  }
}

$("pause-charts").addEventListener("click", () => pauseCharts(!paused));
$("pause-run").addEventListener("click", () => post(run.state.paused ? "resume" : "pause"));
$("stop").addEventListener("click", () => post("stop"));
$("undo").addEventListener("click", () => post("undo"));
$("again").addEventListener("click", () => again());
$("again-over").addEventListener("click", () => {
  overThis = true;
  again();
});
$("speed").addEventListener("change", () =>
  post("speed", { speed: $("speed").value === "max" ? "max" : Number($("speed").value) }),
);
$("note-form")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = {
    tags: $("tags")
      .value.split(",")
      .map((tag) => tag.trim())
      .filter(Boolean),
    note: $("note").value,
  };
  try {
    await api(path, { method: "PATCH", body });
    toast("Saved.");
  } catch (error) {
    toast(error.message, true);
  }
});
document.addEventListener("shortcut", ({ detail: event }) => {
  if (event.key === " " && !run.state.over) {
    event.preventDefault();
    pauseCharts(!paused);
  }
  if (event.key === "f") $("targets").querySelector("select, input")?.focus();
  if (event.key === "e") $("log-title").focus();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) stream.disconnect();
  else {
    stream.connect();
    charts.redrawSoon();
  }
});
setInterval(() => {
  if (run.state.over) {
    $("rate").textContent = "";
    return;
  }
  const behind = paused
    ? `Charts paused; the run is at ${number(t, 1)} s.`
    : charts.rate()
      ? `Charts redrawn ${number(charts.rate(), 1)} times a second.`
      : "";
  $("rate").textContent = behind;
}, 500);

async function waitForScenario() {
  while (!run.state.over && run.state.status === "starting" && !run.targets.length) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    run = await api(path);
  }
}

controls($("targets"), run, flip);
explains();
panels();
new LimitLine(charts, () => run, flip);
page.showSelection();
showState();
if (run.state.status !== "starting") await load().catch((error) => toast(error.message, true));
stream.connect();
ghost.load();
if (run.state.status === "starting") {
  const unknown = !run.targets.length;
  await waitForScenario();
  if (unknown && run.targets.length) location.reload(); // the texts of the page are the scenario's
  controls($("targets"), run, flip);
  page.showSelection();
  await load();
  showState();
}
