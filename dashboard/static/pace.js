// The speed of a simulation: the list that sets it, and a line when it is slower than real time.
import { $, element, number } from "./app.js";

const OVER_MS = 10_000; // the speed is a mean over this time
const AT_LEAST_MS = 5_000;
const KEEPS_UP = 0.95; // of the speed that is wanted

export class Pace {
  constructor() {
    this.seen = []; // [time of the browser in ms, time of the run in s]
  }

  // A sample has arrived. `state` is the state of the run.
  reached(t, state) {
    if (state.over || state.paused || state.speed === null) this.seen = [];
    else {
      const now = performance.now();
      this.seen = [...this.seen.filter(([at]) => now - at < OVER_MS), [now, t]];
    }
    const speed = this.speed();
    const wanted = Math.min(1, state.speed === "max" ? 1 : Number(state.speed ?? 1));
    const slow = speed !== null && speed < KEEPS_UP * wanted;
    $("slow").hidden = !slow;
    if (slow)
      $("slow").textContent =
        `Slower than real time: ${number(speed, 2)} simulated seconds per second. ` +
        "The numbers are right, they only come late. The foot of the page says whether the " +
        "simulator is compiled.";
  }

  // Simulated seconds per second; null if that is not known yet.
  speed() {
    if (this.seen.length < 2) return null;
    const [[began, from], [now, to]] = [this.seen[0], this.seen.at(-1)];
    return now - began < AT_LEAST_MS ? null : (1000 * (to - from)) / (now - began);
  }
}

// How long `seconds` of the run still take. `measured` is the speed of the last seconds; without it,
// the speed that is wanted counts. The run is slower than real time by its `time_dilation`.
export function timeLeft(seconds, measured, { state, time_dilation }) {
  const asked = state.speed === "max" ? null : Number(state.speed ?? 1) / (time_dilation ?? 1);
  const isAsked = asked && (!measured || Math.abs(measured / asked - 1) <= 1 - KEEPS_UP);
  const speed = isAsked ? asked : measured;
  if (!speed) return "";
  const left = Math.max(0, seconds) / speed;
  const words = left < 120 ? `${Math.round(left)} s` : `${Math.round(left / 60)} min`;
  return speed === 1 ? `, about ${Math.round(left)} s left` : `, about ${words} left in real time`;
}

// Show a speed in the list that sets it; a speed that was set elsewhere may be none of the list.
export function showSpeed(list, speed) {
  if (speed === null || document.activeElement === list) return;
  const value = String(speed);
  if (![...list.options].some((each) => each.value === value)) list.append(element("option", { value }, `${value}×`));
  list.value = value;
}
