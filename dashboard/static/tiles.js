// The tiles of a run: what a running run carries now, or the means of a finished one.
import { $, element, number } from "./app.js";

// Short for the definition in lab/metrics.py.
const TIER_1 = "over each user's primary access point";
const TIER_2 = "over the other access points of multipath users";
const WHY = "Tier 2"; // the tile that says why on a click
const SUBFLOWS = 4; // that have a tile
const WAITS_FROM = 0.02; // of what arrives; a smaller difference is not explained

// Show one sample: the latest one of a running run, or with `isPast` that of the time on the page.
export function showNow(frame, run, events, isPast = false) {
  const aps = Object.entries(frame.ap ?? {});
  const tiers = [1, 2].map((number) => tierMbps(frame, number, run.relayed));
  const users = Object.values(frame.user ?? {});
  const read = users.reduce((total, user) => total + (user.mbps ?? 0), 0);
  const arrived = Object.values(frame.sf ?? {}).reduce((total, sf) => total + (sf.mbps ?? 0), 0);
  const waits = arrived - read;
  const why =
    waits > WAITS_FROM * arrived
      ? `${number(waits)} Mb/s more arrived, but data before it is missing`
      : -waits > WAITS_FROM * arrived && arrived
        ? `of it ${number(-waits)} Mb/s had waited for earlier data`
        : "what applications read";
  const tiles = [tile("All users", number(read), "Mb/s", why)];
  if (aps.length)
    tiles.push(
      tile("Tier 1", number(tiers[0]), "Mb/s", TIER_1),
      tile("Tier 2", number(tiers[1]), "Mb/s", tier2Why(frame, run, events)),
    );
  else tiles.push(...shares(frame));
  tiles.push(...noticed(frame.user ?? {}, run), ...heldBack(users, run));
  const threshold = run.targets.find((each) => each.name === "strategy.cth")?.value ?? 0.85;
  for (const [name, ap] of aps)
    tiles.push(
      tile(
        `${name} occupancy`,
        number(ap.mac_occupancy),
        "",
        limit(ap.meter_mbps),
        ap.mac_occupancy,
        threshold,
      ),
    );
  show(`${isPast ? "At" : "Now, at"} ${number(frame.t, 1)} s`, tiles);
}

// Without access points: who gets most and least, or what each subflow of the only user carries.
function shares({ user = {}, sf = {} }) {
  if (Object.keys(user).length > 1)
    return extremes(Object.entries(user).map(([name, each]) => [name, each.mbps ?? 0]));
  const subflows = Object.entries(sf).slice(0, SUBFLOWS);
  const rtt = (each) => (each.rtt_ms ? `RTT ${number(each.rtt_ms, 0)} ms` : "");
  return subflows.map(([name, each]) => tile(`Subflow ${name}`, number(each.mbps ?? 0), "Mb/s", rtt(each)));
}

function extremes(rates) {
  if (rates.length < 2) return [];
  const sorted = rates.toSorted(([, a], [, b]) => a - b);
  const made = (what, [name, mbps]) => tile(what, number(mbps), "Mb/s", name);
  return [made("Most", sorted.at(-1)), made("Least", sorted[0])];
}

// The rate of a tier, over all access points; as in result.json, over all subflows if relays make
// them cross several access points.
export function tierMbps(frame, tier, relayed) {
  const parts = relayed
    ? Object.values(frame.sf ?? {}).map((sf) => ((sf.tier ?? 1) === tier ? sf.mbps : 0))
    : Object.values(frame.ap ?? {}).map((ap) => ap[`tier${tier}_mbps`]);
  return parts.reduce((total, mbps) => total + (mbps ?? 0), 0);
}

// Why Tier 2 carries what it does: what the strategy said last of the fullest access point that it
// limits.
export function tier2Why(frame, run, events) {
  if (!run.multipath.length) return "no user has a second access point";
  const limited = Object.entries(frame.ap).filter(([, ap]) => (ap.meter_mbps ?? null) !== null);
  if (!limited.length) return `${TIER_2}; not limited`;
  limited.sort(([, a], [, b]) => (b.mac_occupancy ?? 0) - (a.mac_occupancy ?? 0));
  const [name, { meter_mbps }] = limited[0];
  const said = events.findLast((each) => each.subject === name && each.t <= frame.t + 1e-6);
  const others = limited.length > 1 ? `; ${limited.length - 1} more limited` : "";
  return `${name}: ${said?.reason || `limited to ${number(meter_mbps)} Mb/s`}${others}`;
}

// What users notice: the worst of each, and whose it is.
function noticed(user, { noticing }) {
  const known = (field) =>
    (noticing[field] ?? []).map((name) => [name, user[name]?.[field] ?? null]).filter(([, value]) => value !== null);
  const made = (name, field, unit, isWorse, what) => {
    if (!noticing[field]) return [];
    const worst = known(field).reduce((one, other) => (one && !isWorse(other[1], one[1]) ? one : other), null);
    return [tile(name, number(worst?.[1]), unit, worst ? `${worst[0]}${what}` : "none in this interval")];
  };
  const [more, less] = [(a, b) => a > b, (a, b) => a < b];
  return [
    ...made("Completion", "waited_s", "s", more, " waited longest, on average"),
    ...made("MOS of calls", "mos", "of 4.5", less, ", worst call, last 5 s"),
    ...made("Stood still", "stalled", "", more, "'s video, part of the time"),
  ];
}

// Data that waits in the receivers' reorder buffers; none if the run does not measure it.
function heldBack(users, run) {
  const known = users.map((user) => user.held_back_kb).filter((kb) => kb !== undefined && kb !== null);
  if (!known.length || !run.multipath.length) return [];
  const total = known.reduce((sum, kb) => sum + kb, 0);
  return [tile("Held back", number(total, 0), "kB", "arrived, but data before it is missing")];
}

// Show the means of a finished run; `summary` is that of the API.
export function showMeans(summary, run) {
  const { means, intervals, repeats } = summary;
  const known = (metric) => means[metric] !== null && means[metric] !== undefined;
  const made = (name, metric, unit, sub, full) =>
    known(metric)
      ? [tile(name, number(means[metric]), unit, range(intervals[metric]) || sub, full)]
      : [];
  const waited = (means["tiers.1"] ?? 0) + (means["tiers.2"] ?? 0) - means.throughput_mbps;
  const why =
    waited > WAITS_FROM * means.throughput_mbps
      ? `${number(waited)} Mb/s more arrived: it had to wait, or came twice`
      : "what applications read";
  const tiles = made("All users", "throughput_mbps", "Mb/s", why);
  if (run.has_tiers)
    tiles.push(
      ...made("Tier 1", "tiers.1", "Mb/s", TIER_1),
      ...made("Tier 2", "tiers.2", "Mb/s", TIER_2),
    );
  else
    tiles.push(
      ...extremes(Object.entries(means).flatMap(([metric, mbps]) => {
        const user = /^users\.(.+)\.throughput_mbps$/.exec(metric)?.[1];
        return user ? [[user, mbps ?? 0]] : [];
      })),
    );
  tiles.push(
    ...made("Completion", "flows.fct_p50_s", "s", "half of the transfers took at most this"),
    ...made("Slowest 1 %", "flows.fct_p99_s", "s", "99 % of the transfers took at most this"),
  );
  tiles.push(
    ...made("Bitrate", "video.bitrate_mbps", "Mb/s", "mean of the chunks of the videos"),
    ...made("Stalled", "video.stall_s", "s", "how long a video stood still, on average"),
    ...made("MOS of calls", "call.mos", "of 4.5", "how good they sound in their worse direction"),
    ...made("Worst 5 s", "call.mos_worst", "of 4.5", "MOS of the worst 5 s of a call"),
  );
  if (summary.held_back_kb !== null)
    tiles.push(
      tile(
        "Held back at most",
        number(summary.held_back_kb, 0),
        "kB",
        "at one receiver: arrived, but data before it was missing",
      ),
    );
  for (const metric of Object.keys(means)) {
    const ap = /^aps\.(.+)\.mac_occupancy_mean$/.exec(metric)?.[1];
    if (ap) tiles.push(...made(`${ap} occupancy`, metric, "", "", means[metric]));
  }
  const seeds = repeats > 1 ? `, and 95 % intervals over ${repeats} repeats` : "";
  const few = repeats > 1 && repeats < 5 ? " (from 5 repeats on)" : "";
  show(`Mean of the run, ${number(run.measured_s ?? run.state.t, 1)} s${seeds}${few}`, tiles);
}

const limit = (mbps) =>
  mbps === null || mbps === undefined
    ? "no limit on Tier 2"
    : `Tier 2 limited to ${number(mbps)} Mb/s`;

const range = (interval) =>
  interval ? `95 %: ${number(interval.low)} to ${number(interval.high)}, n = ${interval.n}` : "";

const tile = (name, value, unit, sub, full, threshold = 0.85) => ({ name, value, unit, sub, full, threshold });

function show(when, tiles) {
  $("tiles-when").textContent = when;
  const box = $("tiles");
  box.setAttribute("aria-label", when);
  const names = tiles.map((each) => each.name).join();
  if (box.dataset.shown !== names) {
    box.dataset.shown = names;
    box.replaceChildren(...tiles.map(made));
  }
  tiles.forEach((each, n) => fill(box.children[n], each));
}

// A tile that explains itself is a button; the page says what happens then.
function made({ name, full }) {
  const asks = name === WHY;
  const bar = full === undefined ? null : element("div", { class: "gauge", "aria-hidden": "true" }, element("i"));
  return element(
    asks ? "button" : "div",
    { class: "tile", type: asks ? "button" : null, "data-why": asks },
    element("span", { class: "top-line" }, element("span", { class: "name" }, name), element("span", { class: "value" })),
    bar,
    element("span", { class: "sub" }),
  );
}

function fill(node, { value, unit, sub, full, threshold }) {
  node.querySelector(".value").replaceChildren(value, " ", element("small", {}, unit));
  node.querySelector(".sub").textContent = sub || "\u00a0";
  node.title = sub ?? "";
  const bar = node.querySelector(".gauge");
  if (!bar) return;
  bar.firstChild.style.width = `${Math.min(100, 100 * (full ?? 0))}%`;
  bar.classList.toggle("hot", full >= threshold);
}
