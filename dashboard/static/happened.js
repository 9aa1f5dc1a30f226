// The card that says what just happened: what the changes of the run did, what was around a time, why
// Tier 2 has its rate, and the outcome when the run is over.
import { $, element, number } from "./app.js";

const DECISIONS = 3; // that the card shows

export class Happened {
  // `events()` are those of the run, `frame()` its sample at the time of the page.
  constructor({ run, view, events, frame }) {
    Object.assign(this, { run, view, events, frame });
    this.why = false; // the card says why
    $("tiles").addEventListener("click", (event) => {
      if (event.target.closest("[data-why]")) this.explain(!this.why);
    });
    $("close-why").addEventListener("click", () => this.explain(false));
    new MutationObserver(() => this.show()).observe($("effects"), { childList: true });
    view.addEventListener("time", () => this.show());
  }

  explain(wanted) {
    this.why = wanted;
    this.show();
    if (wanted) $("screen").dataset.tab = "happened";
  }

  show() {
    const { t, playing } = this.view;
    const { over } = this.run().state;
    const around = !this.why && t !== null && !playing;
    const outcome = !this.why && !around && over;
    $("why").hidden = $("close-why").hidden = !this.why;
    $("around").hidden = !around;
    $("outcome-short").hidden = $("in-full").hidden = !outcome;
    $("effects").hidden = this.why || around;
    $("nothing").hidden = this.why || around || over || $("effects").childElementCount > 0;
    $("decided").hidden = this.why || around || over;
    $("next").hidden = !outcome;
    if (!$("nothing").hidden) this.invite();
    if (this.why) this.showWhy();
    else $("happened-title").textContent = around ? `Around ${number(t, 1)} s` : over ? "Outcome" : "Just happened";
  }

  // What can be tried, and what to watch then.
  invite() {
    const { to_try: suggestions } = this.run();
    const letters = suggestions.map((_, n) => String.fromCharCode(65 + n));
    const listed = letters.length ? `Press ${letters.join(", ").replace(/, (?=.$)/, " or ")}, or click` : "Click";
    const row = ({ watch }, n) => element("li", {}, element("b", {}, letters[n]), ` Watch ${watch}.`);
    $("nothing").replaceChildren(
      element("p", {}, `You have changed nothing yet. ${listed} something in the network.`),
      element("ul", {}, ...suggestions.map(row)),
    );
  }

  // The latest decisions of the strategy.
  decided() {
    const latest = this.events().filter((each) => each.kind === "decision" && !each.quiet).slice(-DECISIONS).reverse();
    const key = String(latest.map((each) => each.n));
    if ($("decided").dataset.shown === key) return;
    $("decided").dataset.shown = key;
    const row = (each) => element("li", {}, `${number(each.t, 1)} s: ${each.title}. `, element("span", { class: "muted" }, each.reason));
    $("decided").replaceChildren(...latest.map(row));
  }

  // The latest decision about each access point, and what it was seen from.
  showWhy() {
    const frame = this.frame();
    if (!frame) return;
    $("happened-title").textContent = `Why Tier 2 is what it is, at ${number(frame.t, 1)} s`;
    const rows = Object.entries(frame.ap ?? {}).map(([name, ap]) =>
      element("li", {}, element("b", {}, `${name}: ${number(ap.tier2_mbps)} Mb/s. `), reason(this.decision(name, frame.t), ap)),
    );
    $("why").replaceChildren(element("ul", {}, ...rows));
  }

  decision(ap, t) {
    return this.events().findLast((event) => event.kind === "decision" && event.t <= t + 1e-6 && event.subject === ap);
  }
}

function reason(decision, { meter_mbps, mac_occupancy }) {
  const full = mac_occupancy === null ? "" : ` Its radio is ${Math.round(100 * mac_occupancy)} % busy.`;
  const limit =
    meter_mbps === null || meter_mbps === undefined
      ? "No limit: second subflows take what they can get."
      : `A meter lets second subflows have ${number(meter_mbps)} Mb/s together.`;
  const last = decision ? ` Decided at ${number(decision.t, 1)} s: ${decision.reason || decision.title}.` : "";
  return `${limit}${full}${last}`;
}

// The first two sentences of a text.
export function twoSentences(text) {
  const parts = text.replaceAll("\n", " ").match(/.+?[.?!](?=\s|$)\s*/g) ?? [text];
  return parts.slice(0, 2).join("").trim();
}
