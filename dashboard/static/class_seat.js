// The worksheets of a seat, with how far each has come.
import { $, element } from "./app.js";
import { follow, minutes, showClass } from "./class_link.js";

function card(sheet) {
  const facts = sheet.opened
    ? [`${sheet.done} of ${sheet.steps} steps`, sheet.points === null ? null : `${sheet.points} of ${sheet.of} points`, sheet.left_s === null ? null : `${minutes(sheet.left_s)} left`]
    : [`${sheet.minutes} min`, `${sheet.of} points`];
  const bar = element("div", { class: "progress", "aria-hidden": "true" }, element("div"));
  bar.firstChild.style.width = `${(100 * sheet.done) / Math.max(1, sheet.steps)}%`;
  return element(
    "article",
    { class: "card scenario" },
    element("h2", {}, element("a", { href: `/seat/${encodeURIComponent(sheet.name)}` }, sheet.title)),
    element("ul", {}, ...sheet.goals.map((goal) => element("li", {}, goal))),
    sheet.opened ? bar : null,
    element("p", { class: "meta spread" }, facts.filter(Boolean).join(" · "), element("b", { class: "go", "aria-hidden": "true" }, sheet.opened ? "Continue" : "Open")),
  );
}

let drawn = "";
follow("/api/class/stream", "seat", (seat) => {
  showClass(seat);
  const text = JSON.stringify(seat.worksheets.map((each) => ({ ...each, left_s: Math.ceil((each.left_s ?? 0) / 60) })));
  if (text === drawn) return;
  drawn = text;
  $("sheets").replaceChildren(...seat.worksheets.map(card));
});
