// A run, live or finished: one stream per tab, closed while the tab is hidden; flips; the event log.
import { $, api, banners, data, element, number, toast } from "./app.js";
import { Charts } from "./charts.js";
import { controls, refill } from "./controls.js";

let run = data("run");
const path = `/api/runs/${encodeURIComponent(run.id)}`;
const charts = new Charts($("charts"), { live: !run.state.over });
const seen = { seq: 0, events: new Set(), decided: new Map(), marks: 0, t: run.state.t ?? 0, frame: null, held: false };
let source = null, polling = null, reloading = null;

async function load() {
  const found = await api(`${path}/charts`);
  charts.marks = [];
  charts.ticks = [];
  seen.events.clear();
  seen.decided.clear();
  seen.marks = 0;
  $("log").tBodies[0].replaceChildren();
  for (const event of found.events) happened(event, true);
  charts.set(found.figures);
  $("waiting")?.toggleAttribute("hidden", found.figures.length > 0);
  seen.seq = found.seq;
  if (found.last) now(found.last);
}

// ---- what comes in

function sample(frame) {
  if (frame.t <= seen.t && seen.frame) return;
  now(frame);
  if ((charts.append(frame) || !charts.cards.size) && !reloading) {
    reloading = setTimeout(async () => { reloading = null; await load().catch(() => null); }, 1200);
  }
}

function happened(event, old = false) {
  if (seen.events.has(event.n)) return;
  seen.events.add(event.n);
  if (again(event)) Object.assign(event, { quiet: true, mark: "none" });
  if (event.mark === "line") event.number = ++seen.marks;
  charts.mark(event);
  log(event);
  if (event.kind === "flip" && event.ok && !old) changed(event);
  if (event.kind === "flip" && !event.ok && !old) toast(`${event.title}: ${event.reason}`, true);
}

// A decision that leaves its subject as it was.
function again(event) {
  if (!event.subject) return false;
  const was = seen.decided.get(event.subject);
  seen.decided.set(event.subject, event.orders);
  return event.orders === was;
}

async function changed(event) {
  toast(`Applied at ${event.t} s: ${event.title}`);
  run = await api(path);
  $("strategy").textContent = run.targets.find((each) => each.name === "strategy")?.value ?? run.strategy;
  refill(run);
  if (event.title.startsWith("strategy")) charts.set((await api(`${path}/charts`)).figures);
}

function status(state) {
  const was = run.state.over;
  run.state = state;
  if (state.over && !was) over();
  show();
}

function message(type, body, seq) {
  seen.seq = Math.max(seen.seq, seq);
  if (type === "sample") sample(body);
  else if (type === "event") happened(body);
  else status(body);
}

function connect() {
  if (source || polling || run.state.over || document.hidden) return;
  source = new EventSource(`${path}/stream?since=${seen.seq}`);
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
    const found = await api(`${path}/frames?since=${seen.seq}`);
    for (const each of found.messages) message(each.type, each.data, each.seq);
    status(found.status);
  } catch (error) {
    banners([["warn", `${error.message} Trying again.`]]);
  }
  polling = setTimeout(poll, 1000);
}

function disconnect() {
  source?.close();
  source = null;
  clearTimeout(polling);
  polling = null;
}

// ---- what is shown

function now(frame) {
  charts.t = frame.t;
  seen.frame = frame;
  seen.t = frame.t;
  const sum = (key) => Object.values(frame.ap ?? {}).reduce((total, ap) => total + (ap[key] ?? 0), 0);
  const tiles = [];
  const users = Object.values(frame.user ?? {}).reduce((total, user) => total + (user.mbps ?? 0), 0);
  tiles.push(["All users", number(users), "Mb/s", ""]);
  if (Object.keys(frame.ap ?? {}).length) tiles.push(["Tier 1", number(sum("tier1_mbps")), "Mb/s", "first connections"], ["Tier 2", number(sum("tier2_mbps")), "Mb/s", "additional connections"]);
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
  const part = total ? Math.min(100, (100 * seen.t) / total) : 0;
  $("progress").style.width = `${over ? 100 : part}%`;
  $("progress").parentElement.setAttribute("aria-valuenow", String(Math.round(part)));
  const speed = run.state.speed === "max" || run.state.paused ? null : Number(run.state.speed ?? 1);
  const left = !over && speed && total ? `, about ${Math.max(0, Math.round((total - seen.t) / speed))} s left` : "";
  $("clock").textContent = total ? `${number(seen.t, 1)} of ${total} s${left}` : "";
}

function show() {
  const { state } = run;
  const text = state.paused ? "paused" : state.status;
  $("pill").className = `pill ${text}`;
  $("pill").textContent = text;
  const rows = [];
  if (state.error) rows.push(["bad", `The run failed: ${state.error}`]);
  if (state.status === "cut") rows.push(["bad", "The process of this run is gone: what it wrote before is shown, and there is no result."]);
  if (state.overloaded) rows.push(["bad", `This machine was overloaded, do not trust the numbers: ${state.overloaded}`]);
  const kind = { yes: "good", no: "bad" }[state.verdict.is];
  if (kind) rows.push([kind, `Was it really Multipath TCP? ${state.verdict.text}`]);
  $("verdict").textContent = kind ? "" : `Was it really Multipath TCP? ${state.verdict.text}`;
  banners(rows);
  const can = (what) => !state.over && run.controls.includes(what);
  $("stop").hidden = !can("stop");
  $("hold").hidden = !can("pause");
  $("speed").hidden = !can("speed");
  $("hold").textContent = state.paused ? "Resume run" : "Pause run";
  if (state.speed !== null && document.activeElement !== $("speed")) $("speed").value = String(state.speed);
  $("paint").hidden = state.over;
  $("exports").hidden = !state.over;
  $("controls").hidden = state.over || !run.targets.length;
  $("try-box").hidden = state.over || !run.to_try.length;
  clock();
}

function log(event) {
  const badge = event.number ? element("span", { class: "badge" }, String(event.number)) : "";
  const row = element("tr", { "data-kind": event.kind, class: event.ok ? "" : "bad" }, element("td", { class: "num" }, badge), element("td", { class: "num" }, number(event.t, 1)), element("td", {}, event.word), element("td", {}, event.title), element("td", {}, event.reason));
  row.hidden = event.quiet && !$("all-events").checked;
  row.quiet = event.quiet;
  $("log").tBodies[0].prepend(row);
  while ($("log").tBodies[0].rows.length > 2000) $("log").tBodies[0].lastElementChild.remove();
}

async function over() {
  disconnect();
  charts.finish();
  run = await api(path);
  await load();
  show();
}

// ---- what people do

function hold(paused) {
  seen.held = paused;
  charts.pause(paused);
  $("paint").setAttribute("aria-pressed", String(paused));
  $("paint").textContent = paused ? "Resume charts" : "Pause charts";
}

async function ask(what, body) {
  try {
    await api(`${path}/${what}`, { method: "POST", body: body ?? {} });
  } catch (error) {
    toast(error.message, true);
  }
}

const flip = (target, value) => ask("flips", { target, value });

function suggestions() {
  $("try").replaceChildren(...run.to_try.map((each) => {
    const value = each.value === true ? "on" : each.value === false ? "off" : String(each.value);
    const button = element("button", { type: "button" }, element("b"), element("span", {}, each.text, element("small", {}, `${each.target} = ${value}`)));
    button.addEventListener("click", async () => { await flip(each.target, each.value); button.classList.add("done"); });
    return element("li", {}, button);
  }));
}

$("paint").addEventListener("click", () => hold(!seen.held));
$("hold").addEventListener("click", () => ask(run.state.paused ? "resume" : "pause"));
$("stop").addEventListener("click", () => ask("stop"));
$("speed").addEventListener("change", () => ask("speed", { speed: $("speed").value === "max" ? "max" : Number($("speed").value) }));
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
  if (event.key === " " && !run.state.over) { event.preventDefault(); hold(!seen.held); }
  if (event.key === "f") $("targets").querySelector("select, input")?.focus();
  if (event.key === "e") $("log-title").focus();
});
document.addEventListener("visibilitychange", () => { if (document.hidden) disconnect(); else { connect(); charts.soon(); } });
setInterval(() => {
  if (run.state.over) { $("rate").textContent = ""; return; }
  const behind = seen.held ? `charts paused at your wish; the run is at ${number(seen.t, 1)} s` : `charts painted ${number(charts.rate(), 1)} times a second`;
  $("rate").textContent = behind;
}, 500);

async function wait() {
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
show();
await load().catch((error) => toast(error.message, true));
connect();
if (run.state.status === "starting") { await wait(); controls($("targets"), run, flip); suggestions(); await load(); show(); }
