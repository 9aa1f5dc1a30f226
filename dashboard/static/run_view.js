// The network, the time and the selection on the page of a run: this file joins the drawing, the
// charts, the scrubber, the event log, the controls and the card that says what happened.
import { $, toast } from "./app.js";
import { Acts } from "./acts.js";
import { pick } from "./controls.js";
import { Flow } from "./flow.js";
import { Happened } from "./happened.js";
import { NetworkMap } from "./network_map.js";
import { choose, selected } from "./selection.js";
import { TimeBar } from "./time_bar.js";
import { Frames } from "./time_frames.js";
import { TimeView } from "./time_view.js";
import { around } from "./time_words.js";
import { Walk } from "./walk.js";

export class RunView {
  // `run()` and `charts()` are the run and the charts of the page; `flip(target, value)` changes it.
  // `onShow` gets each sample that the drawing shows, so that the tiles show the same.
  constructor({ path, run, charts, log, flip, onShow }) {
    Object.assign(this, { path, run, charts, log, onShow });
    this.last = null; // the latest sample
    this.shown = null; // the sample that the page shows
    this.view = new TimeView({ address: true });
    this.frames = new Frames(path);
    const threshold = () =>
      run().targets.find((each) => each.name === "strategy.cth")?.value ?? 0.85;
    this.map = new NetworkMap({
      box: $("drawing"),
      readout: $("readout"),
      table: $("network-table"),
      threshold,
      fits: true,
    });
    this.acts = new Acts(this.map, run, flip);
    this.walk = new Walk(this.map, run, flip);
    this.map.onDrawn = () => {
      this.acts.place();
      this.walk.place();
      this.showFile();
    };
    this.flow = new Flow(this.map, () => this.moves(), () => [...this.map.discs(), ...this.acts.discs()]);
    this.happened = new Happened({ run, view: this.view, events: () => log.events, frame: () => this.shown });
    this.bar = new TimeBar($("time"), this.view, {
      events: () => log.events,
      reached: () => this.last?.t ?? 0,
      duration: () => (run().state.over && this.last ? this.last.t : run().duration_s),
      live: () => !run().state.over,
    });
    this.view.addEventListener("time", () => this.showTime());
    document.addEventListener("select", () => this.showSelection());
    document.addEventListener("shortcut", ({ detail: { key } }) => {
      if (key === "n" || key === "p") this.bar.step(key === "n" ? 1 : -1);
      if (key === "r" && run().state.over) this.bar.toggle();
    });
    $("labels").addEventListener("click", () => this.showLabels());
    $("unselect").addEventListener("click", () => choose(null));
  }

  async load() {
    try {
      await this.map.load(`${this.path}/network`);
    } catch (error) {
      $("readout").textContent = error.message;
      return;
    }
    this.showTime();
    this.showSelection();
  }

  related() {
    return this.map.related();
  }

  event(event) {
    if (this.view.t !== null) return;
    this.map.follow(event);
    this.acts.show();
  }

  // Whether time passes on the page.
  moves() {
    const { state } = this.run();
    if (state.over) return Boolean(this.view.playing);
    return this.view.t === null && !state.paused && !this.charts().paused;
  }

  sample(frame) {
    this.last = frame;
    if (this.view.t === null && !this.charts().paused) this.show(frame);
    this.bar.show();
  }

  show(frame) {
    this.shown = frame;
    this.map.show(frame);
    this.acts.show();
    this.walk.show(frame);
    this.happened.decided();
    this.onShow(frame);
  }

  // Show the network at the time of the page, and what happened around it.
  async showTime() {
    const { t, playing } = this.view;
    const events = this.log.events.filter((event) => t === null || event.t <= t + 1e-6);
    if (this.map.drawing) this.map.restart(events);
    this.showWords(t, playing);
    this.showFile();
    let frame = this.last;
    if (t !== null) {
      try {
        frame = await this.frames.at(t, this.last?.t ?? 0);
      } catch (error) {
        toast(error.message, true);
        return;
      }
      if (this.view.t !== t && !this.view.playing) return; // the page has moved on
    }
    if (frame) this.show(frame);
  }

  // The file of the drawing has the size and the time of the page.
  showFile() {
    const query = new URLSearchParams({ width: this.map.width ?? 860, height: this.map.height ?? 400 });
    if (this.view.t !== null) query.set("t", String(+this.view.t.toFixed(2)));
    $("network-file").href = `${this.path}/network.svg?${query}`;
  }

  showWords(t, playing) {
    if (t === null || playing) return;
    const users = this.charts().cards.get("users")?.traces ?? [];
    $("around-list").replaceChildren(...around(t, this.log.events, users));
  }

  showLabels() {
    const shown = $("drawing").firstElementChild?.classList.toggle("labelled");
    $("labels").setAttribute("aria-pressed", String(Boolean(shown)));
  }

  // ---- the selection, in the log and in the controls

  showSelection() {
    const chosen = selected();
    const related = this.related();
    const names = chosen && new Set([chosen.id, ...(chosen.kind === "link" ? related?.sf ?? [] : [])]);
    if (chosen?.kind === "sf") for (const user of related?.user ?? []) names.add(user);
    this.log.filter(names);
    this.pickControls(chosen, related);
  }

  // The controls of what is selected come first; without a selection, those of the strategy.
  pickControls(chosen, related) {
    if (!$("targets").dataset.targets) return;
    const names = chosen ? chosen.id.split("~") : [];
    if (chosen?.kind === "sf") names.push(...(related?.user ?? []));
    const about = (target) => target.split(".").slice(1, -1);
    const mine = (target) =>
      chosen ? isAbout(about(target), names) : target === "cc" || target.split(".")[0] === "strategy";
    const count = pick(mine);
    $("unselect").hidden = !chosen;
    $("knobs-title").textContent = chosen ? chosen.id : "Change the run";
    const nothing = chosen && !count ? "Nothing of it can be changed while the run goes on." : "";
    $("knobs-note").textContent = nothing || (this.run().state.over ? "The run is over. What you set here starts a new run with it, same seed." : "");
    $("controls").scrollTop = 0;
  }
}

// Whether a target with these ids belongs to the selection; a radio link has two.
const isAbout = (ids, names) =>
  names.length === 2 && ids.length === 2
    ? names.every((each) => ids.includes(each))
    : ids.some((each) => names.includes(each));
