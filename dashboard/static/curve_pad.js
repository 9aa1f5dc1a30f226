// A prediction that is drawn: axes on which the pointer draws a curve, and a table of the same
// points for the keyboard. The axes are a Plotly chart like all others.
import { css, element, number } from "./app.js";

const STEPS = 20; // the curve has one point more

export class CurvePad {
  constructor(step, changed) {
    Object.assign(this, step.curve, { changed, locked: false });
    this.times = Array.from({ length: STEPS + 1 }, (_, n) => (n * this.duration_s) / STEPS);
    this.values = null; // as many as times; null before anything is drawn
    this.plot = element("div", { class: "pad", role: "img", "aria-label": "Axes to draw on. The table below has the same points." });
    this.inputs = this.times.map((t) => this.input(t));
    const cells = this.times.map((t, n) =>
      element("label", {}, element("span", {}, `${+t.toFixed(2)} s`), this.inputs[n]),
    );
    this.clear = element("button", { type: "button", class: "quiet", onclick: () => this.edit(null) }, "Clear");
    this.help = element("p", { class: "help" }, `Draw from left to right: ${this.label}${this.unit ? ` in ${this.unit}` : ""}. `, this.clear);
    this.node = element(
      "div",
      { class: "curve", role: "group", "aria-labelledby": `ask-${step.id}` },
      this.plot,
      this.help,
      element("details", {}, element("summary", {}, "Write the points instead"), element("div", { class: "points-table" }, ...cells)),
    );
    this.draws();
    document.addEventListener("theme", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.plot);
  }

  input(t) {
    const input = element("input", { type: "number", min: 0, max: this.maximum, step: "any", "aria-label": `at ${+t.toFixed(2)} s` });
    input.addEventListener("change", () => {
      if (input.value === "" || !Number.isFinite(input.valueAsNumber)) return this.show();
      this.set(this.inputs.indexOf(input), input.valueAsNumber);
    });
    return input;
  }

  read() {
    return this.values && this.times.map((t, n) => [t, this.values[n]]);
  }

  // Show a saved curve, at the times of this pad.
  write(points) {
    this.values = points && this.times.map((t) => between(points, t));
    this.show();
  }

  lock(locked) {
    this.locked = locked;
    for (const each of [...this.inputs, this.clear]) each.disabled = locked;
    this.help.hidden = locked;
    this.plot.classList.toggle("locked", locked);
  }

  edit(values) {
    this.values = values;
    this.show();
    this.changed();
  }

  // The first point that is set makes a level; all later ones bend it.
  set(n, value) {
    const values = this.values ?? this.times.map(() => value);
    values[n] = Math.min(this.maximum, Math.max(0, value));
    this.edit(values);
  }

  draws() {
    let last = null; // the point at which the pointer was
    const at = (event) => {
      const { xaxis, yaxis } = this.plot._fullLayout ?? {};
      if (!xaxis) return null;
      const box = this.plot.getBoundingClientRect();
      const t = xaxis.p2l(event.clientX - box.left - xaxis._offset);
      const value = yaxis.p2l(event.clientY - box.top - yaxis._offset);
      return { n: Math.round(Math.min(1, Math.max(0, t / this.duration_s)) * STEPS), value: +value.toFixed(3) };
    };
    this.plot.addEventListener("pointerdown", (event) => {
      const found = !this.locked && at(event);
      if (!found) return;
      event.preventDefault();
      this.plot.setPointerCapture(event.pointerId);
      last = found;
      this.set(found.n, found.value);
    });
    this.plot.addEventListener("pointermove", (event) => {
      const found = last && at(event);
      if (!found) return;
      const way = Math.abs(found.n - last.n) || 1;
      for (let k = 1; k <= way; k += 1)
        this.values[last.n + Math.sign(found.n - last.n) * k] = clamp(last.value + ((found.value - last.value) * k) / way, this.maximum);
      this.edit(this.values);
      last = found;
    });
    for (const type of ["pointerup", "pointercancel"]) this.plot.addEventListener(type, () => (last = null));
  }

  show() {
    this.inputs.forEach((input, n) => (input.value = this.values ? number(this.values[n], 2) : ""));
    this.draw();
  }

  draw() {
    if (!window.Plotly || !this.plot.clientWidth) return;
    const axis = { gridcolor: css("--grid"), linecolor: css("--grid"), zeroline: false, fixedrange: true };
    const line = { color: css("--ink"), width: 3, dash: "dash" };
    const trace = { x: this.times, y: this.values ?? [], mode: "lines", line, hoverinfo: "skip" };
    const layout = {
      width: this.plot.clientWidth,
      height: 230,
      margin: { l: 52, r: 14, t: 8, b: 36 },
      dragmode: false,
      hovermode: false,
      showlegend: false,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { size: 12, color: css("--ink"), family: "system-ui, sans-serif" },
      xaxis: { ...axis, range: [0, this.duration_s], title: { text: "s", standoff: 4 } },
      yaxis: { ...axis, range: [0, this.maximum], title: { text: this.unit } },
    };
    Plotly.react(this.plot, [trace], layout, { displayModeBar: false, showSendToCloud: false, staticPlot: true });
  }
}

const clamp = (value, most) => Math.min(most, Math.max(0, +value.toFixed(3)));

// The value of a curve at a time, on the line between its points.
function between(points, t) {
  const after = points.findIndex(([at]) => at >= t - 1e-9);
  if (after <= 0) return points.at(after)[1];
  const [[t0, y0], [t1, y1]] = [points[after - 1], points[after]];
  return +(y0 + ((y1 - y0) * (t - t0)) / (t1 - t0)).toFixed(3);
}
