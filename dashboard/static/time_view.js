// The view of a run: the time at which the page is, the span that the charts show, and the
// selection. All of it is in the address, so that a link shows the same view.
import { choose, selected } from "./selection.js";

export class TimeView extends EventTarget {
  constructor({ address = false } = {}) {
    super();
    this.t = null; // null: the present of a running run, the end of a finished one
    this.zoom = null; // [from, to] in s; null: everything, or the latest part of a running run
    this.address = address;
    if (!address) return;
    this.read();
    addEventListener("hashchange", () => this.read());
    document.addEventListener("select", () => this.write());
  }

  // Go to a time; null follows the run. While a replay plays, the address stays as it is.
  go(t, playing = false) {
    if (t === this.t && playing === this.playing) return;
    this.t = t;
    this.playing = playing;
    if (!playing) this.write();
    this.dispatchEvent(new Event("time"));
  }

  point(t) {
    this.pointed = t;
    this.dispatchEvent(new Event("point"));
  }

  zoomTo(span) {
    const same = span?.every((each, i) => Math.abs(each - (this.zoom?.[i] ?? NaN)) < 1e-6);
    if (same || (!span && !this.zoom)) return;
    this.zoom = span;
    this.write();
    this.dispatchEvent(new Event("zoom"));
  }

  read() {
    const found = new URLSearchParams(location.hash.slice(1));
    const t = Number.parseFloat(found.get("t"));
    const span = (found.get("zoom") ?? "").split("-").map(Number.parseFloat);
    const [kind, ...id] = (found.get("select") ?? "").split(":");
    this.zoomTo(span.length === 2 && span[0] < span[1] ? span : null);
    this.go(Number.isFinite(t) && t >= 0 ? t : null);
    choose(id.length ? { kind, id: id.join(":") } : null);
  }

  write() {
    if (!this.address) return;
    const parts = [];
    if (this.t !== null) parts.push(`t=${+this.t.toFixed(2)}`);
    if (this.zoom) parts.push(`zoom=${this.zoom.map((each) => +each.toFixed(2)).join("-")}`);
    if (selected()) parts.push(`select=${encodeURIComponent(`${selected().kind}:${selected().id}`)}`);
    const hash = parts.length ? `#${parts.join("&")}` : location.pathname + location.search;
    if (hash !== location.hash) history.replaceState(null, "", hash);
  }
}
