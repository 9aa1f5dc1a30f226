// Shared by all pages: theme, keyboard shortcuts, requests to the server, short notices.
export const $ = (id) => document.getElementById(id);
export const data = (id) => JSON.parse($(id).textContent);

const LOST =
  document.querySelector("[data-lost]")?.dataset.lost ??
  "the dashboard does not answer. Check that ./run_lab.sh is still running in the terminal.";

export async function api(path, options = {}) {
  const { method = "GET", body, signal } = options;
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Error(LOST);
  }
  const text = await response.text();
  const answer = text ? JSON.parse(text) : null;
  if (!response.ok)
    throw Object.assign(new Error(answer?.error ?? response.statusText), {
      status: response.status,
      field: answer?.field,
    });
  return answer;
}

export function toast(text, bad = false) {
  const note = element(
    "div",
    { class: bad ? "toast bad" : "toast", role: bad ? "alert" : "status" },
    text,
  );
  $("toasts").append(note);
  setTimeout(() => note.remove(), bad ? 9000 : 3500);
}

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined)
      made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export const number = (value, digits = 2) =>
  value === null || value === undefined ? "–" : Number(value).toFixed(digits);
export const pill = (status) => element("span", { class: `pill ${status}` }, status);
export const started = (text) =>
  text ? new Date(text).toLocaleString([], { dateStyle: "short", timeStyle: "medium" }) : "";
export const verified = (doc) =>
  doc.verified === null || doc.verified === undefined
    ? "–"
    : doc.verified
      ? "verified"
      : "NOT verified";

// The value of a colour of lab.css. They are kept, because charts need many for each frame.
const colours = new Map();
const forgetColours = () => colours.clear();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", forgetColours);
export function css(name) {
  if (!colours.has(name))
    colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return colours.get(name);
}

export function dark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function banners(rows) {
  const box = $("banners");
  const text = JSON.stringify(rows);
  if (box.dataset.shown === text) return;
  box.dataset.shown = text;
  box.replaceChildren(
    ...rows.map(([kind, text]) =>
      element("div", { class: `banner ${kind}`, role: kind === "bad" ? "alert" : "status" }, text),
    ),
  );
}

function changeTheme() {
  const next = dark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("theme", next);
  forgetColours();
  document.dispatchEvent(new Event("theme"));
}

const typing = (event) =>
  event.target.closest("input, select, textarea, button, summary, a, [contenteditable]");
let lastKey = "";
document.addEventListener("keydown", (event) => {
  if (
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    event.target.closest("input, select, textarea")
  )
    return;
  if (event.key === " " && typing(event)) return;
  const pair = lastKey + event.key;
  lastKey = event.key === "g" ? "g" : "";
  const page = { gs: "/", gr: "/runs" }[pair];
  if (page) document.querySelector(`.top a[href="${page}"]`)?.click();
  else if (event.key === "t") changeTheme();
  else if (event.key === "?") $("keymap").showModal();
  else document.dispatchEvent(new CustomEvent("shortcut", { detail: event }));
});
$("theme").addEventListener("click", changeTheme);
$("keys").addEventListener("click", () => $("keymap").showModal());
