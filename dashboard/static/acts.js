// What can be done in the drawing itself: cut and repair links, by the scissors on a link, by the key
// x on it, or by the button below the drawing when it is selected. The interfaces of a selected user
// have buttons there, too.
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

  // The targets that switch a link: the cable, and the interface at its user.
  switches(line) {
    const known = new Set(this.run().targets.map((each) => each.name));
    return [`link.${line.id}.up`, line.interface].filter((each) => known.has(each));
  }

  isDown(line, target) {
    return this.map.paths[target === line.interface ? "off" : "down"].has(line.id);
  }

  words(line, target) {
    const down = this.isDown(line, target);
    const [kind, user, name] = target.split(".");
    if (kind === "iface") return `Switch ${down ? "on" : "off"} ${name} of ${user}`;
    return `${down ? (line.air ? "Switch on" : "Repair") : line.air ? "Switch off" : "Cut"} ${line.id}`;
  }

  // Put scissors on the links of a drawing that was just loaded.
  place() {
    this.handles.clear();
    const group = document.createElementNS(SVG, "g");
    const cuttable = this.map.drawing.lines.filter((line) => this.switches(line)[0]?.startsWith("link."));
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
      const line = this.map.drawing.lines.find((each) => each.id === id);
      const down = this.isDown(line, this.switches(line)[0]);
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

  // The selected link, or the links of the selected user's interfaces.
  links() {
    const chosen = selected();
    const own = (line) =>
      (chosen.kind === "link" && line.id === chosen.id) ||
      (chosen.kind === "user" && (line.air || line.interface) && [line.a, line.b].includes(chosen.id));
    return chosen && this.map.drawing ? this.map.drawing.lines.filter(own) : [];
  }

  showButtons() {
    const lines = this.run().state.over ? [] : this.links();
    const words = lines.flatMap((line) => this.switches(line).map((target) => [target, this.isDown(line, target), this.words(line, target)]));
    const text = JSON.stringify(words);
    if ($("acts").dataset.shown === text) return;
    $("acts").dataset.shown = text;
    const button = ([target, down, label]) => element("button", { type: "button", onclick: () => this.flip(target, down) }, label);
    $("acts").replaceChildren(...words.map(button));
  }

  turn(link) {
    const line = this.map.drawing.lines.find((each) => each.id === link);
    const [target] = this.run().state.over ? [] : this.switches(line);
    if (target) this.flip(target, this.isDown(line, target));
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
