// The network, the time and the selection on the page of a run: this file joins the drawing, the
// charts, the scrubber, the event log and the controls.
import { $, number, toast } from "./app.js";
import { NetworkMap } from "./network_map.js";
import { choose, selected } from "./selection.js";
import { TimeBar } from "./time_bar.js";
import { Frames } from "./time_frames.js";
import { TimeView } from "./time_view.js";
import { around } from "./time_words.js";

export class RunView {
  // `run()` and `charts()` are the run and the charts of the page. `onShow` gets each sample that the
  // drawing shows, so that the tiles show the same.
  constructor({ path, run, charts, log, onShow }) {
    Object.assign(this, { path, run, charts, log, onShow });
    this.last = null; // the latest sample
    this.view = new TimeView({ address: true });
    this.frames = new Frames(path);
    const threshold = () =>
      run().targets.find((each) => each.name === "strategy.cth")?.value ?? 0.85;
    this.map = new NetworkMap({
      when: $("network-when"),
      box: $("drawing"),
      readout: $("readout"),
      table: $("network-table"),
      threshold,
    });
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
    if (this.view.t === null) this.map.follow(event);
  }

  sample(frame) {
    this.last = frame;
    if (this.view.t === null && !this.charts().paused) this.show(frame);
    this.bar.show();
  }

  // Show the network at the time of the page, and what happened around it.
  async showTime() {
    const { t, playing } = this.view;
    const events = this.log.events.filter((event) => t === null || event.t <= t + 1e-6);
    if (this.map.drawing) this.map.restart(events);
    this.showWords(t, playing);
    const query = new URLSearchParams({ width: this.map.width ?? 860 });
    if (t !== null) query.set("t", String(+t.toFixed(2)));
    $("network-file").href = `${this.path}/network.svg?${query}`;
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

  show(frame) {
    this.map.show(frame);
    this.onShow(frame);
  }

  showWords(t, playing) {
    $("around").hidden = t === null || Boolean(playing);
    if (t === null || playing) return;
    const users = this.charts().cards.get("users")?.traces ?? [];
    $("around-title").textContent = `Around ${number(t, 1)} s`;
    $("around-list").replaceChildren(...around(t, this.log.events, users));
  }

  showLabels() {
    const shown = $("drawing").firstElementChild?.classList.toggle("labelled");
    $("labels").setAttribute("aria-pressed", String(Boolean(shown)));
  }

  // ---- the selection, in the log and in the controls

  showSelection() {
    const chosen = selected();
    $("chosen").hidden = !chosen;
    if (chosen) $("chosen-name").textContent = `Selected: ${chosen.id}`;
    const related = this.related();
    const names = chosen && new Set([chosen.id, ...(chosen.kind === "link" ? related?.sf ?? [] : [])]);
    if (chosen?.kind === "sf") for (const user of related?.user ?? []) names.add(user);
    this.log.filter(names);
    this.openControls(chosen, related);
  }

  openControls(chosen, related) {
    const user = chosen?.kind === "sf" ? [...(related?.user ?? [])][0] : chosen?.id;
    let first = null;
    for (const form of document.querySelectorAll("#targets form")) {
      const parts = form.dataset.target.split(".").slice(1, -1);
      const mine = Boolean(chosen) && (parts.includes(chosen.id) || parts.includes(user));
      form.classList.toggle("chosen", mine);
      if (!mine) continue;
      first ??= form;
      form.closest("details").open = true;
    }
    const panel = $("controls");
    if (first && panel.scrollHeight > panel.clientHeight)
      panel.scrollTop += first.getBoundingClientRect().top - panel.getBoundingClientRect().top - 40;
  }
}
