// Show a run, running or finished: charts, tiles, controls and the event log.
// Each tab has one stream of server-sent events, closed while the tab is hidden.
import { $, api, banners, data, element, number, toast } from "./app.js";
import { Charts } from "./charts.js";
import { controls, refill } from "./controls.js";

let run = data("run");
const path = `/api/runs/${encodeURIComponent(run.id)}`;
const charts = new Charts($("charts"), { live: !run.state.over });
// What has arrived so far: `orders` has the last orders of each decision's subject.
const received = { seq: 0, events: new Set(), orders: new Map(), marks: 0, t: run.state.t ?? 0, frame: null };
let paused = false; // the charts, not the run
let source = null, polling = null, reloading = null;

async function load() {
  const found = await api(`${path}/charts`);
  charts.marks = [];
  charts.ticks = [];
  received.events.clear();
  received.orders.clear();
  received.marks = 0;
  $("log").tBodies[0].replaceChildren();
  for (const event of found.events) eventArrived(event, true);
  charts.set(found.figures);
  $("waiting")?.toggleAttribute("hidden", found.figures.length > 0);
  received.seq = found.seq;
  if (found.last) showFrame(found.last);
}

// ---- messages

function sampleArrived(frame) {
  if (frame.t <= received.t && received.frame) return;
  showFrame(frame);
  if ((charts.append(frame) || !charts.cards.size) && !reloading) {
    reloading = setTimeout(async () => { reloading = null; await load().catch(() => null); }, 1200);
  }
}

function eventArrived(event, old = false) {
  if (received.events.has(event.n)) return;
  received.events.add(event.n);
  if (changesNothing(event)) Object.assign(event, { quiet: true, mark: "none" });
  if (event.mark === "line") event.number = ++received.marks;
  charts.mark(event);
  logEvent(event);
  if (event.kind === "flip" && event.ok && !old) changeApplied(event);
  if (event.kind === "flip" && !event.ok && !old) toast(`${event.title}: ${event.reason}`, true);
}

// Whether a decision leaves its subject as it is.
function changesNothing(event) {
  if (!event.subject) return false;
  const before = received.orders.get(event.subject);
  received.orders.set(event.subject, event.orders);
  return event.orders === before;
}

async function changeApplied(event) {
  toast(`Changed at ${number(event.t, 1)} s: ${event.title}`);
  run = await api(path);
  $("strategy").textContent = run.targets.find((each) => each.name === "strategy")?.value ?? run.strategy;
  refill(run);
  if (event.title.startsWith("strategy")) charts.set((await api(`${path}/charts`)).figures);
}

function stateArrived(state) {
  const wasOver = run.state.over;
  run.state = state;
  if (state.over && !wasOver) runEnded();
  showState();
}

function message(type, body, seq) {
  received.seq = Math.max(received.seq, seq);
  if (type === "sample") sampleArrived(body);
  else if (type === "event") eventArrived(body);
  else stateArrived(body);
}

function connect() {
  if (source || polling || run.state.over || document.hidden) return;
  source = new EventSource(`${path}/stream?since=${received.seq}`);
  for (const type of ["sample", "event", "status"]) source.addEventListener(type, (event) => message(type, JSON.parse(event.data), Number(event.lastEventId)));
  source.onerror = () => {
    if (source?.readyState !== EventSource.CLOSED) return;
    source = null;
    polling = setTimeout(poll, 1000);
  };
}

async function poll() {
  polling = null;
  if (document.hidden || run.state.over) return;
  try {
    const found = await api(`${path}/frames?since=${received.seq}`);
    for (const each of found.messages) message(each.type, each.data, each.seq);
    stateArrived(found.status);
  } catch (error) {
    banners([["warn", `${error.message} Reconnecting …`]]);
  }
  polling = setTimeout(poll, 1000);
}

function disconnect() {
  source?.close();
  source = null;
  clearTimeout(polling);
  polling = null;
}

// ---- the page

function showFrame(frame) {
  charts.t = frame.t;
  received.frame = frame;
  received.t = frame.t;
  const sum = (key) => Object.values(frame.ap ?? {}).reduce((total, ap) => total + (ap[key] ?? 0), 0);
  const tiles = [];
  const users = Object.values(frame.user ?? {}).reduce((total, user) => total + (user.mbps ?? 0), 0);
  tiles.push(["All users", number(users), "Mb/s", ""]);
  if (Object.keys(frame.ap ?? {}).length) tiles.push(["Tier 1", number(sum("tier1_mbps")), "Mb/s", "first subflows"], ["Tier 2", number(sum("tier2_mbps")), "Mb/s", "additional subflows"]);
  for (const [name, ap] of Object.entries(frame.ap ?? {})) {
    const limit = ap.meter_mbps === null || ap.meter_mbps === undefined ? "no limit on Tier 2" : `Tier 2 limited to ${number(ap.meter_mbps)} Mb/s`;
    tiles.push([`${name} occupancy`, number(ap.mac_occupancy), "", limit, ap.mac_occupancy]);
  }
  const threshold = run.targets.find((each) => each.name === "strategy.cth")?.value ?? 0.85;
  $("tiles").replaceChildren(...tiles.map(([name, value, unit, sub, full]) => element("div", { class: "tile" }, element("div", { class: "name" }, name),
    element("div", { class: "value" }, value, " ", element("small", {}, unit)), full === undefined ? null : gauge(full, full >= threshold), element("div", { class: "sub" }, sub || "\u00a0"))));
  clock();
}

function gauge(value, hot) {
  const bar = element("i");
  bar.style.width = `${Math.min(100, 100 * (value ?? 0))}%`;
  return element("div", { class: hot ? "gauge hot" : "gauge", "aria-hidden": "true" }, bar);
}

function clock() {
  const total = run.duration_s || 0, over = run.state.over;
  const part = total ? Math.min(100, (100 * received.t) / total) : 0;
  $("progress").style.width = `${over ? 100 : part}%`;
  $("progress").parentElement.setAttribute("aria-valuenow", String(Math.round(part)));
  const speed = run.state.speed === "max" || run.state.paused ? null : Number(run.state.speed ?? 1);
  const left = !over && speed && total ? `, about ${Math.max(0, Math.round((total - received.t) / speed))} s left` : "";
  $("clock").textContent = total ? `${number(received.t, 1)} of ${total} s${left}` : "";
}

function showState() {
  const { state } = run;
  const text = state.paused ? "paused" : state.status;
  $("pill").className = `pill ${text}`;
  $("pill").textContent = text;
  const rows = [];
  if (state.error) rows.push(["bad", `The run failed: ${state.error}`]);
  if (state.status === "cut") rows.push(["bad", "The process of this run ended without a result. The page shows what it had written."]);
  if (state.overloaded) rows.push(["bad", `This machine is overloaded, do not trust the numbers: ${state.overloaded}`]);
  if (run.rate_note) rows.push(["warn", run.rate_note]);
  const kind = { yes: "good", no: "bad" }[state.verdict.is];
  if (kind) rows.push([kind, state.verdict.text]);
  $("verdict").textContent = kind ? "" : state.verdict.text;
  banners(rows);
  const can = (what) => !state.over && run.controls.includes(what);
  $("stop").hidden = !can("stop");
  $("pause-run").hidden = !can("pause");
  $("speed").hidden = !can("speed");
  $("pause-run").textContent = state.paused ? "Resume run" : "Pause run";
  if (state.speed !== null && document.activeElement !== $("speed")) $("speed").value = String(state.speed);
  $("pause-charts").hidden = state.over;
  $("exports").hidden = !state.over;
  $("controls").hidden = state.over || !run.targets.length;
  $("try-box").hidden = state.over || !run.to_try.length;
  clock();
}

function logEvent(event) {
  const badge = event.number ? element("span", { class: "badge" }, String(event.number)) : "";
  const row = element("tr", { "data-kind": event.kind, class: event.ok ? "" : "bad" }, element("td", { class: "num" }, badge), element("td", { class: "num" }, number(event.t, 1)), element("td", {}, event.word), element("td", {}, event.title), element("td", {}, event.reason));
  row.hidden = event.quiet && !$("all-events").checked;
  row.quiet = event.quiet;
  $("log").tBodies[0].prepend(row);
  while ($("log").tBodies[0].rows.length > 2000) $("log").tBodies[0].lastElementChild.remove();
}

async function runEnded() {
  disconnect();
  charts.finish();
  run = await api(path);
  await load();
  showState();
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

const flip = (target, value) => post("flips", { target, value });

function suggestions() {
  $("try").replaceChildren(...run.to_try.map((each) => {
    const value = each.value === true ? "on" : each.value === false ? "off" : String(each.value);
    const button = element("button", { type: "button" }, element("b"), element("span", {}, each.text, element("small", {}, `${each.target} = ${value}`)));
    button.addEventListener("click", async () => { await flip(each.target, each.value); button.classList.add("done"); });
    return element("li", {}, button);
  }));
}

$("pause-charts").addEventListener("click", () => pauseCharts(!paused));
$("pause-run").addEventListener("click", () => post(run.state.paused ? "resume" : "pause"));
$("stop").addEventListener("click", () => post("stop"));
$("speed").addEventListener("change", () => post("speed", { speed: $("speed").value === "max" ? "max" : Number($("speed").value) }));
$("all-events").addEventListener("change", () => { for (const row of $("log").tBodies[0].rows) row.hidden = row.quiet && !$("all-events").checked; });
$("note-form")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = { tags: $("tags").value.split(",").map((tag) => tag.trim()).filter(Boolean), note: $("note").value };
  try {
    await api(path, { method: "PATCH", body });
    toast("Saved.");
  } catch (error) {
    toast(error.message, true);
  }
});
document.addEventListener("shortcut", ({ detail: event }) => {
  if (event.key === " " && !run.state.over) { event.preventDefault(); pauseCharts(!paused); }
  if (event.key === "f") $("targets").querySelector("select, input")?.focus();
  if (event.key === "e") $("log-title").focus();
});
document.addEventListener("visibilitychange", () => { if (document.hidden) disconnect(); else { connect(); charts.redrawSoon(); } });
setInterval(() => {
  if (run.state.over) { $("rate").textContent = ""; return; }
  const behind = paused ? `charts paused; the run is at ${number(received.t, 1)} s` : `charts redrawn ${number(charts.rate(), 1)} times a second`;
  $("rate").textContent = behind;
}, 500);

async function waitForScenario() {
  while (!run.state.over && run.state.status === "starting" && !run.targets.length) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    run = await api(path);
  }
}

controls($("targets"), run, flip);
$("intro-toggle").addEventListener("click", () => {
  const small = $("intro").classList.toggle("small");
  $("intro-toggle").textContent = small ? "Show" : "Hide";
});
suggestions();
showState();
await load().catch((error) => toast(error.message, true));
connect();
if (run.state.status === "starting") { await waitForScenario(); controls($("targets"), run, flip); suggestions(); await load(); showState(); }
