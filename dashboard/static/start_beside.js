// On the form that starts a run: a race of two to four lanes, and a run over an earlier one.
import { $, api, element } from "./app.js";
import { grouped, option } from "./fields.js";
import { keepGhost } from "./ghost.js";
import { differing, settingsOf } from "./run_words.js";

const MOST_LANES = 4;
const MOST_GHOSTS = 30;
const STRATEGY = "strategy ";
const CC = "cc ";

export class Beside {
  // `request()` is the body of the form; `start(path, body)` sends it and opens the page of the answer.
  constructor({ scenario, strategies, meant, engines, cc }, request, start) {
    Object.assign(this, { scenario, request, start, meant });
    this.names = strategies.filter((each) => !each.unfit).map((each) => each.name);
    const simulators = engines.filter((each) => !each.real_time);
    this.ccs = cc.filter((name) => simulators.some((each) => each.cc.includes(name)));
    this.fillLanes();
    $("race").addEventListener("click", () => this.race());
    $("start-over").addEventListener("click", () => start("/api/runs", request(), ({ id }) => keepGhost(id, $("ghost").value)));
    this.fillGhosts();
  }

  // The strategy of the scenario against none; another one if that is its own.
  preselected() {
    const own = this.scenario.strategy;
    const others = [...this.meant, ...this.names].filter((name) => name !== own && this.names.includes(name));
    const other = own !== "none" && others.includes("none") ? "none" : others[0];
    return other === "none" ? [other, own] : [own, other];
  }

  fillLanes() {
    const first = this.preselected();
    $("race-lanes").replaceChildren(
      ...Array.from({ length: MOST_LANES }, (_, n) => this.lane("ABCD"[n], n < 2 ? first[n] : null)),
    );
    $("more-lanes").addEventListener("click", () => this.showMore());
  }

  lane(letter, chosen) {
    const made = (name) => option(STRATEGY + name, name, name === chosen);
    const ccs = element("optgroup", { label: "Congestion control" }, ...this.ccs.map((name) => option(CC + name, name)));
    const none = chosen ? [] : [option("", "–", true)];
    return element("select", { "aria-label": `Lane ${letter}`, hidden: !chosen }, ...none, ...grouped(this.names, made, this.meant), ccs);
  }

  showMore() {
    const [next, ...more] = [...$("race-lanes").children].filter((list) => list.hidden);
    next.hidden = false;
    next.focus();
    $("more-lanes").hidden = !more.length;
  }

  race() {
    const chosen = [...$("race-lanes").children].map((list) => list.value).filter(Boolean);
    const lanes = chosen.map((value) =>
      value.startsWith(CC) ? { cc: value.slice(CC.length) } : { strategy: value.slice(STRATEGY.length) },
    );
    this.start("/api/races", { start: this.request(), lanes });
  }

  async fillGhosts() {
    const found = await api(`/api/runs?scenario=${encodeURIComponent(this.scenario.name)}&limit=${MOST_GHOSTS}`).catch(() => []);
    const runs = found.filter(({ status }) => status !== "starting");
    const more = differing(runs);
    $("ghost").replaceChildren(...runs.map((each) => option(each.id, settingsOf(each, each, more))));
    $("ghost-box").hidden = !runs.length;
  }
}
