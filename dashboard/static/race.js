// The page of a race: two to four runs side by side, one set of controls, and the difference of each
// to the first.
import { $, api, banners, css, data, element, number, toast } from "./app.js";
import { Charts, runColour } from "./charts.js";
import { controls, pick, refill } from "./controls.js";
import { showSpeed } from "./pace.js";
import { Apart, quantities } from "./race_apart.js";
import { Stream } from "./stream.js";
import { TimeView } from "./time_view.js";

const CLOSES_MS = 3000; // after the last message of a run that is over
const DRAWN_MS = 400;
const ALL = "all";
const pathOf = (run) => `/api/runs/${encodeURIComponent(run.id)}`;
const view = new TimeView();

class LaneCharts extends Charts {
  layoutOf(...about) {
    const layout = super.layoutOf(...about);
    const top = Math.max(...lanes.map((lane) => lane.top));
    if (top > 0) layout.yaxis.range = [0, 1.05 * top];
    return layout;
  }
}

class Lane {
  constructor(run, n, node) {
    Object.assign(this, { run, n, node, letter: "ABCD"[n], t: 0, top: 0, number: 0, frames: 0, latest: 0 });
    this.box = node.querySelector(".slot");
    this.charts = new LaneCharts(this.box, { live: !run.state.over, view });
    this.stream = new Stream(pathOf(run), (type, body) => this.message(type, body), (error) => this.say(error.message, true));
  }

  async load() {
    const { figures } = await api(`${pathOf(this.run)}/charts`);
    const main = ["tiers", "users"].map((wanted) => figures.find(({ name }) => name === wanted)).find(Boolean) ?? figures[0];
    if (!main) return;
    this.charts.set([main]);
    const card = this.charts.cards.get(main.name);
    card.node.id = `lane-${this.letter}`;
    card.node.dataset.part = "chart-more";
    this.reached(card.traces.flatMap(({ x }) => x.at(-1) ?? 0), card.traces.flatMap(({ y }) => y));
    this.drawnTo = this.charts.t = Math.max(0, ...card.traces.map(({ x }) => x.at(-1) ?? 0));
  }

  // The axes of all lanes are those of the greatest value in any.
  reached(times, values) {
    const top = Math.max(this.top, ...values.filter((each) => each !== null && each !== undefined));
    if (top > Math.max(...lanes.map((lane) => lane.top))) for (const { charts } of lanes) charts.refresh();
    this.top = top;
  }

  message(type, body) {
    if (type === "sample") this.sample(body);
    else if (type === "event") this.event(body);
    else this.state(body);
    if (this.run.state.over) this.closeSoon();
  }

  sample(frame) {
    if (frame.t <= this.t && this.frames) return;
    this.t = frame.t;
    this.frames += 1;
    apart.add(this.n, frame);
    const [card] = this.charts.cards.values();
    if (!card) this.reloadSoon();
    else if (frame.t > this.drawnTo) {
      this.charts.append(frame);
      this.reached([], card.traces.map(({ y }) => y.at(-1)));
      const [kind] = card.traces[0].meta.key;
      const known = new Set(card.traces.map(({ meta }) => meta.key[1]));
      if (Object.keys(frame[kind] ?? {}).some((each) => !known.has(each))) this.reloadSoon();
    }
    drawSoon();
  }

  reloadSoon() {
    this.reloading ??= setTimeout(async () => {
      await this.load().catch((error) => this.say(error.message, true));
      this.reloading = null;
    }, 1000);
  }

  event(event) {
    if (event.n <= this.latest) return;
    this.latest = event.n;
    if (event.kind === "flip" && event.mark === "line") event.number = ++this.number;
    this.charts.mark(event);
    if (event.state === "refused") toast(`Lane ${this.letter}: ${event.title}: ${event.reason}`, true);
    if (["flip", "decision", "link", "error"].includes(event.kind) && event.state !== "sent")
      this.say(`${number(event.t, 1)} s: ${event.title}. ${event.reason ?? ""}`);
    if (event.kind === "flip" && event.state === "applied") settingsSoon();
  }

  state(state) {
    const ended = state.over && !this.run.state.over;
    this.run.state = state;
    if (ended) this.end();
    this.show();
    showState();
  }

  end() {
    this.charts.finish();
    this.load().catch((error) => this.say(error.message, true)); // the axis ends with the run
  }

  show() {
    const { state } = this.run;
    const text = state.paused ? "paused" : state.status;
    const pill = this.node.querySelector(".pill");
    Object.assign(pill, { className: `pill ${text}`, textContent: text });
    if (state.status === "cut") this.say(state.error || "The process of this lane has ended without a result. The other lanes go on; the samples until then are kept.", true);
    else if (state.error) this.say(`This lane failed: ${state.error}`, true);
    else if (state.suspended) this.say(`All lanes wait for this one: ${state.suspended}.`, true);
    else if (state.over && state.verdict.is === "no") this.say(state.verdict.text, true);
  }

  say(text, bad = false) {
    const node = this.node.querySelector(".said");
    if (!bad && node.classList.contains("bad") && this.run.state.over) return;
    node.classList.toggle("bad", bad);
    node.textContent = text;
    node.title = text;
  }

  closeSoon() {
    clearTimeout(this.closing);
    this.closing = setTimeout(() => {
      this.stream.over = true;
      this.stream.disconnect();
    }, CLOSES_MS);
  }
}

const lanes = [];
for (const [n, run] of data("lanes").entries())
  lanes.push(new Lane(run, n, document.querySelector(`[data-run="${CSS.escape(run.id)}"]`)));
const apart = new Apart($("apart"), lanes);
let chosen = ALL; // or the place of a lane
let summaries = null; // of all lanes, when the race is over

const isOver = () => lanes.every((lane) => lane.run.state.over);
const going = () => lanes.filter((lane) => !lane.run.state.over);

// ---- controls

async function post(path, body = {}) {
  try {
    return await api(path, { method: "POST", body });
  } catch (error) {
    toast(error.message, true);
    return null;
  }
}

const toAll = (what, body) => Promise.all(going().map((lane) => post(`${pathOf(lane.run)}/${what}`, body)));

function meant() {
  return chosen === ALL ? going() : [lanes[chosen]];
}

function flip(target, value) {
  post("/api/races/flips", { runs: meant().map((lane) => lane.run.id), target, value });
}

// What can be changed in all lanes that are meant.
function targets() {
  const [first, ...others] = meant().length ? meant() : lanes;
  return first.run.targets.filter(({ name }) =>
    others.every((lane) => lane.run.targets.some((each) => each.name === name)),
  );
}

function showControls() {
  controls($("targets"), { targets: targets() }, flip);
  pick((name) => name === "cc" || name.split(".")[0] === "strategy");
  const words = chosen === ALL ? "in all lanes" : `in lane ${lanes[chosen].letter}`;
  $("knobs-note").textContent = `A change is made ${words}, at the same simulated time.`;
  $("controls").hidden = isOver();
  for (const each of $("which").children) each.setAttribute("aria-pressed", String(each.value === String(chosen)));
}

function offerLanes() {
  const names = [[ALL, "all"], ...lanes.map((lane) => [lane.n, lane.letter])];
  $("which").replaceChildren(...names.map(([value, text]) => element("button", { type: "button", value, class: "button", title: value === ALL ? "All lanes" : lanes[value].run.label }, text)));
  $("which").addEventListener("click", ({ target }) => {
    const { value } = target.closest("button") ?? {};
    if (value === undefined) return;
    chosen = value === ALL ? ALL : Number(value);
    showControls();
  });
}

// Suggestions of the scenario that all lanes can take; the strategies are what races.
function showSuggestions() {
  const common = new Set(lanes[0].run.targets.map(({ name }) => name));
  const rows = lanes[0].run.to_try.filter(({ target }) => common.has(target) && !target.startsWith("strategy"));
  $("try").replaceChildren(
    ...(isOver() ? [] : rows).map((each) => {
      const button = element("button", { type: "button", class: "press", title: each.name }, element("b", { class: "letter", "aria-hidden": "true" }, "▸"), element("span", { class: "words" }, each.before));
      button.addEventListener("click", () => flip(each.target, each.value));
      return element("li", {}, button);
    }),
  );
}

let asking = null;
function settingsSoon() {
  asking ??= setTimeout(async () => {
    asking = null;
    try {
      for (const lane of lanes) lane.run = { ...(await api(pathOf(lane.run))), label: lane.run.label };
    } catch (error) {
      toast(error.message, true);
    }
    refill({ targets: targets() });
    pick((name) => name === "cc" || name.split(".")[0] === "strategy");
  }, 300);
}

// ---- the page

function showState() {
  const over = isOver();
  const [{ run }] = going().length ? going() : lanes;
  const text = over ? "over" : run.state.paused ? "paused" : run.state.status;
  Object.assign($("pill"), { className: `pill ${over ? "complete" : text}`, textContent: text });
  for (const id of ["pause-run", "speed", "stop"]) $(id).hidden = over;
  $("pause-run").textContent = run.state.paused ? "Resume" : "Pause";
  showSpeed($("speed"), run.state.speed);
  $("compare").classList.toggle("primary", over);
  if (over && !summaries) conclude();
}

// The race ends with the means of its runs.
async function conclude() {
  summaries = [];
  showSuggestions();
  showControls();
  try {
    const found = await Promise.all(lanes.map((lane) => api(`${pathOf(lane.run)}/summary`)));
    summaries = found.map(({ means }) => means);
    const words = apart.outcome(summaries);
    if (words) banners([["info", words]]);
  } catch (error) {
    banners([["warn", error.message]]);
  }
  draw();
}

let drawing = null;
function drawSoon() {
  drawing ??= setTimeout(() => {
    drawing = null;
    draw();
  }, DRAWN_MS);
}

function draw() {
  const [{ run }] = lanes;
  const t = apart.common();
  const over = isOver();
  $("clock").textContent = run.duration_s ? `${number(t, 1)} of ${run.duration_s} s` : "";
  const part = over ? 100 : Math.min(100, (100 * t) / (run.duration_s || Infinity));
  $("progress").style.width = `${part}%`;
  $("progress").parentElement.setAttribute("aria-valuenow", String(Math.round(part)));
  if (document.hidden) return;
  apart.draw(!over, run.duration_s, view);
  apart.tiles($("figures"), summaries?.length ? summaries : null);
}

$("pause-run").addEventListener("click", () => toAll(going().some((lane) => lane.run.state.paused) ? "resume" : "pause"));
$("stop").addEventListener("click", () => toAll("stop"));
$("speed").addEventListener("change", () => toAll("speed", { speed: $("speed").value === "max" ? "max" : Number($("speed").value) }));
document.addEventListener("visibilitychange", () => {
  for (const { stream } of lanes) {
    if (document.hidden) stream.disconnect();
    else stream.connect();
  }
  drawSoon();
});
document.addEventListener("theme", drawSoon);

for (const lane of lanes) {
  lane.node.style.setProperty("--c", runColour(lane.n));
  lane.show();
}
offerLanes();
apart.offer($("quantity"), quantities(lanes[0].run), drawSoon);
showControls();
showSuggestions();
showState();
await Promise.all(lanes.map((lane) => lane.load().catch((error) => lane.say(error.message, true))));
for (const { stream } of lanes) stream.connect();
if (lanes.some(({ run }) => !run.targets.length)) settingsSoon();
draw();
