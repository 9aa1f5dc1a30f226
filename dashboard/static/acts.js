// What can be done in the drawing itself: cut and repair links, by the scissors on a link, by the key
// x on it, or by the button below the drawing when it is selected.
import { $, element } from "./app.js";
import { selected } from "./selection.js";

const SVG = "http://www.w3.org/2000/svg";
const AT = 0.64; // where the scissors are, as a part of the link's length from its first end
const MANY = 14; // links; with more, or on a map, scissors appear only where the pointer is or on a selected link
const SCISSORS = "M-3,-2L5,3M-3,2L5,-3M-6.4,-3.2a1.9,1.9 0 1 0 3.8,0a1.9,1.9 0 1 0 -3.8,0M-6.4,3.2a1.9,1.9 0 1 0 3.8,0a1.9,1.9 0 1 0 -3.8,0";
const REPAIR = "M-5,0H5M0,-5V5";

export class Acts {
  // `run()` is the run of the page; `flip(target, value)` changes it.
  constructor(map, run, flip) {
    Object.assign(this, { map, run, flip, handles: new Map() });
    map.box.addEventListener("click", (event) => this.clicked(event), true);
    map.box.addEventListener("keydown", (event) => this.keyPressed(event), true);
    document.addEventListener("select", () => this.show());
  }

  switchOf(link) {
    return this.run().targets.find((each) => each.name === `link.${link}.up`);
  }

  // Put scissors on the links of a drawing that was just loaded.
  place() {
    this.handles.clear();
    const group = document.createElementNS(SVG, "g");
    const cuttable = this.map.drawing.lines.filter((line) => this.switchOf(line.id));
    group.setAttribute("class", cuttable.length > MANY || this.map.drawing.area ? "snips many" : "snips");
    for (const line of this.run().state.over ? [] : cuttable) {
      const handle = document.createElementNS(SVG, "g");
      handle.innerHTML = `<circle r="9"/><path d="${SCISSORS}"/>`;
      handle.setAttribute("class", "snip");
      handle.dataset.link = line.id;
      this.handles.set(line.id, handle);
      group.append(handle);
    }
    this.map.svg.querySelector(".nodes").before(group);
    this.show();
  }

  show() {
    if (!this.map.drawing) return;
    const chosen = selected();
    for (const [id, handle] of this.handles) {
      const cable = this.map.parts.get(`link ${id}`).querySelector(".cable");
      const [x1, y1, x2, y2] = ["x1", "y1", "x2", "y2"].map((name) => Number(cable.getAttribute(name)));
      handle.place = [x1 + AT * (x2 - x1), y1 + AT * (y2 - y1)];
      handle.setAttribute("transform", `translate(${handle.place})`);
      const down = this.map.paths.down.has(id);
      handle.classList.toggle("down", down);
      handle.classList.toggle("chosen", chosen?.kind === "link" && chosen.id === id);
      const shape = down ? REPAIR : SCISSORS;
      if (handle.lastChild.getAttribute("d") !== shape) handle.lastChild.setAttribute("d", shape);
    }
    this.showButtons();
  }

  // The places of the scissors that are always shown, each with a radius: [x, y, radius].
  discs() {
    return [...this.handles.values()].filter((each) => each.parentElement.matches(":not(.many)")).map((each) => [...each.place, 9]);
  }

  // The selected link, or the radio links of the selected user.
  links() {
    const chosen = selected();
    const own = (line) =>
      (chosen.kind === "link" && line.id === chosen.id) ||
      (chosen.kind === "user" && line.air && [line.a, line.b].includes(chosen.id));
    return chosen && this.map.drawing ? this.map.drawing.lines.filter(own) : [];
  }

  showButtons() {
    const wanted = this.run().state.over ? [] : this.links().filter((line) => this.switchOf(line.id));
    const words = wanted.map(({ id, air }) => [id, `${this.map.paths.down.has(id) ? (air ? "Switch on" : "Repair") : air ? "Switch off" : "Cut"} ${id}`]);
    const text = JSON.stringify(words);
    if ($("acts").dataset.shown === text) return;
    $("acts").dataset.shown = text;
    const button = ([id, label]) => element("button", { type: "button", onclick: () => this.turn(id) }, label);
    $("acts").replaceChildren(...words.map(button));
  }

  turn(link) {
    if (!this.run().state.over && this.switchOf(link)) this.flip(`link.${link}.up`, this.map.paths.down.has(link));
  }

  clicked(event) {
    const link = event.target.closest?.(".snip")?.dataset.link;
    if (!link) return;
    event.stopPropagation();
    this.turn(link);
  }

  keyPressed(event) {
    const { kind, id } = event.target.closest?.(".item")?.dataset ?? {};
    if (event.key !== "x" || kind !== "link") return;
    event.preventDefault();
    event.stopPropagation();
    this.turn(id);
  }
}
