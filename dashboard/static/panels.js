// The parts of the first screen that a small window cannot show at once: tabs on a telephone, and the
// controls as a drawer. A reloaded page shows the same tab.
import { $ } from "./app.js";

const TAB = "tab";

export function panels() {
  const tabs = [...document.querySelectorAll(".tabs [role=tab]")];
  const show = (name) => {
    $("screen").dataset.tab = name;
    for (const each of tabs) {
      each.setAttribute("aria-selected", String(each.dataset.tab === name));
      each.tabIndex = each.dataset.tab === name ? 0 : -1;
    }
    sessionStorage.setItem(TAB, name);
  };
  for (const [n, each] of tabs.entries()) {
    each.addEventListener("click", () => show(each.dataset.tab));
    each.addEventListener("keydown", ({ key }) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
      if (!step) return;
      const next = tabs[(n + step + tabs.length) % tabs.length];
      show(next.dataset.tab);
      next.focus();
    });
  }
  show(sessionStorage.getItem(TAB) ?? "chart");
  $("open-knobs").addEventListener("click", () => openKnobs(true));
  $("close-knobs").addEventListener("click", () => openKnobs(false));
  $("controls").addEventListener("keydown", (event) => event.key === "Escape" && openKnobs(false));
}

function openKnobs(open) {
  $("controls").classList.toggle("open", open);
  $("open-knobs").setAttribute("aria-expanded", String(open));
  $(open ? "close-knobs" : "open-knobs").focus();
}
