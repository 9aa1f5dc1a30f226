// The samples of a run at any time. They are fetched in spans of a minute, and few are kept.
import { api } from "./app.js";

const SPAN_S = 60;
const MOST_SPANS = 4;

export class Frames {
  constructor(path) {
    this.path = path;
    this.spans = new Map();
  }

  // The last sample at or before `t`, or the first one. `reached` is the time of the latest sample.
  async at(t, reached) {
    const n = Math.floor(Math.max(0, t) / SPAN_S);
    const frames = await this.span(n, Math.min(reached, (n + 1) * SPAN_S));
    const before = frames.filter((frame) => frame.t <= t + 1e-6).at(-1);
    if (before) return before;
    return (n > 0 ? (await this.span(n - 1, n * SPAN_S)).at(-1) : null) ?? frames[0] ?? null;
  }

  async span(n, until) {
    const known = this.spans.get(n);
    if (known && known.until >= until - 1e-6) return known.frames;
    const asking = api(`${this.path}/samples?from=${n * SPAN_S}&to=${(n + 1) * SPAN_S}`);
    const entry = { until, frames: asking };
    this.spans.delete(n);
    this.spans.set(n, entry);
    while (this.spans.size > MOST_SPANS) this.spans.delete(this.spans.keys().next().value);
    try {
      entry.frames = await asking;
    } catch (error) {
      this.spans.delete(n);
      throw error;
    }
    return entry.frames;
  }
}
