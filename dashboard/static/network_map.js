// The drawing of a network, which the server sends as SVG. This file keeps it up to date: it shows
// a sample of a run, and it selects what is clicked or reached with the keys.
import { api, element, number } from "./app.js";
import { describe, linkText } from "./network_words.js";
import { beside, ends, lanes, normal, polylines, widthOf } from "./network_lanes.js";
import { owner, Paths } from "./network_paths.js";
import { styleOf } from "./subflow_style.js";
import { choose, selected, toggle } from "./selection.js";

const SVG = "http://www.w3.org/2000/svg";
const [THIN, BESIDE] = [3, 3]; // width of a link without subflows, and around them
const FULL = 0.9; // load from which on a link is full
const USERS = 16; // colours of users
const FIGURES_BELOW = 13; // as in dashboard/network/svg.py
const OTHER_SIZE = 0.08; // a smaller change of the size only scales the drawing

export class NetworkMap {
  // `threshold()`: from this occupancy on, the air of a cell counts as congested.
  // With `fits`, the drawing also has the height of its box.
  constructor({ box, readout, table, threshold = () => 0.85, fits = false }) {
    Object.assign(this, { box, readout, table, threshold, fits });
    this.flows = []; // what flows now: {id, points, mbps, width} for each subflow
    this.onDrawn = null; // called when a new drawing is shown
    this.frame = null;
    this.hint = readout.textContent;
    box.addEventListener("click", (event) => this.clicked(this.meant(event)));
    box.addEventListener("keydown", (event) => this.keyPressed(event));
    for (const type of ["pointerover", "focusin"])
      box.addEventListener(type, (event) => this.pointedAt(event.target.closest(".item")));
    for (const type of ["pointerleave", "focusout"])
      box.addEventListener(type, () => this.pointedAt(null));
    table.closest("details").addEventListener("toggle", () => this.showTable());
    document.addEventListener("select", () => this.showSelection());
    new ResizeObserver(() => this.fitSoon()).observe(box);
  }

  // Load the drawing for the size of its box. `paths` are known if only the size has changed.
  async load(path, paths = null) {
    const { width, height } = this.room();
    const labelled = this.svg?.classList.contains("labelled") ?? false;
    Object.assign(this, { path, width, height });
    const size = `width=${width}${this.fits ? `&height=${height}` : ""}`;
    const found = await api(`${path}${path.includes("?") ? "&" : "?"}${size}`);
    if (this.path !== path || this.width !== width || this.height !== height) return; // a newer drawing is on its way
    const focused = this.box.contains(document.activeElement) ? document.activeElement.dataset : null;
    this.drawing = found.drawing;
    this.box.innerHTML = found.svg; // made by this server, with every name escaped
    this.svg = this.box.querySelector("svg");
    this.lines = new Map(this.drawing.lines.map((line) => [line.id, line]));
    this.places = this.home = Object.fromEntries(this.drawing.nodes.map((node) => [node.id, [node.x, node.y]]));
    this.parts = new Map();
    for (const part of this.box.querySelectorAll(".item"))
      this.parts.set(`${part.dataset.kind} ${part.dataset.id}`, part);
    this.names = new Map();
    for (const name of this.box.querySelectorAll(".name")) this.names.set(name.dataset.link, name);
    const part = focused && this.parts.get(`${focused.kind} ${focused.id}`);
    (part ?? this.svg.querySelector(".spot")).setAttribute("tabindex", "0");
    part?.focus();
    this.svg.classList.toggle("labelled", labelled);
    this.paths = Object.assign(paths ?? new Paths(this.drawing), { drawing: this.drawing });
    this.drawnPaths = new Map();
    this.readout.textContent = this.hint;
    this.onDrawn?.();
    if (this.frame) this.show(this.frame);
    this.showSelection();
    this.showTable();
  }

  // Draw the network once more if its box has another size.
  fitSoon() {
    clearTimeout(this.fitting);
    this.fitting = setTimeout(() => {
      if (!this.drawing || !this.box.clientWidth) return;
      const { width, height } = this.room();
      const other = (now, before) => Math.abs(now - before) >= OTHER_SIZE * before;
      if (!other(width, this.width) && !(this.fits && other(height, this.height))) return;
      this.load(this.path, this.paths).catch(() => null); // the old drawing stays
    }, 200);
  }

  room() {
    const width = Math.round(this.box.clientWidth || document.documentElement.clientWidth);
    return { width, height: Math.round(this.box.clientHeight) };
  }

  // Forget all events, and follow these.
  restart(events) {
    this.paths = new Paths(this.drawing);
    for (const event of events) this.paths.follow(event);
  }

  follow(event) {
    this.paths?.follow(event);
  }

  show(frame) {
    this.frame = frame;
    if (!this.svg) return;
    this.svg.classList.toggle("running", true);
    const places = (this.places = { ...this.home, ...this.moved(frame) });
    this.showSubflows(frame, places);
    const crossing = connections(this.drawnPaths);
    for (const line of this.drawing.lines)
      this.showLine(line, frame, places, crossing.get(ends(line.a, line.b))?.size ?? 0);
    for (const node of this.drawing.nodes) this.showNode(node, frame, places[node.id]);
    if (selected() || this.pointed) this.showSelection();
    this.showTable();
  }

  // The places of the nodes, each with a radius: [x, y, radius].
  discs() {
    return [...this.parts.values()]
      .filter((part) => part.matches(".spot"))
      .map((part) => [...this.places[part.dataset.id], Number((part.querySelector(".track") ?? part.querySelector(".body")).getAttribute("r")) + 2]);
  }

  moved(frame) {
    if (!this.drawing.area) return {};
    const [left, top, side, metres] = this.drawing.area;
    const found = {};
    for (const [user, { x_m, y_m }] of Object.entries(frame.user ?? {}))
      if (x_m !== undefined && x_m !== null)
        found[user] = [left + (x_m * side) / metres, top + (y_m * side) / metres];
    return found;
  }

  showSubflows(frame, places) {
    this.drawnPaths = new Map();
    for (const [name, sample] of Object.entries(frame.sf ?? {})) {
      const path = this.paths.of(name, sample);
      if (path.length && path.every((node) => places[node])) this.drawnPaths.set(name, path);
    }
    const widths = new Map();
    for (const name of this.drawnPaths.keys())
      widths.set(name, widthOf(frame.sf[name].mbps, this.drawing.full_mbps));
    this.lanes = lanes(this.drawnPaths, widths, this.drawing.ribbon);
    const points = polylines(this.drawnPaths, places, this.lanes);
    this.flows = [];
    for (const [key, part] of this.parts)
      if (part.dataset.kind === "sf" && !this.drawnPaths.has(part.dataset.id)) {
        part.remove();
        this.parts.delete(key);
      }
    for (const name of this.drawnPaths.keys()) {
      const sample = frame.sf[name];
      const part = this.parts.get(`sf ${name}`) ?? this.newSubflow(name, sample);
      const text = points.get(name).map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`);
      put(part, "points", text.join(" "));
      put(part, "stroke-width", widths.get(name).toFixed(1));
      this.flows.push({ id: name, points: points.get(name), mbps: sample.mbps ?? 0, width: widths.get(name) });
      const style = `d${styleOf(name, frame)}`;
      if (part.dataset.style !== style) part.classList.remove(part.dataset.style);
      part.classList.add((part.dataset.style = style));
      part.classList.toggle("backup", Boolean(sample.backup));
      part.classList.toggle("idle", (sample.mbps ?? 0) < 0.005);
    }
  }

  newSubflow(name, sample) {
    const part = document.createElementNS(SVG, "polyline");
    const { user } = owner(name, sample);
    const mine = this.drawing.nodes.find((node) => node.id === user)?.colour ?? 0;
    const number = Math.max(1, Number(name.split("/").at(-1)) || 1);
    const colour = this.drawing.by_subflow ? (number - 1) % USERS : mine;
    put(part, "class", `item subflow c${colour}`);
    for (const [key, value] of [
      ["role", "button"],
      ["tabindex", "-1"],
      ["aria-label", `subflow ${name} of ${user}`],
    ])
      put(part, key, value);
    Object.assign(part.dataset, { kind: "sf", id: name });
    this.svg.querySelector(".subflows").append(part);
    this.parts.set(`sf ${name}`, part);
    return part;
  }

  showLine(line, frame, places, crossing) {
    const part = this.parts.get(`link ${line.id}`);
    const sample = frame.link?.[line.id] ?? {};
    const { rate_mbps, rate_back_mbps } = this.paths.ratesOf(line);
    const loadOf = (mbps, rate) => (rate ? Math.min(1, (mbps ?? 0) / rate) : 0);
    const load =
      rate_back_mbps === null
        ? loadOf(sample.mbps, rate_mbps)
        : Math.max(loadOf(sample.mbps_ab, rate_mbps), loadOf(sample.mbps_ba, rate_back_mbps));
    const [cable, grip, cross, text] = part.children;
    const width = (this.lanes.widths.get(ends(line.a, line.b)) ?? 0) + BESIDE;
    put(cable, "stroke-width", Math.max(THIN, width).toFixed(1));
    part.classList.toggle("full", load >= FULL);
    part.classList.toggle("down", this.paths.isDown(line.id));
    const figures = linkText({ ...line, rate_mbps, rate_back_mbps }, sample);
    if (text.textContent !== figures) text.textContent = figures;
    const [dx, dy] = normal(places[line.a], places[line.b]).map((each) => each * line.shift);
    const [x1, y1] = [places[line.a][0] + dx, places[line.a][1] + dy];
    const [x2, y2] = [places[line.b][0] + dx, places[line.b][1] + dy];
    for (const each of [cable, grip])
      for (const [name, value] of Object.entries({ x1, y1, x2, y2 })) put(each, name, +value.toFixed(1));
    put(cross, "transform", `translate(${(x1 + x2) / 2},${(y1 + y2) / 2})`);
    put(text, "x", (x1 + x2) / 2);
    put(text, "y", (y1 + y2) / 2 + FIGURES_BELOW);
    const name = this.names.get(line.id);
    if (!name) return;
    const called = load >= FULL && crossing > 1 ? `${line.id}: ${crossing} share it` : line.id;
    if (name.lastChild.textContent !== called) name.lastChild.textContent = called;
    const [left, above] = beside([x1, y1], [x2, y2], width, called.length, line.name_side);
    put(name, "x", +(x1 + line.name_at * (x2 - x1) + left).toFixed(1));
    put(name, "y", +(y1 + line.name_at * (y2 - y1) + above).toFixed(1));
  }

  showNode(node, frame, [x, y]) {
    const part = this.parts.get(`${kindOf(node)} ${node.id}`);
    put(part, "transform", `translate(${+x.toFixed(1)},${+y.toFixed(1)})`);
    const ring = part.querySelector(".ring");
    if (!ring) return;
    const full = frame.ap?.[node.id]?.mac_occupancy ?? 0;
    put(ring, "stroke-dasharray", `${Math.round(100 * Math.min(1, full))} 200`);
    part.classList.toggle("hot", full >= this.threshold());
  }

  // ---- selection

  // The ids that belong to the selection, by kind; null if nothing is selected.
  related() {
    const chosen = selected();
    if (!chosen || !this.drawing) return null;
    const found = { link: new Set(), ap: new Set(), user: new Set(), sf: new Set(), node: new Set() };
    found[chosen.kind]?.add(chosen.id);
    const line = chosen.kind === "link" ? this.lines.get(chosen.id) : null;
    for (const [name, path] of this.drawnPaths ?? [])
      if (
        (chosen.kind === "sf" && name === chosen.id) ||
        (line ? joins(path, line) : path.includes(chosen.id))
      ) {
        found.sf.add(name);
        if (chosen.kind === "link" || chosen.kind === "node") found.user.add(path.at(-1));
        else this.addPath(found, path, chosen.kind === "ap");
      }
    return found;
  }

  addPath(found, path, onlyUser) {
    found.user.add(path.at(-1));
    if (onlyUser) return;
    for (const line of this.drawing.lines) if (joins(path, line)) found.link.add(line.id);
    for (const node of this.drawing.nodes)
      if (path.includes(node.id)) found[kindOf(node)].add(node.id);
  }

  showSelection() {
    if (!this.svg) return;
    const chosen = selected();
    const related = this.related();
    this.svg.classList.toggle("choosing", Boolean(chosen));
    for (const part of this.parts.values()) {
      const { kind, id } = part.dataset;
      const mine = chosen?.kind === kind && chosen.id === id;
      part.classList.toggle("chosen", mine);
      part.classList.toggle("related", Boolean(related?.[kind]?.has(id)));
      put(part, "aria-pressed", String(mine));
    }
    this.pointedAt(this.pointed);
  }

  clicked(part) {
    if (part) toggle(part.dataset.kind, part.dataset.id);
    else choose(null);
  }

  // The part that a click means: a link before the subflows on it; the link whose middle is nearest,
  // if links cross; and the subflow on a link that is selected already.
  meant({ clientX: x, clientY: y, target }) {
    const under = document.elementsFromPoint(x, y).map((each) => each.closest?.(".item"));
    const parts = [...new Set(under)].filter((each) => each && this.box.contains(each));
    const links = parts.filter((each) => each.dataset.kind === "link");
    const first = parts.find((each) => each.dataset.kind !== "sf") ?? parts[0] ?? target.closest(".item");
    if (first?.dataset.kind !== "link") return first;
    const link = links.sort((a, b) => away(a, x, y) - away(b, x, y))[0];
    const chosen = selected();
    const isChosen = (each) => chosen?.kind === each.dataset.kind && chosen.id === each.dataset.id;
    const lines = parts.filter((each) => each.dataset.kind === "sf");
    return lines.find(isChosen) ?? (isChosen(link) ? (lines[0] ?? link) : link);
  }

  keyPressed(event) {
    const all = [...this.parts.values()];
    const here = all.indexOf(event.target.closest(".item"));
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      const next = all[(here + step + all.length) % all.length];
      for (const part of all) put(part, "tabindex", part === next ? "0" : "-1");
      next.focus();
    } else if (event.key === "Enter" || event.key === " ") this.clicked(all[here]);
    else if (event.key === "Escape") choose(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // ---- words

  pointedAt(part) {
    this.pointed = part?.isConnected ? part : null;
    const { kind, id } = this.pointed?.dataset ?? selected() ?? {};
    const row = kind && this.rows().find((each) => each.kind === kind && each.id === id);
    this.readout.textContent = row ? `${row.name}, ${row.where}: ${row.figures}` : this.hint;
  }

  rows() {
    return this.drawing ? describe(this.drawing, this.frame, this.drawnPaths, this.paths) : [];
  }

  showTable() {
    if (!this.drawing || !this.table.closest("details").open) return;
    const cells = (row, tag) =>
      element("tr", {}, ...row.map((text) => element(tag, {}, text)));
    this.table.replaceChildren(
      element(
        "table",
        {},
        element(
          "caption",
          { class: "hidden" },
          this.frame ? `The network at ${number(this.frame.t, 1)} s` : "The network",
        ),
        element("thead", {}, cells(["What", "Where", "Figures"], "th")),
        element(
          "tbody",
          {},
          ...this.rows().map((row) => cells([row.name, row.where, row.figures], "td")),
        ),
      ),
    );
  }
}

// The connections that cross each link, by its ends.
function connections(paths) {
  const found = new Map();
  for (const [name, path] of paths)
    for (let i = 1; i < path.length; i++) {
      const link = ends(path[i - 1], path[i]);
      if (!found.has(link)) found.set(link, new Set());
      found.get(link).add(name.slice(0, name.lastIndexOf("/")));
    }
  return found;
}

function put(part, name, value) {
  if (part.getAttribute(name) !== String(value)) part.setAttribute(name, value);
}

// The distance in pixels of a point on the screen from the middle of a link.
function away(part, x, y) {
  const cable = part.querySelector(".cable");
  const on = cable.getScreenCTM().inverse();
  const point = new DOMPoint(x, y).matrixTransform(on);
  const [x1, y1, x2, y2] = ["x1", "y1", "x2", "y2"].map((name) => Number(cable.getAttribute(name)));
  const length = (x2 - x1) ** 2 + (y2 - y1) ** 2 || 1;
  const along = Math.min(1, Math.max(0, ((point.x - x1) * (x2 - x1) + (point.y - y1) * (y2 - y1)) / length));
  return Math.hypot(point.x - x1 - along * (x2 - x1), point.y - y1 - along * (y2 - y1));
}

const kindOf = (node) =>
  ["wifi", "lte"].includes(node.kind) ? "ap" : node.kind === "user" ? "user" : "node";

function joins(path, line) {
  return path.some(
    (node, i) =>
      i > 0 &&
      ((node === line.a && path[i - 1] === line.b) || (node === line.b && path[i - 1] === line.a)),
  );
}
