// The instructor's page: who is here and how far each has come, live; what all are shown; grading.
import { $, api, element, toast } from "./app.js";
import { attempt, banner, follow, namesOf } from "./class_link.js";
import { Grid } from "./instructor_grid.js";
import { Texts } from "./instructor_texts.js";
import { drawnAnswer } from "./sketch.js";

let about = null;
let state = null; // the latest grid
let receivedAt = 0;

const count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const look = (body) => attempt("/api/instructor/look", body);
const grid = new Grid($("grid"), { look, detail: showDetail, readmit, free, manage });
const texts = new Texts($("answers"));

// `added`: the worksheet to show, if not the one on which most seats are.
async function load(added) {
  about = await api("/api/instructor/class");
  $("qr").innerHTML = about.qr; // drawn by the server from the link
  $("code").textContent = about.code;
  $("link").textContent = about.link;
  $("link").href = about.link;
  $("projector").href = about.projector;
  $("shipped").replaceChildren(...about.more.map((each) => element("option", { value: each }, each)));
  $("add-shipped").hidden = !about.more.length;
  $("worksheet").replaceChildren(...about.worksheets.map((each) => element("option", { value: each.name }, each.title)));
  $("worksheet").value = added ?? busiest(about.grid.seats) ?? about.worksheets[0]?.name;
  show(about.grid);
}

function show(found) {
  if (found !== state) receivedAt = performance.now();
  state = found;
  const sheet = about.worksheets.find((each) => each.name === $("worksheet").value);
  grid.draw(found, sheet, (performance.now() - receivedAt) / 60_000);
  $("nobody").hidden = found.seats.length > 0;
  drawShared(found.shared);
  const taken = found.seats.filter((each) => !each.left);
  const online = taken.filter((each) => each.online).length;
  $("free-empty").disabled = taken.every((each) => each.has_work);
  $("numbers").textContent = `${count(taken.length, "seat")}, ${online} on the page · ${count(found.running, "run")} going on, ${found.waiting} waiting · machine ${Math.round(100 * found.busy)} % busy`;
  $("freeze").setAttribute("aria-pressed", String(found.frozen));
  $("freeze").textContent = found.frozen ? "Let them go on" : "Freeze";
  banner("frozen", found.frozen ? "The class is frozen: nobody can start a run or answer." : null, "warn");
  banner("clock", found.clock || null, "warn");
  $("unlook").hidden = !found.look;
  const seats = [["", "all seats"], ...taken.map((each) => [each.seat, namesOf(each)])];
  const key = JSON.stringify(seats);
  if ($("extend-seat").dataset.key === key) return;
  const chosen = $("extend-seat").value;
  $("extend-seat").dataset.key = key;
  $("extend-seat").replaceChildren(...seats.map(([value, text]) => element("option", { value }, text)));
  $("extend-seat").value = chosen;
}

// The worksheet on which most seats are.
function busiest(seats) {
  const counts = new Map();
  for (const { worksheet } of seats) if (worksheet) counts.set(worksheet, (counts.get(worksheet) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0];
}

const STATUS = { waiting: "It waits.", running: "It runs.", complete: "It is complete.", interrupted: "It was stopped.", failed: "It failed.", cut: "It was cut off." };

// The runs that the instructor makes, each with its latest state.
function drawShared(runs) {
  const rows = about.worksheets.flatMap((sheet) => sheet.shared.map((step) => ({ sheet, step })));
  $("runs").hidden = !rows.length;
  const key = JSON.stringify(runs);
  if ($("shared").dataset.key === key) return;
  $("shared").dataset.key = key;
  $("shared").replaceChildren(
    ...rows.map(({ sheet, step }) => {
      const latest = runs.findLast((each) => each.worksheet === sheet.name && each.step === step);
      const start = (body) => () => attempt(`/api/instructor/worksheets/${sheet.name}/runs/${step}`, body);
      const going = latest && ["waiting", "running"].includes(latest.status);
      return element(
        "p",
        { class: "actions" },
        element("b", {}, `${sheet.title} · ${step}`),
        ...(going ? [] : [element("button", { type: "button", class: "primary", onclick: start({}) }, "Start"), element("button", { type: "button", onclick: start({ engine: "sim" }) }, "Simulate instead")]),
        element("span", { class: "meta", role: "status" }, latest ? `${STATUS[latest.status] ?? latest.status} ${latest.error}${latest.engine === "sim" ? " Simulated." : ""}` : ""),
        ...(latest && latest.status !== "waiting" ? sharedRun(latest) : []),
        ...(going ? [element("button", { type: "button", class: "danger", onclick: () => attempt(`/api/class/runs/${encodeURIComponent(latest.run)}/stop`) }, "Stop")] : []),
      );
    }),
  );
}

const sharedRun = ({ run }) => [
  element("a", { href: `/class/runs/${encodeURIComponent(run)}` }, "Watch it"),
  element("button", { type: "button", onclick: () => look({ run }) }, "Show it to all"),
];

async function readmit(seat) {
  const found = await attempt(`/api/instructor/seats/${seat.seat}/readmit`);
  if (!found) return;
  $("detail-title").textContent = namesOf(seat);
  $("detail-body").replaceChildren(
    element("p", {}, `On the other computer: open the link, write the code, the name ${found.name} and this PIN, and press "I was here before".`),
    element("p", { class: "code" }, found.pin),
    element("p", { class: "muted" }, "It is shown once."),
  );
  $("detail").showModal();
}

async function free(seat) {
  const names = namesOf(seat);
  if (seat.has_work && !confirm(`Free the seat of ${names}? Its work stays in the grades, but nobody can go on with it.`)) return;
  if (await attempt(`/api/instructor/seats/${seat.seat}/free`)) toast(`The seat of ${names} is free.`);
}

const shownRun = ({ id, status }) =>
  element(
    "span",
    { class: "actions" },
    element("a", { href: `/class/runs/${encodeURIComponent(id)}` }, id),
    status === "waiting" ? null : element("button", { type: "button", onclick: () => look({ run: id }) }, "Show it to all"),
  );

// Merge a seat into another one, or remove it.
function manage(seat) {
  const names = namesOf(seat);
  const act = async (path, body, done) => {
    if (!(await attempt(path, body))) return;
    $("detail").close();
    toast(done);
  };
  const others = state.seats.filter((each) => !each.left && each.seat !== seat.seat);
  const into = element("select", { id: "into" }, ...others.map((each) => element("option", { value: each.seat }, namesOf(each))));
  const merging = seat.left || !others.length ? [] : [
    element("p", {}, "One team: ", element("label", { for: "into" }, "merge this seat into that of "), into),
    element("p", { class: "help" }, "Their browsers go on there. Work on worksheets that the other seat has not opened goes with them; on others, that of the other seat counts."),
    element("p", { class: "actions" }, element("button", { type: "button", onclick: () => act(`/api/instructor/seats/${seat.seat}/merge`, { into: into.value }, `${names} went to another seat.`) }, "Merge")),
  ];
  const remove = () => confirm(`Remove ${names}?${seat.has_work ? " The work of this seat will not be in the grades." : ""}`) && act(`/api/instructor/seats/${seat.seat}/remove`, {}, `${names} removed.`);
  $("detail-title").textContent = names;
  $("detail-body").replaceChildren(
    ...merging,
    element("p", {}, "Removed from the room and from the grades:"),
    element("p", { class: "actions" }, element("button", { type: "button", class: "danger", onclick: remove }, "Remove this seat")),
  );
  $("detail").showModal();
}

async function addWorksheet(body) {
  const found = await attempt("/api/instructor/worksheets", body);
  if (!found) return;
  await load(found.name);
  toast(`The worksheet ${found.name} is on all pages.`);
}

async function showDetail(seat, sheet, step) {
  const found = await api(`/api/instructor/seats/${seat.seat}/worksheets/${sheet.name}`).catch((error) => toast(error.message, true));
  const task = found?.steps.find((each) => each.id === step.id);
  if (!task) return;
  $("detail-title").textContent = `${namesOf(seat)}: ${step.id}`;
  const rows = [
    ["asked", task.ask ?? task.title],
    ["answer", Array.isArray(task.answer) ? drawnAnswer(task.answer, task.curve) : task.answer],
    ["state", task.state],
    ["tries", task.tries],
    ["points", task.given_points === null || task.given_points === undefined ? null : `${task.given_points} of ${task.points}`],
    ["problem", task.problem],
    ...(task.figures ?? []).map((each) => [each.label, `${+each.value.toPrecision(4)} ${each.unit}`]),
    ...(task.runs ?? []).map((each) => [each.status, shownRun(each)]),
  ].filter(([, value]) => value !== null && value !== undefined && value !== "");
  $("detail-body").replaceChildren(
    element("dl", { class: "facts" }, ...rows.flatMap(([key, value]) => [element("dt", {}, key), element("dd", {}, value instanceof Node ? value : String(value))])),
    element("p", { class: "actions" }, element("button", { type: "button", onclick: () => look({ worksheet: sheet.name, step: step.id }) }, "Point all at this step")),
  );
  $("detail").showModal();
}

$("worksheet").addEventListener("change", () => state && show(state));
$("freeze").addEventListener("click", async () => {
  const found = await attempt("/api/instructor/freeze", { frozen: !state.frozen });
  if (found) show({ ...state, ...found }); // the stream says it a moment later
});
$("unlook").addEventListener("click", () => look({}));
$("free-empty").addEventListener("click", async () => {
  const empty = state.seats.filter((each) => !each.left && !each.has_work).length;
  if (!confirm(`Remove ${count(empty, "seat")} without work? Whoever is there has to join again.`)) return;
  const found = await attempt("/api/instructor/seats/free-empty");
  if (found) toast(`${count(found.freed.length, "seat")} removed.`);
});
$("add-shipped").addEventListener("submit", (event) => {
  event.preventDefault();
  addWorksheet({ name: $("shipped").value });
});
$("sheet-file").addEventListener("change", async () => {
  const [file] = $("sheet-file").files;
  if (!file) return;
  await addWorksheet({ name: file.name.replace(/\.ya?ml$/, ""), text: await file.text() });
  $("sheet-file").value = "";
});
$("more-texts").addEventListener("click", () => texts.load());
$("extend").addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = { minutes: $("minutes").valueAsNumber, worksheet: $("worksheet").value, seat: $("extend-seat").value || null };
  if (await attempt("/api/instructor/extend", body)) toast(`${body.minutes} minutes more.`);
});
$("wipe").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (await attempt("/api/instructor/wipe", { name: $("wipe-name").value })) banner("wiped", "The class is deleted, and its server has ended.", "warn");
});
setInterval(() => state && show(state), 15_000); // minutes without progress pass also without news
await load().catch((error) => toast(error.message, true));
texts.load();
follow("/api/instructor/stream", "grid", (found) => about && show(found));
