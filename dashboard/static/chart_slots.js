// Which charts are on the first screen of a run: the throughput by tier, or the first chart of a
// network without tiers, and a second one chosen from a list. The others are below the screen.
import { element } from "./app.js";

const NOTICED = ["calls", "videos", "waits"]; // what people feel comes first
const KEPT = "second-chart"; // in the browser's storage

export class Slots {
  // `choice` is in the head of the first chart.
  constructor(first, second, below, choice) {
    Object.assign(this, { first, second, below, choice });
    this.list = element("select", { "aria-label": "Second chart" });
    this.list.addEventListener("change", () => {
      sessionStorage.setItem(KEPT, this.list.value);
      this.arrange(this.cards);
    });
  }

  // Put the cards of the charts, by name, into their places.
  arrange(cards) {
    this.cards = cards;
    const names = [...cards.keys()];
    const main = names.includes("tiers") ? "tiers" : names[0];
    const others = names.filter((name) => name !== main);
    const wanted = [sessionStorage.getItem(KEPT), ...NOTICED, "users", others[0]].find((name) => others.includes(name));
    for (const [name, card] of cards) {
      const box = name === main ? this.first : name === wanted ? this.second : this.below;
      if (card.node.parentElement !== box) box.append(card.node);
      card.node.toggleAttribute("data-part", box === this.below);
      if (box === this.below) card.node.dataset.part = "chart-more";
      card.node.querySelector("h3").hidden = box === this.second;
    }
    for (const name of others) this.below.contains(cards.get(name).node) && this.below.append(cards.get(name).node);
    cards.get(main)?.node.querySelector("header h3").after(this.choice);
    if (!wanted) return;
    this.fill(others, cards);
    this.list.value = wanted;
    cards.get(wanted).node.querySelector("header").prepend(this.list);
  }

  fill(names, cards) {
    const text = names.join();
    if (this.list.dataset.shown === text) return;
    this.list.dataset.shown = text;
    this.list.replaceChildren(
      ...names.map((name) => element("option", { value: name }, cards.get(name).node.querySelector("h3").textContent)),
    );
  }
}
