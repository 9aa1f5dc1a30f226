// The drawer Explain: closed at first, with a badge until it was opened once. The browser remembers
// whether it is open.
import { $ } from "./app.js";

const READ = "explain-read",
  OPEN = "explain-open";

export function explains() {
  const show = (open) => {
    $("intro").hidden = !open;
    $("explain").setAttribute("aria-expanded", String(open));
    localStorage.setItem(OPEN, open ? "yes" : "no");
    if (open) localStorage.setItem(READ, "yes");
    $("explain-new").hidden = localStorage.getItem(READ) === "yes";
  };
  const close = () => {
    show(false);
    $("explain").focus();
  };
  show(localStorage.getItem(OPEN) === "yes");
  $("explain").addEventListener("click", () => {
    show($("intro").hidden);
    if (!$("intro").hidden) $("intro-close").focus();
  });
  $("intro-close").addEventListener("click", close);
  $("intro").addEventListener("keydown", (event) => event.key === "Escape" && close());
}
