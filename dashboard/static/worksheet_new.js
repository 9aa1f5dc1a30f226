// Make a worksheet from a finished run: pick figures from a list, and save the file.
import { $, api, data, element, number } from "./app.js";

const about = data("about");
const path = `/api/runs/${encodeURIComponent(about.id)}`;
const SAMPLED = /^mean\((.+), (.+)\.\.(.+)\)$/; // a mean over the run, which can have another span
let rows = [];

// A row of the list. `figure()` is in the language of checks.
function row(found) {
  const sampled = found.text.match(SAMPLED);
  const words = sampled ? found.words.replace(/, [^,]*$/, "") : found.words;
  const pick = element("input", { type: "checkbox", "aria-label": `Ask for: ${words}` });
  const end = sampled ? Number(sampled[3]) : null;
  const time = (value, label) => element("input", { type: "number", min: 0, max: end, step: "any", value, "aria-label": `${label}: ${words}` });
  const [from, to] = sampled ? [time(0, "From"), time(end, "To")] : [null, null];
  const kind = element("select", { "aria-label": `Before the run: ${words}` }, element("option", { value: "" }, "write a number"), sampled ? element("option", { value: "curve" }, "draw a curve") : null);
  const ask = element("input", { maxlength: 2000, value: `What do you expect: ${words}?`, id: `ask-${found.text}` });
  const made = {
    pick,
    ask: element("div", { class: "field" }, element("label", { for: ask.id }, `Prediction: ${words}`), ask),
    matches: (wanted) => wanted.every((each) => `${words} ${found.text}`.toLowerCase().includes(each)),
    read: () => ({ figure: sampled ? `mean(${sampled[1]}, ${from.value}..${to.value})` : found.text, curve: kind.value === "curve", ask: ask.value }),
  };
  made.node = element(
    "tr",
    {},
    element("td", {}, pick),
    element("td", { title: found.text }, words),
    element("td", { class: "num" }, `${number(found.value, 2)} ${found.unit}`),
    element("td", {}, ...(sampled ? [element("span", { class: "span" }, from, to)] : ["whole run"])),
    element("td", {}, kind),
  );
  pick.addEventListener("change", showPicked);
  return made;
}

function showPicked() {
  const picked = rows.filter((each) => each.pick.checked);
  $("picked").textContent = picked.length ? `${picked.length} picked` : "none picked yet";
  $("asks").replaceChildren(...picked.map((each) => each.ask));
}

function fail(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
}

$("filter").addEventListener("input", () => {
  const wanted = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const each of rows) each.node.hidden = !each.pick.checked && !each.matches(wanted);
});

$("draft").addEventListener("submit", async (event) => {
  event.preventDefault();
  const figures = rows.filter((each) => each.pick.checked).map((each) => each.read());
  if (!figures.length) return fail("Pick at least one figure.");
  fail("");
  try {
    const { text } = await api(`${path}/worksheet`, { method: "POST", body: { figures, title: $("title").value, minutes: $("minutes").valueAsNumber } });
    $("text").value = text;
    $("made").hidden = false;
    $("made").scrollIntoView({ block: "start" });
  } catch (error) {
    fail(error.message);
  }
});

// The file has the text as it was edited here.
$("save").addEventListener("click", () => {
  URL.revokeObjectURL($("save").href);
  $("save").href = URL.createObjectURL(new Blob([$("text").value], { type: "text/yaml" }));
  $("save").download = `${about.scenario}_own.yaml`;
});

try {
  rows = (await api(`${path}/figures`)).map(row);
  $("figures").replaceChildren(...rows.map((each) => each.node));
  showPicked();
} catch (error) {
  fail(error.message);
}
