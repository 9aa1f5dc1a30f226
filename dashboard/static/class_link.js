// What all pages of a class share: the stream of server-sent events, the banners about it, requests
// that say what went wrong, and going to what the instructor points at.
import { $, api, element, toast } from "./app.js";

const RETRY_MS = 2000;

// Follow a stream: `receive(data)` for each event of `type`. The connection is closed while the
// page is hidden, because a browser has only six for all its pages.
export function follow(path, type, receive) {
  let source = null,
    timer = null;
  const connect = () => {
    timer = null;
    if (source || document.hidden) return;
    source = new EventSource(path);
    source.addEventListener(type, (event) => {
      banner("lost", null);
      receive(JSON.parse(event.data));
    });
    source.onerror = () => {
      banner("lost", "The server does not answer. What you saved is kept; this page connects again by itself.", "warn");
      if (source?.readyState !== EventSource.CLOSED) return;
      source = null;
      timer ??= setTimeout(connect, RETRY_MS);
      if (path === "/api/class/stream") joinIfFreed();
    };
  };
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return connect();
    source?.close();
    source = null;
    clearTimeout(timer);
    timer = null;
  });
  connect();
}

// Go to the page for joining if the instructor has freed this seat.
const joinIfFreed = () => api("/api/class/seat").catch((error) => error.status === 403 && location.assign("/"));

// The people of a seat: "Ada, Bo and Cy".
export const namesOf = ({ people }) => [people.slice(0, -1).join(", "), people.at(-1)].filter(Boolean).join(" and ");

export const post = (path, body = {}) => api(path, { method: "POST", body });

// Send a request; if it fails, say why.
export async function attempt(path, body) {
  try {
    return await post(path, body);
  } catch (error) {
    toast(error.message, true);
    return null;
  }
}

// Show or remove (content null) a banner below the top of the page.
export function banner(id, content, kind = "info") {
  const box = $("class-banners");
  const present = box.querySelector(`[data-banner="${id}"]`);
  if (content === null) return void present?.remove();
  const key = typeof content === "string" ? content : content.textContent;
  if (present?.textContent === key) return;
  const made = element("div", { class: `banner ${kind}`, "data-banner": id, role: "status" }, content);
  if (present) present.replaceWith(made);
  else box.append(made);
}

const BEFORE = "before-look"; // in the browser's storage: where the seat was before it was led away

// What a seat's pages show of the class. A page that was led to what the instructor points at goes
// back to where it was when the instructor stops.
let shown; // what was pointed at when the last message came
export function showClass(seat, here) {
  if ($("people")) $("people").textContent = namesOf(seat);
  banner("frozen", seat.frozen ? "The instructor has stopped the class for a moment. Your work is saved." : null, "warn");
  document.body.classList.toggle("frozen", seat.frozen);
  const key = JSON.stringify(seat.look);
  const isNew = shown !== undefined && shown !== key;
  shown = key;
  const address = addressOf(seat.look);
  const isHere = address === null || address.split("#")[0] === location.pathname;
  banner("look", isHere || !address ? null : link(address, "The instructor points at something: look here"));
  if (isNew && address) {
    if (isHere) here?.(seat.look);
    else goTo(address);
  }
  if (!address) goBack();
}

// {from, to} if this page was led here; a seat that has gone elsewhere by itself was not.
function led() {
  const found = JSON.parse(sessionStorage.getItem(BEFORE) ?? "null");
  return found?.to.split("#")[0] === location.pathname ? found : null;
}

function goTo(address) {
  const from = led()?.from ?? location.pathname + location.hash;
  sessionStorage.setItem(BEFORE, JSON.stringify({ from, to: address }));
  location.href = address;
}

function goBack() {
  const from = led()?.from;
  sessionStorage.removeItem(BEFORE);
  if (from) location.href = from;
}

function addressOf(look) {
  if (!look) return null;
  if (look.run) return `/class/runs/${encodeURIComponent(look.run)}`;
  return `/seat/${encodeURIComponent(look.worksheet)}${look.step ? `#${look.step}` : ""}`;
}

const link = (href, text) => element("a", { href }, text);

// 754 as 12:34; less than 0 as 0:00.
export function minutes(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}
