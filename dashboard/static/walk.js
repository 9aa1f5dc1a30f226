// Users that are moved in the drawing, where their radio rates follow from where they are: dragged, or
// with the arrow keys while they are selected. A ghost shows where a user is going to stand.
import { $ } from "./app.js";
import { choose, selected } from "./selection.js";

const SVG = "http://www.w3.org/2000/svg";
const USER = ".spot[data-kind=user]";
const FAR_PX = 4; // a pointer that has moved less clicks
const SEND_MS = 600; // after the last key
const LOST_MS = 4000; // the ghost of a change that has no effect until then
const NEAR_M = 0.1;
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const written = ([x, y]) => `${+x.toFixed(1)}, ${+y.toFixed(1)} m`;

export class Walk {
  // `run()` is the run of the page; `flip(target, value)` changes it.
  constructor(map, run, flip) {
    Object.assign(this, { map, run, flip, ghost: null, pressed: null, hasDragged: false });
    const { box } = map;
    box.addEventListener("pointerdown", (event) => this.grabbed(event));
    box.addEventListener("pointermove", (event) => this.dragged(event));
    // A finger on a user drags it and scrolls nothing. Browsers ignore `touch-action` of parts of an SVG.
    box.addEventListener("touchmove", (event) => this.pressed && event.cancelable && event.preventDefault(), { passive: false });
    box.addEventListener("pointerup", () => this.dropped());
    box.addEventListener("pointercancel", () => this.forget());
    box.addEventListener("click", (event) => this.clicked(event), true);
    box.addEventListener("keydown", (event) => this.keyPressed(event), true);
  }

  // The target that moves a user, if it can be moved in this drawing.
  target(user) {
    const { area } = this.map.drawing ?? {};
    if (!area || this.run().state.over || document.body.dataset.mayChange === "no") return null;
    return this.run().targets.find((each) => each.name === `user.${user}.position`) ?? null;
  }

  // Mark who can be moved in a drawing that was just loaded.
  place() {
    for (const part of this.map.svg.querySelectorAll(USER))
      part.classList.toggle("movable", Boolean(this.target(part.dataset.id)));
  }

  // A ghost goes when its user stands there.
  show(frame) {
    const { ghost } = this;
    if (!ghost) return;
    const { x_m, y_m } = frame.user?.[ghost.user] ?? {};
    const isThere = Math.hypot(x_m - ghost.at[0], y_m - ghost.at[1]) < NEAR_M;
    if (ghost.sent && (isThere || performance.now() - ghost.sent > LOST_MS)) this.forget();
    else if (!ghost.node.isConnected) this.map.svg.append(ghost.node); // the drawing is a new one
  }

  // ---- pointer

  grabbed(event) {
    this.hasDragged = false;
    const user = event.target.closest?.(USER)?.dataset.id;
    if (event.button || !user || !this.target(user)) return;
    this.pressed = { user, id: event.pointerId, from: [event.clientX, event.clientY] };
  }

  dragged({ pointerId, clientX, clientY }) {
    const { user, id, from } = this.pressed ?? {};
    if (pointerId !== id || !this.target(user)) return;
    if (!this.hasDragged && Math.hypot(clientX - from[0], clientY - from[1]) < FAR_PX) return;
    if (!this.hasDragged) {
      this.hasDragged = true;
      this.map.box.setPointerCapture(id);
      choose({ kind: "user", id: user });
    }
    const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(this.map.svg.getScreenCTM().inverse());
    this.showGhost(user, this.metres([x, y]));
  }

  dropped() {
    const moves = this.pressed && this.hasDragged;
    this.pressed = null;
    if (moves) this.send();
  }

  // A click at the end of a drag selects nothing.
  clicked(event) {
    if (!this.hasDragged) return;
    this.hasDragged = false;
    event.stopPropagation();
  }

  // ---- keys

  keyPressed(event) {
    const user = event.target.closest?.(USER)?.dataset.id;
    const step = STEPS[event.key];
    const chosen = selected();
    if (event.key === "Escape") this.forget();
    if (!step || chosen?.kind !== "user" || chosen.id !== user || !this.target(user)) return;
    event.preventDefault();
    event.stopPropagation();
    const from = this.ghost?.user === user ? this.ghost.at : (this.target(user).value ?? this.metres(this.map.places[user]));
    const far_m = event.shiftKey ? 10 : 1;
    this.showGhost(user, [from[0] + far_m * step[0], from[1] + far_m * step[1]]);
    $("walked").textContent = `${user} to ${written(this.ghost.at)}`;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.send(), SEND_MS);
  }

  // ---- the ghost

  metres([x, y]) {
    const [left, top, side, side_m] = this.map.drawing.area;
    return [((x - left) * side_m) / side, ((y - top) * side_m) / side];
  }

  showGhost(user, place) {
    if (this.ghost?.user !== user) this.removeGhost();
    const { minimum, maximum } = this.target(user);
    const at = place.map((each) => +Math.min(maximum, Math.max(minimum, each)).toFixed(1));
    this.ghost ??= { user, node: this.copy(user) };
    Object.assign(this.ghost, { at, sent: null });
    const [left, top, side, side_m] = this.map.drawing.area;
    const [x, y] = at.map((each) => (each * side) / side_m);
    this.ghost.node.setAttribute("transform", `translate(${(left + x).toFixed(1)},${(top + y).toFixed(1)})`);
    this.ghost.node.lastChild.textContent = written(at);
    if (!this.ghost.node.isConnected) this.map.svg.append(this.ghost.node);
  }

  copy(user) {
    const node = this.map.parts.get(`user ${user}`).cloneNode(true);
    for (const name of ["role", "tabindex", "aria-label", "aria-pressed", "data-kind", "data-id"]) node.removeAttribute(name);
    node.setAttribute("class", "ghost");
    node.setAttribute("aria-hidden", "true");
    const words = document.createElementNS(SVG, "text");
    for (const [name, value] of Object.entries({ y: -16, "text-anchor": "middle", "font-size": 11 })) words.setAttribute(name, value);
    node.append(words);
    return node;
  }

  send() {
    clearTimeout(this.timer);
    const { ghost } = this;
    if (!ghost || ghost.sent) return;
    ghost.sent = performance.now();
    this.flip(`user.${ghost.user}.position`, ghost.at);
  }

  forget() {
    this.pressed = null;
    this.removeGhost();
  }

  removeGhost() {
    clearTimeout(this.timer);
    this.ghost?.node.remove();
    this.ghost = null;
  }
}
