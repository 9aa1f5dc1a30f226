// What happened around a time, in words: the users whose rate changed, and the events.
import { element, number } from "./app.js";

const NEAR_S = 3; // before and after
const MOST = 8;

export function around(t, events, traces) {
  const near = events.filter((event) => !event.quiet && Math.abs(event.t - t) <= NEAR_S);
  const closest = [...near].sort((a, b) => Math.abs(a.t - t) - Math.abs(b.t - t)).slice(0, MOST);
  const lines = [
    ...changes(t, traces).map((text) => element("li", {}, text)),
    ...closest.sort((a, b) => a.t - b.t).map((event) => eventLine(event, t)),
  ];
  if (!near.length) lines.push(element("li", {}, before(t, events)));
  return lines;
}

function eventLine(event, t) {
  const gap = event.t - t;
  const when =
    Math.abs(gap) < 0.05
      ? "at this time"
      : `${number(Math.abs(gap), 1)} s ${gap < 0 ? "before" : "after"}`;
  const reason = event.reason ? `: ${event.reason}` : "";
  return element(
    "li",
    { class: Math.abs(gap) < 0.05 ? "now" : "" },
    `${number(event.t, 1)} s (${when}): ${event.word.toLowerCase()}, ${event.title}${reason}.`,
  );
}

function before(t, events) {
  const last = events.filter((event) => !event.quiet && event.t < t).at(-1);
  if (!last) return `No event within ${NEAR_S} s, and none before.`;
  return `No event within ${NEAR_S} s. The last one was ${number(t - last.t, 1)} s before: ${last.word.toLowerCase()}, ${last.title}.`;
}

// Sentences for the lines that changed most: means of the seconds before and after.
export function changes(t, traces) {
  return traces
    .map((trace) => ({ name: trace.name, old: mean(trace, t - NEAR_S, t), now: mean(trace, t, t + NEAR_S) }))
    .filter(({ old, now }) => old !== null && now !== null)
    .map((each) => ({ ...each, by: Math.abs(each.now - each.old) }))
    .filter(({ old, by }) => by >= 0.1 && by >= 0.1 * old)
    .sort((a, b) => b.by - a.by)
    .slice(0, 3)
    .map(
      ({ name, old, now }) =>
        `${name} ${now < old ? "fell" : "rose"} from ${number(old, 1)} to ${number(now, 1)} Mb/s (means of ${NEAR_S} s before and after).`,
    );
}

function mean(trace, from, to) {
  let sum = 0,
    count = 0;
  for (let i = 0; i < trace.x.length; i++)
    if (trace.x[i] > from && trace.x[i] <= to && trace.y[i] !== null) {
      sum += trace.y[i];
      count++;
    }
  return count ? sum / count : null;
}
