// What flows, as dots that move along the subflows: the faster the rate, the faster they move and the
// closer they follow each other. All dots are on one canvas, and there are never more than MOST, so
// that a network of many subflows costs as much as a small one.
import { css } from "./app.js";

const MOST = 240; // dots
const FRAME_MS = 100;
const [SLOWEST, FASTEST] = [14, 110]; // pixels of the drawing per second
const [FAR, NEAR] = [80, 20]; // pixels between two dots
const LEAST_MBPS = 0.02;

export class Flow {
  // `map` has the subflows; `moves()` says whether time passes on the page; `covers()` has the discs
  // [x, y, radius] that lie above the dots.
  constructor(map, moves, covers) {
    Object.assign(this, { map, moves, covers, visible: true, shift: new Map() });
    this.canvas = document.createElement("canvas");
    this.canvas.className = "flow";
    this.canvas.setAttribute("aria-hidden", "true");
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    new IntersectionObserver(([entry]) => (this.visible = entry.isIntersecting)).observe(map.box);
    setInterval(() => this.tick(), FRAME_MS);
  }

  tick() {
    const now = performance.now();
    const passed = Math.min(0.5, (now - (this.before ?? now)) / 1000);
    this.before = now;
    if (document.hidden || !this.visible || !this.map.svg) return;
    const running = this.moves() && !this.still.matches;
    if (running) this.draw(passed);
    else if (this.drawn) this.clear();
  }

  clear() {
    this.drawn = false;
    this.canvas.getContext("2d").clearRect(0, 0, this.canvas.width, this.canvas.height);
  }

  draw(passed) {
    const { box, svg, drawing, flows } = this.map;
    if (!this.canvas.isConnected) box.append(this.canvas);
    const [width, height] = [box.clientWidth, box.clientHeight];
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    const scale = Math.min(width / drawing.width, height / drawing.height); // as the SVG fits its box
    const pen = this.canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, width, height);
    const { x, y } = svg.getBoundingClientRect();
    const here = box.getBoundingClientRect();
    const left = x - here.x + (svg.clientWidth - scale * drawing.width) / 2;
    const top = y - here.y + (svg.clientHeight - scale * drawing.height) / 2;
    pen.setTransform(scale, 0, 0, scale, left, top);
    pen.fillStyle = css("--card");
    const busy = flows.filter((each) => each.mbps > LEAST_MBPS);
    const room = MOST / Math.max(1, busy.length);
    const before = this.shift;
    this.shift = new Map(busy.map(({ id }) => [id, before.get(id) ?? 0]));
    for (const each of busy) this.dots(pen, each, drawing.full_mbps, passed, room);
    this.cover(pen);
    this.drawn = true;
  }

  cover(pen) {
    pen.globalCompositeOperation = "destination-out";
    pen.beginPath();
    for (const [x, y, radius] of this.covers()) {
      pen.moveTo(x + radius, y);
      pen.arc(x, y, radius, 0, 7);
    }
    pen.fill();
    pen.globalCompositeOperation = "source-over";
  }

  dots(pen, { id, points, mbps, width }, full, passed, room) {
    const load = Math.sqrt(Math.min(1, mbps / full));
    const length = lengthOf(points);
    const gap = Math.max(FAR - (FAR - NEAR) * load, length / room);
    const shift = (this.shift.get(id) + passed * (SLOWEST + (FASTEST - SLOWEST) * load)) % gap;
    this.shift.set(id, shift);
    const size = Math.max(1.4, 0.45 * width);
    pen.beginPath();
    let next = shift;
    for (let i = 1; i < points.length; i++) {
      const [[x1, y1], [x2, y2]] = [points[i - 1], points[i]];
      const part = Math.hypot(x2 - x1, y2 - y1);
      for (; next < part; next += gap) {
        const [x, y] = [x1 + ((x2 - x1) * next) / part, y1 + ((y2 - y1) * next) / part];
        pen.moveTo(x + size, y);
        pen.arc(x, y, size, 0, 7);
      }
      next -= part;
    }
    pen.fill();
  }
}

function lengthOf(points) {
  let sum = 0;
  for (let i = 1; i < points.length; i++)
    sum += Math.hypot(points[i][0] - points[i - 1][0], points[i][1] - points[i - 1][1]);
  return sum;
}
