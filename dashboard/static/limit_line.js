// A rate limit as a line on its chart, which is dragged or moved with the arrow keys: the rate of the
// selected link, the limit of the selected user, or that of Tier 1 at the selected access point.
import { element, number } from "./app.js";
import { selected } from "./selection.js";

const PLACE_MS = 300;
const SEND_MS = 600; // after the last key
const OF = {
  link: ["links", (id) => `link.${id}.rate_mbps`],
  user: ["users", (id) => `user.${id}.demand_mbps`],
  ap: ["tiers", (id) => `cell.${id}.tier1_mbps`],
};

export class LimitLine {
  // `run()` is the run of the page; `flip(target, value)` changes it.
  constructor(charts, run, flip) {
    Object.assign(this, { charts, run, flip, value: null, held: false });
    this.text = element("span");
    this.node = element("div", { class: "limit", role: "slider", tabindex: 0, "aria-orientation": "vertical", "aria-valuemin": 0 }, this.text);
    this.node.addEventListener("pointerdown", (event) => this.grabbed(event));
    this.node.addEventListener("pointermove", (event) => this.held && this.dragged(event));
    for (const type of ["pointerup", "pointercancel"]) this.node.addEventListener(type, () => this.dropped());
    this.node.addEventListener("keydown", (event) => this.keyPressed(event));
    document.addEventListener("select", () => this.show());
    setInterval(() => selected() && this.show(), PLACE_MS);
  }

  // The chart and the target of the selection, if there are both.
  subject() {
    const chosen = selected();
    const [chart, name] = OF[chosen?.kind] ?? [];
    const target = chart && this.run().targets.find((each) => each.name === name(chosen.id));
    const card = this.charts.cards.get(chart);
    return target && card && !this.run().state.over ? { target, card } : null;
  }

  axis() {
    return this.subject()?.card.plot._fullLayout?.yaxis ?? null;
  }

  show() {
    const found = this.subject();
    const axis = this.axis();
    if (!found || !axis || found.card.plot.hidden) return this.node.remove();
    const { target, card } = found;
    const stage = card.plot.parentElement;
    if (this.node.parentElement !== stage) stage.append(this.node);
    this.node.setAttribute("aria-label", `Limit of ${selected().id}`);
    this.node.setAttribute("aria-valuemax", axis.range[1].toFixed(1));
    if (!this.held) this.value = target.value;
    this.place(axis);
    return undefined;
  }

  place(axis) {
    const free = this.value === null;
    const shown = free ? axis.range[1] : Math.min(this.value, axis.range[1]);
    this.node.style.top = `${axis._offset + axis.l2p(shown)}px`;
    this.node.classList.toggle("free", free || axis.l2p(shown) < 16);
    const words = free ? "no limit: drag down to set one" : `limit ${number(this.value, 1)} Mb/s`;
    if (this.text.textContent !== words) this.text.textContent = words;
    this.node.setAttribute("aria-valuenow", String(+shown.toFixed(2)));
    this.node.setAttribute("aria-valuetext", words);
  }

  grabbed(event) {
    event.preventDefault();
    event.stopPropagation();
    this.node.setPointerCapture(event.pointerId);
    this.node.focus();
    this.held = true;
  }

  dragged(event) {
    const axis = this.axis();
    if (!axis) return;
    const { top } = this.node.parentElement.getBoundingClientRect();
    this.change(axis, axis.p2l(event.clientY - top - axis._offset));
  }

  // Above the chart is no limit, but a smaller limit stays one where a chart that is drawn anew ends
  // below it.
  change(axis, mbps) {
    if (!Number.isFinite(mbps)) return; // the chart is being drawn anew
    const { minimum, maximum, nullable } = this.subject().target;
    const above = mbps >= axis.range[1] && !(mbps < this.value);
    this.value = above && nullable ? null : +Math.min(maximum, Math.max(minimum, mbps)).toFixed(2);
    this.place(axis);
  }

  dropped() {
    if (!this.held) return;
    this.held = false;
    this.send();
  }

  send() {
    const { target } = this.subject() ?? {};
    if (target && target.value !== this.value) this.flip(target.name, this.value);
  }

  keyPressed(event) {
    const step = { ArrowUp: 1, ArrowDown: -1, PageUp: 5, PageDown: -5 }[event.key];
    const axis = this.axis();
    if (!step || !axis) return;
    event.preventDefault();
    this.held = true;
    const now = this.value ?? axis.range[1];
    this.change(axis, now + (step * axis.range[1]) / 50);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.dropped(), SEND_MS);
  }
}
