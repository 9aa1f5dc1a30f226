// A worksheet as a student works on it. The server holds all that is saved; what is typed and not
// saved yet is kept in this browser, so that nothing is lost by leaving the page.
import { $, api, data, element, toast } from "./app.js";
import { attempt, follow, minutes, showClass } from "./class_link.js";
import { RunStep } from "./worksheet_run.js";
import { CheckStep, PredictStep, QuestionStep, TextStep } from "./worksheet_steps.js";

const CARDS = { predict: PredictStep, question: QuestionStep, check: CheckStep, run: RunStep };
const path = `/api/class/worksheets/${encodeURIComponent(data("about").name)}`;
let sheet = null; // as the server sent it last
let receivedAt = 0;
let requests = 0; // for the sheet, to the server
let shown = 0; // the request whose answer the page shows
let cards = null; // one for each step
let changed = null; // of the last message
let seatName = "";

// Answers that were typed and not saved yet. They last as long as the browser's tab.
const drafts = {
  key: () => `draft ${document.title} ${seatName}`,
  all: () => JSON.parse(sessionStorage.getItem(drafts.key()) ?? "{}"),
  keep: (found) => sessionStorage.setItem(drafts.key(), JSON.stringify(found)),
  get: (id) => drafts.all()[id],
  set: (id, value) => drafts.keep({ ...drafts.all(), [id]: value }),
  delete(id) {
    const { [id]: _, ...rest } = drafts.all();
    drafts.keep(rest);
  },
};

const since = () => (performance.now() - receivedAt) / 1000;
const context = {
  drafts,
  send: (what, body) => attempt(`${path}/${what}`, body),
  post: (what) => attempt(`/api/class/${what}`),
  refresh: () => refresh(),
  showProgress: () => showProgress(),
  wait: (step) => Math.max(0, Math.ceil((step.wait_s ?? 0) - since())),
  hidden: () => sheet.hidden,
  resultsFrom: () => (sheet.results_from ? `from ${new Date(sheet.results_from).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })} on` : "later"),
  predictions,
};

// What was predicted for a run, as lines over its charts.
function predictions(run) {
  return sheet.steps.flatMap((step) => {
    const over = step.curve ?? step.number;
    if (step.kind !== "predict" || step.answer === null || over?.run !== run || !over.path) return [];
    const level = sheet.steps.find((each) => each.id === run)?.duration_s ?? 0;
    const points = step.curve ? step.answer : [[0, step.answer], [level, step.answer]];
    return [{ path: over.path, points, name: "your prediction" }];
  });
}

async function refresh() {
  if (!data("about").opened) return;
  const order = ++requests;
  let found;
  try {
    found = await api(path);
  } catch (error) {
    toast(error.message, true);
    return;
  }
  if (order < shown) return; // a later request brought a newer sheet
  shown = order;
  sheet = found;
  receivedAt = performance.now();
  if (!cards) build();
  sheet.steps.forEach((step, n) => cards[n].update(step));
  for (const card of cards) card.redraw?.();
  showProgress();
}

function build() {
  let n = 0;
  cards = sheet.steps.map((step, index) => (step.kind === "text" ? new TextStep(step, index) : new CARDS[step.kind](step, ++n, context)));
  $("steps").replaceChildren(...cards.map((card) => card.node));
  $("end").hidden = false;
  $("rail-steps").replaceChildren(
    ...cards.filter((card) => card.frame).map((card, k) => element("a", { href: `#${card.node.id}`, "aria-label": card.node.getAttribute("aria-label") }, String(k + 1))),
  );
  const wanted = location.hash && document.getElementById(location.hash.slice(1));
  if (wanted) wanted.scrollIntoView();
}

const DONE = ["passed", "saved"];

function showProgress() {
  const tasks = cards.filter((card) => card.frame);
  const done = tasks.filter((card) => DONE.includes(card.node.dataset.state)).length;
  $("progress").style.width = `${(100 * done) / tasks.length}%`;
  const bar = $("progress").parentElement;
  bar.setAttribute("aria-valuemax", String(tasks.length));
  bar.setAttribute("aria-valuenow", String(done));
  $("done").textContent = `${done} of ${tasks.length} steps done`;
  $("results").textContent = sheet.hidden ? `Results are shown ${context.resultsFrom()}` : "";
  $("points").textContent = sheet.points === null ? "" : `${sheet.points} of ${sheet.of} points`;
  [...$("rail-steps").children].forEach((link, k) => (link.dataset.state = tasks[k].node.dataset.state));
  tick();
}

function tick() {
  if (!sheet) return;
  const left = sheet.left_s - (sheet.frozen ? 0 : since());
  const over = left <= 0;
  $("left").textContent = over ? "Time is over" : `${minutes(left)} left`;
  $("left").className = over ? "over" : left < 120 ? "soon" : "";
  $("steps").disabled = sheet.frozen;
  for (const [n, step] of sheet.steps.entries()) if (step.wait_s) cards[n].show?.();
}

function pointAt({ step }) {
  const node = step && document.getElementById(step);
  if (!node) return;
  node.scrollIntoView({ behavior: "smooth", block: "center" });
  node.classList.add("pointed");
  setTimeout(() => node.classList.remove("pointed"), 4000);
}

$("start-card").hidden = data("about").opened;
$("open").addEventListener("click", async () => {
  if (await attempt(`${path}/open`)) location.reload(); // the server sends the texts with the page
});
addEventListener("online", refresh);
document.addEventListener("input", () => cards && showProgress());
setInterval(tick, 1000);
follow("/api/class/stream", "seat", (seat) => {
  seatName = seat.seat;
  showClass(seat, pointAt);
  const mine = seat.worksheets.find((each) => each.name === data("about").name);
  const key = JSON.stringify([mine?.changed, mine?.opened, seat.frozen]);
  if (key === changed) return;
  changed = key;
  if (mine?.opened && !data("about").opened) location.reload(); // it was opened in another tab
  refresh();
});
